"""Groups of chips on a torus: the box that they fill, the links it gives them, and what an all-to-all gets.

A dimension that the box fills closes into a ring, whose chips use both their links; along a part of a dimension
(or one of size two) an end has one link, and the bytes of all pass it: half the bandwidth. So a ring collective, one
dimension after the other with all dimensions busy, reaches `links used ÷ links of a chip` of the scale-up rate.
An all-to-all of W per chip sends W·n/4 across a cut: at most `8 ÷ size` links' worth per chip along a ring and
`4 ÷ size` along a line, and over the whole torus at most the scale-up rate over the mean distance, which is what a
twist shortens.
Limits: a group has its box to itself; one whose chips stand apart is given the box that it would fill.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from simcore.fabric.base import Fabric
from simcore.fabric.lattice import best_shape


@dataclass(frozen=True, slots=True)
class Box:
    """Sizes of a group along the dimensions of its torus."""

    sizes: tuple[int, ...]
    torus: tuple[int, ...]

    @property
    def ring_steps(self) -> int:
        """Steps of rings along each dimension in turn."""
        return sum(size - 1 for size in self.sizes)

    @property
    def ring_share(self) -> float:
        """Of a chip's scale-up bandwidth, what rings along all dimensions use."""
        used = sum(self._links(size, whole) for size, whole in zip(self.sizes, self.torus, strict=True))
        return used / (2 * len(self.torus))

    @property
    def all_to_all_share(self) -> float:
        """Of a chip's scale-up bandwidth, for the bytes that leave it."""
        ranks = math.prod(self.sizes)
        cuts = [
            4 * self._links(size, whole) / size
            for size, whole in zip(self.sizes, self.torus, strict=True)
            if size > 1
        ]
        return min(1.0, min(cuts) * (ranks - 1) / ranks / (2 * len(self.torus)))

    @staticmethod
    def _links(size: int, whole: int) -> int:
        if size == 1:
            return 0
        return 2 if size == whole and size > 2 else 1


def torus_shape(fabric: Fabric) -> tuple[int, ...]:
    """Chips along each dimension where chips are joined by their own links; empty elsewhere."""
    if fabric.tiers or not fabric.segments:
        return ()
    # a mesh is part of a torus in which none of its dimensions closes
    return fabric.shape or tuple(size + 1 for size in best_shape(fabric.chip_count, 3))


@lru_cache(maxsize=4096)
def box_of(ranks: int, torus: tuple[int, ...]) -> Box:
    """The box of so many chips with most links, and the fewest steps among those; a line of odd ends where none
    fits."""
    options = [Box(sizes, torus) for sizes in _sizes(ranks, torus)]
    if not options:
        return Box(best_shape(ranks, len(torus)), torus)
    return max(options, key=lambda box: (box.ring_share, -box.ring_steps, box.sizes))


def _sizes(ranks: int, torus: tuple[int, ...]) -> list[tuple[int, ...]]:
    if not torus:
        return [()] if ranks == 1 else []
    return [
        (size, *rest)
        for size in range(1, min(ranks, torus[0]) + 1)
        if ranks % size == 0
        for rest in _sizes(ranks // size, torus[1:])
    ]


def all_to_all_share(ranks: int, torus: tuple[int, ...], fabric: Fabric | None) -> float:
    """The share of the box, or of the torus as it is wired where the group has all of it."""
    if fabric is None or ranks != fabric.chip_count or not fabric.mean_hops:
        return box_of(ranks, torus).all_to_all_share
    scaleup = fabric.link_bytes_per_s * 2 * len(torus)
    cut = 4 * fabric.bisection_bytes_per_s / (ranks * scaleup) * (ranks - 1) / ranks
    return min(1.0, cut, 1 / fabric.mean_hops)
