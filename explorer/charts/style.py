"""What all charts share: the anatomy of a chart, printed numbers, directions of better, and plotly's look.

A chart is a pure function of Result documents. It returns a `Chart`: a title that states the finding, the
quantity and unit, one sentence for screen readers, the data as a table, and either a plotly figure (what a
person explores) or the numbers of a picture that a template draws as SVG (what must be there at first
paint). Colours are names of CSS variables: the browser resolves them, so a change of theme needs no server.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from django.utils.translation import gettext as _

from explorer import wording
from simcore.errors import TrimtabError
from simcore.glossary import better
from simcore.scenario import Scenario
from simcore.units import dimension_of, printed

Result = Mapping[str, Any]
Quality = Literal["better", "worse", "same"]
RESOURCES: Final = ("hbm", "scaleup", "scaleout", "compute", "overhead", "host", "bubble", "queue", "failure")
HATCHED: Final = frozenset({"queue", "failure", "bubble", "l2"})
DARK_MARKS: Final = frozenset({"compute", "host", "overhead", "failure"})
SAME_RATIO: Final = 0.0005


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """A printed value: the number large, its unit grey."""

    text: str
    unit: str = ""

    def __str__(self) -> str:
        return f"{self.text} {self.unit}".rstrip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Delta:
    """A change beside its baseline. The arrow's direction is the change's, its fill says better or worse."""

    text: str
    quality: Quality
    arrow: Literal["up", "down", ""]
    before: Number


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """One metric as people read it: in the delta strip, the KPI row, a table."""

    metric: str
    label: str
    help: str
    number: Number
    delta: Delta | None = None
    sub: str = ""
    flag: str = ""
    band: str = ""  # between which values nine of ten measurements fall


@dataclass(frozen=True, slots=True, kw_only=True)
class Strip:
    """The delta strip: who is compared with whom, and at most six metrics."""

    tiles: tuple[Tile, ...]
    baseline_name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A table cell; `key` is a resource whose colour stands before the text."""

    text: str
    unit: str = ""
    delta: Delta | None = None
    key: str = ""
    metric: str = ""
    muted: bool = False
    of_baseline: bool = False  # the metric is the baseline's: its Why is that of the baseline's run
    use_index: int | None = None  # pressing it makes this cell of the sweep a scenario


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Columns and rows; the first `words` columns are text, the rest are numbers."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    words: int = 1
    total: tuple[Cell, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """One resource's part of a bar; positions are per cent of the plot's width."""

    resource: str
    label: str
    left: float
    width: float
    text: str
    on: str  # ink that stands on this mark: on-d or on-l
    hatched: bool

    @property
    def middle(self) -> float:
        return self.left + self.width / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class StackBar:
    """A bar of segments with its own title and total."""

    name: str
    total: str
    width: float
    segments: tuple[Segment, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A labelled bar from zero; negative values go left of it."""

    label: str
    resource: str
    text: str
    left: float
    width: float
    hatched: bool
    reach: float = 0.0  # how far the outline goes that stands for what is possible at most

    @property
    def end(self) -> float:
        return self.left + max(self.width, self.reach)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fall:
    """One step of a waterfall; positions are per cent of the plot's width."""

    label: str
    text: str
    kind: str  # total, loss, use or free
    left: float
    width: float
    note: str = ""

    @property
    def end(self) -> float:
        return self.left + self.width

    @property
    def css(self) -> str:
        return "accent" if self.kind == "free" else "hbm"


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """One figure of a page; `draw` names the partial template that draws `body`."""

    slug: str
    title: str
    axis: str
    summary: str
    source: str = ""
    draw: Literal[
        "plot", "stack", "bars", "twosided", "waterfall", "topology", "roofline", "gantt", "heat", "table"
    ]
    body: Any = None
    table: Table | None = None
    open_table: bool = False
    wide: bool = False
    tall: bool = False
    height: int = 0  # of a plot, in px; 0 is the usual
    download: str = ""  # a file of the run beside table and picture: `trace`, `records` or `graph`
    formats: tuple[str, ...] = ()  # of that file, where there are several


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """Something said in words: a warning of the model, a state, a next step."""

    text: str
    kind: Literal["warn", "good", "plain"] = "plain"
    code: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """A change that one press makes: a form field by its scenario path."""

    path: str
    value: str
    label: str
    effect: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Nearest:
    """A change that would make an infeasible scenario fit: one press, one or more fields."""

    fields: Mapping[str, str]
    label: str
    effect: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """A guard rail: the inequality, its numbers, and the nearest changes that satisfy it."""

    equation: str
    numbers: str
    text: str
    edits: tuple[Edit, ...] = ()
    holds: bool = False  # the inequality is met: said beside what rests on it


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """Everything that a tab of the workbench shows in its centre."""

    tab: str
    headline: str
    lede: str = ""
    guard: Guard | None = None
    notes: tuple[Note, ...] = ()
    kpis: tuple[Tile, ...] = ()
    charts: tuple[Chart, ...] = ()
    partial: bool = False
    extra: Mapping[str, Any] = field(default_factory=dict)


# --- reading a Result document ------------------------------------------------------------------------------


def metric(result: Result | None, name: str) -> float | None:
    """A metric as a number; None where it does not apply (or is a word)."""
    value = (result or {}).get("metrics", {}).get(name)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def rows(result: Result | None, table: str) -> Sequence[Mapping[str, Any]]:
    """The rows of a table; none where it is absent."""
    found = (result or {}).get("tables", {}).get(table)
    return found if isinstance(found, list | tuple) else ()


def series(result: Result | None, name: str) -> Mapping[str, Sequence[float]]:
    """Columns of a series; empty where it is absent."""
    found = (result or {}).get("series", {}).get(name)
    return found if isinstance(found, Mapping) else {}


def scenario_of(result: Result | None) -> Scenario | None:
    """The scenario behind a result with its defaults filled in; None where it cannot be read."""
    document = (result or {}).get("scenario")
    if not isinstance(document, Mapping):
        return None
    try:
        return Scenario.parse(document)
    except TrimtabError:
        return None


def kind_of_work(result: Result | None) -> str:
    """`serving`, or `none` where the scenario asks for fabric, reliability and cost alone."""
    scenario = scenario_of(result)
    return scenario.workload.kind if scenario else "serving"


def warning(result: Result | None, code: str) -> Mapping[str, Any]:
    """The params of a warning; empty where the result does not carry it."""
    for row in (result or {}).get("warnings") or ():
        if row.get("code") == code:
            return dict(row.get("params") or {})
    return {}


def simulated(result: Result | None) -> str:
    """What stands below a picture of a simulation: how many requests, and the seed."""
    count = metric(result, "serving.completed_count")
    if count is None:
        return _("Simulated")
    return _("Simulated, %(count)s requests, seed %(seed)s") % {
        "count": f"{count:,.0f}",
        "seed": (result or {}).get("seed", 1),
    }


# --- words and numbers --------------------------------------------------------------------------------------


def number(value: float, name: str, *, digits: int = 3) -> Number:
    """A value printed in the unit that its name's suffix declares."""
    dimension = dimension_of(name)
    text, unit = printed(value, dimension, digits=digits)
    if dimension.startswith("usd_per_million"):
        unit = "USD"  # the label says per what
    elif dimension == "bytes_per_token":
        unit = "B"
    return Number(text=text.replace("-", "−"), unit=unit)


def percent(fraction: float, *, digits: int = 1, signed: bool = False) -> str:
    """0.146 -> "14.6 %"; whole above 100 %."""
    value = fraction * 100
    shown = f"{value:.{0 if abs(value) >= 100 else digits}f}"
    if float(shown) == 0:
        shown = f"{0:.{digits}f}"
    sign = "+" if signed and float(shown) > 0 else ""
    return f"{sign}{shown} %".replace("-", "−")


def delta(value: float | None, before: float | None, name: str) -> Delta | None:
    """The change from `before` to `value`, in points for shares and in per cent otherwise."""
    if value is None or before is None:
        return None
    change = value - before
    points = dimension_of(name) == "fraction"
    same = abs(change) <= (SAME_RATIO if points else SAME_RATIO * max(abs(value), abs(before)))
    if same:
        return Delta(text=_("no change"), quality="same", arrow="", before=number(before, name))
    return Delta(
        text=_change_text(change, before, name, points=points),
        quality=_quality(change, name),
        arrow="up" if change > 0 else "down",
        before=number(before, name),
    )


def _change_text(change: float, before: float, name: str, *, points: bool) -> str:
    if points:
        return _("%(points)s pt") % {"points": f"{abs(change) * 100:.1f}"}
    small_count = abs(before) < 10 and dimension_of(name) in ("", "count", "hops") and change.is_integer()
    if before == 0 or small_count:
        return number(abs(change), name).text
    share = abs(change / before) * 100
    if share >= 1000:
        return f"×{(before + change) / before:,.0f}"
    return f"{share:.0f} %" if share >= 10 else f"{share:.1f} %"


def _quality(change: float, name: str) -> Quality:
    direction = better(name)
    if direction == "neutral":
        return "same"
    return "better" if (change > 0) == (direction == "up") else "worse"


def tile(name: str, result: Result | None, baseline: Result | None = None, *, sub: str = "") -> Tile | None:
    """A metric with its change since the baseline; None where the result does not have it."""
    value = metric(result, name)
    if value is None:
        return None
    return Tile(
        metric=name,
        label=wording.label(name),
        help=wording.help_text(name),
        number=number(value, name),
        delta=delta(value, metric(baseline, name), name),
        sub=sub,
        flag=_partial_flag(name, result),
        band=band(name, result),
    )


def band(name: str, result: Result | None) -> str:
    """The 90 % band of a headline in its own unit; "" where no measurement stands behind it."""
    found = ((result or {}).get("bands") or {}).get(name)
    if not isinstance(found, Mapping):
        return ""
    low, high = number(float(found["low"]), name), number(float(found["high"]), name)
    span = f"{low.text} – {high}" if low.unit == high.unit else f"{low} – {high}"
    words = {"level": percent(float(found.get("level", 0.9)), digits=0), "span": span}
    if is_extrapolated(result):
        return _("%(level)s: %(span)s, beyond what was calibrated") % words
    return _("%(level)s: %(span)s") % words


def is_extrapolated(result: Result | None) -> bool:
    """Whether steps lie outside the settings that were measured."""
    return any(row.get("code") == "compute.extrapolated" for row in (result or {}).get("warnings") or ())


def _partial_flag(name: str, result: Result | None) -> str:
    priced = metric(result, "cost.priced_fraction")
    money = "usd" in name and not name.startswith("analysis.")
    return _("partial") if money and priced is not None and priced < 0.9995 else ""


def tiles(names: Sequence[str], result: Result | None, baseline: Result | None = None) -> tuple[Tile, ...]:
    found = (tile(name, result, baseline) for name in names)
    return tuple(item for item in found if item is not None)


def metric_table(
    names: Sequence[str], result: Result | None, baseline: Result | None = None, *, first: str = ""
) -> Table | None:
    """Metrics as rows: now, and where a baseline exists, before and change."""
    listed = tiles(names, result, baseline)
    if not listed:
        return None
    compared = baseline is not None
    columns = (first or _("Result"), *((_("Baseline"), _("Now"), _("Change")) if compared else (_("Now"),)))
    return Table(columns=columns, rows=tuple(_metric_row(item, compared=compared) for item in listed))


def _metric_row(item: Tile, *, compared: bool) -> tuple[Cell, ...]:
    now = Cell(text=item.number.text, unit=item.number.unit, metric=item.metric)
    name = Cell(text=item.label, muted=True)
    if not compared:
        return (name, now)
    if item.delta is None:
        return (name, Cell(text="", muted=True), now, Cell(text=""))
    before = Cell(
        text=item.delta.before.text,
        unit=item.delta.before.unit,
        metric=item.metric,
        muted=True,
        of_baseline=True,
    )
    return (name, before, now, Cell(text="", delta=item.delta))


def text_cells(*texts: str) -> tuple[Cell, ...]:
    return tuple(Cell(text=text) for text in texts)


# --- plotly: plain dictionaries, one look -------------------------------------------------------------------


def figure(
    data: Sequence[Mapping[str, Any]], *, x: Mapping[str, Any], y: Mapping[str, Any], **layout: Any
) -> dict[str, Any]:
    """A figure in the house look; `x` and `y` are axes from `axis`."""
    base: dict[str, Any] = {
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": "var(--sans)", "size": 14, "color": "var(--ink-2)"},
        "margin": {"l": 48, "r": 16, "t": 8, "b": 36},
        "showlegend": False,
        "hovermode": "closest",
        "hoverlabel": {
            "bgcolor": "var(--ground)",
            "bordercolor": "var(--hair-2)",
            "font": {"color": "var(--ink)"},
        },
        "dragmode": "zoom",
        "xaxis": dict(x),
        "yaxis": dict(y),
        **layout,
    }
    return {"data": [dict(trace) for trace in data], "layout": base}


def axis(**options: Any) -> dict[str, Any]:
    """An axis with hairlines only."""
    return {
        "gridcolor": "var(--hair)",
        "linecolor": "var(--hair-2)",
        "zeroline": False,
        "tickfont": {"color": "var(--ink-2)"},
        "automargin": True,
        "tickangle": 0,
        "fixedrange": False,
        **options,
    }


def line(
    x: Sequence[float | str],
    y: Sequence[float | None],
    *,
    name: str,
    color: str = "var(--ink)",
    **options: Any,
) -> dict[str, Any]:
    """A solid line: what is now."""
    return {
        "type": "scatter",
        "mode": "lines",
        "x": list(x),
        "y": list(y),
        "name": name,
        "line": {"color": color, "width": 2, **options.pop("line", {})},
        **options,
    }


def baseline_line(
    x: Sequence[float | str], y: Sequence[float | None], *, name: str, **options: Any
) -> dict[str, Any]:
    """A grey dashed line: the baseline."""
    return line(x, y, name=name, color="var(--ink-3)", line={"dash": "5px,4px", "width": 1.5}, **options)


LEGEND: Final = {
    "orientation": "h",
    "x": 0,
    "y": 1.02,
    "yanchor": "bottom",
    "font": {"color": "var(--ink-2)"},
}


def direct_label(text: str, *, x: float, y: float, **options: Any) -> dict[str, Any]:
    """A label at its line instead of a legend."""
    return {
        "text": text,
        "x": x,
        "y": y,
        "showarrow": False,
        "font": {"color": "var(--ink-2)", "size": 14},
        "bgcolor": "var(--ground)",
        "borderpad": 1,
        **options,
    }


def log_axis(values: Sequence[float], name: str, **options: Any) -> dict[str, Any]:
    """A logarithmic axis over these values, its ticks printed with their units: 30 ms, 100 ms, 1 s."""
    positive = [value for value in values if value > 0] or [1.0]
    low, high = min(positive), max(positive)
    ticks = _log_ticks(low, high)
    texts = [str(number(tick, name)) for tick in ticks]
    span = max(math.log10(high / low), 0.1)
    bounds = [math.log10(low) - span * 0.02, math.log10(high) + span * 0.02]
    return axis(type="log", tickvals=ticks, ticktext=texts, range=bounds, **options)


def _log_ticks(low: float, high: float) -> list[float]:
    """At most five of 1, 2, 5 (else 1, 3; else powers of ten) between two values."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    ticks: list[float] = []
    for steps in ((1, 2, 3, 4, 5, 6, 8), (1, 2, 5), (1, 3), (1,)):
        powers = range(first, last + 1)
        ticks = [float(f"{step}e{power}") for power in powers for step in steps]
        ticks = [tick for tick in ticks if low * 0.98 <= tick <= high * 1.02]
        if len(ticks) <= 5:
            break
    return ticks


def thinned(values: Sequence[float], keep: int = 24) -> list[int]:
    """Evenly spread indices of at most `keep` values, ends included: a data table stays readable."""
    count = len(values)
    if count <= keep:
        return list(range(count))
    return sorted({round(index * (count - 1) / (keep - 1)) for index in range(keep)})
