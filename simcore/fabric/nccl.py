"""NCCL's own latency model: the constants of its tuner, and the latencies that follow from them.

Read from NVIDIA/nccl `src/graph/tuning.cc` @5067397 (2026-06). A ring of n ranks on m servers takes
`base + (steps − inter)·intra + inter·net`, with `steps = 2(n−1)` for all-reduce (n−1 for all-gather and
reduce-scatter) and `inter = 2(m−1)` (m−1); inside several servers a step is never shorter than the
network's launch overhead (1 µs, three times that for the Simple protocol). A tree all-reduce takes
`base + 2·((n/m − 1)·intra + log2(m)·net)`. Protocol LL carries flags with the data: half the bandwidth, and
between servers at most what its stores were measured to reach, by generation of chip.
Reduction in the switches (NVLS, with SHARP between servers) takes `intra + net`.
Two ways that NCCL does not choose are counted from the same constants: halving and doubling, `2·(log2(n/m)·intra +
log2(m)·net)`, and the hierarchical all-reduce, rings inside servers and one of a rank of each between them.
"""

from __future__ import annotations

import math
from typing import Final, Literal

Family = Literal["ring", "tree"]
Protocol = Literal["ll", "simple"]
Link = Literal["nvlink", "pcie"]

NET_OVERHEAD_S: Final = 1e-6
BASE_LATENCY_S: Final[dict[tuple[Family, Protocol], float]] = {
    ("tree", "ll"): 6.8e-6,
    ("tree", "simple"): 8.4e-6,
    ("ring", "ll"): 6.6e-6,
    ("ring", "simple"): 8.4e-6,
}
HARDWARE_LATENCY_S: Final[dict[tuple[Link | Literal["net"], Family, Protocol], float]] = {
    ("nvlink", "tree", "ll"): 0.6e-6,
    ("nvlink", "tree", "simple"): 4.0e-6,
    ("nvlink", "ring", "ll"): 0.6e-6,
    ("nvlink", "ring", "simple"): 3.4e-6,
    ("pcie", "tree", "ll"): 1.0e-6,
    ("pcie", "tree", "simple"): 4.0e-6,
    ("pcie", "ring", "ll"): 1.0e-6,
    ("pcie", "ring", "simple"): 5.7e-6,
    ("net", "tree", "ll"): 5.0e-6,
    ("net", "tree", "simple"): 14.0e-6,
    ("net", "ring", "ll"): 2.7e-6,
    ("net", "ring", "simple"): 14.0e-6,
}
PROTOCOL_BANDWIDTH_FRACTION: Final[dict[Protocol, float]] = {"ll": 0.5, "simple": 1.0}
TREE_BANDWIDTH_FRACTION: Final = 0.92
# of LL on two servers, and on more; by the year from which chips are of that generation (Volta to Blackwell)
LL_LIMIT_BYTES_PER_S: Final = {
    2017: (39.0e9, 20.4e9),
    2020: (22.5e9, 19.0e9),
    2022: (45.0e9, 35.0e9),
    2024: (90.0e9, 70.0e9),
}
IN_NETWORK_LATENCY_S: Final[dict[Literal["nvlink", "net"], float]] = {"nvlink": 25.0e-6, "net": 18.0e-6}
# 8×H200: 480.0 GB/s with NVLS over 367.2 on the ring (stas00/ml-engineering @744d01e); the ideal is 2(n−1)/n.
IN_NETWORK_GAIN: Final = 1.31


def ring_latency_s(
    protocol: Protocol, ranks: int, *, servers: int = 1, link: Link = "nvlink", all_reduce: bool = True
) -> float:
    """Latency of a ring collective.

    >>> round(ring_latency_s("simple", 8) * 1e6, 1), round(ring_latency_s("ll", 8) * 1e6, 1)
    (56.0, 15.0)
    """
    passes = 2 if all_reduce else 1
    steps, inter = passes * (ranks - 1), passes * (servers - 1)
    intra_s = HARDWARE_LATENCY_S[link, "ring", protocol]
    if servers > 1:
        intra_s = max(intra_s, NET_OVERHEAD_S * (3 if protocol == "simple" else 1))
    net_s = HARDWARE_LATENCY_S["net", "ring", protocol]
    return BASE_LATENCY_S["ring", protocol] + (steps - inter) * intra_s + inter * net_s


def tree_latency_s(protocol: Protocol, ranks: int, *, servers: int, link: Link = "nvlink") -> float:
    """Latency of a tree all-reduce.

    >>> round(tree_latency_s("simple", 64, servers=8) * 1e6, 1)
    148.4
    """
    intra_s = HARDWARE_LATENCY_S[link, "tree", protocol]
    net_s = HARDWARE_LATENCY_S["net", "tree", protocol]
    return BASE_LATENCY_S["tree", protocol] + 2 * (
        (ranks / servers - 1) * intra_s + doublings(servers) * net_s
    )


def ll_limit_bytes_per_s(year: int, *, servers: int) -> float:
    """The most that LL reaches between servers of chips of that year; older ones as the oldest known.

    >>> ll_limit_bytes_per_s(2023, servers=2) / 1e9, ll_limit_bytes_per_s(2020, servers=8) / 1e9
    (45.0, 19.0)
    """
    generation = max((first for first in LL_LIMIT_BYTES_PER_S if first <= year), default=2017)
    two, more = LL_LIMIT_BYTES_PER_S[generation]
    return two if servers <= 2 else more


def in_network_latency_s(*, servers: int) -> float:
    """Latency of an all-reduce in the switches."""
    return IN_NETWORK_LATENCY_S["nvlink"] + (IN_NETWORK_LATENCY_S["net"] if servers > 1 else 0.0)


def halving_doubling_latency_s(
    protocol: Protocol, ranks: int, *, servers: int = 1, link: Link = "nvlink", all_reduce: bool = True
) -> float:
    """Latency of exchanges with a partner twice as far at each step.

    >>> round(halving_doubling_latency_s("simple", 8) * 1e6, 1)
    28.8
    """
    passes = 2 if all_reduce else 1
    inside_s = doublings(ranks // servers) * HARDWARE_LATENCY_S[link, "ring", protocol]
    across_s = doublings(servers) * HARDWARE_LATENCY_S["net", "ring", protocol]
    return BASE_LATENCY_S["ring", protocol] + passes * (inside_s + across_s)


def hierarchical_latency_s(
    protocol: Protocol, ranks: int, *, servers: int, link: Link = "nvlink", all_reduce: bool = True
) -> float:
    """Latency of rings inside each server and between servers."""
    passes = 2 if all_reduce else 1
    inside_s = (ranks // servers - 1) * HARDWARE_LATENCY_S[link, "ring", protocol]
    across_s = (servers - 1) * HARDWARE_LATENCY_S["net", "ring", protocol]
    return BASE_LATENCY_S["ring", protocol] + passes * (inside_s + across_s)


def doublings(count: int) -> int:
    """Steps until so many have exchanged, each with a partner.

    >>> doublings(1), doublings(8), doublings(9)
    (0, 3, 4)
    """
    return math.ceil(math.log2(count)) if count > 1 else 0
