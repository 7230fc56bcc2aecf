"""Requests outstanding by lane, as a tree of minima: the least loaded lane in O(log n).

A binary tree in one array of twice a power of two: entry 1 is the root, lane i stands at `size + i`, and every
node holds the least of what is below it. Places beyond the lanes hold more than any lane.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from simcore.compiled import compiled_in_place

NOBODY: Final = 2**62


def empty_loads(lane_count: int) -> Any:
    """The tree of lanes with nothing to do.

    >>> loads = empty_loads(3)
    >>> note(loads, 0, 2)
    >>> least_loaded(loads, 0), least_loaded(loads, 2)
    (1, 2)
    """
    size = 1 << (lane_count - 1).bit_length()
    loads = np.zeros(2 * size, np.int64)
    loads[size + lane_count :] = NOBODY
    for node in range(size - 1, 0, -1):
        loads[node] = min(loads[2 * node], loads[2 * node + 1])
    return loads


@compiled_in_place
def note(loads: Any, index: int, outstanding: int) -> None:
    """A lane has this many requests outstanding from now on."""
    node = (loads.size >> 1) + index
    loads[node] = outstanding
    while node > 1:
        node >>= 1
        least = min(loads[2 * node], loads[2 * node + 1])
        if loads[node] == least:
            break
        loads[node] = least


@compiled_in_place
def least_loaded(loads: Any, first: int) -> int:
    """The next lane from `first` on, round the circle, that has as little to do as any."""
    size = loads.size >> 1
    least = loads[1]
    node = size + first
    if loads[node] == least:
        return first
    while node > 1:  # up, until something to the right is as small; from the root down where nothing is
        if node & 1 == 0 and loads[node + 1] == least:
            node += 1
            break
        node >>= 1
    while node < size:
        node *= 2
        if loads[node] != least:
            node += 1
    found: int = node - size
    return found
