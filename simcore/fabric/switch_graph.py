"""Graphs of switches as arrays: distances, shortest paths and how many of them share no link.

A graph is `edges`, an (m, 2) array with each pair of joined switches once, and `links`, how many parallel
links each pair has. Distances come from a breadth-first search of 64 sources at once: a switch holds one bit
per source that has reached it, and a step is the union of its neighbours' bits. Limits: connected graphs.
"""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
_WORD = 64


def merged(pairs: Ints) -> tuple[Ints, Ints]:
    """Each pair once, with the number of its parallel links; `pairs` may repeat and come either way round."""
    if not len(pairs):
        return np.zeros((0, 2), np.int64), np.zeros(0, np.int64)
    low, high = np.sort(pairs, axis=1).T
    width = int(high.max()) + 1
    keys, links = np.unique(low * width + high, return_counts=True)
    return np.stack(np.divmod(keys, width), axis=1), links.astype(np.int64)


def distances(edges: Ints, count: int, sources: Ints) -> NDArray[np.int8]:
    """Switch-to-switch hops from each source (row) to every switch (column)."""
    found = np.zeros((len(sources), count), np.int8)
    if not len(edges):
        return found
    neighbours, starts = _neighbours(edges, count)
    for first in range(0, len(sources), _WORD):
        some = sources[first : first + _WORD]
        reached = np.zeros(count, np.uint64)
        np.bitwise_or.at(reached, some, np.uint64(1) << np.arange(len(some), dtype=np.uint64))
        while not (done := _bits(reached, len(some))).all():
            found[first : first + _WORD] += ~done
            reached |= np.bitwise_or.reduceat(reached[neighbours], starts)
    return found


def shortest_paths(edges: Ints, links: Ints, count: int, source: int) -> tuple[NDArray[np.int8], Ints]:
    """Hops to every switch, and how many shortest paths lead there (parallel links count each)."""
    hops = distances(edges, count, np.array([source]))[0]
    paths = np.zeros(count, np.int64)
    paths[source] = 1
    near, far = np.concatenate([edges, edges[:, ::-1]]).T
    both = np.concatenate([links, links])
    for step in range(1, int(hops.max(initial=0)) + 1):
        onward = (hops[near] == step - 1) & (hops[far] == step)
        np.add.at(paths, far[onward], paths[near[onward]] * both[onward])
    return hops, paths


def disjoint_paths(edges: Ints, links: Ints, count: int, *, source: int, target: int) -> int:
    """The most shortest paths between two switches that share no link: a maximum flow over those paths."""
    there, back = distances(edges, count, np.array([source, target]))
    graph: nx.DiGraph[Any] = nx.DiGraph()
    both = np.concatenate([edges, edges[:, ::-1]])
    on_path = there[both[:, 0]] + back[both[:, 1]] + 1 == there[target]
    for (near, far), capacity in zip(
        both[on_path].tolist(), np.concatenate([links, links])[on_path].tolist(), strict=True
    ):
        graph.add_edge(near, far, capacity=capacity)
    return int(nx.maximum_flow_value(graph, source, target))


def _neighbours(edges: Ints, count: int) -> tuple[Ints, Ints]:
    """All neighbours, switch by switch, and where each switch's begin."""
    near, far = np.concatenate([edges, edges[:, ::-1]]).T
    degrees = np.bincount(near, minlength=count)
    return far[np.argsort(near, kind="stable")], np.cumsum(degrees) - degrees


def _bits(reached: NDArray[np.uint64], sources: int) -> NDArray[np.bool_]:
    """Whether each source (row) has reached each switch (column)."""
    octets = reached.view(np.uint8).reshape(len(reached), -1)
    return np.unpackbits(octets, axis=1, bitorder="little")[:, :sources].astype(np.bool_).T
