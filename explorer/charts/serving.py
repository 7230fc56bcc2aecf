"""Serving: queue, batch, KV and preemptions over simulated time, and the percentiles of times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any, Final

from django.utils.translation import gettext as _

from explorer import wording
from explorer.charts import style
from explorer.charts.style import Cell, Chart, Result, Table

RECORD_FORMATS: Final = (
    ("csv", "parquet") if find_spec("pyarrow") else ("csv",)
)  # as `simcore.report.records` can
SERIES_COLUMNS: Final = (
    "running", "waiting", "handing_over", "kv_usage_fraction", "batch_tokens", "preemption_count",
)  # fmt: skip


def over_time(result: Result | None, baseline: Result | None = None) -> Chart:
    """Running, waiting, KV use and preemptions over simulated time. While it streams, the browser appends columns.

    Each trace names the column that feeds it (`meta.column`); the same figure serves the empty start, the
    stream and the finished run.
    """
    columns = style.series(result, "serving")
    return Chart(
        slug="over-time",
        title=_time_title(result, columns),
        axis=_(
            "Requests running and waiting, KV blocks in use and preemptions so far, all replicas, over simulated time"
        ),
        summary=_time_summary(columns),
        source=style.simulated(result),
        draw="plot",
        body=_time_figure(columns),
        table=_time_table(columns),
        wide=True,
        height=420,
    )


def _time_title(result: Result | None, columns: Mapping[str, Sequence[float]]) -> str:
    if not columns.get("time_s"):
        return _("Queue, batch, KV memory and preemptions over simulated time")
    waiting, running = max(columns["waiting"]), max(columns["running"])
    regime = str((result or {}).get("metrics", {}).get("serving.regime") or "")
    preempted = style.metric(result, "serving.preemption_count") or 0
    words = {"running": f"{running:,.0f}", "waiting": f"{waiting:,.0f}", "preempted": f"{preempted:,.0f}"}
    if regime == "overloaded":
        return _("The queue keeps growing: up to %(waiting)s requests wait") % words
    if preempted:
        return (
            _(
                "At most %(running)s requests run at once, up to %(waiting)s wait, and KV runs out %(preempted)s times"
            )
            % words
        )
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
        ("preemption_count", _("preemptions so far"), "var(--failure)", "y4", "none", "~s"),
    )
    data = [
        style.line(
            time, columns.get(column, ()), name=name, color=color, yaxis=axis, fill=fill,
            fillcolor="var(--ground-2)", line={"shape": "hv"}, meta={"column": column},
            hovertemplate="%{x:.4~s}s · %{y:" + shown + "}<extra>%{fullData.name}</extra>",
        )
        for column, name, color, axis, fill, shown in lanes
    ]  # fmt: skip
    between = columns.get("handing_over")
    if between:
        data.append(
            style.line(
                time, between, name=_("between prefill and decode"), color="var(--scaleout)", yaxis="y2",
                line={"shape": "hv"}, meta={"column": "handing_over"},
                hovertemplate="%{x:.4~s}s · %{y:~s}<extra>%{fullData.name}</extra>",
            )
        )  # fmt: skip
    titles = [
        style.direct_label(name, x=0, y=top, xref="paper", yref="paper", xanchor="left", yanchor="bottom")
        for (_column, name, *_rest), top in zip(lanes, (1.0, 0.6, 0.36, 0.13), strict=True)
    ]
    return style.figure(
        data,
        x=style.axis(ticksuffix=" s", rangemode="tozero", anchor="y4", showgrid=False),
        y=style.axis(domain=[0.68, 1], rangemode="tozero", nticks=4),
        yaxis2=style.axis(domain=[0.44, 0.6], rangemode="tozero", nticks=3),
        yaxis3=style.axis(domain=[0.21, 0.36], range=[0, 1.05], tickformat=".0%", nticks=3),
        yaxis4=style.axis(domain=[0, 0.13], rangemode="tozero", nticks=3, tickformat="~s"),
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
        "handing_over": _("between prefill and decode"),
        "kv_usage_fraction": _("KV in use"),
        "batch_tokens": _("batch tokens"),
        "preemption_count": _("preemptions so far"),
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
        source=style.simulated(result),
        draw="table",
        table=Table(columns=(_("Time"), _("mean"), *marks[1:]), rows=rows),
        wide=True,
        download="records",
        formats=RECORD_FORMATS,
    )
