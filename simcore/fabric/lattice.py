"""Counting on tori, shared by `torus` and `ocs_pod`: links, distances, bisection, shapes."""

from __future__ import annotations

import itertools
import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from simcore.fabric.base import Site
from simcore.fabric.hops import Histogram
from simcore.fabric.switch_graph import Ints
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


def bisection_links(chips: Term, shape: tuple[int, ...], *, twisted: bool = False) -> Term:
    """Links that a cut across a dimension meets, two per ring: across the longest, or the shortest if twisted."""
    across = min(shape) if twisted else max(shape)
    if across == 1:
        return constant(0, "one chip")
    crossings = 2 if across > 2 else 1
    name = "shortest_dimension" if twisted else "longest_dimension"
    size = leaf(across, name, kind="derived", source="the shape of the torus")
    return (crossings * chips / size).named("cut_links")


def onward(shape: tuple[int, ...], axis: int, *, twisted: bool = False) -> Ints:
    """The next chip along an axis for every chip, around the end too, as an array of that shape.

    On a twisted torus, whoever passes the end of a short dimension of n is shifted by n along every long one of 2n.
    """
    place = np.arange(math.prod(shape)).reshape(shape)
    ahead = np.roll(place, -1, axis)
    if twisted and shape[axis] == min(shape):
        end = tuple(slice(-1, None) if index == axis else slice(None) for index in range(len(shape)))
        longs = tuple(index for index, size in enumerate(shape) if size == max(shape))
        ahead[end] = np.roll(ahead[end], [-min(shape)] * len(longs), longs)
    return ahead


def ring_distances(size: int) -> NDArray[np.float64]:
    """How many of a ring's members are 0, 1, 2, … hops away from one of them."""
    counts = np.zeros(size // 2 + 1)
    for step in range(size):
        counts[min(step, size - step)] += 1
    return counts


def torus_histogram(shape: tuple[int, ...], *, twisted: bool = False) -> Histogram:
    """Shares of ordered pairs of distinct chips by hops: the rings' distances convolved, or all from one chip."""
    counts = np.ones(1)
    if twisted:
        counts = np.bincount(twisted_paths(shape)[0]).astype(float)
    else:
        for size in shape:
            counts = np.convolve(counts, ring_distances(size))
    others = math.prod(shape) - 1
    pairs = itertools.islice(enumerate(counts), 1, None)
    return tuple((hops, float(count) / others) for hops, count in pairs if count > 0)


@lru_cache(maxsize=16)
def twisted_paths(shape: tuple[int, ...]) -> tuple[Ints, Ints]:
    """Hops from one chip, which stands for all, to every other, and how many shortest paths lead there."""
    steps = _steps(shape)
    hops, paths = np.full(math.prod(shape), -1), np.zeros(math.prod(shape), np.int64)
    hops[0], paths[0] = 0, 1
    frontier = np.zeros(1, np.int64)
    while len(frontier):
        before = hops >= 0
        for step in steps:
            np.add.at(paths, step[frontier], np.where(before[step[frontier]], 0, paths[frontier]))
            fresh = step[frontier][~before[step[frontier]]]
            hops[fresh] = hops[frontier[0]] + 1
        frontier = np.flatnonzero((hops >= 0) & ~before)
    return hops, paths


def path_terms(shape: tuple[int, ...], *, closes: bool = True, twisted: bool = False) -> tuple[Term, Term]:
    """Shortest paths between two chips as far apart as can be, all and disjoint.

    Steps along the dimensions come in any order, and half-way round an even ring in either direction.
    """
    if twisted:
        return _twisted_terms(shape)
    sizes = [size for size in shape if size > 1]
    steps = [size // 2 if closes and size > 2 else size - 1 for size in sizes]
    both_ways = sum(closes and size > 2 and size % 2 == 0 for size in sizes)
    orders = math.factorial(sum(steps)) // math.prod(map(math.factorial, steps))
    return (
        leaf(
            2**both_ways * orders, "path_count", kind="derived", source="orders of the steps along dimensions"
        ),
        leaf(
            max(1, len(sizes) + both_ways),
            "disjoint_path_count",
            kind="derived",
            source="first steps to choose from",
        ),
    )


def _twisted_terms(shape: tuple[int, ...]) -> tuple[Term, Term]:
    """To the far chip that has the fewest paths; as many of them are disjoint as have a last step of their own."""
    hops, paths = twisted_paths(shape)
    far = np.flatnonzero(hops == hops.max())
    target = int(far[np.argmin(paths[far])])
    before = [int(step[target]) for step in _steps(shape)]
    return (
        leaf(int(paths[target]), "path_count", kind="derived", source="counted on the twisted torus"),
        leaf(
            int((hops[before] == hops[target] - 1).sum()),
            "disjoint_path_count",
            kind="derived",
            source="last steps to choose from",
        ),
    )


def _steps(shape: tuple[int, ...]) -> list[Ints]:
    """The next chip along each axis of a twisted torus, onward and back."""
    ahead = [onward(shape, axis, twisted=True).ravel() for axis in range(len(shape))]
    return [*ahead, *(np.argsort(each) for each in ahead)]
