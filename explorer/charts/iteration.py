"""Iteration: one step of the engine under the roofs of its chip, by operator, and on a time line."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.utils.translation import gettext as _

from explorer import wording
from explorer.charts import style
from explorer.charts.style import Cell, Chart, Result, Segment, StackBar, Table
from simcore.report.trace import LANES, Event, Iteration, in_turn, iterations

KPIS: Final = (
    "compute.decode_step_s",
    "compute.prefill_step_s",
    "serving.mean_batch_size",
    "serving.mbu_fraction",
    "serving.mfu_fraction",
    "compute.random_expert_imbalance_ratio",
    "compute.lockstep_step_ratio",
)
HEIGHT: Final = 380
_LEFT, _RIGHT, _TOP, _BOTTOM = 2.0, 98.0, 24, 344  # per cent across, pixels down
_LABELLED: Final = 0.04  # share of a step from which a point has its name beside it
_LANE_HEIGHT: Final = 26
_SMALL: Final = 0.2  # per cent of the plot's width: thinner blocks are left to the table

TRAINING_PHASES: Final = ("forward", "backward", "once")

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """An operator under the roofs; x in per cent of the width, y in pixels."""

    metric: str
    label: str
    said: str
    phase: str
    bound: str
    x: float
    y: float
    size: float
    label_y: float | None  # None: too small to be labelled
    label_end: bool

    @property
    def is_round(self) -> bool:
        """Decode and forward are circles, prefill and backward squares."""
        return self.phase in ("decode", "forward")

    @property
    def side(self) -> float:
        """Of a square with about the area of the circle."""
        return round(1.8 * self.size, 1)

    @property
    def reach(self) -> float:
        """Radius that takes a press."""
        return self.size + 3

    @property
    def corner(self) -> float:
        return round(-0.9 * self.size, 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Roof:
    """A line with its name."""

    label: str
    x1: float
    y1: float
    x2: float
    y2: float

    @property
    def middle(self) -> tuple[float, float]:
        return (self.x1 + self.x2) / 2, (self.y1 + self.y2) / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    at: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Roofline:
    """The picture: log-log, FLOP per byte across, FLOP per second up."""

    points: tuple[Point, ...]
    roofs: tuple[Roof, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    bottom: int = _BOTTOM
    left: float = _LEFT
    right: float = _RIGHT
    height: int = HEIGHT


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """An event on its lane; per cent of the width."""

    label: str
    resource: str
    on: str
    left: float
    width: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    label: str
    top: int
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """Lanes over one stretch of time."""

    name: str
    total: str
    lanes: tuple[Lane, ...]
    height: int


def rows(result: Result | None, phase: str = "") -> list[Row]:
    """The operators of a phase, or all."""
    return [row for row in style.rows(result, "operators") if phase in ("", row["phase"])]


def metric_of(row: Row) -> str:
    """What opens the row's Why: the step's metric, and the name of the operator's seconds within it."""
    if row["phase"] in TRAINING_PHASES:
        return f"training.{row['phase']}_s@{row['term']}"
    return f"compute.{row['phase']}_step_s@{row['term']}"


def phase_name(phase: str) -> str:
    return {
        "decode": _("Decode"),
        "prefill": _("Prefill"),
        "forward": _("Forward"),
        "backward": _("Backward"),
        "once": _("Once per step"),
    }.get(phase, phase)


def headline(result: Result | None) -> str:
    """What a decode step does most of its time."""
    found = rows(result, "decode")
    if not found:
        return _("No iteration: this scenario serves no requests")
    total = sum(row["s"] for row in found)
    by_bound = {bound: sum(row["s"] for row in found if row["bound"] == bound) for bound in _bounds(found)}
    most = max(by_bound, key=lambda bound: by_bound[bound])
    return _("A decode step takes %(total)s, and %(share)s of it waits for %(resource)s") % {
        "total": style.number(total, "step_s"),
        "share": style.percent(by_bound[most] / total, digits=0),
        "resource": wording.resource_in_text(most),
    }


def _bounds(found: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(str(row["bound"]) for row in found))


# --- roofline -----------------------------------------------------------------------------------------------


