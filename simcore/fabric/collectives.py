"""What a collective costs: one small set of curves per operation and rank count, the cheapest taken.

A curve is `t = latency + κ·sqrt(w / bandwidth) + w / (fraction × bandwidth)`, w = payload × bus factor
(2(n−1)/n for all-reduce, (n−1)/n for the others, as in nccl-tests; payload as in its size column).
- Inside one scale-up domain of a measured chip: the fitted three-parameter curve (5-7 % mean error on
  NVLink), beside it the engine's own all-reduce kernel for payloads up to 8 MiB, where one was measured.
  The latency of an unmeasured rank count lies on the line of its neighbours over log2(ranks).
- Otherwise NCCL's latency constants (`nccl.py`) over an assumed share of the link; on a torus a ring along
  each dimension in turn.
- Across domains: flat rings and trees whose bandwidth is the smaller of the scale-up link and all NICs of
  a domain; an all-to-all is bound by the NIC or the scale-up link, whichever is slower, and off-rail
  bytes of a rail-only fabric pay one more crossing of the domain.
The scale-up bandwidth stays a leaf: doubling it speeds a fitted curve up, its latency stays.
Where measured tables are used, curves inside a domain are scaled to them (`fabric/measured.py`).
Limits: ranks fill domains evenly; no contention with other traffic; in-network reduction is inside the
fits (NVLink SHARP on Hopper), not modelled apart.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from simcore.catalog.grids import Correction
from simcore.catalog.measured import MeasuredTables
from simcore.catalog.types import Calibration, Chip, CollectiveFit, Server
from simcore.fabric.base import Fabric
from simcore.fabric.lattice import best_shape
from simcore.fabric.measured import collective_correction
from simcore.fabric.nccl import (
    BASE_LATENCY_S,
    HARDWARE_LATENCY_S,
    PROTOCOL_BANDWIDTH_FRACTION,
    TREE_BANDWIDTH_FRACTION,
    Link,
    Protocol,
    ring_latency_s,
    tree_latency_s,
)
from simcore.why import Term, constant, leaf, maximum, minimum, sqrt

Operation = Literal["all_reduce", "all_gather", "reduce_scatter", "all_to_all"]
OPERATIONS: tuple[Operation, ...] = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")
ENGINE_KERNEL = "custom_all_reduce"  # calibration key of the serving engine's own all-reduce
ENGINE_KERNEL_LIMIT_BYTES = 8 * 2**20
# Rings measured on 8×H200: 367 of 450 GB/s (stas00/ml-engineering); PCIe 5 cards: 25 of 63 GB/s with 8 ranks.
SCALEUP_FRACTION: Mapping[Link, float] = {"nvlink": 0.81, "pcie": 0.4}
# 4×8 H100 on InfiniBand: 331 of 400 GB/s (Voltage Park); 4×8 B200 on EFA: 382; SimAI's NCCL tables: 0.96.
SCALEOUT_FRACTION = 0.9
PROTOCOLS: tuple[Protocol, ...] = ("ll", "simple")


@dataclass(frozen=True, slots=True, kw_only=True)
class Interconnect:
    """What a collective runs over: a chip's scale-up link, its share of NICs, and measured curves."""

    domain_size: int
    link: Link
    scaleup_bytes_per_s: Term
    scaleout_bytes_per_s: Term
    reference_bytes_per_s: float  # the scale-up bandwidth that the fits were measured on
    fits: Mapping[tuple[str, int], CollectiveFit]
    off_rail_slowdown: Term | None = None
    torus_dimensions: int = 0  # rings along each dimension of a torus; 0: one ring through a switch
    runs_nccl: bool = True  # elsewhere its latencies stand in, as an assumption
    measured: MeasuredTables | None = None  # what the curves inside a domain are scaled to


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """`latency + sqrt_coefficient·sqrt(w / rate) + w / bandwidth`, for payloads up to a limit."""

    latency_s: Term
    root: Term | None  # κ, in sqrt(s)
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


