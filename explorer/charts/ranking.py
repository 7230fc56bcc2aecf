"""Topologies for given flows: how long each takes, what its network costs, and why some cannot be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.utils.translation import gettext as _

from explorer.charts import style
from explorer.charts.style import Cell, Chart, Note, Table
from explorer.wording import term, translated

Row = Mapping[str, Any]  # of `analysis.topologies.Candidate`
ALIKE: Final = 0.05


def kind_name(kind: str) -> str:
    return term(kind.replace("_", " "))


def headline(ranking: Sequence[Row]) -> str:
    """Which one to take."""
    able = [row for row in ranking if not row["refused"]]
    if not able:
        return _("No topology can hold these chips")
    if not any(row["switch_count"] or row["fabric_capex_usd"] for row in able):
        return _("One scale-up domain holds all chips: every topology is the same")
    front = [row for row in able if row["is_on_front"]] or able[:1]
    first = front[0]
    words = {
        "kind": kind_name(first["topology"]["kind"]),
        "time": style.number(first["busiest_link_s"], "x_s"),
        "price": _price(first),
        "count": len(front),
    }
    if len(front) == 1:
        return _("%(kind)s is the quickest and the cheapest: %(time)s, %(price)s") % words
    return (
        _("Of %(count)s topologies that no other beats, %(kind)s is the quickest: %(time)s at %(price)s")
        % words
    )


def charts(ranking: Sequence[Row]) -> tuple[Chart, ...]:
    able = [row for row in ranking if not row["refused"]]
    return (*((_scatter(able),) if _priced(able) else ()), *((_table(able),) if able else ()))


def notes(ranking: Sequence[Row]) -> tuple[Note, ...]:
    """Why some cannot be."""
    return tuple(
        Note(text=f"{kind_name(row['topology']['kind'])}: {translated(row['refused'])}")
        for row in ranking
        if row["refused"]
    )


def _priced(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row["fabric_capex_usd"] and row["busiest_link_s"]]


def _price(row: Row) -> str:
    amount = row["fabric_capex_usd"]
    return _("no price") if amount is None else str(style.number(amount, "fabric_capex_usd"))


def _scatter(able: Sequence[Row]) -> Chart:
    rows = _priced(able)
    title = _scatter_title(rows)
    return Chart(
        slug="ranking",
        title=title,
        axis=_(
            "Time of the busiest link over the price of the network; filled marks: no other is quicker and cheaper"
        ),
        summary=title,
        source=_("Loads of links counted; prices of the topology's book"),
        draw="plot",
        body=_figure(rows),
        height=380,
        wide=True,
    )


def _scatter_title(rows: Sequence[Row]) -> str:
    cheap = min(rows, key=lambda row: (row["fabric_capex_usd"], row["busiest_link_s"]))
    quick = min(rows, key=lambda row: (row["busiest_link_s"], row["fabric_capex_usd"]))
    words = {
        "cheap": kind_name(cheap["topology"]["kind"]),
        "quick": kind_name(quick["topology"]["kind"]),
        "times": f"{cheap['busiest_link_s'] / quick['busiest_link_s']:.2g}",
        "price": f"{quick['fabric_capex_usd'] / cheap['fabric_capex_usd']:.2g}",
    }
    if cheap["busiest_link_s"] <= (1 + ALIKE) * quick["busiest_link_s"]:
        return _("%(cheap)s costs least and no other is clearly quicker") % words
    return (
        _("%(quick)s costs %(price)s times as much as %(cheap)s, which takes %(times)s times as long") % words
    )


def _figure(rows: Sequence[Row]) -> dict[str, Any]:
    marks = {
        "type": "scatter",
        "mode": "markers+text",
        "x": [row["fabric_capex_usd"] for row in rows],
        "y": [row["busiest_link_s"] for row in rows],
        "text": _labels(rows),
        "textposition": _positions(rows),
        "textfont": {"color": "var(--ink)"},
        "cliponaxis": False,
        "marker": {
            "size": 11,
            "color": ["var(--accent)" if row["is_on_front"] else "var(--ground)" for row in rows],
            "line": {"color": "var(--ink)", "width": 1.5},
        },
        "customdata": [kind_name(row["topology"]["kind"]) for row in rows],
        "hovertemplate": "%{customdata} · %{x:.3~s} USD · %{y:.3~s}s<extra></extra>",
    }
    return style.figure(
        [marks],
        x=style.axis(rangemode="tozero", tickformat="~s", ticksuffix=" USD", nticks=6, showgrid=False),
        y=style.axis(rangemode="tozero", tickformat="~s", ticksuffix="s", nticks=5),
        margin={"l": 56, "r": 40, "t": 32, "b": 36},
    )


def _labels(rows: Sequence[Row]) -> list[str]:
    """Marks that lie together have one label between them."""
    found: list[str] = []
    for place, row in enumerate(rows):
        alike = [other for other in rows if _together(row, other)]
        names = ", ".join(kind_name(other["topology"]["kind"]) for other in alike)
        found.append(names if alike[0] is rows[place] else "")
    return found


def _positions(rows: Sequence[Row]) -> list[str]:
    """Inwards of the picture, and by turns above and below those marks that lie as high."""
    most = max(row["fabric_capex_usd"] for row in rows)
    found = []
    for row in rows:
        level = [
            other
            for other in rows
            if abs(other["busiest_link_s"] - row["busiest_link_s"]) <= ALIKE * row["busiest_link_s"]
        ]
        prices = sorted({round(other["fabric_capex_usd"] / most / ALIKE) for other in level})
        turn = prices.index(round(row["fabric_capex_usd"] / most / ALIKE)) % 2
        side = "right" if row["fabric_capex_usd"] < most / 2 else "left"
        found.append(f"{('top', 'bottom')[turn]} {side}")
    return found


def _together(one: Row, other: Row) -> bool:
    return all(
        abs(one[key] - other[key]) <= ALIKE * max(one[key], other[key])
        for key in ("fabric_capex_usd", "busiest_link_s")
    )


def _table(ranking: Sequence[Row]) -> Chart:
    return Chart(
        slug="ranking-table",
        title=_("Every topology for these flows"),
        axis=_("All flows start at once; the quickest first"),
        summary=_("Times, price and size of each topology."),
        source=_("Loads of links counted; prices of the topology's book"),
        draw="table",
        table=Table(
            columns=(
                _("Topology"),
                _("Busiest link"),
                _("Its time"),
                _("Fair shares"),
                _("Network"),
                _("Power"),
                _("Switches"),
                _("Transceivers"),
            ),
            words=2,
            rows=tuple(_cells(row) for row in ranking),
        ),
        wide=True,
    )


def _cells(row: Row) -> tuple[Cell, ...]:
    name = Cell(text=kind_name(row["topology"]["kind"]))
    said = row["busiest_link"]
    if row["unreachable_bytes"]:
        lost = style.number(row["unreachable_bytes"], "bytes")
        said = _("%(lost)s cannot arrive") % {"lost": lost}
    return (
        name,
        Cell(text=said, muted=True),
        _number(row["busiest_link_s"], "x_s"),
        _number(row["fair_s"], "x_s"),
        _number(row["fabric_capex_usd"], "fabric_capex_usd"),
        _number(row["fabric_power_w"], "power_w"),
        Cell(text=f"{row['switch_count']:,}"),
        Cell(text=f"{row['transceiver_count']:,}"),
    )


def _number(value: float | None, name: str) -> Cell:
    if value is None:
        return Cell(text="")
    printed = style.number(value, name)
    return Cell(text=printed.text, unit=printed.unit)