def roofline(result: Result | None) -> Chart | None:
    """Every operator with arithmetic under the roofs of the chip."""
    plotted = [row for row in rows(result) if row.get("attained_flop_per_s")]
    roofs = style.rows(result, "roofs")
    if not plotted or not roofs:
        return None
    return Chart(
        slug="roofline",
        title=_roofline_title(plotted),
        axis=_roofline_axis(plotted),
        summary=_roofline_summary(plotted),
        source=_("Closed form of one micro-batch on the slowest stage; roofs from the datasheet")
        if _trains(plotted)
        else _("Step model at the mean batch; roofs from the datasheet"),
        draw="roofline",
        body=_drawing(plotted, roofs),
        table=_operator_table(result),
        wide=True,
    )


def _trains(found: Sequence[Row]) -> bool:
    return any(row["phase"] in TRAINING_PHASES for row in found)


def _roofline_axis(plotted: Sequence[Row]) -> str:
    if _trains(plotted):
        return _("FLOP per second of one chip over FLOP per byte of HBM; circles forward, squares backward")
    return _("FLOP per second of one chip over FLOP per byte of HBM; circles decode, squares prefill")


def _roofline_title(plotted: Sequence[Row]) -> str:
    if _trains(plotted):
        return _training_roofline_title(plotted)
    decode = [row for row in plotted if row["phase"] == "decode"]
    under = [row for row in decode if row["bound"] == "hbm"]
    if len(under) == len(decode):
        return _("In decode every operator hangs on the memory roof")
    words = {"count": len(under), "total": len(decode)}
    if not under:
        return _("In decode every operator hangs on the compute roof")
    return _("In decode %(count)s of %(total)s operators hang on the memory roof") % words


def _training_roofline_title(plotted: Sequence[Row]) -> str:
    seconds = {phase: sum(row["s"] for row in plotted if row["phase"] == phase) for phase in _phases(plotted)}
    most = max((row for row in plotted if row["phase"] == "forward"), key=lambda row: row["s"])
    return _("%(operator)s takes most of the arithmetic, %(share)s of the forward products' time") % {
        "operator": wording.operator(str(most["operator"])),
        "share": style.percent(most["s"] / seconds["forward"], digits=0),
    }


def _roofline_summary(plotted: Sequence[Row]) -> str:
    parts = ", ".join(_said(row) for row in plotted)
    return _("Operators under the roofs of the chip: %(parts)s.") % {"parts": parts}


def _said(row: Row) -> str:
    return _("%(operator)s (%(phase)s) at %(rate)s with %(intensity)s FLOP per byte") % {
        "operator": wording.operator(str(row["operator"])),
        "phase": phase_name(str(row["phase"])),
        "rate": style.number(row["attained_flop_per_s"], "flop_per_s"),
        "intensity": f"{row['intensity_flop_per_byte']:,.3g}",
    }


def _drawing(plotted: Sequence[Row], roofs: Sequence[Row]) -> Roofline:
    bandwidth = next(float(roof["per_s"]) for roof in roofs if roof["kind"] == "hbm")
    peaks = [(str(roof["dtype"]), float(roof["per_s"])) for roof in roofs if roof["kind"] == "compute"]
    intensities = [float(row["intensity_flop_per_byte"]) for row in plotted]
    highest = max(peak for _dtype, peak in peaks)
    x_low, x_high = _decades([*intensities, *(peak / bandwidth for _dtype, peak in peaks)])
    y_low, _top = _decades([float(row["attained_flop_per_s"]) for row in plotted])
    y_high = math.log10(highest)
    y_high += min(0.25, 0.15 * (y_high - y_low))

    def x(value: float) -> float:
        share = (math.log10(value) - x_low) / (x_high - x_low)
        return round(_LEFT + min(max(share, 0.0), 1.0) * (_RIGHT - _LEFT), 3)

    def y(value: float) -> float:
        share = (math.log10(value) - y_low) / (y_high - y_low)
        return round(_BOTTOM - share * (_BOTTOM - _TOP), 1)

    start = max(10**x_low, 10**y_low / bandwidth)
    lines = [
        Roof(
            label=_("HBM %(rate)s") % {"rate": style.number(bandwidth, "bytes_per_s")},
            x1=x(start),
            y1=y(start * bandwidth),
            x2=x(highest / bandwidth),
            y2=y(highest),
        )
    ]
    lines += [
        Roof(
            label=f"{dtype} {style.number(peak, 'flop_per_s')}",
            x1=x(peak / bandwidth),
            y1=y(peak),
            x2=_RIGHT,
            y2=y(peak),
        )
        for dtype, peak in peaks
    ]
    totals = {phase: sum(row["s"] for row in plotted if row["phase"] == phase) for phase in _phases(plotted)}
    found = [
        (
            row,
            x(row["intensity_flop_per_byte"]),
            y(row["attained_flop_per_s"]),
            row["s"] / totals[row["phase"]],
        )
        for row in plotted
    ]
    return Roofline(
        points=_points(found),
        roofs=tuple(lines),
        x_ticks=tuple(Tick(at=x(10.0**power), text=_plain(power)) for power in _powers(x_low, x_high)),
        y_ticks=tuple(
            Tick(at=y(10.0**power), text=str(style.number(10.0**power, "flop_per_s")))
            for power in _powers(y_low, y_high)
        ),
    )


