"""The topologies that can hold some flows, by how long the flows take on them and what they cost.

Each kind of the registry is built with its defaults (or the radix, tiers and price book that are given) for the same
chips in the same servers; the flows stay on their ranks. Two times, both with all flows started at once:
- the busiest link's: the most bytes ÷ capacity over all links under the topology's usual routing. No schedule is
  faster, and one that keeps that link busy is as fast;
- fair: when the last flow ends if all share links max-min fairly (`fabric/flows.py`), for up to `FAIR_FLOWS` flows.
Capex and power are the network's alone. A topology is on the *front* if no other is both faster and cheaper.
Limits: all are ranked whole, under their usual routing; chips whose scale-up links end in their server's switches
cannot be joined to a torus by them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, get_args

from pydantic import ValidationError

from simcore.catalog import Catalog
from simcore.catalog.types import Chip, Server
from simcore.cost import CostModel, EconomicsSpec, cost_model, switch_for
from simcore.errors import Message, TrimtabError
from simcore.fabric import AnyTopology, Fabric, build_fabric
from simcore.fabric.direct import check_wired
from simcore.fabric.flows import completion
from simcore.fabric.network import network_of
from simcore.fabric.routing import default_routing, link_loads
from simcore.fabric.traffic import Flows

FAIR_FLOWS: Final = 50_000
SAME: Final = 0.01  # times and prices as close as this are taken to be equal
OF_ONE: Final = (
    "kind",
    "degraded",
)  # keys that no other kind takes over: a broken part is a part of one fabric
OF_CHIPS: Final = ("torus", "ocs_pod")  # joined by the chips' own scale-up links


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A topology with what the flows and the bill come to, or why it cannot be."""

    topology: Mapping[str, Any]  # as a scenario says it
    busiest_link_s: float | None = None
    busiest_link: str = ""
    fair_s: float | None = None
    unreachable_bytes: float = 0.0
    fabric_capex_usd: float | None = None
    fabric_power_w: float | None = None
    switch_count: int = 0
    link_count: int = 0
    transceiver_count: int = 0
    island_count: int = 1
    is_on_front: bool = False
    refused: Message | None = None

    @property
    def kind(self) -> str:
        return str(self.topology["kind"])

    def as_dict(self) -> dict[str, Any]:
        found = {name: getattr(self, name) for name in self.__slots__}
        found["topology"] = dict(self.topology)
        return found | {"refused": self.refused.as_dict() if self.refused else None}


def rank_topologies(
    flows: Flows,
    *,
    chip: Chip,
    server: Server,
    chip_count: int,
    catalog: Catalog,
    given: Mapping[str, Any] | None = None,
    economics: EconomicsSpec | None = None,
) -> list[Candidate]:
    """All kinds, the quickest first and those that cannot be last; `given` are keys of the topology section that
    every kind takes over which has them."""
    found = [
        _candidate(spec, flows, chip, server, chip_count, catalog, economics or EconomicsSpec())
        for spec in specs(given or {})
    ]
    return sorted(_with_front(found), key=_order)


def _order(candidate: Candidate) -> tuple[bool, bool, float, float]:
    return (
        candidate.refused is not None,
        candidate.unreachable_bytes > 0,
        float(f"{candidate.busiest_link_s or 0.0:.2g}"),
        candidate.fabric_capex_usd or 0.0,
    )


def specs(given: Mapping[str, Any]) -> Iterator[AnyTopology]:
    """One of each kind; a key that a kind does not have, or refuses, is left at its default."""
    for kind in get_args(AnyTopology):
        spec = kind()
        for key, value in given.items():
            if key not in OF_ONE and key in kind.model_fields:
                try:
                    spec = kind.model_validate({**spec.model_dump(exclude_unset=True), key: value})
                except ValidationError:
                    continue
        yield spec


