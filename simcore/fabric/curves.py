"""The ways to run a collective, each a curve of time over bytes, by the name of its algorithm.

A curve is `t = latency + κ·sqrt(w / bandwidth) + w / (fraction × bandwidth)`, w = payload × bus factor
(2(n−1)/n for all-reduce, (n−1)/n for the others, as in nccl-tests; payload as in its size column).
- `nccl`: what NCCL chose, as measured inside one scale-up domain and fitted (5-7 % mean error on NVLink); where its
  all-reduce is faster than any ring it reduces in the switches and is called `in_network`. The latency of an
  unmeasured rank count lies on the line of its neighbours over log2(ranks). Beside it stands the engine's own
  all-reduce kernel (`engine`) for payloads up to 8 MiB, where one was measured.
- `ring`, `tree`, `halving_doubling`, `hierarchical`: NCCL's latency constants (`nccl.py`) over a share of the link.
  Flat rings and trees across domains have the smaller of the scale-up link and all NICs of a domain; the last two
  pass each level in turn, so their times per byte add. On a torus a ring runs along each dimension in turn.
- `in_network` across domains: rings' bandwidth times the gain that was measured inside one, not the ideal.
- `pairwise`: an all-to-all is bound by the NIC or the scale-up link, whichever is slower, and off-rail bytes of a
  rail-only fabric pay one more crossing of the domain.
What the fabric leaves of a NIC to the group, and what its further hops cost, is in `reach.py`.
Limits: ranks fill domains evenly; no contention with other traffic.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from simcore.catalog.types import CollectiveFit
from simcore.fabric.box import all_to_all_share, box_of
from simcore.fabric.interconnect import Interconnect
from simcore.fabric.nccl import (
    BASE_LATENCY_S,
    HARDWARE_LATENCY_S,
    IN_NETWORK_GAIN,
    PROTOCOL_BANDWIDTH_FRACTION,
    TREE_BANDWIDTH_FRACTION,
    Link,
    Protocol,
    doublings,
    halving_doubling_latency_s,
    hierarchical_latency_s,
    in_network_latency_s,
    ll_limit_bytes_per_s,
    ring_latency_s,
    tree_latency_s,
)
from simcore.why import Term, constant, leaf, maximum, minimum, sqrt

Operation = Literal["all_reduce", "all_gather", "reduce_scatter", "all_to_all"]
OPERATIONS: tuple[Operation, ...] = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")
Algorithm = Literal[
    "nccl", "engine", "ring", "tree", "halving_doubling", "hierarchical", "in_network", "pairwise"
]
ENGINE_KERNEL = "custom_all_reduce"  # calibration key of the serving engine's own all-reduce
ENGINE_KERNEL_LIMIT_BYTES = 8 * 2**20
# Rings measured on 8×H200: 367.2 of 450 GB/s (stas00/ml-engineering); PCIe 5 cards: 25 of 63 GB/s with 8 ranks.
SCALEUP_FRACTION: Mapping[Link, float] = {"nvlink": 0.816, "pcie": 0.4}
# 4×8 H100 on InfiniBand: 331 of 400 GB/s (Voltage Park); 4×8 B200 on EFA: 382; SimAI's NCCL tables: 0.96.
SCALEOUT_FRACTION = 0.9
PROTOCOLS: tuple[Protocol, ...] = ("ll", "simple")
NCCL_SOURCE: Final = "NCCL src/graph/tuning.cc @5067397"
# no ring was measured above 0.82 of its link: an all-reduce that is faster is reduced in the switches
_RING_LIMIT_FRACTION: Final = 0.85
_TREE: Final = constant(TREE_BANDWIDTH_FRACTION, "tree bandwidth fraction")


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """`latency + sqrt_coefficient·sqrt(w / rate) + w / bandwidth`, for payloads up to a limit."""

    algorithm: Algorithm
    protocol: Protocol = "simple"
    latency_s: Term
    root: Term | None = None  # κ, in sqrt(s)
    rate: Term
    bandwidth: Term
    limit_bytes: float = math.inf

    def term(self, bus_bytes: Term) -> Term:
        linear = self.latency_s + bus_bytes / self.bandwidth
        return linear if self.root is None else linear + self.root * sqrt(bus_bytes / self.rate)

    def times_s(self, bus_bytes: NDArray[np.float64]) -> NDArray[np.float64]:
        root = 0.0 if self.root is None else self.root.value
        times: NDArray[np.float64] = (
            self.latency_s.value
            + bus_bytes / self.bandwidth.value
            + root * np.sqrt(bus_bytes / self.rate.value)
        )
        return times


def bus_factor(operation: Operation, ranks: int) -> float:
    """Bytes that cross each rank's link per payload byte.

    >>> bus_factor("all_reduce", 8), bus_factor("all_gather", 8)
    (1.75, 0.875)
    """
    return (2 if operation == "all_reduce" else 1) * (ranks - 1) / ranks


def measured_curves(operation: Operation, ranks: int, network: Interconnect) -> list[Curve]:
    """What was measured inside one domain: NCCL's own choice, and the engine's kernel."""
    # In-network reduction moves each byte once where a ring moves it twice; nothing else can beat the link.
    ceiling = bus_factor("all_reduce", ranks) if operation == "all_reduce" else 1.0
    found = []
    if fit := fit_at(network.fits, operation, ranks):
        found.append(_fitted(_chosen(operation, ranks, network), fit, network, ceiling))
    kernel = fit_at(network.fits, ENGINE_KERNEL, ranks, extend=False) if operation == "all_reduce" else None
    if kernel:
        found.append(_fitted("engine", kernel, network, ceiling, limit=ENGINE_KERNEL_LIMIT_BYTES))
    return found


def _chosen(operation: Operation, ranks: int, network: Interconnect) -> Algorithm:
    """What NCCL ran, as far as its bandwidth tells."""
    fit = fit_at(network.fits, "all_reduce", ranks)
    if operation != "all_reduce" or fit is None:
        return "nccl"
    above = fit.bus_bytes_per_s > _RING_LIMIT_FRACTION * network.reference_bytes_per_s
    return "in_network" if above else "nccl"


def fit_at(
    fits: Mapping[tuple[str, int], CollectiveFit], operation: str, ranks: int, *, extend: bool = True
) -> CollectiveFit | None:
    """The fit for a rank count; an unmeasured one takes the constants of the nearest larger count, and a
    latency on the line through its neighbours over log2(ranks), as trees grow."""
    measured = sorted(count for name, count in fits if name == operation)
    if not measured or (ranks > measured[-1] and not extend):
        return None
    if ranks in measured:
        return fits[operation, ranks]
    above = next((count for count in measured if count > ranks), measured[-1])
    below = max((count for count in measured if count < above), default=above)
    upper, lower = fits[operation, above], fits[operation, below]
    steps = math.log2(above / below)
    slope_s = max(0.0, upper.alpha_s - lower.alpha_s) / steps if steps else 0.0
    return CollectiveFit(
        alpha_s=max(min(lower.alpha_s, upper.alpha_s), upper.alpha_s + slope_s * math.log2(ranks / above)),
        sqrt_s_per_sqrt_byte=upper.sqrt_s_per_sqrt_byte,
        bus_bytes_per_s=upper.bus_bytes_per_s,
        mape_fraction=2 * upper.mape_fraction,
        source=upper.source,
    )


def _fitted(
    algorithm: Algorithm,
    fit: CollectiveFit,
    network: Interconnect,
    ceiling: float,
    *,
    limit: float = math.inf,
) -> Curve:
    """Constants are kept relative to the link they were measured on, so that the link can change.

    A fit may overshoot the link between its measured sizes; its asymptote is cut at `ceiling` links.
    """
    reference, source = network.reference_bytes_per_s, fit.source.title

    def calibrated(value: float, name: str) -> Term:
        return leaf(value, name, kind="calibrated", source=source)

    rate = network.scaleup_bytes_per_s
    root = fit.sqrt_s_per_sqrt_byte * math.sqrt(reference)
    return Curve(
        algorithm=algorithm,
        latency_s=network.latency(calibrated(fit.alpha_s, "collective_latency_s")),
        root=calibrated(root, "collective_root") if root else None,
        rate=rate,
        bandwidth=calibrated(min(ceiling, fit.bus_bytes_per_s / reference), "bus_fraction") * rate,
        limit_bytes=limit,
    )


def inside_curves(operation: Operation, ranks: int, network: Interconnect) -> Iterator[Curve]:
    """NCCL's constants inside one domain."""
    share = SCALEUP_FRACTION[network.link]
    rate = network.scaleup_bytes_per_s * assumed(share, "scaleup_efficiency_fraction")
    if operation == "all_to_all":
        yield _pairwise_inside(ranks, network, rate)
        return
    reduces, steps = operation == "all_reduce", ranks
    if network.torus:
        box = box_of(ranks, network.torus)
        steps, rate = 1 + box.ring_steps, rate * _of_torus(box.ring_share)
    for protocol in PROTOCOLS:
        bandwidth = _of_protocol(rate, protocol)
        ring_s = ring_latency_s(protocol, steps, link=network.link, all_reduce=reduces)
        yield _flat("ring", ring_s, bandwidth, network, protocol)
        if network.torus:
            continue
        halving_s = halving_doubling_latency_s(protocol, ranks, link=network.link, all_reduce=reduces)
        yield _flat("halving_doubling", halving_s, bandwidth, network, protocol)
        if reduces:
            tree_s = tree_latency_s(protocol, ranks, servers=1, link=network.link)
            yield _flat("tree", tree_s, bandwidth * _TREE, network, protocol)


