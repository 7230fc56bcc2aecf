"""Cost: the bill of materials as a table, with what has no price said so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from explorer import wording
from explorer.charts import style
from explorer.charts.style import Cell, Chart, Result, Table

KPIS = (
    "cost.usd_per_million_output_tokens",
    "cost.tco_usd_per_year",
    "cost.cloud_break_even_fraction",
    "cost.api_break_even_fraction",
    "cost.power_w",
    "cost.joule_per_token",
)


def bill(result: Result | None) -> Chart | None:
    """Every item with count, unit price, total and range; unpriced items carry a dash, never a zero."""
    listed = style.rows(result, "bill")
    if not listed:
        return None
    priced = [row for row in listed if row.get("priced")]
    total = sum(float(row["total_usd"]) for row in priced)
    return Chart(
        slug="bill",
        title=_title(total, len(listed) - len(priced)),
        axis=_("Bill of materials; USD of the price book's date, low to high in brackets"),
        summary=_title(total, len(listed) - len(priced)),
        source=_sources(result),
        draw="table",
        table=Table(
            columns=(_("Item"), _("Count"), _("Each"), _("Total"), _("Power")),
            rows=tuple(_row(row) for row in listed),
            total=(
                Cell(text=_("Total, partial") if len(priced) < len(listed) else _("Total")),
                Cell(text=""),
                Cell(text=""),
                Cell(text=str(style.number(total, "total_usd"))),
                Cell(
                    text=str(style.number(sum(float(row.get("power_w") or 0.0) for row in listed), "power_w"))
                ),
            ),
        ),
        wide=True,
    )


def _title(total: float, unpriced: int) -> str:
    words = {"total": style.number(total, "total_usd"), "unpriced": unpriced}
    if unpriced:
        return _("The priced part costs %(total)s; %(unpriced)s items have no price") % words
    return _("All of it costs %(total)s") % words


def _row(row: Mapping[str, Any]) -> tuple[Cell, ...]:
    power = row.get("power_w")
    name = Cell(text=item_label(row), muted=True)
    count = Cell(text=f"{float(row['count']):,.0f}")
    watts = Cell(text=str(style.number(float(power), "power_w"))) if power else Cell(text="–", muted=True)
    if not row.get("priced"):
        return (name, count, Cell(text=_("unpriced"), muted=True), Cell(text="–", muted=True), watts)
    low, high = row.get("low_usd"), row.get("high_usd")
    span = ""
    if isinstance(low, int | float) and isinstance(high, int | float) and low != high:
        span = f"({style.number(float(low), 'x_usd')}–{style.number(float(high), 'x_usd')})"
    return (
        name,
        count,
        Cell(text=str(style.number(float(row["unit_usd"]), "unit_usd"))),
        Cell(text=str(style.number(float(row["total_usd"]), "total_usd")), unit=span),
        watts,
    )


def item_label(row: Mapping[str, Any]) -> str:
    """The name of a line of the bill or of the running cost."""
    names = {
        "chips": _("Chips"),
        "servers": _("Servers"),
        "nics": _("NICs"),
        "switches": _("Switches"),
        "transceivers": _("Transceivers"),
        "optical_switches": _("Optical switches"),
        "copper_cables": _("Copper cables"),
        "links_between_switches": _("Links between switches"),
        "fibres": _("Fibres"),
        "energy": _("Energy"),
        "floor": _("Floor"),
        "operations": _("Operations"),
    }
    label = str(row.get("label") or row["item"])
    return names.get(label) or wording.capitalised(label.replace("_", " "))


def _sources(result: Result | None) -> str:
    sources = sorted({str(row["source"]) for row in style.rows(result, "bill") if row.get("source")})
    return _("; ").join(wording.source(source) for source in sources[:3]) or _("Price book of the scenario")
