"""Counting on tori, shared by `torus` and `ocs_pod`: links, distances, bisection, shapes."""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.typing import NDArray

from simcore.fabric.base import Site
from simcore.fabric.hops import Histogram
from simcore.why import Term, constant, leaf


def best_shape(count: int, dimensions: int) -> tuple[int, ...]:
    """The most cubic shape: the least sum of sizes; long dimensions last.

    >>> best_shape(4096, 3), best_shape(128, 3)
    ((16, 16, 16), (4, 4, 8))
    """
    return min(_shapes(count, dimensions), key=lambda shape: (sum(shape), shape))


def _shapes(count: int, dimensions: int) -> list[tuple[int, ...]]:
    if dimensions == 1:
        return [(count,)]
    divisors = [d for d in range(1, math.isqrt(count) + 1) if count % d == 0]
    divisors += [count // d for d in divisors]
    return [
        tuple(sorted((first, *rest)))
        for first in set(divisors)
        for rest in _shapes(count // first, dimensions - 1)
    ]


def link_terms(site: Site, shape: tuple[int, ...]) -> tuple[Term, ...]:
    """Links along each dimension: a ring has as many as chips, a pair half as many."""
    chips = leaf(site.chip_count, "chip_count", path="hardware.chip_count")
    per_chip = {1: 0.0, 2: 0.5}
    return tuple(chips * per_chip.get(size, 1.0) for size in shape if size > 1)


def link_rate(site: Site, dimensions: int) -> Term:
    """One link of a chip: its scale-up bandwidth over two links per dimension."""
    rate = site.scaleup_bytes_per_s or site.nic_bytes_per_s
    scaleup = leaf(rate, "scaleup_bytes_per_s", kind="catalog", source="chip")
    return (scaleup / (2 * dimensions)).named("link_bytes_per_s")


def bisection_links(site: Site, shape: tuple[int, ...]) -> Term:
    """Links that a cut through the longest dimension meets: two per ring."""
    longest = max(shape)
    chips = leaf(site.chip_count, "chip_count", path="hardware.chip_count")
    if longest == 1:
        return constant(0, "one chip")
    crossings = 2 if longest > 2 else 1
    return (crossings * chips / leaf(longest, "longest_dimension", path="topology.shape")).named("cut_links")


def ring_distances(size: int) -> NDArray[np.float64]:
    """How many of a ring's members are 0, 1, 2, … hops away from one of them."""
    counts = np.zeros(size // 2 + 1)
    for step in range(size):
        counts[min(step, size - step)] += 1
    return counts


def torus_histogram(shape: tuple[int, ...]) -> Histogram:
    """Shares of ordered pairs of distinct chips by hops: the rings' distances convolved."""
    counts = np.ones(1)
    for size in shape:
        counts = np.convolve(counts, ring_distances(size))
    others = math.prod(shape) - 1
    pairs = itertools.islice(enumerate(counts), 1, None)
    return tuple((hops, float(count) / others) for hops, count in pairs if count > 0)