def _candidate(
    spec: AnyTopology,
    flows: Flows,
    chip: Chip,
    server: Server,
    chip_count: int,
    catalog: Catalog,
    economics: EconomicsSpec,
) -> Candidate:
    topology = {"kind": spec.kind, **spec.model_dump(mode="json", exclude_unset=True)}
    refused = _no_links(spec.kind, server)
    if refused is None:
        try:
            fabric = build_fabric(
                spec, chip_count=chip_count, server=server, scaleup_bytes_per_s=chip.scaleup_bytes_per_s
            )
            check_wired(fabric)
        except TrimtabError as error:
            refused = error.message
    if refused is not None:
        return Candidate(topology=topology, refused=refused)
    cost = _cost(spec, fabric, chip, server, chip_count, catalog, economics)
    return _timed(topology, fabric, flows, cost)


def _no_links(kind: str, server: Server) -> Message | None:
    if kind not in OF_CHIPS or server.scaleup_kind == "ici":
        return None
    return Message(
        code="ranking.no_links",
        template="it joins chips by their own scale-up links, and those of {server} end inside the server",
        params={"server": server.name},
        path="topology.kind",
    )


def _timed(topology: Mapping[str, Any], fabric: Fabric, flows: Flows, cost: CostModel) -> Candidate:
    network = network_of(fabric)
    routing = default_routing(is_lattice=network.is_lattice)
    loads = link_loads(network, flows, routing=routing)
    times_s = loads.moved_bytes / network.capacity_bytes_per_s
    busiest = int(times_s.argmax())
    fair_s = None
    if len(flows) <= FAIR_FLOWS:
        fair_s = completion(network, flows, routing=routing).makespan_s
    capex = cost.fabric_capex
    return Candidate(
        topology=topology,
        busiest_link_s=float(times_s[busiest]),
        busiest_link=network.link_name(busiest),
        fair_s=fair_s,
        unreachable_bytes=float(flows.moved_bytes[loads.is_unreachable].sum()),
        fabric_capex_usd=None if capex is None else capex.value,
        fabric_power_w=cost.network_power.value,
        switch_count=fabric.switch_count,
        link_count=fabric.link_count,
        transceiver_count=fabric.transceiver_count,
        island_count=fabric.island_count,
    )


def _cost(
    spec: AnyTopology,
    fabric: Fabric,
    chip: Chip,
    server: Server,
    chip_count: int,
    catalog: Catalog,
    economics: EconomicsSpec,
) -> CostModel:
    radix = fabric.tiers[0].radix if fabric.tiers else 0
    return cost_model(
        economics=economics,
        chip=chip,
        server=server,
        chip_count=chip_count,
        fabric=fabric,
        book=catalog.price_book(economics.price_book),
        fabric_book=catalog.price_book(spec.price_book, path="topology.price_book"),
        switch=switch_for(catalog.switches, radix=radix, port_bytes_per_s=fabric.link_bytes_per_s),
        optical_switch=catalog.optical_switches["palomar-136"] if fabric.ocs_count else None,
    )


def _with_front(found: Sequence[Candidate]) -> list[Candidate]:
    able = [one for one in found if one.refused is None and not one.unreachable_bytes]
    return [
        replace(one, is_on_front=one in able and not any(_beats(other, one) for other in able))
        for one in found
    ]


def _beats(other: Candidate, one: Candidate) -> bool:
    """At least as quick and as cheap, and clearly better in one of both; a price that is not known beats none."""
    times = (other.busiest_link_s or 0.0, one.busiest_link_s or 0.0)
    prices = (other.fabric_capex_usd, one.fabric_capex_usd)
    if prices[0] is None or prices[1] is None:
        return False
    better = other.busiest_link_s is not None and times[0] < (1 - SAME) * times[1]
    cheaper = prices[0] < (1 - SAME) * prices[1]
    no_worse = times[0] <= (1 + SAME) * times[1] and prices[0] <= (1 + SAME) * prices[1]
    return no_worse and (better or cheaper)
