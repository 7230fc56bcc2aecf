"""The KV blocks over simulated time: what is in them, and how full each replica is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.utils.translation import gettext as _

from explorer.charts import style
from explorer.charts.style import Chart, Result, Table

_EMPTY_SHARE: Final = 0.01  # of blocks taken and not filled, from which the title says so


def kv_map(result: Result | None) -> Chart | None:
    """Shares of all blocks by state, one above the other; below, each replica as a line of its own."""
    columns = style.series(result, "kv_map")
    if not columns.get("time_s"):
        return None
    parts = _parts(columns)
    return Chart(
        slug="kv-map",
        title=_title(parts),
        axis=_(
            "Share of KV blocks by what is in them, all replicas, and the share in use of each, over simulated time"
        ),
        summary=_("KV blocks in use, cached and free over simulated time."),
        source=style.simulated(result),
        draw="plot",
        body=_figure(columns, parts),
        table=_table(columns["time_s"], parts),
        wide=True,
        height=420 if _lanes(columns) else 280,
    )


def _parts(columns: Mapping[str, Sequence[float]]) -> dict[str, list[float]]:
    held, used, cached = (
        list(columns[name]) for name in ("held_fraction", "used_fraction", "cached_fraction")
    )
    return {
        "held": held,
        "empty": [max(0.0, taken - full) for taken, full in zip(used, held, strict=True)],
        "cached": cached,
        "free": [max(0.0, 1.0 - taken - kept) for taken, kept in zip(used, cached, strict=True)],
    }


def _title(parts: Mapping[str, Sequence[float]]) -> str:
    most = style.percent(max(parts["held"]))
    if max(parts["cached"]) > 0:
        return _(
            "Running sequences fill up to %(most)s of the KV blocks, and prefixes that nobody uses %(kept)s"
        ) % {
            "most": most,
            "kept": style.percent(max(parts["cached"])),
        }
    if max(parts["empty"]) > _EMPTY_SHARE:
        return _("Running sequences fill up to %(most)s of the KV blocks, and keep up to %(empty)s empty") % {
            "most": most,
            "empty": style.percent(max(parts["empty"])),
        }
    return _("Running sequences fill up to %(most)s of the KV blocks") % {"most": most}


def _names() -> dict[str, tuple[str, str]]:
    return {
        "held": (_("holds tokens"), "var(--hbm)"),
        "empty": (_("taken, empty"), "var(--queue)"),
        "cached": (_("cached prefixes"), "var(--compute)"),
        "free": (_("free"), "var(--ground-2)"),
    }


def _lanes(columns: Mapping[str, Sequence[float]]) -> list[str]:
    """The columns of replicas, where there are several."""
    found = [name for name in columns if name.partition(".")[0] in ("both", "prefill", "decode")]
    return found if len(found) > 1 else []


def _figure(columns: Mapping[str, Sequence[float]], parts: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    time, lanes = columns["time_s"], _lanes(columns)
    data: list[dict[str, Any]] = [
        style.line(
            time,
            parts[name],
            name=label,
            color=color,
            yaxis="y",
            stackgroup="blocks",
            fillcolor=color,
            line={"shape": "hv", "width": 0},
            hovertemplate="%{x:.4~s}s · %{y:.1%}<extra>%{fullData.name}</extra>",
        )
        for name, (label, color) in _names().items()
        if max(parts[name]) > 0
    ]
    if lanes:
        data.append(
            {
                "type": "heatmap",
                "x": list(time),
                "y": [_lane(name) for name in lanes],
                "z": [list(columns[name]) for name in lanes],
                "yaxis": "y2",
                "zmin": 0,
                "zmax": 1,
                "showscale": False,
                "colorscale": [[0, "var(--ground-2)"], [1, "var(--hbm)"]],
                "hovertemplate": "%{x:.4~s}s · %{y} · %{z:.0%}<extra></extra>",
            }
        )
    return style.figure(
        data,
        x=style.axis(ticksuffix=" s", rangemode="tozero", anchor="y2" if lanes else "y", showgrid=False),
        y=style.axis(domain=[0.5, 1] if lanes else [0, 1], range=[0, 1], tickformat=".0%", nticks=4),
        **(
            {"yaxis2": style.axis(domain=[0, 0.42], autorange="reversed", type="category", showgrid=False)}
            if lanes
            else {}
        ),
        showlegend=True,
        legend={"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
        margin={"l": 48, "r": 16, "t": 36, "b": 36},
    )


def _lane(name: str) -> str:
    """`prefill.0` as people read it; a replica with several batches in flight has a line for each."""
    role, _dot, number = name.partition(".")
    shown = {"both": _("replica"), "prefill": _("prefill"), "decode": _("decode")}[role]
    return f"{shown} {int(number) + 1}"


def _table(time: Sequence[float], parts: Mapping[str, Sequence[float]]) -> Table:
    return Table(
        columns=(_("Time"), *(label for label, _color in _names().values())),
        rows=tuple(
            style.text_cells(
                str(style.number(time[i], "time_s")), *(style.percent(parts[name][i]) for name in _names())
            )
            for i in style.thinned(time)
        ),
    )
