"""Serving by class over simulated time: who waits, who runs, and how long the first tokens of each class took."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.utils.translation import gettext as _

from explorer import wording
from explorer.charts import style
from explorer.charts.style import Cell, Chart, Result, Table

COLORS: Final = ("var(--ink)", "var(--accent)", "var(--hbm)", "var(--compute)", "var(--ink-3)")
_ROWS: Final = 8  # of a class in the table
Columns = Mapping[str, Sequence[Any]]


def over_time(result: Result | None, baseline: Result | None = None) -> Chart | None:
    """Waiting, running and 99th percentile of TTFT by class; of many classes, those that wait most."""
    columns = style.series(result, "serving_classes")
    time_s = columns.get("time_s") or ()
    names = [
        str(row["class"]) for row in style.rows(result, "classes") if f"{row['class']}.waiting" in columns
    ]
    if not time_s or not names:
        return None
    drawn = _most_waiting(names, columns)
    return Chart(
        slug="class-over-time",
        title=_title(names, columns),
        axis=_(
            "Requests waiting and running, means over a slice of simulated time, and TTFT p99 of who arrived in it"
        ),
        summary=_("Waiting and running requests and TTFT of each class over simulated time."),
        source=_("Simulated"),
        draw="plot",
        body=_figure(drawn, time_s, columns),
        table=_table(drawn, time_s, columns),
        wide=True,
    )


def _most_waiting(names: Sequence[str], columns: Columns) -> list[str]:
    """As many as there are colours, in the scenario's order."""
    ranked = sorted(names, key=lambda name: -sum(columns[f"{name}.waiting"]))[: len(COLORS)]
    return [name for name in names if name in ranked]


def _title(names: Sequence[str], columns: Columns) -> str:
    longest = {name: max(columns[f"{name}.waiting"]) for name in names}
    first = max(longest, key=lambda name: longest[name])
    if longest[first] < 1:
        return _("Hardly a request of any class waits")
    return _("Of %(name)s, up to %(count)s requests wait") % {
        "name": first,
        "count": f"{longest[first]:,.0f}",
    }


def _figure(names: Sequence[str], time_s: Sequence[float], columns: Columns) -> dict[str, Any]:
    ttft = wording.label("serving.ttft_s")
    lanes = (
        ("waiting", _("waiting"), "y", "%{y:.3~s}"),
        ("running", _("running"), "y2", "%{y:.3~s}"),
        ("ttft_s.p99", f"{ttft} p99", "y3", "%{y:.3~s}s"),
    )
    data = [
        style.line(
            time_s, columns[f"{name}.{lane}"], name=name, color=color, yaxis=axis, legendgroup=name,
            showlegend=axis == "y", line={"shape": "hv"}, connectgaps=False,
            hovertemplate="%{x:.4~s}s · " + shown + "<extra>%{fullData.name}</extra>",
        )
        for name, color in zip(names, COLORS, strict=False)
        for lane, _title, axis, shown in lanes
    ]  # fmt: skip
    tops = (1.0, 0.64, 0.3)
    titles = [
        style.direct_label(text, x=0, y=top, xref="paper", yref="paper", xanchor="left", yanchor="bottom")
        for (_lane, text, *_rest), top in zip(lanes, tops, strict=True)
    ]
    return style.figure(
        data,
        x=style.axis(ticksuffix=" s", rangemode="tozero", anchor="y3", showgrid=False),
        y=style.axis(domain=[0.72, 1], rangemode="tozero", nticks=4),
        yaxis2=style.axis(domain=[0.38, 0.64], rangemode="tozero", nticks=3),
        yaxis3=style.axis(domain=[0, 0.3], rangemode="tozero", nticks=3, ticksuffix=" s"),
        margin={"l": 48, "r": 16, "t": 56, "b": 36},
        annotations=titles,
        showlegend=True,
        legend={
            "orientation": "h",
            "x": 0,
            "y": 1.08,
            "yanchor": "bottom",
            "font": {"color": "var(--ink-2)"},
        },
    )


def _table(names: Sequence[str], time_s: Sequence[float], columns: Columns) -> Table:
    rows = tuple(
        (
            Cell(text=str(style.number(time_s[at], "time_s")), muted=True),
            Cell(text=name, muted=True),
            Cell(text=f"{columns[f'{name}.waiting'][at]:,.1f}"),
            Cell(text=f"{columns[f'{name}.running'][at]:,.1f}"),
            *(_ttft(columns[f"{name}.ttft_s.{mark}"][at]) for mark in ("p50", "p99")),
        )
        for at in style.thinned(time_s, _ROWS)
        for name in names
    )
    ttft = wording.label("serving.ttft_s")
    heads = (_("Time"), _("Class"), _("waiting"), _("running"), f"{ttft} p50", f"{ttft} p99")
    return Table(columns=heads, rows=rows, words=2)


def _ttft(value: float | None) -> Cell:
    if value is None:
        return Cell(text="–", muted=True)
    number = style.number(value, "ttft_s")
    return Cell(text=number.text, unit=number.unit)