def _phases(found: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(str(row["phase"]) for row in found))


def _decades(values: Sequence[float]) -> tuple[float, float]:
    """Half decades around the values, as logarithms."""
    low, high = math.log10(min(values)), math.log10(max(values))
    return math.floor(2 * low - 0.3) / 2, math.ceil(2 * high + 0.3) / 2


def _powers(low: float, high: float) -> range:
    return range(math.ceil(low), math.floor(high) + 1)


def _plain(power: int) -> str:
    return f"{10**power:,}" if power >= 0 else f"{10.0**power:g}"


def _points(found: Sequence[tuple[Row, float, float, float]]) -> tuple[Point, ...]:
    """Large operators are labelled, beside their mark, none over another label."""
    taken: list[tuple[float, float]] = []
    points = []
    for row, x, y, share in sorted(found, key=lambda one: -one[3]):
        # gradients of an operator stand where its forward does
        labelled = share >= _LABELLED and row["phase"] != "backward"
        label_y = _free_place(x, y, taken) if labelled else None
        points.append(
            Point(
                metric=metric_of(row),
                label=wording.operator(str(row["operator"])),
                said=_said(row),
                phase=str(row["phase"]),
                bound=str(row["bound"]),
                x=x,
                y=y,
                size=round(4 + 10 * math.sqrt(share), 1),
                label_y=label_y,
                label_end=x > 72,
            )
        )
    # squares below circles: where both stand at one place, both are seen
    return tuple(sorted(points, key=lambda point: point.is_round))


def _free_place(x: float, y: float, taken: list[tuple[float, float]]) -> float | None:
    """A height for a label beside a point that no other label within reach has; None where all are taken."""
    for step in (0, 1, 2, 3, 4, -1, -2, -3):
        place = y + 5 + 18 * step
        if _TOP < place < _BOTTOM and all(
            abs(place - other) >= 17 or abs(x - at) > 24 for at, other in taken
        ):
            taken.append((x, place))
            return round(place, 1)
    return None


def _operator_table(result: Result | None) -> Table:
    columns = (
        _("Phase"),
        _("Operator"),
        _("Waits for"),
        _("Calls"),
        _("FLOP"),
        _("HBM traffic"),
        _("FLOP per byte"),
        _("Attained"),
        _("Time"),
        _("Source"),
    )
    return Table(columns=columns, words=3, rows=tuple(_operator_cells(row) for row in rows(result)))


def _operator_cells(row: Row) -> tuple[Cell, ...]:
    intensity, attained = row.get("intensity_flop_per_byte"), row.get("attained_flop_per_s")
    bound = str(row["bound"])
    return (
        Cell(text=phase_name(str(row["phase"])), muted=True),
        Cell(text=wording.operator(str(row["operator"]))),
        Cell(text=wording.resource(bound), key=bound),
        Cell(text=f"{row['count']:,.0f}", metric=metric_of(row)),
        _amount(row["flop"], "flop", metric=metric_of(row)),
        _amount(row["bytes"], "bytes", metric=metric_of(row)),
        Cell(text=f"{intensity:,.3g}", metric=metric_of(row)) if intensity else Cell(text="–", muted=True),
        _amount(attained or 0.0, "flop_per_s", metric=metric_of(row)),
        _time_cell(row),
        Cell(text=str(row.get("source") or "–"), muted=True),
    )


def _amount(value: float, name: str, *, metric: str = "") -> Cell:
    if not value:
        return Cell(text="–", muted=True)
    shown = style.number(value, name)
    return Cell(text=shown.text, unit=shown.unit, metric=metric)


