"""Bill of materials: what stands in the racks, at the unit prices of two books.

The topology's book prices switches, optics, fibres and optical switches; the economics' book prices chips,
servers and NICs. An item without a price stays on the bill as unpriced: the total is then partial, and
`priced_fraction` (priced lines over lines) says so. Price keys, most exact first:
- a switch: `switch:<slug>`, `switch` (64 ports; scaled by ports), `switch_port` (times the radix);
- a link end: `transceiver`; a link's fibre: `link`, or `link_interswitch` for those between switches;
- a copper cable: `copper_link`, else `link`.
A book whose `transceiver` includes the cable, or whose `switch` includes its endpoint links, prices no
fibre: that line is then left out rather than called unpriced.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from simcore.catalog.types import OpticalSwitch, Price, PriceBook, Switch
from simcore.cost.energy import Machines, host_power_term
from simcore.cost.prices import leaf_kind
from simcore.fabric import Fabric
from simcore.why import Term, ceil, constant, leaf

Group = Literal["compute", "network"]
SWITCH_PRICE_PORTS = 64  # what a book's plain `switch` stands for


@dataclass(frozen=True, slots=True, kw_only=True)
class BillRow:
    """One line: how many, at what price, with its power."""

    item: str
    label: str
    group: Group
    count: Term
    price: Price | None
    scale: float = 1.0  # price units per item, such as ports per switch
    book: str
    power_w: float = 0.0  # all of them together

    @property
    def priced(self) -> bool:
        return self.price is not None

    def total(self, edge: Literal["low", "mid", "high"]) -> Term | None:
        """Count times unit price, or None when unpriced."""
        if self.price is None:
            return None
        value = {"low": self.price.low_usd, "mid": self.price.mid_usd, "high": self.price.high_usd}[edge]
        unit = leaf(
            value * self.scale,
            f"unit_{self.item.replace(':', '_')}_usd",
            kind=leaf_kind(self.price),
            source=f"{self.book}: {self.price.source.title}",
            dimension="usd",
        )
        return (self.count * unit).named(f"{self.label}_usd", "usd")

    def as_dict(self) -> dict[str, Any]:
        """A row of the result's `bill` table."""
        totals = {edge: self.total(edge) for edge in ("low", "mid", "high")}
        price = self.price
        return {
            "item": self.item,
            "label": self.label,
            "count": int(self.count.value),
            "unit_usd": price.mid_usd * self.scale if price else None,
            "total_usd": totals["mid"].value if totals["mid"] else None,
            "low_usd": totals["low"].value if totals["low"] else None,
            "high_usd": totals["high"].value if totals["high"] else None,
            "power_w": self.power_w,
            "priced": self.priced,
            "source": f"{self.book}: {price.source.title}" if price else "unpriced",
            "group": self.group,
        }


def bill_of_materials(
    *,
    machines: Sequence[Machines],
    fabric: Fabric,
    book: PriceBook,
    fabric_book: PriceBook,
    switch: Switch | None = None,
    optical_switch: OpticalSwitch | None = None,
    power_w: Mapping[str, float] | None = None,
) -> tuple[BillRow, ...]:
    """All lines, compute first; `power_w` gives the power of each item of the network by key prefix."""
    power = power_w or {}
    return (
        *(row for one in machines for row in _compute_rows(one, book)),
        *_network_rows(fabric, fabric_book, switch, optical_switch, power),
    )


def _compute_rows(machines: Machines, book: PriceBook) -> list[BillRow]:
    chip, server, chips = machines.chip, machines.server, machines.chips
    servers = chips
    if server.chips_per_server > 1:
        servers = ceil(chips / server.leaf("chips_per_server"))
    servers = servers.named("server_count")
    nics = (servers * server.leaf("nic_count")).named("nic_count")
    lines = (
        (f"chip:{chip.slug}", "chips", chips),
        (f"server:{server.slug}", "servers", servers),
        ("nic", "nics", nics),
    )
    return [
        BillRow(
            item=item,
            label=label,
            group="compute",
            count=count,
            price=book.get(item),
            book=book.name,
            power_w=host_power_term(machines).value if label == "servers" else 0.0,
        )
        for item, label, count in lines
        if count.value
    ]


def _network_rows(
    fabric: Fabric,
    book: PriceBook,
    switch: Switch | None,
    optical_switch: OpticalSwitch | None,
    power: Mapping[str, float],
) -> list[BillRow]:
    rows: list[BillRow] = []

    def add(item: str, label: str, count: Term, price: Price | None, scale: float = 1.0) -> None:
        if count.value:
            rows.append(
                BillRow(
                    item=item,
                    label=label,
                    group="network",
                    count=count,
                    price=price,
                    scale=scale,
                    book=book.name,
                    power_w=power.get(label, 0.0),
                )
            )

    none = constant(0, "none")
    if fabric.tiers:
        item, price, scale = switch_price(book, switch, fabric.tiers[0].radix)
        add(item, "switches", fabric.terms["fabric.switch_count"], price, scale)
    if not is_included(book, "transceiver", ("link_interswitch",)):
        add(
            "transceiver",
            "transceivers",
            fabric.terms.get("fabric.transceiver_count", none),
            book.get("transceiver"),
        )
    for item, label, count, price in _cable_lines(fabric, book):
        add(item, label, count, price)
    slug = f"ocs:{optical_switch.slug}" if optical_switch else "ocs"
    ocs = fabric.terms.get("fabric.ocs_count", none)
    add(slug, "optical_switches", ocs, book.get(slug) or book.get("ocs"))
    return rows


def switch_price(book: PriceBook, switch: Switch | None, radix: int) -> tuple[str, Price | None, float]:
    """Key, price and how many price units one switch is."""
    if switch is not None and (price := book.get(f"switch:{switch.slug}")):
        return f"switch:{switch.slug}", price, 1.0
    if price := book.get("switch"):
        return "switch", price, radix / SWITCH_PRICE_PORTS
    if price := book.get("switch_port"):
        return "switch_port", price, float(radix)
    return f"switch:{switch.slug}" if switch else "switch", None, 1.0


def is_included(book: PriceBook, item: str, by: tuple[str, ...]) -> bool:
    """The book prices the item within another one, not by itself."""
    return book.get(item) is None and any(book.get(key) for key in by)


def _cable_lines(fabric: Fabric, book: PriceBook) -> list[tuple[str, str, Term, Price | None]]:
    copper = sum(segment.link_count for segment in fabric.segments if segment.medium == "copper")
    optical = sum(segment.link_count for segment in fabric.segments if segment.medium == "optical")
    lines: list[tuple[str, str, Term, Price | None]] = []
    if copper and fabric.tiers:
        count = leaf(copper, "copper_link_count", kind="derived", source="links of the first hop")
        lines.append(("copper_link", "copper_cables", count, book.get("copper_link") or book.get("link")))
    if book.get("link_interswitch"):
        between = fabric.terms.get("fabric.routing_adjacency_count", constant(0, "none"))
        lines.append(("link_interswitch", "links_between_switches", between, book.get("link_interswitch")))
    elif book.get("link") or not book.get("transceiver"):
        count = leaf(optical, "optical_link_count", kind="derived", source="links of the fabric")
        lines.append(("link", "fibres", count, book.get("link")))
    return lines