def interconnect(
    chip: Chip,
    server: Server,
    calibration: Calibration,
    *,
    fabric: Fabric | None = None,
    reference_scaleup_bytes_per_s: float | None = None,
) -> Interconnect:
    """The links of a chip in its server and fabric.

    `reference_scaleup_bytes_per_s` is the catalog's own figure where the scenario overrides the chip's.
    """
    over_pcie = chip.scaleup_bytes_per_s is None
    scaleup = chip.leaf("pcie_bytes_per_s") if over_pcie else chip.leaf("scaleup_bytes_per_s")
    domain = server.chips_per_server if over_pcie else server.scaleup_domain_chip_count
    if fabric is not None and not over_pcie:
        domain = fabric.hb_domain_size
    slowdown = fabric.terms.get("fabric.all_to_all_slowdown_ratio") if fabric else None
    return Interconnect(
        domain_size=max(1, domain),
        link="pcie" if over_pcie else "nvlink",
        scaleup_bytes_per_s=scaleup,
        scaleout_bytes_per_s=_scaleout(server, fabric),
        reference_bytes_per_s=reference_scaleup_bytes_per_s or scaleup.value,
        fits=calibration.collectives,
        off_rail_slowdown=slowdown,
        torus_dimensions=_torus_dimensions(server, fabric),
        runs_nccl=chip.vendor == "NVIDIA",
        measured=calibration.measured,
    )


def _torus_dimensions(server: Server, fabric: Fabric | None) -> int:
    if server.scaleup_kind != "ici":
        return 0
    return len(fabric.shape) if fabric and fabric.shape else 3


def _scaleout(server: Server, fabric: Fabric | None) -> Term:
    """A chip's share of its server's NICs, at most one NIC, less the fabric's oversubscription."""
    nic = server.leaf("nic_bytes_per_s")
    share = min(server.nic_count, server.chips_per_server) / server.chips_per_server
    rate = nic if share == 1 else nic * leaf(share, "nics_per_chip_ratio", kind="catalog", source="server")
    if fabric is None or fabric.oversubscription == 1:
        return rate
    taper = leaf(fabric.oversubscription, "oversubscription_ratio", path="topology.oversubscription_ratio")
    return rate / taper


def bus_factor(operation: Operation, ranks: int) -> float:
    """Bytes that cross each rank's link per payload byte.

    >>> bus_factor("all_reduce", 8), bus_factor("all_gather", 8)
    (1.75, 0.875)
    """
    return (2 if operation == "all_reduce" else 1) * (ranks - 1) / ranks


def collective_s(
    operation: Operation, payload_bytes: Term | float, ranks: int, network: Interconnect
) -> Term:
    """Time of one collective, as a tree; 0 for a single rank."""
    name = f"{operation}_s"
    if ranks <= 1:
        return constant(0, name)
    payload = payload_bytes if isinstance(payload_bytes, Term) else leaf(payload_bytes, "payload_bytes")
    moved = payload * constant(bus_factor(operation, ranks), "bus_factor")
    usable = [c for c in curves(operation, ranks, network) if payload.value <= c.limit_bytes]
    terms = [curve.term(moved.named("bus_bytes")) for curve in usable]
    fitted = (terms[0] if len(terms) == 1 else minimum(*terms)).named(name)
    found = _correction(operation, ranks, network)
    return fitted if found is None else (fitted * found.ratio(payload)).named(name)


def collective_times_s(
    operation: Operation, payload_bytes: NDArray[np.float64], ranks: int, network: Interconnect
) -> NDArray[np.float64]:
    """The same for many payloads at once; an empty payload costs nothing."""
    payload = np.asarray(payload_bytes, dtype=np.float64)
    if ranks <= 1:
        return np.zeros_like(payload)
    moved = payload * bus_factor(operation, ranks)
    best = np.full_like(payload, np.inf)
    for curve in curves(operation, ranks, network):
        times = np.where(payload <= curve.limit_bytes, curve.times_s(moved), np.inf)
        best = np.minimum(best, times)
    found = _correction(operation, ranks, network)
    if found is not None:
        best = best * found.ratio(payload)
    return np.where(payload > 0, best, 0.0)


def _correction(operation: Operation, ranks: int, network: Interconnect) -> Correction | None:
    """Measured ÷ fitted on the link that was measured, where tables are used and have this."""
    if network.measured is None or network.link != "nvlink" or ranks > network.domain_size:
        return None
    reference = replace(
        network, measured=None, scaleup_bytes_per_s=constant(network.reference_bytes_per_s, "measured_link")
    )
    return collective_correction(
        network.measured,
        operation,
        ranks,
        lambda payload: collective_times_s(operation, payload, ranks, reference),
        engine_limit_bytes=ENGINE_KERNEL_LIMIT_BYTES,
    )


