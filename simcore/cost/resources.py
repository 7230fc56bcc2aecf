"""What twice as much of one resource of a chip would cost per year: the denominator of the cheapest unit of gain.

Nobody sells half a chip, so these are prices of parts, written off like the rest: *HBM* (capacity or bandwidth) = as
many stacks again at the book's price per GB; *compute* = the chip without its memory; *scale-up* = as many GB/s again
at the book's price; *scale-out* = one more NIC with two link ends and two switch ports. Limits: twice the stacks bring
capacity and bandwidth together, but each is priced as if it alone were wanted; GDDR is priced as HBM; no energy, no
floor. Host, latency, scheduler and external I/O have no price here, and a resource that the book does not price is
absent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal

from simcore.catalog.types import Chip, PriceBook
from simcore.cost.energy import Machines
from simcore.cost.prices import price_leaf
from simcore.why import Term, constant, leaf, total

Edge = Literal["low", "mid", "high"]
_LINK_ENDS: Final = 2
_LEAST_SHARE: Final = 0.2  # of a chip's price that its logic is at least, where memory is dear


def resource_prices(
    book: PriceBook, chip: Chip, *, depreciation_years: float = 4.0, edge: Edge = "mid"
) -> Mapping[str, Term]:
    """USD per year and chip for +100 % of each resource, by the names of the bottleneck budget."""
    years = leaf(depreciation_years, "depreciation_years", path="economics.depreciation_years")
    memory = _memory(book, chip, edge)
    found = {
        "compute": _compute(book, chip, memory, edge),
        "hbm_bandwidth": memory,
        "hbm_capacity": memory,
        "scaleup": _scaleup(book, chip, edge),
        "scaleout": _scaleout(book, edge),
    }
    return {
        name: (price / years).named(f"more_{name}_usd_per_year")
        for name, price in found.items()
        if price is not None
    }


def cluster_prices(
    book: PriceBook, machines: Sequence[Machines], *, depreciation_years: float
) -> dict[str, Term]:
    """USD per year for +100 % of each resource on every chip; without those that a kind of chip has no price for."""
    each = [
        {
            name: price
            * leaf(one.chip_count, "chip_count", kind="derived", source="chips owned", dimension="count")
            for name, price in resource_prices(book, one.chip, depreciation_years=depreciation_years).items()
        }
        for one in machines
    ]
    priced = [name for name in each[0] if all(name in prices for prices in each)]
    return {
        name: total(*(prices[name] for prices in each)).named(f"twice_{name}_usd_per_year") for name in priced
    }


def _memory(book: PriceBook, chip: Chip, edge: Edge) -> Term | None:
    price = price_leaf(book, "hbm_gb", "hbm_usd_per_gb", edge)
    if price is None:
        return None
    return (chip.leaf("hbm_bytes") / constant(1e9, "bytes per GB") * price).named("hbm_usd")


def _compute(book: PriceBook, chip: Chip, memory: Term | None, edge: Edge) -> Term | None:
    """The chip less its memory, and never less than a fifth of it."""
    whole = price_leaf(book, f"chip:{chip.slug}", "chip_usd", edge)
    if whole is None or memory is None:
        return whole
    source = "logic is a fifth of a chip's price at least"
    least = leaf(_LEAST_SHARE, "least_logic_share", kind="assumption", source=source, dimension="fraction")
    if memory.value > whole.value * (1 - _LEAST_SHARE):
        return (whole * least).named("logic_usd")
    return (whole - memory).named("logic_usd")


def _scaleup(book: PriceBook, chip: Chip, edge: Edge) -> Term | None:
    price = price_leaf(book, "scaleup_gb_per_s", "scaleup_usd_per_gb_per_s", edge)
    if price is None or chip.scaleup_bytes_per_s is None:
        return None
    return (chip.leaf("scaleup_bytes_per_s") / constant(1e9, "bytes per GB") * price).named("scaleup_usd")


def _scaleout(book: PriceBook, edge: Edge) -> Term | None:
    nic = price_leaf(book, "nic", "nic_usd", edge)
    module = price_leaf(book, "transceiver", "transceiver_usd", edge)
    port = price_leaf(book, "switch_port", "switch_port_usd", edge)
    if nic is None or module is None or port is None:
        return None
    ends = constant(_LINK_ENDS, "ends of a link")
    return total(nic, module * ends, port * ends).named("scaleout_usd")
