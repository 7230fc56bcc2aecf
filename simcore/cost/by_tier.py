"""The network's bill laid out by tier and medium, under each of the three transceiver conventions.

The same unit prices as the bill of materials (`simcore.cost.bill`), spent line by line: switches of a tier,
then of the links below it the optical modules, the copper cables and the fibres. Under the fabric's own
convention the lines sum to the network lines of the bill. Power per line is that of the fabric's power:
the switches' and the modules' own. Limits: one price for optical modules of any reach, as the books have it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from simcore.catalog.types import OpticalSwitch, Price, PriceBook, Switch
from simcore.cost.bill import is_included, switch_price
from simcore.fabric import Fabric
from simcore.fabric.media import LinkLayer, link_layers
from simcore.fabric.specs import TRANSCEIVER_CONVENTIONS, TransceiverConvention

Item = Literal["switch", "module", "cable", "fibre", "ocs"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkPrices:
    """Where the bill's network prices come from, and what one device draws."""

    book: PriceBook
    switch: Switch | None
    optical_switch: OpticalSwitch | None
    switch_w: float
    module_w: float
    ocs_w: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TierLine:
    """One kind of thing at one tier; without a price it is unpriced, not free."""

    convention: TransceiverConvention
    tier: str
    item: Item
    medium: str  # of links; "" for switches
    count: int
    unit_usd: float | None
    power_w: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        """A row of the result's `bill_by_tier` table."""
        return {
            "convention": self.convention,
            "tier": self.tier,
            "item": self.item,
            "medium": self.medium,
            "count": self.count,
            "unit_usd": self.unit_usd,
            "total_usd": None if self.unit_usd is None else self.count * self.unit_usd,
            "power_w": self.power_w,
        }


def tier_lines(fabric: Fabric, prices: NetworkPrices) -> list[TierLine]:
    """All lines: every convention that counts differently, the fabric's own first."""
    own = fabric.transceiver_convention
    others = [
        one for one in TRANSCEIVER_CONVENTIONS if one != own and len(set(fabric.transceivers.values())) > 1
    ]
    return [line for one in (own, *others) for line in _lines(fabric, one, prices) if line.count]


def _lines(fabric: Fabric, convention: TransceiverConvention, prices: NetworkPrices) -> Iterator[TierLine]:
    for tier in fabric.tiers:
        _, price, scale = switch_price(prices.book, prices.switch, tier.radix)
        yield TierLine(
            convention=convention,
            tier=tier.name,
            item="switch",
            medium="",
            count=tier.switch_count,
            unit_usd=price.mid_usd * scale if price else None,
            power_w=tier.switch_count * prices.switch_w,
        )
    for layer in link_layers(fabric, convention):
        yield from _link_lines(fabric, layer, convention, prices)
    slug = f"ocs:{prices.optical_switch.slug}" if prices.optical_switch else "ocs"
    yield TierLine(
        convention=convention,
        tier="ocs",
        item="ocs",
        medium="",
        count=fabric.ocs_count,
        unit_usd=_usd(prices.book.get(slug) or prices.book.get("ocs")),
        power_w=fabric.ocs_count * prices.ocs_w,
    )


def _link_lines(
    fabric: Fabric, layer: LinkLayer, convention: TransceiverConvention, prices: NetworkPrices
) -> Iterator[TierLine]:
    """Modules, then what lies between them: priced with the module, with the switch, or by itself."""
    book = prices.book

    def line(item: Item, count: int, unit_usd: float | None, power_w: float = 0.0) -> TierLine:
        return TierLine(
            convention=convention,
            tier=layer.tier,
            item=item,
            medium=layer.medium,
            count=count,
            unit_usd=unit_usd,
            power_w=power_w,
        )

    if layer.medium == "scaleup" or (layer.medium == "copper" and not fabric.tiers):
        return  # wired within the machines, whose price has it
    if layer.medium == "copper":
        yield line("cable", layer.link_count, _usd(book.get("copper_link") or book.get("link")))
    within = is_included(book, "transceiver", ("link_interswitch",))
    module_usd = 0.0 if within else _usd(book.get("transceiver"))
    yield line("module", layer.module_count, module_usd, layer.module_count * prices.module_w)
    between = layer.lower != "chip"
    if book.get("link_interswitch"):
        yield line("fibre", layer.link_count if between else 0, _usd(book.get("link_interswitch")))
    elif layer.medium != "copper" and (book.get("link") or not book.get("transceiver")):
        yield line("fibre", layer.link_count, _usd(book.get("link")))


def _usd(price: Price | None) -> float | None:
    return price.mid_usd if price else None