def _time_cell(row: Row) -> Cell:
    shown = style.number(row["s"], "step_s")
    return Cell(text=shown.text, unit=shown.unit, metric=metric_of(row))


# --- the step by operator -------------------------------------------------------------------------------------


def split(result: Result | None) -> Chart | None:
    """Both steps as bars of operators, each in the colour of what it waits for."""
    found = rows(result)
    if not found:
        return None
    phases = _phases(found)
    return Chart(
        slug="step-split",
        title=_split_title(rows(result, phases[0])),
        axis=_("Time of one step by operator; the colour is the resource that it waits for"),
        summary="; ".join(_split_said(phase, rows(result, phase)) for phase in phases),
        source=_("Closed form of one micro-batch on the slowest stage, and of what a step has once")
        if _trains(found)
        else _("Step model at the mean batch"),
        draw="stack",
        body=tuple(_bar(phase, rows(result, phase)) for phase in phases),
        table=_split_table(result),
        open_table=True,
        wide=True,
    )


def _split_title(found: Sequence[Row]) -> str:
    total = sum(row["s"] for row in found)
    first, second = sorted(found, key=lambda row: -row["s"])[:2]
    said = (
        _("%(first)s takes %(share)s of a forward pass, %(second)s %(rest)s")
        if _trains(found)
        else _("%(first)s takes %(share)s of a decode step, %(second)s %(rest)s")
    )
    return said % {
        "first": wording.operator(str(first["operator"])),
        "share": style.percent(first["s"] / total, digits=0),
        "second": wording.operator(str(second["operator"])),
        "rest": style.percent(second["s"] / total, digits=0),
    }


def _split_said(phase: str, found: Sequence[Row]) -> str:
    parts = ", ".join(
        f"{wording.operator(str(row['operator']))} {style.number(row['s'], 'step_s')}" for row in found
    )
    return f"{phase_name(phase)}: {parts}"


def _bar(phase: str, found: Sequence[Row]) -> StackBar:
    total, left, segments = sum(row["s"] for row in found), 0.0, []
    for row in found:
        width = row["s"] / total * 100.0
        name, bound = wording.operator(str(row["operator"])), str(row["bound"])
        if width >= _SMALL:
            segments.append(
                Segment(
                    resource=bound,
                    label=f"{name}: {style.number(row['s'], 'step_s')}",
                    left=round(left, 3),
                    width=round(width, 3),
                    text=name if width > 1.1 * _letters(name) else "",
                    on="on-d" if bound in style.DARK_MARKS else "on-l",
                    hatched=False,
                )
            )
        left += width
    return StackBar(
        name=phase_name(phase),
        total=str(style.number(total, "step_s")),
        width=100.0,
        segments=tuple(segments),
    )


def _letters(text: str) -> int:
    """Width in letters; a Chinese one is as wide as two."""
    return sum(2 if ord(letter) > 0x2E80 else 1 for letter in text)


def _split_table(result: Result | None) -> Table:
    phases = _phases(rows(result))
    seconds = {(row["phase"], row["operator"]): row for row in rows(result)}
    totals = {phase: sum(row["s"] for row in rows(result, phase)) for phase in phases}
    names = list(dict.fromkeys(str(row["operator"]) for row in rows(result)))
    columns = [_("Operator")]
    for phase in phases:
        columns += [phase_name(phase), _("Share of the step")]

    def cells(name: str) -> tuple[Cell, ...]:
        line = [Cell(text=wording.operator(name))]
        for phase in phases:
            row = seconds.get((phase, name))
            if row is None:
                line += [Cell(text="–", muted=True)] * 2
            else:
                share = style.percent(row["s"] / totals[phase])
                line += [_time_cell(row), Cell(text=share, metric=metric_of(row), muted=True)]
        return tuple(line)

    return Table(columns=tuple(columns), rows=tuple(cells(name) for name in names))


# --- time line --------------------------------------------------------------------------------------------------


def gantt(result: Result | None) -> Chart | None:
    """The mean decode and prefill iteration: the whole, and one layer of it."""
    steps = iterations(rows(result))
    if not steps:
        return None
    first = steps[0]
    title = _("A decode layer takes %(time)s, and %(count)s of them follow each other") % {
        "time": style.number(first.layer_s, "layer_s"),
        "count": first.layer_count,
    }
    return Chart(
        slug="gantt",
        title=title,
        axis=_("Time from left to right; the parts of the step model follow each other"),
        summary="; ".join(_told(step) for step in steps),
        source=_("Step model at the mean batch, mean layer"),
        draw="gantt",
        body=tuple(line for step in steps for line in (_whole(step), _layer(step))),
        table=_timeline_table(
            steps, {(row["phase"], row["operator"]): metric_of(row) for row in rows(result)}
        ),
        wide=True,
        download="trace",
    )


