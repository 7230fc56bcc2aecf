"""Even splits over equal paths, in machine code, on groups of alike vertices and bundles of alike links.

Graphs are rows of neighbours (`row_start`, `head`), with a way back for each, so that a breadth-first search from
the target gives distances towards it. A vertex gives each link to a nearer vertex the same share (ECMP, hop by hop)
or one in proportion to the shortest paths that lead on from it (even over paths, `by_paths`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from simcore.compiled import compiled, compiled_in_place

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@compiled_in_place
def search(
    target: int,
    row_start: Ints,
    head: Ints,
    distance: Ints,
    order: Ints,
    wanted: Ints,
    stamp: int,
    missing: int,
) -> int:
    """Distances to `target` (-1: no path) and the vertices reached, nearest first; returns how many.

    Stops when the `missing` vertices that are `wanted` under this stamp are found: all nearer ones are by then.
    """
    distance[:] = -1
    distance[target] = 0
    order[0] = target
    count = 1
    at = 0
    missing -= wanted[target] == stamp
    while at < count and missing > 0:
        vertex = order[at]
        at += 1
        for link in range(row_start[vertex], row_start[vertex + 1]):
            other = head[link]
            if distance[other] < 0:
                distance[other] = distance[vertex] + 1
                order[count] = other
                count += 1
                missing -= wanted[other] == stamp
    return count


@compiled_in_place
def marked(first: int, source: Ints, target: Ints, wanted: Ints) -> int:
    """Stamp the sources of all pairs with the target of pair `first`; returns where those pairs end."""
    end = first
    while end < len(source) and target[end] == target[first]:
        wanted[source[end]] = first
        end += 1
    return end


@compiled_in_place
def count_paths(
    count: int,
    order: Ints,
    distance: Ints,
    row_start: Ints,
    head: Ints,
    links: Ints,
    size: Ints,
    paths: Floats,
) -> None:
    """Shortest paths to the target from one vertex of each group."""
    paths[order[0]] = 1.0
    for at in range(1, count):
        group = order[at]
        total = 0.0
        for bundle in range(row_start[group], row_start[group + 1]):
            if distance[head[bundle]] == distance[group] - 1:
                total += links[bundle] * paths[head[bundle]]
        paths[group] = total / size[group]


@compiled_in_place
def onward(group: int, distance: Ints, row_start: Ints, head: Ints, links: Ints, paths: Floats) -> float:
    """Weight of all links from a group to nearer ones."""
    total = 0.0
    for bundle in range(row_start[group], row_start[group + 1]):
        if distance[head[bundle]] == distance[group] - 1:
            total += links[bundle] * paths[head[bundle]]
    return total


@compiled
def pushed(
    source: Ints,
    target: Ints,
    volume: Floats,
    row_start: Ints,
    head: Ints,
    links: Ints,
    size: Ints,
    by_paths: bool,
    unreached: NDArray[np.bool_],
) -> Floats:
    """Volume on each bundle, by class (columns of `volume`); pairs are sorted by target."""
    groups, classes = len(size), volume.shape[1]
    loads = np.zeros((len(head), classes))
    held = np.zeros((groups, classes))
    distance, order = np.empty(groups, np.int64), np.empty(groups, np.int64)
    paths, wanted = np.ones(groups), np.full(groups, -1)
    first = 0
    while first < len(source):
        end = marked(first, source, target, wanted)
        count = search(target[first], row_start, head, distance, order, wanted, first, end - first)
        if by_paths:
            count_paths(count, order, distance, row_start, head, links, size, paths)
        held[:] = 0.0
        for pair in range(first, end):
            if distance[source[pair]] < 0:
                unreached[pair] = True
            else:
                for kind in range(classes):
                    held[source[pair], kind] += volume[pair, kind]
        for at in range(count - 1, 0, -1):
            group = order[at]
            if held[group].sum() > 0.0:
                total = onward(group, distance, row_start, head, links, paths)
                for bundle in range(row_start[group], row_start[group + 1]):
                    other = head[bundle]
                    if distance[other] == distance[group] - 1:
                        share = links[bundle] * paths[other] / total
                        for kind in range(classes):
                            moved = held[group, kind] * share
                            loads[bundle, kind] += moved
                            held[other, kind] += moved
        first = end
    return loads


@compiled
def spread(
    source: Ints,
    target: Ints,
    row_start: Ints,
    head: Ints,
    links: Ints,
    size: Ints,
    by_paths: bool,
) -> tuple[Ints, Ints, Floats]:
    """Bundles that each pair uses, with the share on each, as rows; an empty row where no path leads."""
    groups = len(size)
    distance, order = np.empty(groups, np.int64), np.empty(groups, np.int64)
    queue, held = np.empty(groups, np.int64), np.zeros(groups)
    paths, wanted = np.ones(groups), np.full(groups, -1)
    starts = np.zeros(len(source) + 1, np.int64)
    used, shares = np.empty(1024, np.int64), np.empty(1024)
    filled = end = 0
    for pair in range(len(source)):
        if pair == end:
            end = marked(pair, source, target, wanted)
            count = search(target[pair], row_start, head, distance, order, wanted, pair, end - pair)
            if by_paths:
                count_paths(count, order, distance, row_start, head, links, size, paths)
        queue[0] = source[pair]
        held[source[pair]] = 1.0
        waiting = 1 if distance[source[pair]] >= 0 else 0
        at = 0
        while at < waiting:
            group = queue[at]
            at += 1
            width = row_start[group + 1] - row_start[group]
            if filled + width > len(used):
                used = np.concatenate((used, np.empty(len(used) + width, np.int64)))
                shares = np.concatenate((shares, np.empty(len(shares) + width)))
            total = onward(group, distance, row_start, head, links, paths)
            for bundle in range(row_start[group], row_start[group + 1]):
                other = head[bundle]
                if distance[other] == distance[group] - 1:
                    share = held[group] * links[bundle] * paths[other] / total
                    if held[other] == 0.0:
                        queue[waiting] = other
                        waiting += 1
                    held[other] += share
                    used[filled] = bundle
                    shares[filled] = share
                    filled += 1
            held[group] = 0.0
        held[source[pair]] = 0.0
        starts[pair + 1] = filled
    return starts, used[:filled], shares[:filled]