def curves(operation: Operation, ranks: int, network: Interconnect) -> list[Curve]:
    """The ways to run it; the cheapest at a payload is taken."""
    if ranks > network.domain_size:
        return _across(operation, ranks, network)
    # In-network reduction moves each byte once where a ring moves it twice; nothing else can beat the link.
    ceiling = bus_factor("all_reduce", ranks) if operation == "all_reduce" else 1.0
    found = [_fitted(fit, network, ceiling) for fit in (fit_at(network.fits, operation, ranks),) if fit]
    if operation == "all_reduce":
        kernel = fit_at(network.fits, ENGINE_KERNEL, ranks, extend=False)
        found += [_fitted(kernel, network, ceiling, limit=ENGINE_KERNEL_LIMIT_BYTES)] if kernel else []
    return found if _unlimited(found) else found + _inside(operation, ranks, network)


def _unlimited(found: list[Curve]) -> bool:
    return any(curve.limit_bytes == math.inf for curve in found)


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
    doublings = math.log2(above / below)
    slope_s = max(0.0, upper.alpha_s - lower.alpha_s) / doublings if doublings else 0.0
    return CollectiveFit(
        alpha_s=max(min(lower.alpha_s, upper.alpha_s), upper.alpha_s + slope_s * math.log2(ranks / above)),
        sqrt_s_per_sqrt_byte=upper.sqrt_s_per_sqrt_byte,
        bus_bytes_per_s=upper.bus_bytes_per_s,
        mape_fraction=2 * upper.mape_fraction,
        source=upper.source,
    )


def _fitted(fit: CollectiveFit, network: Interconnect, ceiling: float, *, limit: float = math.inf) -> Curve:
    """Constants are kept relative to the link they were measured on, so that the link can change.

    A fit may overshoot the link between its measured sizes; its asymptote is cut at `ceiling` links.
    """
    reference, source = network.reference_bytes_per_s, fit.source.title

    def calibrated(value: float, name: str) -> Term:
        return leaf(value, name, kind="calibrated", source=source)

    rate = network.scaleup_bytes_per_s
    root = fit.sqrt_s_per_sqrt_byte * math.sqrt(reference)
    return Curve(
        latency_s=calibrated(fit.alpha_s, "collective_latency_s"),
        root=calibrated(root, "collective_root") if root else None,
        rate=rate,
        bandwidth=calibrated(min(ceiling, fit.bus_bytes_per_s / reference), "bus_fraction") * rate,
        limit_bytes=limit,
    )


def _inside(operation: Operation, ranks: int, network: Interconnect) -> list[Curve]:
    """NCCL's constants inside one domain."""
    share = SCALEUP_FRACTION[network.link]
    rate = network.scaleup_bytes_per_s * _assumed(share, "scaleup_efficiency_fraction")
    if operation == "all_to_all":
        latency_s = BASE_LATENCY_S["ring", "simple"] + HARDWARE_LATENCY_S[network.link, "ring", "simple"]
        return [Curve(latency_s=_nccl(latency_s, network), root=None, rate=rate, bandwidth=rate)]
    found = []
    steps = _ring_ranks(ranks, network)
    for protocol in PROTOCOLS:
        latency_s = ring_latency_s(protocol, steps, link=network.link, all_reduce=operation == "all_reduce")
        bandwidth = rate * constant(PROTOCOL_BANDWIDTH_FRACTION[protocol], f"{protocol} protocol")
        found.append(Curve(latency_s=_nccl(latency_s, network), root=None, rate=rate, bandwidth=bandwidth))
    return found


def _ring_ranks(ranks: int, network: Interconnect) -> int:
    """Ranks of the ring whose steps are taken: on a torus one dimension after the other."""
    if not network.torus_dimensions:
        return ranks
    return 1 + sum(size - 1 for size in best_shape(ranks, network.torus_dimensions))


