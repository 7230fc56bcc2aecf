"""Rows of resources by flow, assembled in machine code: its ports and NICs, then the row of its way between."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from simcore.compiled import compiled

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@compiled
def assembled(
    ends: Ints, first: Ints, way_of: Ints, way_start: Ints, way: Ints, way_share: Floats
) -> tuple[Ints, Ints, Floats]:
    """`ends` by kind (rows) and flow, numbered within its kind from `first`; `way_of` -1: no way between."""
    flows = len(way_of)
    starts = np.zeros(flows + 1, np.int64)
    for flow in range(flows):
        count = 0
        for kind in range(len(first)):
            count += ends[kind, flow] >= 0
        if way_of[flow] >= 0:
            count += way_start[way_of[flow] + 1] - way_start[way_of[flow]]
        starts[flow + 1] = starts[flow] + count
    resource, share = np.empty(starts[-1], np.int64), np.ones(starts[-1])
    for flow in range(flows):
        at = starts[flow]
        for kind in range(len(first)):
            if ends[kind, flow] >= 0:
                resource[at] = first[kind] + ends[kind, flow]
                at += 1
        if way_of[flow] >= 0:
            for place in range(way_start[way_of[flow]], way_start[way_of[flow] + 1]):
                resource[at] = way[place]
                share[at] = way_share[place]
                at += 1
    return starts, resource, share
