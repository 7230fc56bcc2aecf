"""Which tax dominates at each stage: stacked bars of the four taxes, and their amounts as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.utils.translation import gettext as _

from explorer import wording
from explorer.charts import style
from explorer.charts.style import Cell, Chart, Segment, StackBar, Table
from explorer.wording import capitalised, translated

Row = Mapping[str, Any]  # of `analysis.stages.Stage`
_MARKS: Final = {"waiting": "seq-5", "connection": "seq-3", "understanding": "seq-2", "change": "seq-1"}


def stages(rows: Sequence[Row], said: Mapping[str, Any]) -> Chart:
    """The taxes of every stage that can be, each bar as long as its taxes are a share of its cost of ownership."""
    taxed = [row for row in rows if row["usd_per_year"]]
    title = capitalised(translated(said))
    return Chart(
        slug="stages",
        title=title,
        axis=_("Taxes as a share of the cost of ownership, by stage; colours as in the table"),
        summary=title,
        source=_("Each stage planned, simulated and taxed anew"),
        draw="stack",
        body=tuple(_bar(row) for row in taxed),
        table=_table(taxed),
        open_table=True,
        wide=True,
    )


def _bar(row: Row) -> StackBar:
    shares = _shares(row)
    widest = max(1.0, sum(shares.values()))
    left, segments = 0.0, []
    for tax, share in shares.items():
        width = share / widest * 96.0
        segments.append(
            Segment(
                resource=_MARKS[tax],
                label=_label(tax),
                left=round(left, 3),
                width=round(width, 3),
                text="",
                on="",
                hatched=False,
            )
        )
        left += width
    total = style.number(sum(row["usd_per_year"].values()), "usd_per_year")
    return StackBar(name=_name(row), total=str(total), width=max(left, 40.0), segments=tuple(segments))


def _shares(row: Row) -> dict[str, float]:
    whole = float(row["tco_usd_per_year"] or 0.0)
    amounts = row["usd_per_year"]
    return {tax: amounts[tax] / whole for tax in _MARKS if whole and amounts.get(tax)}


def _table(rows: Sequence[Row]) -> Table:
    taxes = [tax for tax in _MARKS if any(row["usd_per_year"].get(tax) for row in rows)]
    return Table(
        columns=(_("Tax"), *(_name(row) for row in rows)),
        rows=tuple(
            (
                Cell(text=_label(tax), key=_MARKS[tax]),
                *(_amount(row["usd_per_year"].get(tax)) for row in rows),
            )
            for tax in taxes
        ),
    )


def _name(row: Row) -> str:
    return capitalised(translated(row["name"]))


def _label(tax: str) -> str:
    return wording.label(f"analysis.tax.{tax}_usd_per_year")


def _amount(value: float | None) -> Cell:
    if value is None:
        return Cell(text="–", muted=True)
    shown = style.number(value, "usd_per_year")
    return Cell(text=shown.text, unit=shown.unit)
