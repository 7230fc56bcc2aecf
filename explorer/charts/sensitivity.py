"""What a figure depends on: the tornado, draws over intervals with their rank correlations, and a goal's trace.

Rows are those of `simcore.analysis` (tornado, monte_carlo, goal_seek). Bars stand at both sides of the figure as it
is; a star marks an end beyond what was measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.utils.translation import gettext as _

from explorer import wording
from explorer.charts import style
from explorer.charts.style import Cell, Chart, Table
from explorer.wording import capitalised, translated

Row = Mapping[str, Any]
_LEFT, _RIGHT = 20.0, 80.0  # per cent of the plot's width between which bars stand
SHOWN: Final = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoSided:
    """A bar at both sides of a line, each with its text; `said` stands above at the right."""

    label: str
    said: str
    base: float
    low_left: float
    low_width: float
    low_text: str
    high_left: float
    high_width: float
    high_text: str
    text_left: float  # where the texts end and begin
    text_right: float


def tornado(rows: Sequence[Row], metric: str) -> Chart | None:
    """Each input alone between its ends, the widest swing first; those that do nothing only in the table."""
    rows = [row for row in rows if row["metric"] == metric]
    if not rows:
        return None
    moving = [row for row in rows if row["swing"] > 0]
    base = style.number(rows[0]["base_value"], metric)
    words = {"metric": wording.figure(metric), "unit": base.unit, "value": base}
    return Chart(
        slug="tornado",
        title=_tornado_title(moving, metric),
        axis=_(
            "%(metric)s in %(unit)s, each input alone at its low and its high end; the line is %(value)s as it is"
        )
        % words
        if base.unit
        else _("%(metric)s, each input alone at its low and its high end; the line is %(value)s as it is")
        % words,
        summary=_("Swings: %(parts)s.")
        % {
            "parts": ", ".join(
                f"{wording.label(row['path'])} {style.number(row['swing'], metric)}" for row in moving[:SHOWN]
            )
        },
        source=_tornado_source(rows),
        draw="twosided",
        body=_tornado_bars(moving[:SHOWN], metric),
        table=_tornado_table(rows, metric),
        wide=True,
    )


def _tornado_title(moving: Sequence[Row], metric: str) -> str:
    if not moving:
        return _("None of these inputs moves this figure")
    first = moving[0]
    ends = [value for value in (first["at_low"], first["at_high"], first["base_value"]) if value is not None]
    words = {
        "input": wording.label(first["path"]),
        "metric": wording.figure(metric),
        "low": style.number(min(ends), metric),
        "high": style.number(max(ends), metric),
    }
    return _("%(input)s matters most: %(metric)s from %(low)s to %(high)s") % words


def _tornado_source(rows: Sequence[Row]) -> str:
    """How the ends are told apart, and which of them nothing was measured near."""
    said = _("Hatched at the low end, solid at the high end")
    if rows[0]["extrapolated_base"]:
        return _("; ").join((said, _("the scenario itself lies beyond what was measured")))
    if any(row[f"extrapolated_{end}"] for row in rows for end in ("low", "high")):
        return _("; ").join((said, _("* beyond what was measured")))
    return said


def _star(row: Row, end: str) -> str:
    """Marks an end that was not measured, where the scenario itself was."""
    return "*" if row[f"extrapolated_{end}"] and not row["extrapolated_base"] else ""


def _tornado_bars(rows: Sequence[Row], metric: str) -> tuple[TwoSided, ...]:
    values = [row[end] for row in rows for end in ("at_low", "at_high", "base_value") if row[end] is not None]
    if not values:
        return ()
    scale = _Scale(min(values), max(values))
    return tuple(
        _two_sided(
            scale,
            label=wording.label(row["path"]),
            said=f"{style.number(row['low'], row['path'])} … {style.number(row['high'], row['path'])}",
            base=row["base_value"],
            ends=(row["at_low"], row["at_high"]),
            texts=(_end_text(row, "low", metric), _end_text(row, "high", metric)),
        )
        for row in rows
    )


@dataclass(frozen=True, slots=True)
class _Scale:
    low: float
    high: float

    def at(self, value: float) -> float:
        span = (self.high - self.low) or 1.0
        return round(_LEFT + (value - self.low) / span * (_RIGHT - _LEFT), 3)


def _two_sided(
    scale: _Scale,
    *,
    label: str,
    said: str,
    base: float,
    ends: tuple[float | None, float | None],
    texts: tuple[str, str],
) -> TwoSided:
    """Texts stand outside the bars, the text of the lower value at the left."""
    line = scale.at(base)
    low, high = (line if end is None else scale.at(end) for end in ends)
    left_first = low <= high
    return TwoSided(
        label=label,
        said=said,
        base=line,
        low_left=min(line, low),
        low_width=abs(low - line),
        low_text=texts[0] if left_first else texts[1],
        high_left=min(line, high),
        high_width=abs(high - line),
        high_text=texts[1] if left_first else texts[0],
        text_left=min(line, low, high),
        text_right=max(line, low, high),
    )


def _end_text(row: Row, end: str, metric: str) -> str:
    value = row[f"at_{end}"]
    if value is None:
        return _("cannot be")
    return style.number(value, metric).text + _star(row, end)


def _tornado_table(rows: Sequence[Row], metric: str) -> Table:
    return Table(
        columns=(
            _("Input"),
            _("What its range rests on"),
            _("Low"),
            _("High"),
            _("At low"),
            _("At high"),
            _("Swing"),
            _("Elasticity"),
        ),
        rows=tuple(_tornado_cells(row, metric) for row in rows),
        words=2,
    )


def _tornado_cells(row: Row, metric: str) -> tuple[Cell, ...]:
    elasticity = row["elasticity"]
    return (
        Cell(text=wording.label(row["path"])),
        Cell(text=_basis(row), muted=True),
        _number_cell(row["low"], row["path"]),
        _number_cell(row["high"], row["path"]),
        _end_cell(row, "low", metric),
        _end_cell(row, "high", metric),
        _number_cell(row["swing"], metric),
        Cell(text="–", muted=True)
        if elasticity is None
        else Cell(text=f"{elasticity:+.2f}".replace("-", "−")),
    )


def _basis(row: Row) -> str:
    """What a range rests on, and why an end cannot be."""
    blocked = [row[f"blocked_{end}"] for end in ("low", "high") if row[f"blocked_{end}"]]
    said = [translated(row["basis"]), *(translated(message) for message in blocked[:1])]
    return _("; ").join(said)


def _end_cell(row: Row, end: str, metric: str) -> Cell:
    value = row[f"at_{end}"]
    if value is None:
        return Cell(text=_("cannot be"), muted=True)
    shown = style.number(value, metric)
    return Cell(text=shown.text + _star(row, end), unit=shown.unit)


def _number_cell(value: float | None, name: str) -> Cell:
    if value is None:
        return Cell(text="–", muted=True)
    shown = style.number(value, name)
    return Cell(text=shown.text, unit=shown.unit)


def distribution(tables: Mapping[str, Sequence[Row]], metric: str) -> Chart | None:
    """How often each value comes, with the quantiles at 5, 50 and 95 %."""
    found = next((row for row in tables["distribution"] if row["metric"] == metric), None)
    if found is None:
        return None
    names = ("p5", "p50", "p95", "mean", "standard_error")
    shown = {name: style.number(found[name], metric) for name in names}
    words = {"metric": wording.figure(metric), "low": shown["p5"], "high": shown["p95"], "half": shown["p50"]}
    title = (
        _("%(metric)s lies between %(low)s and %(high)s nine times in ten, half the time below %(half)s")
        % words
    )
    return Chart(
        slug="draws",
        title=title,
        axis=_("Draws by %(metric)s; lines at 5, 50 and 95 %%") % words,
        summary=title,
        source=_draws_source(found, shown["standard_error"]),
        draw="plot",
        body=_histogram([row for row in tables["histogram"] if row["metric"] == metric], found, metric),
        table=Table(
            columns=(_("Statistic"), wording.figure(metric)),
            rows=tuple((Cell(text=_said(name)), _number_cell(found[name], metric)) for name in names),
        ),
    )


def _said(name: str) -> str:
    return {
        "p5": "5 %",
        "p50": "50 %",
        "p95": "95 %",
        "mean": _("mean"),
        "standard_error": _("standard error of the mean"),
    }[name]


def _draws_source(found: Row, error: style.Number) -> str:
    words = {
        "count": f"{found['draw_count']:,}",
        "error": error,
        "failed": f"{found['failed_count']:,}",
        "beyond": f"{found['extrapolated_count']:,}",
    }
    said = _("%(count)s draws, standard error of the mean %(error)s") % words
    if found["failed_count"]:
        said = _("; ").join((said, _("%(failed)s cannot be built") % words))
    if found["extrapolated_count"]:
        said = _("; ").join((said, _("%(beyond)s beyond what was measured") % words))
    return said


def _histogram(bins: Sequence[Row], found: Row, metric: str) -> dict[str, Any]:
    texts = [f"{style.number(row['low'], metric)} … {style.number(row['high'], metric)}" for row in bins]
    bars = {
        "type": "bar",
        "x": [(row["low"] + row["high"]) / 2 for row in bins],
        "width": [(row["high"] - row["low"]) * 0.94 for row in bins],
        "y": [row["count"] for row in bins],
        "text": texts,
        "textposition": "none",
        "marker": {"color": "var(--hair-2)"},
        "hovertemplate": "%{text}: %{y}<extra></extra>",
    }
    marks = [
        {
            "type": "line", "xref": "x", "yref": "paper", "x0": found[name], "x1": found[name], "y0": 0, "y1": 1,
            "line": {"color": "var(--ink)" if name == "p50" else "var(--ink-3)", "width": 1.5,
                     "dash": "solid" if name == "p50" else "5px,4px"},
        }
        for name in ("p5", "p50", "p95")
    ]  # fmt: skip
    ticks = [found["p5"], found["p50"], found["p95"]]
    return style.figure(
        [bars],
        x=style.axis(
            tickvals=ticks, ticktext=[str(style.number(tick, metric)) for tick in ticks], showgrid=False
        ),
        y=style.axis(rangemode="tozero", nticks=4),
        shapes=marks,
        bargap=0,
    )


def correlations(rows: Sequence[Row], metric: str) -> Chart | None:
    """Which input moves the figure most when all move at once."""
    rows = [row for row in rows if row["metric"] == metric][:SHOWN]
    if not rows:
        return None
    scale = _Scale(-1.0, 1.0)
    words = {
        "input": wording.label(rows[0]["path"]),
        "value": f"{rows[0]['correlation']:+.2f}".replace("-", "−"),
    }
    return Chart(
        slug="correlations",
        title=_("%(input)s moves it most: rank correlation %(value)s") % words,
        axis=_("Rank correlation of each input with the figure, from −1 to 1"),
        summary=_("Rank correlations: %(parts)s.")
        % {"parts": ", ".join(f"{wording.label(row['path'])} {row['correlation']:+.2f}" for row in rows)},
        source=_("Spearman, over all draws that could be built"),
        draw="twosided",
        body=tuple(
            _two_sided(
                scale,
                label=wording.label(row["path"]),
                said="",
                base=0.0,
                ends=(min(0.0, row["correlation"]), max(0.0, row["correlation"])),
                texts=_signed(row["correlation"]),
            )
            for row in rows
        ),
        table=Table(
            columns=(_("Input"), _("Rank correlation")),
            rows=tuple(
                (
                    Cell(text=wording.label(row["path"])),
                    Cell(text=f"{row['correlation']:+.2f}".replace("-", "−")),
                )
                for row in rows
            ),
        ),
    )


def _signed(value: float) -> tuple[str, str]:
    text = f"{value:+.2f}".replace("-", "−")
    return (text, "") if value < 0 else ("", text)


def goal(tables: Mapping[str, Sequence[Row]], path: str, metric: str) -> Chart | None:
    """Everything that was looked at, and which values keep to the bound."""
    if not tables["goal"]:
        return None
    trace = tables["goal_trace"]
    title = capitalised(translated(tables["goal"][0]["message"]))
    return Chart(
        slug="goal",
        title=title,
        axis=_("%(metric)s by %(input)s; filled keeps to the bound")
        % {"metric": wording.figure(metric), "input": wording.label(path)},
        summary=title,
        source=_("%(count)s values were looked at") % {"count": len(trace)},
        draw="plot",
        body=_goal_figure(trace, path, metric, float(tables["goal"][0]["bound"])),
        table=Table(
            columns=(wording.label(path), _("Keeps to it"), wording.figure(metric)),
            rows=tuple(_goal_cells(row, path, metric) for row in trace),
            words=0,
        ),
    )


def _goal_figure(trace: Sequence[Row], path: str, metric: str, bound: float) -> dict[str, Any]:
    seen = [row for row in trace if isinstance(row.get(metric), int | float)]
    values, got = [row["value"] for row in seen], [row[metric] for row in seen]
    texts = [f"{style.number(row['value'], path)}: {style.number(row[metric], metric)}" for row in seen]
    points = {
        "type": "scatter",
        "mode": "lines+markers",
        "x": values,
        "y": got,
        "text": texts,
        "hovertemplate": "%{text}<extra></extra>",
        "line": {"color": "var(--ink-3)", "width": 1},
        "marker": {
            "size": 10,
            "color": ["var(--accent)" if row["met"] else "var(--ground)" for row in seen],
            "line": {"color": "var(--accent)", "width": 2},
        },
        "cliponaxis": False,
    }
    ends = [row["value"] for row in trace]
    limit = style.baseline_line([min(ends), max(ends)], [bound, bound], name=_("bound"), hoverinfo="skip")
    levels, margin = [bound, *got], (max(ends) - min(ends)) * 0.03
    return style.figure(
        [points, limit],
        x=style.axis(showgrid=False, nticks=6, range=[min(ends) - margin, max(ends) + margin]),
        y=style.axis(
            tickvals=(ticks := _ticks(levels)), ticktext=[str(style.number(tick, metric)) for tick in ticks]
        ),
        annotations=[
            style.direct_label(
                str(style.number(bound, metric)), x=min(ends), y=bound, xanchor="left", yanchor="bottom"
            )
        ],
    )


def _ticks(values: Sequence[float]) -> list[float]:
    low, high = min(values), max(values)
    return [low, (low + high) / 2, high] if high > low else [low]


def _goal_cells(row: Row, path: str, metric: str) -> tuple[Cell, ...]:
    value = style.number(row["value"], path)
    error = row["error"]
    got = row.get(metric)
    return (
        Cell(text=value.text, unit=value.unit),
        Cell(text=_("yes") if row["met"] else _("no"), muted=not row["met"]),
        Cell(text=translated(error), muted=True) if error else _number_cell(got, metric),
    )
