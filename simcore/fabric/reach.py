"""What groups of ranks meet on their way through a built fabric: how far apart they stand, what is left of a NIC.

A group lies as close together as it can: the pairs under one switch first, then those of the next layer. How
many endpoints each layer joins follows from the fabric's own hop histogram, so a new topology needs nothing here.
Inside what it spans, its domains stand in no particular order, as schedulers leave them, and all groups of the
fabric are taken to run at once. Then the bytes that leave a domain take

    max(1, share of pairs beyond a layer ÷ links of that layer per endpoint link)

times what the NIC alone would take. Layers of a folded Clos are its segments. A direct network has two bounds:
bytes beyond the first link between switches share the bisection (four times its rate per endpoint, as half of an
all-to-all crosses it one way), and each byte spends as many switch links as it passes.
Degraded links and switches leave less of a layer (`weakened.py`).
Latency: NCCL's constants are taken to hold the trip through one switch; every further link costs `HOP_LATENCY_S`,
measured on InfiniBand across leaves (leaf, spine, leaf) less within one.
Limits: traffic spreads evenly over equal paths (no hash collisions); links of a group that is not whole are means.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from simcore.fabric.base import Fabric
from simcore.fabric.hops import Histogram, pairs_within
from simcore.fabric.weakened import left_of

# 3.7 µs across leaves less 2.8 µs within one, over two further switches (arXiv 2505.09343, table 5, InfiniBand).
HOP_LATENCY_S: Final = 0.45e-6
HOP_SOURCE: Final = "InfiniBand across leaves less within one, DeepSeek-V3 at ISCA 2025, per further switch"
ONE_SWITCH: Final = 2  # links of the shortest path through the network
_FIRST_LINK: Final = 3  # links of a path over one link between switches


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """The fabric as groups of chips see it."""

    fabric: Fabric

    def slowdown(self, chips: int) -> float:
        """Time of bytes that leave their domain, over what the NIC alone would take."""
        if not self.fabric.tiers:
            return 1.0
        distances = self._distances(chips)
        layers = self._tapers(distances) if self.fabric.planes else self._direct(distances)
        return max(1.0 / left_of(self.fabric).nic_fraction, *layers, 1.0)

    def further_hops(self, chips: int) -> float:
        """Mean links beyond those of a path through one switch, between chips of different domains."""
        return math.fsum((hops - ONE_SWITCH) * share for hops, share in self._distances(chips))

    def _distances(self, chips: int) -> Histogram:
        """Shares of the group's pairs that leave their domain, by links."""
        fabric = self.fabric
        each = fabric.endpoint_count / fabric.chip_count
        island = math.ceil(fabric.island_size * each)
        count = min(math.ceil(chips * each), island)
        # paths of a folded Clos have an even number of links; an odd one is forwarding inside a domain
        step = 2 if fabric.planes else 1
        joined: dict[int, float] = {}
        within = 0.0
        for hops, fraction in fabric.hop_histogram:
            within += fraction
            joined[hops - hops % step if hops > 1 else 1] = within
        found, inner = {}, 0
        for hops, share in joined.items():
            pairs = max(inner, pairs_within(count, 1 + round(share * (island - 1))))
            found[hops], inner = pairs - inner, pairs
        remote = sum(pairs for hops, pairs in found.items() if hops >= ONE_SWITCH)
        return tuple((hops, pairs / remote) for hops, pairs in found.items() if hops >= ONE_SWITCH and pairs)

    def _tapers(self, distances: Histogram) -> list[float]:
        """By layer of a folded Clos: what crosses it, over its links per endpoint link."""
        links, left = [segment.link_count for segment in self.fabric.segments], left_of(self.fabric)
        return [
            _beyond(distances, 2 * layer + 1) * links[0] / (upper * left.of_layer(layer - 1))
            for layer, upper in enumerate(links[1:], start=1)
        ]

    def _direct(self, distances: Histogram) -> list[float]:
        fabric, left = self.fabric, left_of(self.fabric).of_layer(0)
        endpoints = fabric.endpoint_count
        between = sum(segment.link_count for segment in fabric.segments if segment.lower != "chip")
        cut = 4 * fabric.bisection_bytes_per_s / (endpoints * fabric.link_bytes_per_s)
        spent = math.fsum((hops - ONE_SWITCH) * share for hops, share in distances)
        return [
            _beyond(distances, _FIRST_LINK) / (cut * left) if cut else 1.0,
            spent * endpoints / (2 * between * left) if between else 1.0,
        ]


def _beyond(distances: Histogram, links: int) -> float:
    return math.fsum(share for hops, share in distances if hops > links)
