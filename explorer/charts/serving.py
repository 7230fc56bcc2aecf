"""Serving: latency distributions against their objectives, and queue, batch and KV over simulated time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.utils.translation import gettext as _

from explorer import wording
from explorer.charts import style
from explorer.charts.style import Cell, Chart, Result, Table

CDFS: Final = {"ttft": "serving.ttft_s", "tpot": "serving.tpot_s", "e2e": "serving.e2e_s"}
SERIES_COLUMNS: Final = ("running", "waiting", "kv_usage_fraction", "batch_tokens")


def cdf(which: str, result: Result | None, baseline: Result | None = None) -> Chart | None:
    """Share of requests whose time is at most x, with the objective marked."""
    curve = style.series(result, f"{which}_cdf")
    x, share = curve.get(f"{which}_s"), curve.get("fraction")
    if not x or not share:
        return None
    objective = _objective(which, result)
    before = style.series(baseline, f"{which}_cdf")
    return Chart(
        slug=f"{which}-cdf",
        title=_cdf_title(which, result, baseline, objective),
        axis=_("Share of requests whose %(name)s is at most x, log scale")
        % {"name": wording.label(CDFS[which])},
        summary=_cdf_summary(which, result),
        source=_simulated(result),
        draw="plot",
        body=_cdf_figure(which, x, share, before, objective),
        table=_cdf_table(which, x, share),
    )


def _objective(which: str, result: Result | None) -> float | None:
    scenario = style.scenario_of(result)
    if scenario is None or scenario.workload.classes:  # of classes, each has its own
        return None
    return getattr(scenario.workload.slo, f"{which}_s", None)


def share_within(curve: Mapping[str, Sequence[float]], which: str, limit: float) -> float | None:
    """The fraction of requests at or below a limit, read off the curve by linear interpolation."""
    x, y = curve.get(f"{which}_s") or [], curve.get("fraction") or []
    if not x or not y:
        return None
    if limit < x[0]:
        return 0.0
    for index in range(1, len(x)):
        if limit < x[index]:
            span = x[index] - x[index - 1]
            part = (limit - x[index - 1]) / span if span > 0 else 1.0
            return y[index - 1] + part * (y[index] - y[index - 1])
    return y[-1]


def _cdf_title(which: str, result: Result | None, baseline: Result | None, objective: float | None) -> str:
    name = wording.label(CDFS[which])
    if objective is not None:
        now = share_within(style.series(result, f"{which}_cdf"), which, objective)
        before = share_within(style.series(baseline, f"{which}_cdf"), which, objective)
        words = {
            "share": style.percent(now or 0.0),
            "name": name,
            "limit": style.number(objective, "limit_s"),
            "before": style.percent(before or 0.0),
        }
        if before is None or abs((now or 0.0) - before) < 5e-4:
            return _("%(share)s of requests meet the %(limit)s %(name)s objective") % words
        if (now or 0.0) > before:
            return (
                _("%(share)s of requests meet the %(limit)s %(name)s objective, up from %(before)s") % words
            )
        return _("%(share)s of requests meet the %(limit)s %(name)s objective, down from %(before)s") % words
    half, tail = style.metric(result, f"{CDFS[which]}.p50"), style.metric(result, f"{CDFS[which]}.p99")
    if half is None or tail is None:
        return name
    words = {"name": name, "half": style.number(half, "x_s"), "tail": style.number(tail, "x_s")}
    return _("%(name)s: half within %(half)s, 99 of 100 within %(tail)s") % words


def _cdf_summary(which: str, result: Result | None) -> str:
    parts = [
        f"{mark} {style.number(value, 'x_s')}"
        for mark in ("p50", "p90", "p95", "p99")
        if (value := style.metric(result, f"{CDFS[which]}.{mark}")) is not None
    ]
    return _("Cumulative distribution of %(name)s: %(parts)s.") % {
        "name": wording.label(CDFS[which]),
        "parts": ", ".join(parts),
    }


def _simulated(result: Result | None) -> str:
    count = style.metric(result, "serving.completed_count")
    if count is None:
        return _("Simulated")
    return _("Simulated, %(count)s requests, seed %(seed)s") % {
        "count": f"{count:,.0f}",
        "seed": (result or {}).get("seed", 1),
    }


def _cdf_figure(
    which: str,
    x: Sequence[float],
    share: Sequence[float],
    before: Mapping[str, Sequence[float]],
    objective: float | None,
) -> dict[str, Any]:
    data = []
    if before.get(f"{which}_s"):
        data.append(style.baseline_line(before[f"{which}_s"], before["fraction"], name=_("Baseline")))
    data.append(style.line(x, share, name=_("Now")))
    for trace in data:
        trace["hovertemplate"] = "%{x:.3~s}s · %{y:.1%}<extra>%{fullData.name}</extra>"
        trace["line"] = {**trace["line"], "shape": "hv"}
    shapes, annotations = _objective_mark(objective) if objective else ([], [])
    return style.figure(
        data,
        x=style.log_axis([*x, *before.get(f"{which}_s", ()), *([objective] if objective else [])], "x_s"),
        y=style.axis(range=[0, 1.02], tickformat=".0%", dtick=0.25),
        shapes=shapes,
        annotations=annotations,
    )


def _objective_mark(objective: float) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    mark = {
        "type": "line", "xref": "x", "yref": "paper", "x0": objective, "x1": objective, "y0": 0, "y1": 1,
        "line": {"color": "var(--worse)", "width": 1.5, "dash": "2px,3px"},
    }  # fmt: skip
    text = _("SLO %(limit)s") % {"limit": style.number(objective, "limit_s")}
    note = style.direct_label(
        text, x=math.log10(objective), y=0.02, yref="paper", xanchor="right", yanchor="bottom"
    )
    note["font"] = {"color": "var(--worse)", "size": 14}
    return [mark], [note]


def _cdf_table(which: str, x: Sequence[float], share: Sequence[float]) -> Table:
    picked = style.thinned(x)
    return Table(
        columns=(wording.label(CDFS[which]), _("Share at most")),
        rows=tuple(style.text_cells(str(style.number(x[i], "x_s")), style.percent(share[i])) for i in picked),
    )


def over_time(result: Result | None, baseline: Result | None = None) -> Chart:
    """Running, waiting and KV use over simulated time. Drawn while it streams: the browser appends columns.

    Each trace names the column that feeds it (`meta.column`); the same figure serves the empty start, the
    stream and the finished run.
    """
    columns = style.series(result, "serving")
    return Chart(
        slug="over-time",
        title=_time_title(result, columns),
        axis=_("Requests running and waiting, all replicas, and KV blocks in use, over simulated time"),
        summary=_time_summary(columns),
        source=_simulated(result),
        draw="plot",
        body=_time_figure(columns),
        table=_time_table(columns),
        wide=True,
    )


def _time_title(result: Result | None, columns: Mapping[str, Sequence[float]]) -> str:
    if not columns.get("time_s"):
        return _("Queue, batch and KV memory over simulated time")
    waiting, running = max(columns["waiting"]), max(columns["running"])
    regime = str((result or {}).get("metrics", {}).get("serving.regime") or "")
    words = {"running": f"{running:,.0f}", "waiting": f"{waiting:,.0f}"}
    if regime == "overloaded":
        return _("The queue keeps growing: up to %(waiting)s requests wait") % words
    if waiting < 1:
        return _("At most %(running)s requests run at once, and none waits") % words
    return _("At most %(running)s requests run at once, and up to %(waiting)s wait") % words


def _time_summary(columns: Mapping[str, Sequence[float]]) -> str:
    if not columns.get("time_s"):
        return _("Nothing is simulated yet.")
    return _(
        "Over %(span)s of simulated time, up to %(running)s requests run, %(waiting)s wait, "
        "and KV use peaks at %(kv)s."
    ) % {
        "span": style.number(columns["time_s"][-1], "span_s"),
        "running": f"{max(columns['running']):,.0f}",
        "waiting": f"{max(columns['waiting']):,.0f}",
        "kv": style.percent(max(columns["kv_usage_fraction"])),
    }


def _time_figure(columns: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    time = columns.get("time_s", ())
    lanes = (
        ("running", _("running"), "var(--ink)", "y", "tozeroy", "~s"),
        ("waiting", _("waiting"), "var(--queue)", "y2", "tozeroy", "~s"),
        ("kv_usage_fraction", _("KV in use"), "var(--hbm)", "y3", "none", ".0%"),
    )
    data = [
        style.line(
            time, columns.get(column, ()), name=name, color=color, yaxis=axis, fill=fill,
            fillcolor="var(--ground-2)", line={"shape": "hv"}, meta={"column": column},
            hovertemplate="%{x:.4~s}s · %{y:" + shown + "}<extra>%{fullData.name}</extra>",
        )
        for column, name, color, axis, fill, shown in lanes
    ]  # fmt: skip
    titles = [
        style.direct_label(name, x=0, y=top, xref="paper", yref="paper", xanchor="left", yanchor="bottom")
        for (_column, name, *_rest), top in zip(lanes, (1.0, 0.5, 0.22), strict=True)
    ]
    return style.figure(
        data,
        x=style.axis(ticksuffix=" s", rangemode="tozero", anchor="y3", showgrid=False),
        y=style.axis(domain=[0.6, 1], rangemode="tozero", nticks=4),
        yaxis2=style.axis(domain=[0.32, 0.5], rangemode="tozero", nticks=3),
        yaxis3=style.axis(domain=[0, 0.22], range=[0, 1.05], tickformat=".0%", nticks=3),
        margin={"l": 48, "r": 16, "t": 28, "b": 36},
        annotations=titles,
        hovermode="x unified",
        meta={"series": "serving"},
    )


def _time_table(columns: Mapping[str, Sequence[float]]) -> Table | None:
    time = columns.get("time_s")
    if not time:
        return None
    names = [name for name in SERIES_COLUMNS if columns.get(name)]
    headers = {
        "running": _("running"),
        "waiting": _("waiting"),
        "kv_usage_fraction": _("KV in use"),
        "batch_tokens": _("batch tokens"),
    }
    rows = []
    for i in style.thinned(time):
        values = [
            style.percent(columns[name][i]) if name.endswith("fraction") else f"{columns[name][i]:,.0f}"
            for name in names
        ]
        rows.append(style.text_cells(str(style.number(time[i], "time_s")), *values))
    return Table(columns=(_("Time"), *(headers[name] for name in names)), rows=tuple(rows))


def percentiles(result: Result | None, baseline: Result | None = None) -> Chart | None:
    """The usual percentiles of the five times, as one table."""
    marks = ("mean", "p50", "p90", "p95", "p99")
    names = [f"serving.{time}_s" for time in ("ttft", "tpot", "itl", "e2e", "queue")]
    listed = []
    for name in names:
        values = [style.metric(result, f"{name}.{mark}") for mark in marks]
        if any(value is not None for value in values):
            listed.append((name, values))
    if not listed:
        return None
    rows = tuple(
        (
            Cell(text=wording.label(name), muted=True),
            *(
                Cell(text="–", muted=True)
                if value is None
                else Cell(
                    text=style.number(value, name).text,
                    unit=style.number(value, name).unit,
                    metric=f"{name}.{mark}",
                    delta=style.delta(value, style.metric(baseline, f"{name}.{mark}"), name),
                )
                for mark, value in zip(marks, values, strict=True)
            ),
        )
        for name, values in listed
    )
    return Chart(
        slug="percentiles",
        title=_("Times of a request"),
        axis=_("Over all finished requests; change since the baseline beside each"),
        summary=_("Mean and percentiles of the times of a request."),
        source=_simulated(result),
        draw="table",
        table=Table(columns=(_("Time"), _("mean"), *marks[1:]), rows=rows),
        wide=True,
    )
