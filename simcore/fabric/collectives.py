"""What a collective costs: of the curves of `curves.py`, the one that is named, or the cheapest that runs by itself.

`auto` takes what NCCL's tuner has to choose from: inside a domain what was measured there, else a ring; across
domains a ring, or for an all-reduce a tree; an all-to-all has one way. Halving and doubling, the hierarchical
all-reduce and reduction in the switches between servers run where they are asked for by name.
Where measured tables are used, curves inside a domain are scaled to them (`fabric/measured.py`).
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from simcore.catalog.grids import Correction
from simcore.fabric.curves import (
    ENGINE_KERNEL,
    ENGINE_KERNEL_LIMIT_BYTES,
    OPERATIONS,
    SCALEOUT_FRACTION,
    SCALEUP_FRACTION,
    Algorithm,
    Curve,
    Operation,
    across_curves,
    assumed,
    bus_factor,
    fit_at,
    inside_curves,
    measured_curves,
    nccl_latency,
)
from simcore.fabric.interconnect import Interconnect, interconnect
from simcore.fabric.measured import collective_correction
from simcore.fabric.nccl import BASE_LATENCY_S, HARDWARE_LATENCY_S, Link
from simcore.why import Term, constant, leaf, minimum

__all__ = [
    "ENGINE_KERNEL", "ENGINE_KERNEL_LIMIT_BYTES", "OPERATIONS", "Algorithm", "Curve", "Interconnect", "Operation",
    "bus_factor", "collective_s", "collective_times_s", "curves", "every_curve", "fit_at",
    "hierarchical_all_reduce_s", "interconnect", "point_to_point_s",
]  # fmt: skip
Choice = Literal["auto"] | Algorithm
_TUNED: Final[frozenset[Algorithm]] = frozenset({"nccl", "engine", "ring", "tree", "pairwise"})


def collective_s(
    operation: Operation,
    payload_bytes: Term | float,
    ranks: int,
    network: Interconnect,
    *,
    algorithm: Choice = "auto",
) -> Term:
    """Time of one collective, as a tree; 0 for a single rank."""
    name = f"{operation}_s"
    if ranks <= 1:
        return constant(0, name)
    payload = payload_bytes if isinstance(payload_bytes, Term) else leaf(payload_bytes, "payload_bytes")
    moved = payload * constant(bus_factor(operation, ranks), "bus_factor")
    usable = [
        c for c in curves(operation, ranks, network, algorithm=algorithm) if payload.value <= c.limit_bytes
    ]
    assert usable, f"no {operation} runs as {algorithm} on {ranks} ranks here"
    terms = [curve.term(moved.named("bus_bytes")) for curve in usable]
    fitted = (terms[0] if len(terms) == 1 else minimum(*terms)).named(name)
    found = _correction(operation, ranks, network) if algorithm == "auto" else None
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
        network,
        measured=None,
        scaleup_bytes_per_s=constant(network.reference_bytes_per_s, "measured_link"),
        latency_ratio=1.0,
    )
    return collective_correction(
        network.measured,
        operation,
        ranks,
        lambda payload: collective_times_s(operation, payload, ranks, reference),
        engine_limit_bytes=ENGINE_KERNEL_LIMIT_BYTES,
    )


def every_curve(operation: Operation, ranks: int, network: Interconnect) -> list[Curve]:
    """All ways to run it that there are: measured ones first."""
    if ranks > network.domain_size:
        return list(across_curves(operation, ranks, network))
    return [*measured_curves(operation, ranks, network), *inside_curves(operation, ranks, network)]


def curves(
    operation: Operation, ranks: int, network: Interconnect, *, algorithm: Choice = "auto"
) -> list[Curve]:
    """The ways to run it by one algorithm, in its protocols; `auto`: those that a tuner would choose from."""
    if algorithm != "auto":
        return [curve for curve in every_curve(operation, ranks, network) if curve.algorithm == algorithm]
    if ranks > network.domain_size:
        found = list(across_curves(operation, ranks, network))
    else:
        found = measured_curves(operation, ranks, network)
        if any(curve.limit_bytes == math.inf for curve in found):
            return found
        found += [c for c in inside_curves(operation, ranks, network) if c.algorithm in ("ring", "pairwise")]
    return [curve for curve in found if curve.algorithm in _TUNED]


def point_to_point_s(payload_bytes: Term | float, network: Interconnect, *, crosses_domain: bool) -> Term:
    """One send and receive, as between pipeline stages `network.stride` chips apart."""
    payload = payload_bytes if isinstance(payload_bytes, Term) else leaf(payload_bytes, "payload_bytes")
    hop: Link | Literal["net"] = "net" if crosses_domain else network.link
    share = SCALEOUT_FRACTION if crosses_domain else SCALEUP_FRACTION[network.link]
    name = "scaleout_efficiency_fraction" if crosses_domain else "scaleup_efficiency_fraction"
    link = network.reached_bytes_per_s(2) if crosses_domain else network.scaleup_bytes_per_s
    latency = nccl_latency(BASE_LATENCY_S["ring", "ll"] + HARDWARE_LATENCY_S[hop, "ring", "ll"], network)
    further = network.further_hops_s(2) if crosses_domain else None
    if further is not None:
        latency = latency + further
    return (network.latency(latency) + payload / (link * assumed(share, name))).named("send_recv_s")


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
