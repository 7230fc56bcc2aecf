"""Traffic matrices as pictures: coarse cells, one square per pair of blocks, colour by the logarithm of bytes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.utils.translation import gettext as _

from explorer.charts import style
from explorer.charts.style import Chart, Table

View = Mapping[str, Any]
DECADES: Final = 6  # below the greatest cell; what carries less is drawn as the least
LISTED: Final = 20  # cells of the table, the greatest first
TICKS: Final = 4


def heat_maps(views: Sequence[View]) -> tuple[Chart, ...]:
    """One picture per way to put ranks together, where something is carried."""
    return tuple(_chart(view) for view in views if view["bytes"])


def _chart(view: View) -> Chart:
    title = _title(view)
    return Chart(
        slug=f"matrix-{view['view']}",
        title=title,
        axis=_("Bytes sent from row to column, in colours by the logarithm"),
        summary=title,
        source=_("Counted from the flows"),
        draw="plot",
        body=_figure(view),
        table=_table(view),
        height=400,
    )


def _title(view: View) -> str:
    diagonal = _share(view, lambda row, column: row == column)
    words = {
        "share": style.percent(diagonal, digits=0),
        "blocks": view["block_count"],
        "each": view["ranks_per_block"],
    }
    if view["view"] == "rail":
        return _("By rail: %(share)s of the bytes stay on their rail") % words
    if view["view"] == "domain":
        if view["ranks_per_block"] > 1:
            return _("By server, %(each)s to a block: %(share)s of the bytes stay in their block") % words
        return _("By server: %(share)s of the bytes stay inside") % words
    if view["ranks_per_block"] > 1:
        return _("By rank, %(each)s to a block: %(share)s of the bytes stay in their block") % words
    near = _share(view, lambda row, column: abs(row - column) == 1)
    return _("By rank: %(share)s of the bytes go to a neighbour") % {"share": style.percent(near, digits=0)}


def _share(view: View, counts: Any) -> float:
    cells = zip(view["row"], view["column"], view["bytes"], strict=True)
    return math.fsum(moved for row, column, moved in cells if counts(row, column)) / math.fsum(view["bytes"])


def _figure(view: View) -> dict[str, Any]:
    count, most = int(view["block_count"]), max(view["bytes"])
    least = max(min(view["bytes"]), most / 10**DECADES)
    low, high = math.log10(least), math.log10(most)
    if high - low < 1e-9:
        low = high - 1
    grid: list[list[float | None]] = [[None] * count for _row in range(count)]
    texts = [[""] * count for _row in range(count)]
    for row, column, moved in zip(view["row"], view["column"], view["bytes"], strict=True):
        grid[row][column] = max(low, math.log10(moved))
        texts[row][column] = str(style.number(moved, "bytes"))
    names = [_name(view, block) for block in range(count)]
    ticks = [low + (high - low) * step / (TICKS - 1) for step in range(TICKS)]
    heat = {
        "type": "heatmap",
        "x": names,
        "y": names,
        "z": grid,
        "text": texts,
        "zmin": low,
        "zmax": high,
        "hoverongaps": False,
        "xgap": 1 if count <= 32 else 0,
        "ygap": 1 if count <= 32 else 0,
        "colorscale": [[0, "var(--hair-2)"], [1, "var(--scaleout)"]],
        "colorbar": {
            "tickvals": ticks,
            "ticktext": [str(style.number(10**tick, "bytes", digits=2)) for tick in ticks],
            "thickness": 10,
            "outlinewidth": 0,
            "tickfont": {"color": "var(--ink-2)"},
        },
        "hovertemplate": "%{y} → %{x} · %{text}<extra></extra>",
    }
    axis = style.axis(type="category", showgrid=False, nticks=6, automargin=True)
    return style.figure(
        [heat],
        x={**axis, "title": {"text": _("to")}},
        y={**axis, "autorange": "reversed", "title": {"text": _("from")}},
        margin={"l": 56, "r": 8, "t": 8, "b": 48},
    )


def _name(view: View, block: int) -> str:
    """The first rank, server or rail of a block, and the last."""
    each = int(view["ranks_per_block"])
    return str(block) if each == 1 else f"{block * each}–{(block + 1) * each - 1}"


def _table(view: View) -> Table:
    cells = sorted(zip(view["bytes"], view["row"], view["column"], strict=True), key=lambda cell: -cell[0])
    return Table(
        columns=(_("From"), _("To"), _("Bytes")),
        words=2,
        rows=tuple(
            style.text_cells(_name(view, row), _name(view, column), str(style.number(moved, "bytes")))
            for moved, row, column in cells[:LISTED]
        ),
    )
