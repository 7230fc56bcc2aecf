"""Dispatch and combine: tokens on their way to the experts of other chips, and back.

Two kernels of DeepEP (MIT) are fitted, and the quicker one is taken for each payload, as engines choose:

    t = latency + doubling · log2(domains) + max(local bytes / (f·scale-up), remote bytes / (f·NIC))

*low latency* sends a row to each of its k experts; *normal* sends it once to every chip, and once to every other
domain, that holds one of them. Bytes are those of the busiest port: the mean times `imbalance`. Where every expert
is sliced over all chips (one group), rows are gathered from all and their sums scattered.
Measured on H100 and H200, 8 to 64 ranks, ConnectX-7 (aiconfigurator-core 0.12.0): mean error 6.8 % (low latency) and
11.5 % (normal; a fifth on four domains). On one domain of B200 and GB200, never fitted: 18 to 30 %, too fast.
What the fabric leaves of a NIC to so many ranks, and its further hops, are those of any all-to-all (`reach.py`).
Limits: nothing overlaps with kernels (two micro-batches in turn would); domains are filled evenly; a token is
sent at its experts' number format and comes back at 16 bit, without the scales of blocks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from simcore.fabric.collectives import Curve, Interconnect, collective_s, collective_times_s
from simcore.why import Term, constant, leaf, maximum, minimum

Phase = Literal["dispatch", "combine"]
PHASES: Final[tuple[Phase, ...]] = ("dispatch", "combine")
_SOURCE: Final = "DeepEP as measured by aiconfigurator-core 0.12.0, fitted on H100 and H200"
_PCIE_FRACTION: Final = 0.4  # of a link that is no NVLink, as rings reach (collectives.py)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeKernel:
    """Fitted constants of one way to exchange rows."""

    name: str
    dispatch_s: float
    combine_s: float
    doubling_s: float  # for each doubling of the domains
    scaleup_fraction: float
    scaleout_fraction: float
    deduplicates: bool

    def latency_s(self, phase: Phase, domains: int) -> float:
        """Without a byte.

        >>> round(1e6 * LOW_LATENCY.latency_s("dispatch", 2), 1)
        17.7
        """
        first = self.dispatch_s if phase == "dispatch" else self.combine_s
        return first + self.doubling_s * math.log2(domains)


LOW_LATENCY: Final = ExchangeKernel(
    name="low_latency", dispatch_s=11.0e-6, combine_s=11.5e-6, doubling_s=6.7e-6, scaleup_fraction=0.525,
    scaleout_fraction=0.926, deduplicates=False,
)  # fmt: skip
NORMAL: Final = ExchangeKernel(
    name="normal", dispatch_s=26.8e-6, combine_s=46.6e-6, doubling_s=31.3e-6, scaleup_fraction=0.610,
    scaleout_fraction=0.585, deduplicates=True,
)  # fmt: skip
KERNELS: Final = (LOW_LATENCY, NORMAL)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpertExchange:
    """Who exchanges what: `ranks` chips in `groups`, each group with its own experts; one row of one token."""

    ranks: int
    groups: int
    chosen: int  # experts of a token
    dispatch_row_bytes: Term
    combine_row_bytes: Term
    network: Interconnect
    imbalance: Term | None = None  # rows of the busiest chip over the mean

    @property
    def inside(self) -> int:
        """Ranks of one domain."""
        return min(self.ranks, self.network.domain_size)

    @property
    def domains(self) -> int:
        return math.ceil(self.ranks / self.inside)

    @property
    def crosses(self) -> bool:
        """Whether rows leave their scale-up domain."""
        return self.domains > 1

    def row_bytes(self, phase: Phase) -> Term:
        return self.dispatch_row_bytes if phase == "dispatch" else self.combine_row_bytes

    def copies(self, kernel: ExchangeKernel) -> tuple[float, float]:
        """How often a row crosses a scale-up link, and a NIC, with balanced routing."""
        slices = self.ranks / self.groups
        if kernel.deduplicates:
            chips = slices * reached(self.groups, self.chosen)
            wide = min(self.groups, self.domains)
            remote = self.domains / wide * reached(wide, self.chosen) * (self.domains - 1) / self.domains
            return chips * (self.inside - 1) / self.inside, remote
        sent = self.chosen * slices / self.ranks
        return sent * (self.inside - 1), sent * (self.ranks - self.inside)


def reached(places: int, chosen: int) -> float:
    """Distinct places that a token's experts lie in, `n (1 − (1 − 1/n)^k)`.

    >>> reached(1, 8), round(reached(8, 8), 2)
    (1.0, 5.25)
    """
    return places * (1.0 - (1.0 - 1.0 / places) ** chosen)


def exchange_s(exchange: ExpertExchange, tokens: Term) -> Term:
    """Dispatch and combine of one expert layer in which every rank sends `tokens`."""
    if exchange.groups == 1:
        payload = (
            constant(float(exchange.ranks), "exchanging_chips") * tokens * exchange.combine_row_bytes
        ).named("payload_bytes", "bytes")
        both = [
            collective_s(operation, payload, exchange.ranks, exchange.network)
            for operation in ("all_gather", "reduce_scatter")
        ]
        return (both[0] + both[1]).named("expert_exchange_s_per_layer", "s")
    found = []
    for phase in PHASES:
        payload = (tokens * exchange.row_bytes(phase)).named("payload_bytes", "bytes")
        ways = [curve.term(payload) for curve in _curves(exchange, phase)]
        found.append(minimum(*ways).named(f"expert_{phase}_s_per_layer", "s"))
    return (found[0] + found[1]).named("expert_exchange_s_per_layer", "s")


def exchange_times_s(exchange: ExpertExchange, tokens: NDArray[np.float64]) -> NDArray[np.float64]:
    """The same for many numbers of tokens at once; no token costs nothing."""
    if exchange.groups == 1:
        payload = exchange.ranks * tokens * exchange.combine_row_bytes.value
        gathered = collective_times_s("all_gather", payload, exchange.ranks, exchange.network)
        return gathered + collective_times_s("reduce_scatter", payload, exchange.ranks, exchange.network)
    whole = np.zeros_like(tokens)
    for phase in PHASES:
        payload = tokens * exchange.row_bytes(phase).value
        whole = whole + np.min([curve.times_s(payload) for curve in _curves(exchange, phase)], axis=0)
    return np.where(tokens > 0, whole, 0.0)


def moved_bytes(exchange: ExpertExchange, tokens: float) -> tuple[float, float]:
    """Bytes that one rank sends over its scale-up link and its NIC, both ways, with this many tokens."""
    if exchange.groups == 1:
        each = 2.0 * exchange.combine_row_bytes.value * tokens
        return each * (exchange.inside - 1), each * (exchange.ranks - exchange.inside)
    local = remote = 0.0
    for phase in PHASES:
        payload = tokens * exchange.row_bytes(phase).value
        times = [float(curve.times_s(np.asarray(payload))) for curve in _curves(exchange, phase)]
        links, nics = exchange.copies(KERNELS[int(np.argmin(times))])
        local, remote = local + links * payload, remote + nics * payload
    return local, remote


def _curves(exchange: ExpertExchange, phase: Phase) -> Sequence[Curve]:
    return [curve_of(exchange, phase, kernel) for kernel in KERNELS]


def curve_of(exchange: ExpertExchange, phase: Phase, kernel: ExchangeKernel) -> Curve:
    """Time over the bytes of one copy of all rows."""
    network = exchange.network
    share = kernel.scaleup_fraction if network.link == "nvlink" else _PCIE_FRACTION
    links = network.scaleup_bytes_per_s * _fitted(share, "scaleup_efficiency_fraction", network)
    local, remote = exchange.copies(kernel)
    slowest = _copies(local, "copies_inside_domain") / links
    if exchange.crosses:
        nics = network.reached_bytes_per_s(exchange.ranks) * _fitted(
            kernel.scaleout_fraction, "scaleout_efficiency_fraction", network
        )
        outside = _copies(remote, "copies_between_domains") / nics
        if network.off_rail_slowdown is not None and not kernel.deduplicates:
            outside = outside * (1 + network.off_rail_slowdown)
        slowest = maximum(slowest, outside)
    if exchange.imbalance is not None:
        slowest = slowest * exchange.imbalance
    latency = _fitted(kernel.latency_s(phase, exchange.domains), f"{kernel.name}_{phase}_latency_s", network)
    further = network.further_hops_s(exchange.ranks) if exchange.crosses else None
    return Curve(
        algorithm="pairwise",
        latency_s=network.latency(latency if further is None else latency + further),
        rate=links,
        bandwidth=(1 / slowest).named(f"{kernel.name}_exchange_bytes_per_s", "bytes_per_s"),
    )


def _copies(count: float, name: str) -> Term:
    return leaf(count, name, kind="derived", source="balanced routing to k experts", dimension="count")


def _fitted(value: float, name: str, network: Interconnect) -> Term:
    if network.runs_nccl and network.link == "nvlink":
        return leaf(value, name, kind="calibrated", source=_SOURCE)
    return leaf(value, name, kind="assumption", source=f"{_SOURCE}, standing in")
