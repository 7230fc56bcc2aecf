"""What of the owned peak is lost on the way to useful work, and what the four taxes come to in a year."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.utils.translation import gettext as _

from explorer import wording
from explorer.charts import style
from explorer.charts.style import Cell, Chart, Fall, Number, Result, Table

TAXES: Final = ("waiting", "connection", "understanding", "change")
_STEPS: Final = 36.0  # where falls begin, in per cent of the width
_WIDEST: Final = 50.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TaxBar:
    """A tax in the KPI row: its share of the largest as a bar, its amount as a link to Why, its share of all cost.

    `metric` is "" where the amount is not known, or not yet: the line keeps its place.
    """

    metric: str
    label: str
    help: str
    number: Number
    width: float
    share: str


def tax_bars(result: Result | None) -> tuple[TaxBar, ...]:
    """The four taxes, the largest first and the unknown last; none where nothing is priced."""
    amounts = {tax: amount for tax in TAXES if (amount := style.metric(result, _metric(tax))) is not None}
    if not amounts and style.metric(result, "cost.tco_usd_per_year") is None:
        return ()
    widest = max(amounts.values(), default=0.0) or 1.0
    return tuple(
        TaxBar(
            metric=_metric(tax) if tax in amounts else "",
            label=wording.label(_metric(tax)),
            help=wording.help_text(_metric(tax)),
            number=style.number(amounts[tax], "amount_usd") if tax in amounts else Number(text="–", unit=""),
            width=round(100 * amounts.get(tax, 0.0) / widest, 1),
            share=style.percent(_share(result, tax), digits=0) if tax in amounts else "",
        )
        for tax in sorted(TAXES, key=lambda tax: -amounts.get(tax, -1.0))
    )


def _share(result: Result | None, tax: str) -> float:
    """Of the cost of ownership."""
    return sum(float(row["tco_fraction"]) for row in style.rows(result, "taxes") if row["tax"] == tax)


def losses(result: Result | None) -> Chart | None:
    """The waterfall from all that is owned, at peak, down to useful work."""
    rows = style.rows(result, "loss_waterfall")
    if not rows:
        return None
    effective = float(rows[-1]["left_fraction"])
    most = max(rows, key=lambda row: float(row["lost_fraction"]))
    title = _("%(effective)s of the owned peak does useful work; %(step)s takes most, %(share)s") % {
        "effective": style.percent(effective),
        "step": _step(str(most["step"])),
        "share": style.percent(float(most["lost_fraction"])),
    }
    return Chart(
        slug="losses",
        title=title,
        axis=_("Share of owned chip time at peak; each step is taken from what is left"),
        summary=title,
        source=_("Simulated; busy and waits add up to one"),
        draw="waterfall",
        body=tuple(_fall(row, at, len(rows)) for at, row in enumerate(rows)),
        table=Table(
            columns=(_("Step"), _("Lost"), _("Left")),
            rows=tuple(
                (
                    Cell(text=_step(str(row["step"])), muted=True),
                    Cell(text=style.percent(float(row["lost_fraction"])) if row["lost_fraction"] else "–"),
                    Cell(text=style.percent(float(row["left_fraction"]))),
                )
                for row in rows
            ),
        ),
    )


def _fall(row: Mapping[str, Any], at: int, count: int) -> Fall:
    lost, left = float(row["lost_fraction"]), float(row["left_fraction"])
    whole = at in (0, count - 1)
    size = left if whole else lost
    return Fall(
        label=_step(str(row["step"])),
        text=style.percent(size),
        kind="total" if at == 0 else "free" if at == count - 1 else "loss",
        left=round(_STEPS + (0.0 if whole else left * _WIDEST), 3),
        width=round(max(0.3, size * _WIDEST), 3),
        note="",
    )


def _step(name: str) -> str:
    words = {
        "owned": _("Owned, at peak"),
        "kernels": _("Kernels below peak"),
        "again": _("Work done again"),
        "effective": _("Useful work"),
    }
    return words.get(name) or wording.resource(name)


def taxes(result: Result | None) -> Chart | None:
    """Every part of every tax, in a table that says what each is for."""
    rows = style.rows(result, "taxes")
    if not rows:
        return None
    amounts = {tax: style.metric(result, _metric(tax)) or 0.0 for tax in TAXES}
    largest = max(amounts, key=amounts.__getitem__)
    title = _("The largest tax is %(tax)s: %(amount)s, %(share)s of the cost of ownership") % {
        "tax": wording.in_text(wording.label(_metric(largest))),
        "amount": style.number(amounts[largest], "usd_per_year"),
        "share": style.percent(_share(result, largest), digits=0),
    }
    return Chart(
        slug="taxes",
        title=title,
        axis=_("USD per year and share of the cost of ownership, by what it is paid for"),
        summary=title,
        source=_("Price book of the scenario; simulated waits and loads"),
        draw="table",
        table=Table(
            columns=(_("Tax"), _("For"), _("Per year"), _("Share")),
            words=2,
            rows=tuple(_rows(rows)),
        ),
        wide=True,
    )


def _rows(rows: Sequence[Mapping[str, Any]]) -> list[tuple[Cell, ...]]:
    found: list[tuple[Cell, ...]] = []
    for row in sorted(rows, key=lambda one: (TAXES.index(one["tax"]), -float(one["usd_per_year"]))):
        tax = str(row["tax"])
        amount = style.number(float(row["usd_per_year"]), "amount_usd")
        found.append(
            (
                Cell(text=wording.label(_metric(tax)), muted=True),
                Cell(text=_part(tax, str(row["part"]))),
                Cell(text=amount.text, unit=amount.unit),
                Cell(text=style.percent(float(row["tco_fraction"]))),
            )
        )
    return found


def _part(tax: str, part: str) -> str:
    """What a part of a tax is paid for: a resource, a line of the network, or a declared alternative."""
    if tax == "waiting":
        return wording.resource(part)
    if tax == "understanding":
        return {"labour": _("Labour"), "chips": _("Chips that stand still")}[part]
    if tax == "change":
        return _("no alternative is declared") if part == "none" else part
    tier, _space, item = part.rpartition(" ")
    items = {
        "switch": _("switches"),
        "module": _("optical modules"),
        "cable": _("cables"),
        "fibre": _("fibres"),
        "ocs": _("optical switches"),
    }
    return _("%(items)s of tier %(tier)s") % {"items": items.get(item, item), "tier": tier}


def _metric(tax: str) -> str:
    return f"analysis.tax.{tax}_usd_per_year"
