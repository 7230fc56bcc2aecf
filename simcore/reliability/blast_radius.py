"""Blast radius: how many chips a failing component takes out of work, weighted by how often it fails.

Whatever fails inside a server takes what is exchanged together: the server, or in a pod of tori its cube. An
endpoint's link takes the chips that share its NIC; a switch of the first tier (or of a direct network) the chips
below it; a switch higher up, a link between switches and an optical switch take capacity and no chip.
`blast = Σ n·r·c / Σ n·r` over component classes: n components, r their rate, c chips lost. Rates inside a server
are scaled to the scenario's failure rate of a server; those of the network are as published.
Limits: components fail alone; a rail's chips that still reach others over their scale-up links count as lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from simcore.fabric import Fabric
from simcore.reliability.components import COMPONENT_RATES, IN_A_SERVER
from simcore.why import Term, leaf, total

HOURS_PER_YEAR: Final = 8_760
LLAMA_PER_THOUSAND_NODE_DAYS: Final = 419 / 54 / 2048 * 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Exposure:
    """A class of components of this system: how many, and what one of them takes along."""

    name: str  # as people read it: "leaf switch"
    component: str  # whose rate it has
    count: int
    chip_count: int
    rate: Term  # FIT of one

    @property
    def failures_per_hour(self) -> Term:
        """Of all of them, in FIT."""
        many = leaf(self.count, "component_count", kind="derived", source=f"{self.name}: counted")
        return many * self.rate


def server_scale(rate: Term) -> Term:
    """The scenario's failure rate of a server over that of the servers whose causes were counted."""
    counted = leaf(
        LLAMA_PER_THOUSAND_NODE_DAYS,
        "counted_failures_per_thousand_node_days",
        kind="catalog",
        source="Llama 3, arXiv 2407.21783: 419 in 54 days on 2,048 servers",
        dimension="",
    )
    return (rate / counted).named("server_failure_scale_ratio")


def rate_of(component: str, scale: Term) -> Term:
    """FIT of one component."""
    found = COMPONENT_RATES[component]
    published = leaf(
        found.fit_count, f"{component}_fit_count", kind=found.kind, source=found.source, dimension=""
    )
    return published * scale if component in IN_A_SERVER else published


def exposures(fabric: Fabric, *, chips_per_server: int, unit_chips: int, scale: Term) -> list[Exposure]:
    """Every class of components; `unit_chips` are exchanged together when a server is down."""
    return [
        Exposure(
            name=name, component=component, count=count, chip_count=chips, rate=rate_of(component, scale)
        )
        for name, component, count, chips in _classes(fabric, chips_per_server, unit_chips)
        if count
    ]


def _classes(fabric: Fabric, per_server: int, unit: int) -> Iterator[tuple[str, str, int, int]]:
    servers = -(-fabric.chip_count // per_server)
    yield "chip", "chip", fabric.chip_count, unit
    yield "chip memory", "hbm", fabric.chip_count, unit
    yield "server", "server", servers, unit
    yield "server software", "software", servers, unit
    tiers = {tier.name for tier in fabric.tiers}
    cut_off = {domain.component: domain.chip_count for domain in fabric.failure_domains}
    if tiers:
        yield "NIC", "nic", fabric.endpoint_count, unit
    for segment in fabric.segments:
        ends = f"{segment.lower}–{segment.upper} link"
        at_endpoint = segment.lower not in tiers and segment.upper in tiers
        yield ends, "link", segment.link_count, cut_off.get("endpoint link", 1) if at_endpoint else 0
    for tier in fabric.tiers:
        name = tier.name if tier.name.endswith("switch") else f"{tier.name} switch"
        yield name, "switch", tier.switch_count, cut_off.get(name, 0)
    yield "optical switch", "ocs", fabric.ocs_count, 0


def blast_radius_term(found: list[Exposure]) -> Term:
    """Chips lost by the failure of a component, the mean over failures."""
    weighted = total(*(one.failures_per_hour * one.chip_count for one in found if one.chip_count)).named(
        "lost_chip_count"
    )
    every = total(*(one.failures_per_hour for one in found)).named("failure_count")
    return (weighted / every).named("blast_radius_chip_count")


def exposure_rows(found: list[Exposure]) -> list[dict[str, float | int | str]]:
    """A row per class, for a table: failures in a year, and its share of all failures."""
    every = sum(one.failures_per_hour.value for one in found)
    return [
        {
            "name": one.name,
            "component": one.component,
            "count": one.count,
            "chip_count": one.chip_count,
            "fit_count": one.rate.value,
            "failures_per_year_count": one.failures_per_hour.value / 1e9 * HOURS_PER_YEAR,
            "share_fraction": one.failures_per_hour.value / every,
        }
        for one in found
    ]