def across_curves(operation: Operation, ranks: int, network: Interconnect) -> Iterator[Curve]:
    """NCCL's constants over several domains."""
    domain = network.domain_size
    domains = math.ceil(ranks / domain)
    scaleup = _domain_rate(operation, network)
    nic = network.reached_bytes_per_s(ranks) * assumed(SCALEOUT_FRACTION, "scaleout_efficiency_fraction")
    if operation == "all_to_all":
        yield _pairwise_across(ranks, network, scaleup, nic)
        return
    rate = nic * constant(domain, "chips per domain")
    if domain > 1:
        rate = minimum(scaleup, rate)
    reduces, passes = operation == "all_reduce", 2 if operation == "all_reduce" else 1
    in_turn, hop = _in_turn(ranks, domains, scaleup, nic), network.further_hops_s(ranks)
    for protocol in PROTOCOLS:
        flat, both = (_between_servers(rate_, protocol, domains, network) for rate_ in (rate, in_turn))
        ring_s = ring_latency_s(protocol, ranks, servers=domains, link=network.link, all_reduce=reduces)
        yield _flat("ring", ring_s, flat, network, protocol, hop, passes * (domains - 1))
        if reduces:
            tree_s = tree_latency_s(protocol, ranks, servers=domains, link=network.link)
            yield _flat("tree", tree_s, flat * _TREE, network, protocol, hop, 2 * doublings(domains))
        levels_s = hierarchical_latency_s(
            protocol, ranks, servers=domains, link=network.link, all_reduce=reduces
        )
        yield _flat("hierarchical", levels_s, both, network, protocol, hop, passes * (domains - 1))
        halving_s = halving_doubling_latency_s(
            protocol, ranks, servers=domains, link=network.link, all_reduce=reduces
        )
        yield _flat("halving_doubling", halving_s, both, network, protocol, hop, passes * doublings(domains))
    if reduces and _chosen(operation, domain, network) == "in_network":
        yield _in_network_across(domains, rate, network, hop)