def _told(step: Iteration) -> str:
    parts = ", ".join(
        f"{wording.operator(event.operator)} {style.number(event.s, 'event_s')}" for event in step.layer
    )
    return _("%(phase)s, one layer: %(parts)s") % {"phase": phase_name(step.phase), "parts": parts}


def _whole(step: Iteration) -> Timeline:
    layers = Event(
        operator="layers", lane="compute", bound="layers", start_s=0.0, s=step.layer_s * step.layer_count
    )
    after = [
        Event(
            operator=event.operator,
            lane=event.lane,
            bound=event.bound,
            start_s=event.start_s + layers.s,
            s=event.s,
        )
        for event in step.after
    ]
    return _timeline(
        _("%(phase)s: the whole iteration") % {"phase": phase_name(step.phase)},
        [layers, *after],
        step.s,
        names={"layers": _("%(count)s layers") % {"count": step.layer_count}},
    )


def _layer(step: Iteration) -> Timeline:
    name = _("%(phase)s: one of %(count)s layers") % {
        "phase": phase_name(step.phase),
        "count": step.layer_count,
    }
    return _timeline(name, step.layer, step.layer_s)


def _timeline(
    name: str, events: Sequence[Event], total_s: float, names: Mapping[str, str] | None = None
) -> Timeline:
    lanes = [lane for lane in LANES if any(event.lane == lane for event in events)]
    return Timeline(
        name=name,
        total=str(style.number(total_s, "step_s")),
        lanes=tuple(
            Lane(
                label=_lane_name(lane),
                top=24 + at * _LANE_HEIGHT,
                blocks=tuple(_block(event, total_s, names or {}) for event in events if event.lane == lane),
            )
            for at, lane in enumerate(lanes)
        ),
        height=24 + len(lanes) * _LANE_HEIGHT + 12,
    )


def timeline(name: str, found: Sequence[Row]) -> Timeline:
    """Rows that follow each other, on their lanes."""
    events = in_turn(found, 1.0)
    return _timeline(name, events, sum(event.s for event in events))


def _block(event: Event, total_s: float, names: Mapping[str, str]) -> Block:
    label = names.get(event.operator) or wording.operator(event.operator)
    width = event.s / total_s * (100.0 - _LANE_LEFT)
    return Block(
        label=f"{label}: {style.number(event.s, 'event_s')}",
        resource="hair2" if event.bound == "layers" else event.bound,
        on="on-d" if event.bound in style.DARK_MARKS else "strong" if event.bound == "layers" else "on-l",
        left=round(_LANE_LEFT + event.start_s / total_s * (100.0 - _LANE_LEFT), 3),
        width=round(max(width, 0.08), 3),
        text=label if width > 1.1 * _letters(label) else "",
    )


_LANE_LEFT: Final = 14.0


def _lane_name(lane: str) -> str:
    return {"compute": _("Compute"), "collective": _("Collectives"), "host": _("Host")}[lane]


def _timeline_table(steps: Sequence[Iteration], whys: Mapping[tuple[str, str], str]) -> Table:
    """`whys` opens the Why of an event: its operator in all layers."""
    lines = [
        (step, part, event) for step in steps for part in ("layer", "after") for event in getattr(step, part)
    ]
    parts = {"layer": _("in each layer"), "after": _("after the layers")}
    return Table(
        columns=(_("Phase"), _("Operator"), _("Lane"), _("Where"), _("Start"), _("Time")),
        words=4,
        rows=tuple(
            (
                Cell(text=phase_name(step.phase), muted=True),
                Cell(text=wording.operator(event.operator)),
                Cell(text=_lane_name(event.lane)),
                Cell(text=parts[part], muted=True),
                _amount(event.start_s, "start_s", metric=whys[step.phase, event.operator])
                if event.start_s
                else Cell(text="0"),
                _amount(event.s, "event_s", metric=whys[step.phase, event.operator]),
            )
            for step, part, event in lines
        ),
    )
