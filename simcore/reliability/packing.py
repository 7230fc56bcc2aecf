"""The compiled inner loop of static slices: boxes of healthy cubes, packed greedily into each draw.

A draw says which cubes are up. The boxes are tried in the order in which they are listed, and a box whose
cubes are all up and free is taken: the packing is maximal (no further box fits), not the largest there is.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from simcore.compiled import compiled_in_place


@compiled_in_place
def pack(free: NDArray[np.bool_], boxes: NDArray[np.int32], counts: NDArray[np.int64]) -> None:
    """Count the boxes taken in each draw; `free[draw, cube]` is used up, `boxes[box]` lists a box's cubes."""
    volume = boxes.shape[1]
    for draw in range(free.shape[0]):
        taken = 0
        for box in range(boxes.shape[0]):
            fits = True
            for place in range(volume):
                if not free[draw, boxes[box, place]]:
                    fits = False
                    break
            if fits:
                taken += 1
                for place in range(volume):
                    free[draw, boxes[box, place]] = False
        counts[draw] = taken