def _in_turn(ranks: int, domains: int, scaleup: Term, nic: Term) -> Term:
    """Bus bandwidth where each level is passed after the other: of the (n−1)/n bytes of a pass, (d−1)/d cross the
    domain's links and the rest, shared by its d chips, their NICs."""
    domain = ranks / domains
    whole = (ranks - 1) / ranks
    outside = constant((domains - 1) / ranks / whole, "share between domains") / nic
    if domain == 1:
        return 1 / outside
    return 1 / (constant((domain - 1) / domain / whole, "share inside the domain") / scaleup + outside)


def _in_network_across(domains: int, rate: Term, network: Interconnect, hop: Term | None) -> Curve:
    gain = leaf(
        IN_NETWORK_GAIN,
        "in_network_gain_ratio",
        kind="assumption",
        source="8 H200: 480.0 over 367.2 GB/s, standing in for switches between servers",
    )
    return _flat("in_network", in_network_latency_s(servers=domains), rate * gain, network, "simple", hop, 2)


def _flat(
    algorithm: Algorithm,
    latency_s: float,
    bandwidth: Term,
    network: Interconnect,
    protocol: Protocol = "simple",
    hop: Term | None = None,
    steps: int = 0,
) -> Curve:
    """`hop`: of each of so many steps over the network, what goes beyond the trip through one switch."""
    latency = nccl_latency(latency_s, network)
    if hop is not None:
        latency = latency + constant(steps, "network_steps") * hop
    return Curve(
        algorithm=algorithm,
        protocol=protocol,
        latency_s=network.latency(latency),
        rate=bandwidth,
        bandwidth=bandwidth,
    )


