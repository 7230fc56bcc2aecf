"""A scenario under every split of its chips into prefill and decode replicas: simulated, beside what each pool and
the link between them carry in closed form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.utils.translation import gettext as _

from explorer import wording
from explorer.charts import beside, style
from explorer.charts.beside import Row
from explorer.charts.style import Chart, Panel

GOODPUT: Final = "serving.slo_goodput_request_per_s"
TTFT: Final = "serving.ttft_s.p99"
TPOT: Final = "serving.tpot_s.p99"
CAPACITIES: Final = {
    "serving.prefill_capacity_request_per_s": "var(--compute)",
    "serving.decode_capacity_request_per_s": "var(--hbm)",
    "serving.kv_link_capacity_request_per_s": "var(--scaleout)",
}
LEAST: Final = "serving.capacity_request_per_s"
ALIKE: Final = 0.005
WIDE: Final = 20.0  # between values whose ratio is greater an axis is logarithmic
_HOVER: Final = "%{x} · %{y:.3~s}<extra>%{fullData.name}</extra>"
_LANES: Final = ((GOODPUT, "y", 1.0), (TTFT, "y2", 0.62), (TPOT, "y3", 0.27))


def panel(rows: Sequence[Row]) -> Panel:
    """What each split does with the same requests, and which part of it binds."""
    charts = (_served(rows), _capacities(rows), _table(rows)) if rows else ()
    return Panel(tab="splits", headline=_headline(rows), notes=tuple(beside.notes(rows)), charts=charts)


def _headline(rows: Sequence[Row]) -> str:
    done = [row for row in rows if row.result is not None]
    waited_for = [row for row in rows if row.result is None and not row.refused]
    if not rows:
        return _(
            "Prefill and decode share their replicas in this scenario: choose the scheduler disaggregated"
        )
    if not done and not waited_for:
        return _("No split can run this scenario")
    if waited_for:
        return _("%(done)s of %(count)s splits have run") % {"done": len(done), "count": len(rows)}
    most = max(row.metric(GOODPUT) or 0.0 for row in done)
    if most <= 0:
        return _("No split serves a request within the objectives")
    level = [row for row in done if (row.metric(GOODPUT) or 0.0) >= (1 - ALIKE) * most]
    best = min(level, key=lambda row: row.metric(TTFT) or float("inf"))
    words = {
        "best": best.name,
        "most": style.number(most, GOODPUT),
        "count": len(level),
        "bound": _bound(best),
        "capacity": style.number(best.metric(LEAST) or 0.0, LEAST),
    }
    if len(level) == 1:
        return (
            _("%(best)s serves most within the objectives: %(most)s; %(bound)s binds it at %(capacity)s")
            % words
        )
    return (
        _(
            "%(count)s splits serve as much within the objectives, %(most)s; of these %(best)s has the shortest TTFT "
            "p99, and %(bound)s binds it at %(capacity)s"
        )
        % words
    )


def _bound(row: Row) -> str:
    """What has the least capacity."""
    words = (_("prefill"), _("decode"), _("the KV link"))
    rates = [row.metric(name) or float("inf") for name in CAPACITIES]
    return words[rates.index(min(rates))]


def _served(rows: Sequence[Row]) -> Chart:
    return Chart(
        slug="split-served",
        title=_("What each split serves, and how late"),
        axis=_("Prefill : decode replicas; the filled mark is the scenario as it stands"),
        summary=_("SLO goodput, TTFT p99 and TPOT p99 of each split, simulated."),
        source=_("Simulated"),
        draw="plot",
        body=_served_figure(rows),
        height=460,
    )


def _served_figure(rows: Sequence[Row]) -> dict[str, Any]:
    fills = ["var(--accent)" if row.is_current else "var(--ground)" for row in rows]
    mark = {"color": fills, "size": 9, "line": {"color": "var(--ink)", "width": 1.5}}
    data = [
        _line(rows, _finished(rows, name), wording.label(name), yaxis=axis, mode="lines+markers", marker=mark)
        for name, axis, _top in _LANES
    ]
    titles = [
        style.direct_label(
            _lane_title(name), x=0, y=top, xref="paper", yref="paper", xanchor="left", yanchor="bottom"
        )
        for name, _axis, top in _LANES
    ]
    return style.figure(
        data,
        x=_splits_axis(rows, anchor="y3"),
        y=style.axis(domain=[0.74, 0.97], rangemode="tozero", nticks=4),
        yaxis2=_axis(data[1:2], TTFT, ticksuffix="s", domain=[0.38, 0.58]),
        yaxis3=_axis(data[2:], TPOT, ticksuffix="s", domain=[0, 0.23]),
        margin={"l": 56, "r": 16, "t": 28, "b": 36},
        annotations=titles,
    )


def _lane_title(name: str) -> str:
    """With the unit, where the ticks do not say it."""
    unit = style.number(1.0, name).unit
    return f"{wording.label(name)}, {unit}" if name == GOODPUT else wording.label(name)


def _capacities(rows: Sequence[Row]) -> Chart:
    return Chart(
        slug="split-capacity",
        title=_capacity_title(rows),
        axis=_("Requests per second at saturation by prefill : decode replicas; the least binds"),
        summary=_("Capacities of prefill, decode and the KV link and the least of them, for each split."),
        source=_("Closed form"),
        draw="plot",
        body=_capacity_figure(rows),
        height=460,
    )


def _capacity_title(rows: Sequence[Row]) -> str:
    able = [row for row in rows if row.metric(LEAST)]
    if not able:
        return _("What prefill, decode and the link carry")
    best = max(able, key=lambda row: row.metric(LEAST) or 0.0)
    return _("%(best)s carries most: %(capacity)s, where %(bound)s binds") % {
        "best": best.name,
        "capacity": style.number(best.metric(LEAST) or 0.0, LEAST),
        "bound": _bound(best),
    }


def _capacity_figure(rows: Sequence[Row]) -> dict[str, Any]:
    data = [
        _line(rows, [row.metric(name) for row in rows], wording.label(name), color=color)
        for name, color in CAPACITIES.items()
    ]
    least = _line(rows, [row.metric(LEAST) for row in rows], _("The least"), line={"width": 4})
    offered = [_offered(row) for row in rows]
    if any(offered):
        data.append(
            style.baseline_line([row.name for row in rows], offered, name=_("Offered"), hovertemplate=_HOVER)
        )
    return style.figure(
        [least, *data],
        x=_splits_axis(rows),
        y=_axis([least, *data], LEAST),
        showlegend=True,
        legend=style.LEGEND,
        margin={"l": 56, "r": 16, "t": 72, "b": 36},
    )


def _offered(row: Row) -> float | None:
    load, capacity = row.metric("serving.offered_load_ratio"), row.metric(LEAST)
    return load * capacity if load and capacity else None


def _finished(rows: Sequence[Row], name: str) -> list[float | None]:
    return [style.metric(row.result, name) for row in rows]


def _line(rows: Sequence[Row], values: Sequence[float | None], name: str, **options: Any) -> dict[str, Any]:
    """A line over the splits, with a gap where one has no value."""
    return style.line(
        [row.name for row in rows], values, name=name, hovertemplate=_HOVER, cliponaxis=False, **options
    )


def _splits_axis(rows: Sequence[Row], **options: Any) -> dict[str, Any]:
    names = [row.name for row in rows]
    return style.axis(type="category", categoryorder="array", categoryarray=names, showgrid=False, **options)


def _axis(traces: Sequence[Mapping[str, Any]], name: str, **options: Any) -> dict[str, Any]:
    """From zero, or logarithmic where the values lie far apart."""
    values = [value for trace in traces for value in trace["y"] if value]
    if values and max(values) > WIDE * min(values):
        return {**style.log_axis(values, name), **options, "ticksuffix": ""}
    return style.axis(rangemode="tozero", nticks=4, tickformat="~s", **options)


def _table(rows: Sequence[Row]) -> Chart:
    return Chart(
        slug="splits",
        title=_("The same requests under each split"),
        axis=_("Change against the split that the scenario has now; all else is as it stands there"),
        summary=_("Goodput, times and capacities of each split."),
        source=_("Simulated; capacities in closed form"),
        draw="table",
        table=beside.table(rows, (GOODPUT, TTFT, TPOT), plain=(*CAPACITIES, LEAST), head=_("Split")),
        wide=True,
    )
