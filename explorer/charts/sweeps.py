"""Pictures of a grid of scenarios: a line over one axis, a heat map over two, parallel coordinates over more, and the
frontier of tokens per chip against tokens per user, whatever the axes.

What is there so far is drawn; a cell that cannot be is hatched and says why. Colours of a heat map are five steps
between the least and the greatest value; where less is better the scale is turned round, so the strong end is always
the better one. Token/s per user is 1 / mean TPOT: what one reader sees, without the wait for the first token.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from django.utils.translation import gettext as _

from explorer import wording
from explorer.charts import style
from explorer.charts.style import Cell, Chart, Note, Number, Panel, Table
from explorer.wording import translated
from simcore.analysis.cells import CellResult
from simcore.analysis.grid import Grid, frontier
from simcore.errors import Message
from simcore.glossary import better

PER_CHIP: Final = "serving.output_token_per_s_per_chip"
PER_USER: Final = "serving.tpot_s.mean"
STEPS: Final = 5
MAX_ROWS: Final = 200  # of the table of cells
MAX_COLUMNS: Final = 60  # of a heat map that a page can show; the files have all


@dataclass(frozen=True, slots=True, kw_only=True)
class Square:
    """A cell of a heat map; step 0 is not known yet."""

    index: int
    step: int
    number: Number | None
    said: str
    error: str = ""
    is_best: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatRow:
    """A row of a heat map under its value."""

    value: str
    squares: tuple[Square, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Heat:
    """A heat map: the first axis down, the second across."""

    down: str
    across: str
    columns: tuple[str, ...]
    rows: tuple[HeatRow, ...]
    low: str
    high: str


def panel(grid: Grid, results: Sequence[CellResult], *, metric: str, cell_count: int, over: bool) -> Panel:
    """What the cells that are done amount to, for one metric."""
    drawn = {1: _line, 2: _heat}.get(len(grid.axes), _parallel)(grid, results, metric)
    drawn = replace(drawn, table=_table(grid, results)) if drawn is not None and results else drawn
    charts = (drawn, _pareto(grid, results))
    return Panel(
        tab="sweep",
        headline=_headline(grid, results, metric, cell_count=cell_count, over=over),
        notes=_reasons(results),
        charts=tuple(chart for chart in charts if chart is not None),
    )


def value_of(result: CellResult, metric: str) -> float | None:
    """A metric of a cell as a number."""
    value = result.metrics.get(metric)
    return float(value) if isinstance(value, int | float) else None


def said_of(grid: Grid, index: int) -> str:
    """Where a cell stands: every axis with its value."""
    values = _values_of(grid, index)
    return ", ".join(
        f"{wording.label(axis.path)} {_text(value)}" for axis, value in zip(grid.axes, values, strict=True)
    )


def _values_of(grid: Grid, index: int) -> list[Any]:
    """The digits of the index, the last axis fastest."""
    values: list[Any] = []
    for axis in reversed(grid.axes):
        index, place = divmod(index, len(axis.values))
        values.insert(0, axis.values[place])
    return values


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return (
        "–" if value is None else f"{value:g}" if isinstance(value, float) else str(value).replace("_", " ")
    )


def _best(results: Sequence[CellResult], metric: str) -> CellResult | None:
    having = [one for one in results if value_of(one, metric) is not None]
    choose = max if better(metric) == "up" else min
    return choose(having, key=lambda one: value_of(one, metric) or 0.0, default=None)


def _headline(grid: Grid, results: Sequence[CellResult], metric: str, *, cell_count: int, over: bool) -> str:
    best = _best(results, metric)
    if not results or (best is None and not over):
        return _("No cell is done yet")
    if best is None:
        return _("No cell has %(metric)s") % {"metric": wording.label(metric)}
    words = {
        "metric": wording.label(metric),
        "value": style.number(value_of(best, metric) or 0.0, metric),
        "where": said_of(grid, best.index),
        "done": f"{len(results):,}",
        "count": f"{cell_count:,}",
    }
    if len(results) < cell_count:
        return _("After %(done)s of %(count)s cells, %(metric)s is best at %(where)s: %(value)s") % words
    if better(metric) == "neutral":
        return _("%(metric)s is least at %(where)s: %(value)s") % words
    return _("%(metric)s is best at %(where)s: %(value)s") % words


def _reasons(results: Sequence[CellResult]) -> tuple[Note, ...]:
    """Why cells have no numbers, the most frequent reason first."""
    told = Counter(_error(one) for one in results if one.errors)
    notes = []
    for text, count in told.most_common(4):
        words = {"count": count, "reason": text}
        said = _("%(reason)s (cells: %(count)s)") % words
        notes.append(Note(text=said, kind="warn"))
    return tuple(notes)


def _error(result: CellResult) -> str:
    if not result.errors:
        return ""
    first: Mapping[str, Any] = result.errors[0]
    message = Message(
        code=first["code"], template=first["template"], params=first["params"], path=first["path"]
    )
    return f"{first['path']}: {translated(message)}" if first["path"] else translated(message)


def _source(results: Sequence[CellResult]) -> str:
    return _("%(count)s scenarios with the same seed, so they share arrivals and lengths") % {
        "count": f"{len(results):,}"
    }


def _numeric(value: Any) -> float | None:
    try:
        return None if isinstance(value, bool) or value is None else float(value)
    except (TypeError, ValueError):
        return None


def _line(grid: Grid, results: Sequence[CellResult], metric: str) -> Chart | None:
    axis, done = grid.axes[0], {one.index: one for one in results}
    numbers = [_numeric(value) for value in axis.values]
    x: list[Any] = (
        list(numbers) if all(one is not None for one in numbers) else [_text(v) for v in axis.values]
    )
    y = [value_of(done[index], metric) if index in done else None for index in range(len(x))]
    if not any(value is not None for value in y):
        return None
    texts = ["" if value is None else str(style.number(value, metric)) for value in y]
    trace = style.line(
        x, y, name=wording.label(metric), mode="lines+markers", connectgaps=False, text=texts,
        hovertemplate="%{x}: %{text}<extra></extra>", customdata=list(range(len(x))), marker={"size": 9},
    )  # fmt: skip
    present = [value for value in y if value is not None]
    return Chart(
        slug="sweep",
        title=_("%(metric)s over %(axis)s")
        % {"metric": wording.label(metric), "axis": wording.label(axis.path)},
        axis=_("%(metric)s against %(axis)s; press a point to make it a scenario")
        % {"metric": wording.label(metric), "axis": axis.path},
        summary=_span(present, metric),
        source=_source(results),
        draw="plot",
        body=style.figure([trace], x=style.axis(), y=_ticked(present, metric)),
        wide=True,
    )


def _ticked(values: Sequence[float], metric: str) -> dict[str, Any]:
    """An axis from zero, its ticks printed with their unit."""
    top = max(values) if values and max(values) > 0 else 1.0
    ticks = [top * share / 4 for share in range(5)]
    return style.axis(
        tickvals=ticks,
        ticktext=[str(style.number(tick, metric)) for tick in ticks],
        range=[min(0.0, *values) * 1.08, top * 1.08],
    )


def _span(values: Sequence[float], metric: str) -> str:
    return _("%(metric)s between %(low)s and %(high)s") % {
        "metric": wording.label(metric),
        "low": style.number(min(values), metric),
        "high": style.number(max(values), metric),
    }


def _heat(grid: Grid, results: Sequence[CellResult], metric: str) -> Chart | None:
    down, across = grid.axes
    if len(across.values) > MAX_COLUMNS:
        return None
    done = {one.index: one for one in results}
    present = [value for one in results if (value := value_of(one, metric)) is not None]
    low, high = (min(present), max(present)) if present else (0.0, 0.0)
    best = _best(results, metric)
    rows = tuple(
        HeatRow(
            value=_text(value),
            squares=tuple(
                _square(grid, row * len(across.values) + column, done, metric, (low, high), best)
                for column in range(len(across.values))
            ),
        )
        for row, value in enumerate(down.values)
    )
    turned = better(metric) == "down"
    ends = (
        [str(style.number(one, metric)) for one in ((high, low) if turned else (low, high))]
        if present
        else ["", ""]
    )
    names = {
        "metric": wording.label(metric),
        "down": wording.label(down.path),
        "across": wording.label(across.path),
    }
    return Chart(
        slug="sweep",
        title=_("%(metric)s over %(down)s and %(across)s") % names,
        axis=_("%(down)s down, %(across)s across; press a cell to make it a scenario") % names,
        summary=_span(present, metric) if present else _("No cell is done yet"),
        source=_source(results),
        draw="heat",
        body=Heat(
            down=names["down"], across=names["across"], columns=tuple(map(_text, across.values)), rows=rows,
            low=ends[0], high=ends[1],
        ),
        wide=True,
    )  # fmt: skip


def _square(
    grid: Grid,
    index: int,
    done: Mapping[int, CellResult],
    metric: str,
    bounds: tuple[float, float],
    best: CellResult | None,
) -> Square:
    where, result = said_of(grid, index), done.get(index)
    if result is None:
        return Square(index=index, step=0, number=None, said=_("%(where)s: not done yet") % {"where": where})
    value = value_of(result, metric)
    if value is None:
        reason = _error(result) or _("no such metric")
        return Square(index=index, step=0, number=None, said=f"{where}: {reason}", error=reason)
    low, high = bounds
    share = (value - low) / (high - low) if high > low else 1.0
    share = 1 - share if better(metric) == "down" and high > low else share
    shown = style.number(value, metric)
    return Square(
        index=index,
        step=_step(share),
        number=shown,
        said=f"{where}: {shown}",
        is_best=best is not None and best.index == index,
    )


def _parallel(grid: Grid, results: Sequence[CellResult], metric: str) -> Chart | None:
    """A line for each cell over the axes and then the metrics; drawn as plain lines, which need no WebGL."""
    having = [one for one in results if value_of(one, metric) is not None]
    if not having:
        return None
    shown = [metric, *(name for name in grid.metrics if name != metric)][:4]
    scales = [_axis_scale(grid, place, having) for place in range(len(grid.axes))]
    scales += [
        _metric_scale(name, having)
        for name in shown
        if all(value_of(one, name) is not None for one in having)
    ]
    heights = scales[len(grid.axes)].heights  # of the metric that colours
    strong = [1 - height if better(metric) == "down" else height for height in heights]
    traces = [
        _lines(
            grid, having, scales, [place for place, share in enumerate(strong) if _step(share) == step], step
        )
        for step in range(1, STEPS + 1)
    ]
    marks = [mark for x, scale in enumerate(scales) for mark in scale.marks(x)]
    blank = {"visible": False, "fixedrange": True}
    figure = style.figure(
        traces,
        x={**blank, "range": [-0.3, len(scales) - 0.7]},
        y={**blank, "range": [-0.1, 1.25]},
        annotations=marks,
    )
    return Chart(
        slug="sweep",
        title=_("%(metric)s over %(count)s axes")
        % {"metric": wording.label(metric), "count": len(grid.axes)},
        axis=_(
            "A line for each cell, the stronger the better; press one where it crosses an axis to make it a scenario"
        ),
        summary=_span([value_of(one, metric) or 0.0 for one in having], metric),
        source=_source(results),
        draw="plot",
        body=figure,
        wide=True,
        height=420,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """An upright of parallel coordinates: where each cell crosses it, from 0 to 1, and what is written at it."""

    label: str
    heights: Sequence[float]
    ticks: Sequence[tuple[float, str]]

    def marks(self, x: int) -> list[dict[str, Any]]:
        below = [
            style.direct_label(text, x=x, y=height, xanchor="right", xshift=-8) for height, text in self.ticks
        ]
        return [style.direct_label(self.label, x=x, y=1.18, font={"color": "var(--ink)", "size": 14}), *below]


def _axis_scale(grid: Grid, place: int, having: Sequence[CellResult]) -> Scale:
    """Values evenly apart, in the order in which they were given."""
    axis = grid.axes[place]
    top = max(1, len(axis.values) - 1)
    order = {repr(value): where / top for where, value in enumerate(axis.values)}
    kept = style.thinned(range(len(axis.values)), keep=8)
    return Scale(
        label=wording.label(axis.path),
        heights=[order[repr(_values_of(grid, one.index)[place])] for one in having],
        ticks=[(where / top, _text(axis.values[where])) for where in kept],
    )


def _metric_scale(name: str, having: Sequence[CellResult]) -> Scale:
    values = [value_of(one, name) or 0.0 for one in having]
    low, high = min(values), max(values)
    return Scale(
        label=wording.label(name),
        heights=[(value - low) / (high - low) if high > low else 1.0 for value in values],
        ticks=[
            (0.0, str(style.number(low, name))),
            *([(1.0, str(style.number(high, name)))] if high > low else []),
        ],
    )


def _step(share: float) -> int:
    return min(STEPS, 1 + int(share * STEPS))


def _lines(
    grid: Grid, having: Sequence[CellResult], scales: Sequence[Scale], places: Sequence[int], step: int
) -> dict[str, Any]:
    """The lines of one colour as one trace, with gaps between them."""
    x: list[float | None] = []
    y: list[float | None] = []
    texts: list[str] = []
    indices: list[int] = []
    for place in places:
        said = said_of(grid, having[place].index)
        x += [*range(len(scales)), None]
        y += [*(scale.heights[place] for scale in scales), None]
        texts += [said] * (len(scales) + 1)
        indices += [having[place].index] * (len(scales) + 1)
    return {
        "type": "scatter", "mode": "lines+markers", "x": x, "y": y, "text": texts, "customdata": indices,
        "hovertemplate": "%{text}<extra></extra>", "line": {"color": f"var(--seq-{step})", "width": 1.5},
        "marker": {"size": 6, "color": f"var(--seq-{step})"}, "name": "",
    }  # fmt: skip


def _pareto(grid: Grid, results: Sequence[CellResult]) -> Chart | None:
    """Token/s per chip against token/s per user: what one has to give for the other."""
    points = [
        (1 / user, chip, one)
        for one in results
        if (user := value_of(one, PER_USER)) and (chip := value_of(one, PER_CHIP)) is not None
    ]
    if not points:
        return None
    on_it = frontier(results, PER_CHIP, PER_USER, up=(True, False))
    best = sorted(((x, y, one) for x, y, one in points if one.index in on_it), key=lambda point: point[0])
    data = [
        _scatter(grid, points, name=_("cells"), mode="markers", marker={"size": 8, "color": "var(--ink-3)"}),
        _scatter(
            grid, best, name=_("frontier"), mode="lines+markers", line={"color": "var(--accent)", "width": 2},
            marker={"size": 11, "color": "var(--accent)"},
        ),
    ]  # fmt: skip
    title = _("Beaten by no other cell in tokens per chip and per user together: %(count)s")
    return Chart(
        slug="sweep-frontier",
        title=title % {"count": len(best)},
        axis=_(
            "Token/s per chip (up) against token/s per user, 1 / mean TPOT (right); press a point to make it a scenario"
        ),
        summary=_("The frontier goes from %(first)s to %(last)s")
        % {"first": said_of(grid, best[0][2].index), "last": said_of(grid, best[-1][2].index)},
        source=_source(results),
        draw="plot",
        body=style.figure(data, x=style.axis(rangemode="tozero"), y=style.axis(rangemode="tozero")),
        table=_frontier_table(grid, best),
        wide=True,
    )


def _scatter(grid: Grid, points: Sequence[tuple[float, float, CellResult]], **options: Any) -> dict[str, Any]:
    return {
        "type": "scatter",
        "x": [x for x, _y, _one in points],
        "y": [y for _x, y, _one in points],
        "text": [said_of(grid, one.index) for _x, _y, one in points],
        "customdata": [one.index for _x, _y, one in points],
        "hovertemplate": "%{text}<br>%{y:,.0f} | %{x:,.1f}<extra></extra>",
        **options,
    }


def _frontier_table(grid: Grid, best: Sequence[tuple[float, float, CellResult]]) -> Table:
    rows = tuple(
        (
            Cell(text=said_of(grid, one.index)),
            Cell(text=f"{x:,.1f}"),
            Cell(text=f"{y:,.0f}"),
        )
        for x, y, one in best
    )
    return Table(columns=(_("Cell"), _("Token/s per user"), _("Token/s per chip")), rows=rows)


def _table(grid: Grid, results: Sequence[CellResult]) -> Table:
    """The cells as they are, the first of them; the files have all."""
    names = [name for name in grid.metrics if any(name in one.metrics for one in results)]
    rows = tuple(
        (
            *(Cell(text=_text(value)) for value in _values_of(grid, one.index)),
            *(_metric_cell(one, name) for name in names),
        )
        for one in results[:MAX_ROWS]
    )
    return Table(
        columns=(*(wording.label(axis.path) for axis in grid.axes), *map(wording.label, names)),
        rows=rows,
        words=len(grid.axes),
    )


def _metric_cell(result: CellResult, name: str) -> Cell:
    value = value_of(result, name)
    if value is None:
        return Cell(text="–", muted=True)
    number = style.number(value, name)
    return Cell(text=number.text, unit=number.unit)