def _of_protocol(rate: Term, protocol: Protocol) -> Term:
    return rate * constant(PROTOCOL_BANDWIDTH_FRACTION[protocol], f"{protocol} protocol")


def _between_servers(rate: Term, protocol: Protocol, domains: int, network: Interconnect) -> Term:
    share = _of_protocol(rate, protocol)
    if protocol != "ll":
        return share
    limit = ll_limit_bytes_per_s(network.chip_year, servers=domains)
    return minimum(share, leaf(limit, "ll_limit_bytes_per_s", kind="calibrated", source=NCCL_SOURCE))


def _domain_rate(operation: Operation, network: Interconnect) -> Term:
    """What one domain's ring reaches: as measured over its links, at most the link itself."""
    fit = fit_at(network.fits, operation, network.domain_size)
    if fit is None:
        share = assumed(SCALEUP_FRACTION[network.link], "scaleup_efficiency_fraction")
    else:
        fraction = min(1.0, fit.bus_bytes_per_s / network.reference_bytes_per_s)
        share = leaf(fraction, "bus_fraction", kind="calibrated", source=fit.source.title)
    return network.scaleup_bytes_per_s * share


def _pairwise_inside(ranks: int, network: Interconnect, rate: Term) -> Curve:
    latency_s = BASE_LATENCY_S["ring", "simple"] + HARDWARE_LATENCY_S[network.link, "ring", "simple"]
    if network.torus:
        rate = rate * _of_torus(all_to_all_share(ranks, network.torus, network.fabric))
    return _flat("pairwise", latency_s, rate, network)


def _pairwise_across(ranks: int, network: Interconnect, scaleup: Term, nic: Term) -> Curve:
    """Each byte to another domain crosses a NIC; those to the same domain its link; the slower binds."""
    inside = network.domain_size - 1
    remote = constant((ranks - 1 - inside) / (ranks - 1), "share leaving the domain") / nic
    if network.off_rail_slowdown is not None:
        remote = remote * (1 + network.off_rail_slowdown)
    local = constant(inside / (ranks - 1), "share inside the domain") / scaleup
    latency_s = BASE_LATENCY_S["ring", "simple"] + HARDWARE_LATENCY_S["net", "ring", "simple"]
    return _flat(
        "pairwise", latency_s, 1 / maximum(remote, local), network, "simple", network.further_hops_s(ranks), 1
    )


def _of_torus(share: float) -> Term:
    return leaf(
        share,
        "torus_links_fraction",
        kind="derived",
        source="links that the box of the group gives a chip",
    )


def nccl_latency(latency_s: float, network: Interconnect) -> Term:
    if network.runs_nccl:
        return leaf(latency_s, "nccl_latency_s", kind="calibrated", source=NCCL_SOURCE)
    return leaf(latency_s, "nccl_latency_s", kind="assumption", source=f"{NCCL_SOURCE}, standing in")


def assumed(value: float, name: str) -> Term:
    source = "share of the link that rings were measured to reach on other systems"
    return leaf(value, name, kind="assumption", source=source)