def _across(operation: Operation, ranks: int, network: Interconnect) -> list[Curve]:
    """NCCL's constants over several domains."""
    domain = network.domain_size
    domains = math.ceil(ranks / domain)
    scaleup = _domain_rate(operation, network)
    scaleout = network.scaleout_bytes_per_s * _assumed(SCALEOUT_FRACTION, "scaleout_efficiency_fraction")
    if operation == "all_to_all":
        return [_all_to_all_across(ranks, network, scaleup, scaleout)]
    rate = scaleout * constant(domain, "chips per domain")
    if domain > 1:
        rate = minimum(scaleup, rate)
    reduces = operation == "all_reduce"
    found = []
    for protocol in PROTOCOLS:
        bandwidth = rate * constant(PROTOCOL_BANDWIDTH_FRACTION[protocol], f"{protocol} protocol")
        ring_s = ring_latency_s(protocol, ranks, servers=domains, link=network.link, all_reduce=reduces)
        found.append(Curve(latency_s=_nccl(ring_s, network), root=None, rate=rate, bandwidth=bandwidth))
        if reduces:
            tree_s = tree_latency_s(protocol, ranks, servers=domains, link=network.link)
            slower = bandwidth * constant(TREE_BANDWIDTH_FRACTION, "tree bandwidth fraction")
            found.append(Curve(latency_s=_nccl(tree_s, network), root=None, rate=rate, bandwidth=slower))
    return found


def _domain_rate(operation: Operation, network: Interconnect) -> Term:
    """What one domain's ring reaches: as measured over its links, at most the link itself."""
    fit = fit_at(network.fits, operation, network.domain_size)
    if fit is None:
        share = _assumed(SCALEUP_FRACTION[network.link], "scaleup_efficiency_fraction")
    else:
        fraction = min(1.0, fit.bus_bytes_per_s / network.reference_bytes_per_s)
        share = leaf(fraction, "bus_fraction", kind="calibrated", source=fit.source.title)
    return network.scaleup_bytes_per_s * share


def _all_to_all_across(ranks: int, network: Interconnect, scaleup: Term, scaleout: Term) -> Curve:
    """Each byte to another domain crosses a NIC; those to the same domain its link; the slower binds."""
    inside = network.domain_size - 1
    remote = constant((ranks - 1 - inside) / (ranks - 1), "share leaving the domain") / scaleout
    if network.off_rail_slowdown is not None:
        remote = remote * (1 + network.off_rail_slowdown)
    local = constant(inside / (ranks - 1), "share inside the domain") / scaleup
    latency_s = BASE_LATENCY_S["ring", "simple"] + HARDWARE_LATENCY_S["net", "ring", "simple"]
    bandwidth = 1 / maximum(remote, local)
    return Curve(latency_s=_nccl(latency_s, network), root=None, rate=scaleout, bandwidth=bandwidth)


def point_to_point_s(payload_bytes: Term | float, network: Interconnect, *, crosses_domain: bool) -> Term:
    """One send and receive, as between pipeline stages."""
    payload = payload_bytes if isinstance(payload_bytes, Term) else leaf(payload_bytes, "payload_bytes")
    hop: Link | Literal["net"] = "net" if crosses_domain else network.link
    share = SCALEOUT_FRACTION if crosses_domain else SCALEUP_FRACTION[network.link]
    name = "scaleout_efficiency_fraction" if crosses_domain else "scaleup_efficiency_fraction"
    link = network.scaleout_bytes_per_s if crosses_domain else network.scaleup_bytes_per_s
    latency_s = BASE_LATENCY_S["ring", "ll"] + HARDWARE_LATENCY_S[hop, "ring", "ll"]
    return (_nccl(latency_s, network) + payload / (link * _assumed(share, name))).named("send_recv_s")


def hierarchical_all_reduce_s(
    payload_bytes: Term | float,
    *,
    servers: int,
    ranks_per_server: int,
    scaleup_bytes_per_s: Term | float,
    scaleout_bytes_per_s: Term | float,
    latency_s: Term | float = 0.0,
) -> Term:
    """Reduce-scatter inside each server, all-reduce of each shard across servers, all-gather inside."""
    payload = payload_bytes if isinstance(payload_bytes, Term) else leaf(payload_bytes, "payload_bytes")
    inside = payload * (2 * (ranks_per_server - 1) / ranks_per_server) / scaleup_bytes_per_s
    across = payload / ranks_per_server * (2 * (servers - 1) / servers) / scaleout_bytes_per_s
    return (latency_s + (inside + across)).named("hierarchical_all_reduce_s")


def _nccl(latency_s: float, network: Interconnect) -> Term:
    source = "NCCL src/graph/tuning.cc @5067397"
    if network.runs_nccl:
        return leaf(latency_s, "nccl_latency_s", kind="calibrated", source=source)
    return leaf(latency_s, "nccl_latency_s", kind="assumption", source=f"{source}, standing in")


def _assumed(value: float, name: str) -> Term:
    source = "share of the link that rings were measured to reach on other systems"
    return leaf(value, name, kind="assumption", source=source)
