"""Capital cost, and what a change of fabric saves whatever the prices are.

Capex is the sum of the priced lines at low, mid or high prices. With a port costing x transceivers a
switched fabric costs `x·ports + transceivers`; the saving of one fabric over another then lies between
the two counts' own savings for every x in (0, ∞): 3 tiers → 1 saves 2/3 to 4/5, 3 → 2 saves 1/3 to 2/5.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from simcore.cost.bill import BillRow
from simcore.fabric import Fabric
from simcore.why import Term, leaf, total


def capex_term(rows: Sequence[BillRow], edge: Literal["low", "mid", "high"] = "mid") -> Term | None:
    """Sum of the priced lines; None when nothing is priced."""
    priced = [amount for row in rows if (amount := row.total(edge)) is not None]
    return total(*priced).named("capex_usd") if priced else None


def priced_fraction_term(rows: Sequence[BillRow]) -> Term:
    """Priced lines over all lines of the bill."""
    priced = leaf(sum(row.priced for row in rows), "priced_line_count", kind="derived", source="bill")
    lines = leaf(max(1, len(rows)), "bill_line_count", kind="derived", source="bill")
    return (priced / lines).named("priced_fraction")


def port_count(fabric: Fabric) -> int:
    return sum(tier.switch_count * tier.radix for tier in fabric.tiers)


def saving_fraction(baseline: Fabric, variant: Fabric, *, port_to_transceiver_ratio: float) -> float:
    """Share of the baseline's fabric cost that the variant saves at one price ratio."""

    def cost(fabric: Fabric) -> float:
        return port_to_transceiver_ratio * port_count(fabric) + fabric.transceiver_count

    return 1 - cost(variant) / cost(baseline)


def saving_bounds(baseline: Fabric, variant: Fabric) -> tuple[float, float] | None:
    """Least and most that is saved at any prices; None where the baseline buys no network."""
    before, after = (
        (float(port_count(fabric)), float(fabric.transceiver_count)) for fabric in (baseline, variant)
    )
    return bounds_of(before, after)


def bounds_of(
    before_count: tuple[float, float], after_count: tuple[float, float]
) -> tuple[float, float] | None:
    """The same from (ports, transceivers) before and after."""
    if not all(before_count):
        return None
    saved = [1 - after / before for before, after in zip(before_count, after_count, strict=True)]
    return min(saved), max(saved)
