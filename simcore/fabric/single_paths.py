"""Single paths hop by hop, in machine code: by a hash, over the least loaded link, or along the lowest axis.

At each vertex a flow takes one link to a vertex that is nearer to its target. *Hashed* (ECMP as switches do it): a
hash of the flow and of the switch chooses among the equal links, so some get more flows than others. *Adaptive*:
the least loaded of them for its rate, flow after flow. *Lowest axis*: dimension order on a lattice; half-way round
a ring, where both directions are as short, vertices take them in turn.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from simcore.compiled import compiled, compiled_in_place
from simcore.fabric.even_split import search

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
HASHED: Final = 0
ADAPTIVE: Final = 1
LOWEST_AXIS: Final = 2
_MASK: Final = (1 << 31) - 1
_DRAWS: Final = 24  # draws among a switch's ports before its candidates are counted
_FEW: Final = 16  # ports that are sooner counted than drawn from


@compiled
def distances(targets: Ints, row_start: Ints, head: Ints, groups: int) -> NDArray[np.int16]:
    """Distance of every group (columns) to each target (rows); -1 where there is no path."""
    found = np.empty((len(targets), groups), np.int16)
    distance, order = np.empty(groups, np.int64), np.empty(groups, np.int64)
    everyone = np.full(groups, -1)
    for row in range(len(targets)):
        search(targets[row], row_start, head, distance, order, everyone, -1, groups)
        for group in range(groups):
            found[row, group] = distance[group]
    return found


@compiled_in_place
def mixed(value: int) -> int:
    """A hash of 31 bits whose products stay below 2⁶³: the same in machine code and in plain Python."""
    value = ((value ^ (value >> 16)) * 0x21F0AAAD) & _MASK
    value = ((value ^ (value >> 15)) * 0x735A2D97) & _MASK
    return value ^ (value >> 15)


@compiled_in_place
def by_hash(vertex: int, key: int, nearer: int, near: NDArray[np.int16], row_start: Ints, head: Ints) -> int:
    """One of the links from `vertex` to groups at distance `nearer`, each as likely; `near` is by vertex."""
    start = row_start[vertex]
    width = row_start[vertex + 1] - start
    draw = mixed(int(key) ^ mixed(int(vertex) + 1))
    if width > _FEW and nearer > 0:
        for _ in range(_DRAWS):
            link = start + draw % width
            if near[head[link]] == nearer:
                return int(link)
            draw = mixed(draw + 1)
    count = 0
    for link in range(start, start + width):
        count += near[head[link]] == nearer
    chosen = draw % count
    for link in range(start, start + width):
        if near[head[link]] == nearer:
            if chosen == 0:
                return link
            chosen -= 1
    return -1


@compiled_in_place
def least_loaded(
    vertex: int, key: int, nearer: int, near: NDArray[np.int16], row_start: Ints, head: Ints, loads_s: Floats
) -> int:
    """The link from `vertex` to a nearer one that would be free first; of equal ones the next after a hash."""
    start = row_start[vertex]
    width = row_start[vertex + 1] - start
    turn = mixed(int(key) ^ mixed(int(vertex) + 1)) % width
    best = -1
    for step in range(width):
        link = start + (turn + step) % width
        if near[head[link]] == nearer and (best < 0 or loads_s[link] < loads_s[best]):
            best = link
    return best


@compiled_in_place
def lowest_axis(
    vertex: int, nearer: int, near: NDArray[np.int16], row_start: Ints, head: Ints, layer: Ints, turn: Ints
) -> int:
    """The first link to a nearer vertex; of two along one axis by the vertex's turn."""
    first = -1
    for link in range(row_start[vertex], row_start[vertex + 1]):
        if near[head[link]] == nearer:
            if first < 0:
                first = link
            elif layer[link] // 2 == layer[first] // 2:
                return link if turn[vertex] else first
            else:
                return first
    return first


@compiled
def walked(
    choice: int,
    order: Ints,
    source: Ints,
    target_row: Ints,
    key: Ints,
    moved_bytes: Floats,
    near: NDArray[np.int16],
    row_start: Ints,
    head: Ints,
    layer: Ints,
    turn: Ints,
    capacity_bytes_per_s: Floats,
    path_start: Ints,
) -> Ints:
    """Links of every flow's path, in rows that `path_start` gives; flows choose in `order`."""
    path = np.empty(path_start[-1], np.int64)
    loads_s = np.zeros(len(head))
    for at in range(len(order)):
        flow = order[at]
        vertex = source[flow]
        row = near[target_row[flow]]
        for place in range(path_start[flow], path_start[flow + 1]):
            nearer = row[vertex] - 1
            if choice == HASHED:
                link = by_hash(vertex, key[flow], nearer, row, row_start, head)
            elif choice == ADAPTIVE:
                link = least_loaded(vertex, key[flow], nearer, row, row_start, head, loads_s)
                loads_s[link] += moved_bytes[flow] / capacity_bytes_per_s[link]
            else:
                link = lowest_axis(vertex, nearer, row, row_start, head, layer, turn)
            path[place] = link
            vertex = head[link]
    return path
