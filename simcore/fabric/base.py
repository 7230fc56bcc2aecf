"""What every fabric has, and the counting that switched fabrics share.

A folded Clos is a stack of stages. A stage of radix-k switches with oversubscription r gives each switch
`up = floor(k / (1 + r))` ports upwards and `down = floor(r × up)` downwards (both k/2 when r = 1); its
switch count is `ceil(links from below / down)`, its uplinks equal its downlinks divided by r, and the top
stage turns all k ports down. N endpoints, non-blocking, L tiers: `(2L−1)N/k` switches, `L·N` links,
`2·L·N` transceivers when every link is optical at both ends.

Counts are written as `why.Term` trees and evaluated once: the tree that explains a number made it.
Hops are links on the path (3-tier Clos: 6); one scale-up crossing counts as one link. Bandwidth is per
direction. Limits: endpoints fill leaves in order, so a last leaf, pod or island may be partly filled;
switch ports are all of one rate, that of the servers' NICs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from simcore.catalog.types import Server
from simcore.errors import InputError, Message
from simcore.fabric.specs import ClassSharing, Degraded, RoutingChoice, TransceiverConvention
from simcore.why import Term, ceil, constant, floor, leaf, total

Medium = Literal["optical", "copper", "scaleup"]
TIER_NAMES = ("leaf", "spine", "core")


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """What a fabric connects: chips in servers, their NICs and their scale-up domain."""

    chip_count: int
    chips_per_server: int
    nic_count_per_server: int
    nic_bytes_per_s: float
    hb_domain_size: int
    scaleup_bytes_per_s: float | None

    @classmethod
    def of(
        cls,
        server: Server,
        *,
        chip_count: int,
        hb_domain_size: Literal["auto"] | int,
        scaleup_bytes_per_s: float | None,
    ) -> Site:
        domain = server.scaleup_domain_chip_count if hb_domain_size == "auto" else hb_domain_size
        return cls(
            chip_count=chip_count,
            chips_per_server=server.chips_per_server,
            nic_count_per_server=server.nic_count,
            nic_bytes_per_s=server.nic_bytes_per_s,
            hb_domain_size=max(1, domain),
            scaleup_bytes_per_s=scaleup_bytes_per_s,
        )

    @property
    def chips_per_nic(self) -> int:
        """1 where each chip has a NIC of its own; servers with fewer NICs share them."""
        return max(1, math.ceil(self.chips_per_server / max(1, self.nic_count_per_server)))

    @property
    def endpoint_count(self) -> int:
        return math.ceil(self.chip_count / self.chips_per_nic)

    @property
    def domain_endpoint_count(self) -> int:
        """Endpoints of one scale-up domain: the number of rails."""
        return max(1, self.hb_domain_size // self.chips_per_nic)

    @property
    def needs_no_network(self) -> bool:
        """One scale-up domain or one server holds all chips."""
        return self.chip_count <= max(self.hb_domain_size, self.chips_per_server)

    def endpoints(self) -> Term:
        chips = leaf(self.chip_count, "chip_count", path="hardware.chip_count")
        if self.chips_per_nic == 1:
            return chips
        share = leaf(self.chips_per_nic, "chips_per_nic", kind="catalog", source="server")
        return ceil(chips / share).named("endpoint_count")

    def nic_rate(self) -> Term:
        return leaf(self.nic_bytes_per_s, "nic_bytes_per_s", kind="catalog", source="NIC of the server")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier:
    """One switch tier with its port budget, in total over its switches."""

    name: str
    switch_count: int
    radix: int
    down_port_count: int
    up_port_count: int

    @property
    def spare_port_count(self) -> int:
        return self.switch_count * self.radix - self.down_port_count - self.up_port_count


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """All links between two neighbouring layers."""

    lower: str
    upper: str
    link_count: int
    medium: Medium
    name: str = ""  # tells apart several kinds of link between the same layers


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureDomain:
    """What one failing component takes away."""

    component: str
    count: int
    chip_count: int  # chips cut off from the fabric
    capacity_loss_fraction: float  # share of the fabric's capacity at that layer


@dataclass(frozen=True, slots=True, kw_only=True)
class Plane:
    """`count` equal folded-Clos planes of `endpoint_count` endpoints: how the full graph is wired."""

    count: int
    endpoint_count: int
    down_port_counts: tuple[int, ...]  # ports downwards per switch, by tier
    up_port_counts: tuple[int, ...]  # ports upwards per switch, by tier (0 at the top)


def _no_edges() -> NDArray[np.int64]:
    return np.zeros((0, 2), np.int64)


def _no_links() -> NDArray[np.int64]:
    return np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fabric:
    """A built network: its bill, its paths and the trees of its headline numbers."""

    kind: str
    chip_count: int
    endpoint_count: int
    hb_domain_size: int
    tiers: tuple[Tier, ...]
    segments: tuple[Segment, ...]
    link_bytes_per_s: float
    ocs_count: int = 0
    transceiver_convention: TransceiverConvention
    transceivers: Mapping[TransceiverConvention, int]
    island_count: int
    island_size: int
    hop_histogram: tuple[tuple[int, float], ...]
    reachable_fraction: float
    bisection_bytes_per_s: float
    all_to_all_slowdown_ratio: float = 0.0
    failure_domains: tuple[FailureDomain, ...]
    warnings: tuple[Message, ...] = ()
    notes: tuple[Message, ...] = ()
    planes: tuple[Plane, ...] = ()
    shape: tuple[int, ...] = ()  # chips along each dimension of a torus
    is_twisted: bool = False  # around its short dimensions a torus is shifted along the long ones
    degraded: tuple[Degraded, ...] = ()  # links and switches that have lost capacity
    routing: RoutingChoice = "auto"
    class_sharing: ClassSharing = "max_min"
    class_weight_ratio: tuple[float, ...] = ()  # by class, where they are weighted
    chips_per_nic: int = 1
    scaleup_bytes_per_s: float = 0.0  # of one chip into its scale-up domain; 0 where no domain is modelled
    switch_edges: NDArray[np.int64] = field(default_factory=_no_edges, compare=False)  # of direct networks
    switch_edge_links: NDArray[np.int64] = field(default_factory=_no_links, compare=False)  # parallel links
    endpoints_per_switch: int = 0  # of direct networks: endpoint e hangs on switch e // this
    chosen: Mapping[str, int] = field(default_factory=dict)  # what `auto` became, by key of the topology
    sizes: tuple[int, ...] = ()  # switches along each dimension of a hyperx
    terms: Mapping[str, Term]

    @property
    def switch_count(self) -> int:
        return sum(tier.switch_count for tier in self.tiers)

    @property
    def is_wired(self) -> bool:
        """Not where a direct network is counted by formula and no graph of it is known."""
        return not self.endpoints_per_switch or self.switch_count == 1 or len(self.switch_edges) > 0

    @property
    def link_count(self) -> int:
        return sum(segment.link_count for segment in self.segments)

    @property
    def transceiver_count(self) -> int:
        return self.transceivers[self.transceiver_convention]

    @property
    def diameter_hops(self) -> int:
        return max((hops for hops, fraction in self.hop_histogram if fraction > 0), default=0)

    @property
    def mean_hops(self) -> float:
        return math.fsum(hops * fraction for hops, fraction in self.hop_histogram)

    @property
    def routing_adjacency_count(self) -> int:
        """Routing sessions: one per link between two switches (single-hop eBGP, RFC 7938)."""
        names = {tier.name for tier in self.tiers}
        return sum(s.link_count for s in self.segments if s.lower in names and s.upper in names)


@dataclass(frozen=True, slots=True)
class Stages:
    """A folded Clos, counted: terms by tier, from the leaves up."""

    switch_counts: tuple[Term, ...]
    down_links: tuple[Term, ...]  # links below each tier; the first are the endpoints' own
    down_ports: tuple[Term, ...]
    up_ports: tuple[Term, ...]


def split_ports(radix: Term, ratio: Term) -> tuple[Term, Term]:
    """Ports downwards and upwards of one switch under an oversubscription ratio."""
    if ratio.value == 1:
        half = (radix / 2).named("down_ports")
        return half, half
    up = floor(radix / (1 + ratio)).named("up_ports")
    if up.value < 1:
        raise InputError.at(
            "topology.oversubscription_ratio",
            "fabric.oversubscription",
            "got {ratio:g}, which leaves no uplink on {radix:g} ports; use at most {allowed:g}",
            ratio=ratio.value,
            radix=radix.value,
            allowed=radix.value - 1,
        )
    return floor(ratio * up).named("down_ports"), up


def capacity(radix: Term, ratios: Sequence[Term], tiers: int) -> int:
    """Most endpoints that a folded Clos of `tiers` tiers holds: k, k·k/2, k·k/2·k/2 when non-blocking."""
    downs = [split_ports(radix, ratio)[0].value for ratio in ratios[: tiers - 1]]
    return int(radix.value * math.prod(downs))


def stages(endpoints: Term, radix: Term, ratios: Sequence[Term], tiers: int) -> Stages:
    """Count a folded Clos tier by tier; each tier's links upwards are the next tier's links downwards."""
    counts, downs, down_ports, up_ports = [], [endpoints], [], []
    for level in range(tiers - 1):
        below, ratio = downs[-1], ratios[level]
        down, up = split_ports(radix, ratio)
        counts.append(ceil(below / down).named(f"{TIER_NAMES[level]}_switch_count"))
        downs.append(_uplinks(below, down, up, ratio).named(f"{TIER_NAMES[level]}_uplink_count"))
        down_ports.append(down)
        up_ports.append(up)
    counts.append(ceil(downs[-1] / radix).named(f"{TIER_NAMES[tiers - 1]}_switch_count"))
    return Stages(tuple(counts), tuple(downs), (*down_ports, radix), (*up_ports, constant(0)))


def _uplinks(below: Term, down: Term, up: Term, ratio: Term) -> Term:
    """Links upwards: all ports of full switches, and the rest's share of the last one."""
    if ratio.value == 1:
        return below / ratio
    full = floor(below / down)
    return full * up + ceil((below - full * down) * up / down)


def fewest_tiers(endpoint_count: int, radix: Term, ratios: Sequence[Term]) -> int | None:
    """The fewest tiers that hold the endpoints; None where three do not."""
    return next((tiers for tiers in (1, 2, 3) if endpoint_count <= capacity(radix, ratios, tiers)), None)


def sum_of(terms: Sequence[Term]) -> Term:
    """The sum; a single term stays itself."""
    return terms[0] if len(terms) == 1 else total(*terms)


def transceiver_terms(links: Sequence[Term]) -> dict[TransceiverConvention, Term]:
    """Optical modules under the three named conventions; `links` by segment, the endpoints' own first.

    both_ends: two on every link. copper_first_hop: endpoint links are copper, two on every other link.
    twin_port: one on each NIC; a switch-side module serves two ports.
    """
    first, above = links[0], links[1:]
    between = sum_of(above) if above else constant(0, "no link between switches")
    return {
        "both_ends": 2 * sum_of(links),
        "copper_first_hop": 2 * between,
        "twin_port": total(first, ceil(first / 2), between),
    }
