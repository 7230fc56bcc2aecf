"""What the traffic puts on every link: how many links of each layer carry how much, and which are the hottest."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.utils.translation import gettext as _

from explorer.charts import style
from explorer.charts.style import Cell, Chart, Result, Table

SHOWN: Final = 12
_LARGEST: Final = 30.0  # px, the mark of all links of a layer
_SMALLEST: Final = 5.0
_IN_SIGHT: Final = 50.0  # per cent, from which on the axis reaches to a full link
_FULL: Final = {
    "type": "line",
    "x0": 100,
    "x1": 100,
    "y0": 0,
    "y1": 1,
    "yref": "paper",
    "line": {"color": "var(--worse)", "dash": "4px,3px"},
}
Rows = Sequence[Mapping[str, Any]]


def histogram(result: Result | None) -> Chart | None:
    """Links of each layer by load; None where nothing moves."""
    rows, hottest = style.rows(result, "link_loads"), style.rows(result, "hottest_links")
    if not rows or not hottest:
        return None
    title = _finding(hottest[0])
    return Chart(
        slug="link-loads",
        title=title,
        axis=_axis_text(result),
        summary=title,
        source=_("Routed by %(routing)s") % {"routing": _routing(result)},
        draw="plot",
        body=_figure(rows),
        height=56 + 34 * len(_layers(rows)),
        table=Table(
            columns=(_("Layer"), _("Links"), _("Load from"), _("Load up to")),
            rows=tuple(
                style.text_cells(
                    _layer_name(row),
                    f"{int(row['link_count']):,}",
                    style.percent(float(row["low_fraction"])),
                    style.percent(float(row["high_fraction"])),
                )
                for row in rows
            ),
        ),
        wide=True,
    )


def hottest(result: Result | None) -> Chart | None:
    """The links that carry most, by their names."""
    rows = style.rows(result, "hottest_links")[:SHOWN]
    if not rows:
        return None
    first = rows[0]
    count = int(first["alike_count"])
    title = (
        _("%(link)s is the hottest link") % {"link": first["link"]}
        if count == 1
        else _("%(count)s links are the hottest, %(link)s among them")
        % {"count": f"{count:,}", "link": first["link"]}
    )
    return Chart(
        slug="hottest-links",
        title=title,
        axis=_("Links of one layer with the same load are one row; each direction is a link"),
        summary=title,
        source=_("Routed by %(routing)s") % {"routing": _routing(result)},
        draw="table",
        table=Table(
            columns=(
                _("Link"),
                _("Links like it"),
                _("Load"),
                _("Bytes"),
                _("Core traffic"),
                _("Capacity"),
            ),
            rows=tuple(_hot_row(row) for row in rows),
        ),
        wide=True,
    )


def _hot_row(row: Mapping[str, Any]) -> tuple[Cell, ...]:
    moved = float(row["moved_bytes"])
    capacity = style.number(float(row["capacity_bytes_per_s"]), "capacity_bytes_per_s")
    size = style.number(moved, "moved_bytes")
    return (
        Cell(text=_unbroken(str(row["link"])), key=_resource(row)),
        Cell(text=f"{int(row['alike_count']):,}"),
        Cell(text=style.percent(float(row["load_fraction"]))),
        Cell(text=size.text, unit=size.unit),
        Cell(text=style.percent(float(row["core_bytes"]) / moved)),
        Cell(text=capacity.text, unit=capacity.unit),
    )


def _unbroken(link: str) -> str:
    """On a narrow screen a link's name breaks after its arrow alone."""
    return link.replace(" ", "\N{NO-BREAK SPACE}").replace("→\N{NO-BREAK SPACE}", "→ ")


def _finding(row: Mapping[str, Any]) -> str:
    load = float(row["load_fraction"])
    words = {"link": row["link"], "share": style.percent(load), "ratio": f"{load:.1f}"}
    if load > 1:
        return _("The busiest link, %(link)s, is asked for %(ratio)s times what it carries") % words
    return _("The busiest link, %(link)s, is busy for %(share)s of the time") % words


def _axis_text(result: Result | None) -> str:
    period = style.rows(result, "traffic_period")
    if period and period[0].get("per") == "step":
        return _("Load of a link over a training step, by layer; a larger dot is more of the layer's links")
    return _("Load of a link over a second of serving, by layer; a larger dot is more of the layer's links")


def _routing(result: Result | None) -> str:
    period = style.rows(result, "traffic_period")
    name = str(period[0].get("routing", "")) if period else ""
    return {
        "ecmp": _("even ECMP"),
        "hashed": _("hashed ECMP"),
        "adaptive": _("the least loaded path"),
        "dimension_order": _("dimension order"),
        "minimal_adaptive": _("all shortest paths evenly"),
    }.get(name, name)


def _layers(rows: Rows) -> list[str]:
    return list(dict.fromkeys(str(row["layer"]) for row in rows))


def _layer_name(row: Mapping[str, Any]) -> str:
    """Tiers are called as in the names of links; links of direct networks have words."""
    layer = str(row["layer"])
    return {"local link": _("local links"), "global link": _("global links")}.get(layer, layer)


def _resource(row: Mapping[str, Any]) -> str:
    return "scaleup" if row["medium"] == "scaleup" else "scaleout"


def _figure(rows: Rows) -> dict[str, Any]:
    totals: dict[str, int] = {}
    for row in rows:
        totals[row["layer"]] = totals.get(row["layer"], 0) + int(row["link_count"])
    names = list(dict.fromkeys(_layer_name(row) for row in rows))
    top = 100 * max(float(row["high_fraction"]) for row in rows)
    in_sight = top >= _IN_SIGHT
    marks = [
        _marks([row for row in rows if _resource(row) == one], totals, one) for one in ("scaleup", "scaleout")
    ]
    right = max(100.0, top) if in_sight else top
    return style.figure(
        [trace for trace in marks if trace["x"]],
        x=style.axis(range=[-0.06 * right, 1.06 * right], ticksuffix=" %", nticks=6),
        y=style.axis(type="category", categoryorder="array", categoryarray=names[::-1], showgrid=True),
        margin={"l": 130, "r": 16, "t": 8, "b": 36},
        shapes=[_FULL] if in_sight else [],
    )


def _marks(rows: Rows, totals: Mapping[str, int], resource: str) -> dict[str, Any]:
    """A dot per row; its area is its share of the layer's links."""
    shares = [int(row["link_count"]) / totals[row["layer"]] for row in rows]
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [50.0 * (float(row["low_fraction"]) + float(row["high_fraction"])) for row in rows],
        "y": [_layer_name(row) for row in rows],
        "customdata": [
            [f"{int(row['link_count']):,}", f"{totals[row['layer']]:,}", style.percent(share)]
            for row, share in zip(rows, shares, strict=True)
        ],
        "marker": {
            "size": [max(_SMALLEST, _LARGEST * math.sqrt(share)) for share in shares],
            "color": f"var(--{resource})",
            "opacity": 0.85,
            "line": {"color": "var(--ground)", "width": 1},
        },
        "cliponaxis": False,
        "hovertemplate": "%{y} · %{x:.3~g} %<br>%{customdata[0]} / %{customdata[1]} (%{customdata[2]})<extra></extra>",
    }
