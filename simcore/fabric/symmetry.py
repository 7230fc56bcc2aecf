"""Vertices that no sender can tell apart, as one: the coarsest equitable partition with every sender apart.

Two vertices are alike when they have as many links of each capacity to every group of alike vertices (colour
refinement). Traffic that is split evenly over equal links then loads all links between two groups the same, so
routing on the groups is exact: the 1,280 switches of a 3-tier Clos of 32,768 chips are 512 leaves, eight pods of
spines and one group of cores. A failed cable only tells apart what it touches. Source: B. Weisfeiler and A. Leman,
1968; equitable partitions of graphs as in Godsil and Royle, Algebraic Graph Theory, ch. 9.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simcore.streams import stream

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Symmetry:
    """Groups of vertices, and bundles of equal links from one group to another, sorted by group."""

    group_of: Ints  # by vertex
    group_size: Ints
    row_start: Ints  # where each group's bundles begin
    head: Ints  # group that a bundle leads to
    links: Ints  # how many links it holds
    capacity_bytes_per_s: Floats  # of all of them together
    bundle_of: Ints  # by cable direction


def symmetry_of(count: int, senders: Ints, tail: Ints, head: Ints, capacity_bytes_per_s: Floats) -> Symmetry:
    """Groups of `count` vertices; links are sorted by `tail`, and each has one that leads back."""
    capacities, kind = np.unique(capacity_bytes_per_s, return_inverse=True)
    group_of = _refined(_senders_apart(count, senders), tail, head, kind)
    groups = int(group_of.max(initial=-1)) + 1
    key = (group_of[tail] * groups + group_of[head]) * len(capacities) + kind
    found, bundle_of, links = np.unique(key, return_inverse=True, return_counts=True)
    ends = found // max(1, len(capacities))
    starts = np.searchsorted(ends // max(1, groups), np.arange(groups + 1))
    return Symmetry(
        group_of=group_of,
        group_size=np.bincount(group_of, minlength=groups),
        row_start=starts.astype(np.int64),
        head=ends % max(1, groups),
        links=links,
        capacity_bytes_per_s=links * capacities[found % max(1, len(capacities))],
        bundle_of=bundle_of,
    )


def _senders_apart(count: int, senders: Ints) -> Ints:
    """First colours: each vertex with endpoints has its own, all others share one."""
    colours = np.zeros(count, np.int64)
    apart = np.unique(senders)
    colours[apart] = 1 + np.arange(len(apart))
    return np.unique(colours, return_inverse=True)[1]


def _refined(colours: Ints, tail: Ints, head: Ints, kind: Ints) -> Ints:
    """Colours told apart by those of the neighbours until none splits; a set of neighbours is hashed as a sum."""
    if not len(tail):
        return colours
    random = stream(0, "colours of vertices")
    tokens = random.integers(1, 2**63, size=(3, max(len(colours), int(kind.max()) + 1)), dtype=np.uint64)
    starts = np.flatnonzero(np.diff(tail, prepend=-1))
    while True:
        told = tokens[0][colours]
        sums = np.add.reduceat(tokens[1][colours[head]] * (2 * tokens[2][kind] + 1), starts)
        told[tail[starts]] += sums
        refined = np.unique(told, return_inverse=True)[1]
        if refined.max() == colours.max():
            return colours
        colours = refined
