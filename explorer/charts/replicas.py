"""Replicas that are ready and that start over simulated time, where an autoscaler says how many there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.translation import gettext as _

from explorer.charts import style
from explorer.charts.style import Chart, Result, Table


def over_time(result: Result | None) -> Chart | None:
    """Those that start stand on those that are ready."""
    columns = style.series(result, "serving")
    if not columns.get("replicas"):
        return None
    return Chart(
        slug="replicas",
        title=_title(columns, style.metric(result, "serving.autoscaling.ready_replica_count.mean")),
        axis=_("Replicas that take requests, and on top of them those that start, over simulated time"),
        summary=_("Replicas ready and starting over simulated time."),
        source=style.simulated(result),
        draw="plot",
        body=_figure(columns),
        table=_table(columns),
        wide=True,
        height=220,
    )


def _title(columns: Mapping[str, Sequence[float]], mean: float | None) -> str:
    words = {
        "fewest": f"{min(columns['replicas']):,.0f}",
        "most": f"{max(columns['replicas']):,.0f}",
        "mean": f"{mean or 0:,.1f}",
    }
    if words["fewest"] == words["most"]:
        return _("The load never asks for more or fewer than %(most)s ready replicas") % words
    if mean is None:
        return _("From %(fewest)s to %(most)s replicas are ready") % words
    return _("From %(fewest)s to %(most)s replicas are ready, %(mean)s in the mean") % words


def _lines() -> dict[str, tuple[str, str]]:
    return {
        "replicas": (_("ready"), "var(--compute)"),
        "replicas_starting": (_("starting"), "var(--queue)"),
    }


def _figure(columns: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    return style.figure(
        [
            style.line(
                columns["time_s"],
                columns[column],
                name=name,
                color=color,
                stackgroup="replicas",
                fillcolor=color,
                line={"shape": "hv", "width": 0},
                hovertemplate="%{x:.4~s}s · %{y:~s}<extra>%{fullData.name}</extra>",
            )
            for column, (name, color) in _lines().items()
        ],
        x=style.axis(ticksuffix=" s", rangemode="tozero", showgrid=False),
        y=style.axis(rangemode="tozero", nticks=4),
        showlegend=True,
        legend={"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
        margin={"l": 48, "r": 16, "t": 36, "b": 36},
    )


def _table(columns: Mapping[str, Sequence[float]]) -> Table:
    time = columns["time_s"]
    return Table(
        columns=(_("Time"), *(name for name, _color in _lines().values())),
        rows=tuple(
            style.text_cells(
                str(style.number(time[i], "time_s")),
                *(f"{columns[column][i]:,.0f}" for column in _lines()),
            )
            for i in style.thinned(time)
        ),
    )
