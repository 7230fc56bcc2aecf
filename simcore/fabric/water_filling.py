"""Max-min fair rates by filling all flows alike until a link is full, in machine code.

A flow's rate is its weight times the level at which the first of its links fills; a link's level is what is left of
its capacity over the weights of the flows that still grow on it. Frozen flows never lower another link's level, so
a heap of levels may be lazy: a link that comes up with a level that has risen since goes back with the new one.
Source: D. Bertsekas and R. Gallager, Data Networks, 2nd ed., sec. 6.5.2. Cost: pairs of flow and link, plus
links × log(links).
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from simcore.compiled import compiled, compiled_in_place

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
_ROUNDING: Final = 1e-12


@compiled
def transposed(row_start: Ints, resource: Ints, resource_count: int) -> tuple[Ints, Ints]:
    """Places in the rows by resource: (where each resource's begin, the flow at each place)."""
    starts = np.zeros(resource_count + 1, np.int64)
    for place in range(len(resource)):
        starts[resource[place] + 1] += 1
    for index in range(resource_count):
        starts[index + 1] += starts[index]
    at = starts[:-1].copy()
    flow_of = np.empty(len(resource), np.int64)
    for flow in range(len(row_start) - 1):
        for place in range(row_start[flow], row_start[flow + 1]):
            flow_of[at[resource[place]]] = flow
            at[resource[place]] += 1
    return starts, flow_of


@compiled_in_place
def sift_down(levels: Floats, links: Ints, size: int, at: int) -> None:
    """Restore a heap (least level on top) whose entry `at` may be too large for its place."""
    level, link = levels[at], links[at]
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and levels[child + 1] < levels[child]:
            child += 1
        if levels[child] >= level:
            break
        levels[at] = levels[child]
        links[at] = links[child]
        at = child
    levels[at] = level
    links[at] = link


@compiled
def fill(
    row_start: Ints,
    resource: Ints,
    share: Floats,
    starts: Ints,
    flow_of: Ints,
    weight: Floats,
    growing: Bools,
    spare: Floats,
    rate: Floats,
) -> None:
    """Raise the rates of all `growing` flows from 0 to their max-min share of `spare`; takes from both arrays."""
    count = len(spare)
    pull, users = np.zeros(count), np.zeros(count, np.int64)
    for flow in range(len(weight)):
        if growing[flow]:
            for place in range(row_start[flow], row_start[flow + 1]):
                pull[resource[place]] += weight[flow] * share[place]
                users[resource[place]] += 1
    levels, links = np.empty(count), np.empty(count, np.int64)
    size = 0
    for link in range(count):
        if users[link] > 0:
            levels[size] = spare[link] / pull[link]
            links[size] = link
            size += 1
    for at in range(size // 2 - 1, -1, -1):
        sift_down(levels, links, size, at)
    while size > 0:
        link = links[0]
        level = max(0.0, spare[link]) / pull[link] if users[link] > 0 else np.inf
        if users[link] > 0 and level > levels[0] * (1.0 + _ROUNDING):
            levels[0] = level
        else:
            for index in range(starts[link], starts[link + 1]):
                flow = flow_of[index]
                if users[link] > 0 and growing[flow]:
                    growing[flow] = False
                    rate[flow] = level * weight[flow]
                    for place in range(row_start[flow], row_start[flow + 1]):
                        other = resource[place]
                        spare[other] -= rate[flow] * share[place]
                        pull[other] -= weight[flow] * share[place]
                        users[other] -= 1
            size -= 1
            levels[0] = levels[size]
            links[0] = links[size]
        sift_down(levels, links, size, 0)
