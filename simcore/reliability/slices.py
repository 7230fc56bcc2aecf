"""Static slices in any contiguous box: what a torus that is wired once still holds, by Monte Carlo.

The cubes stand in the most cubic grid with wrap-around (4×4×4 for 64). A slice of s cubes takes the smallest
box of at least s cubes that fits the grid, the most cubic of these, in any of its orientations and at any
place. Each draw has each cube up with `A^hosts`; healthy boxes are packed greedily, those of the aligned
partition first, so that a draw holds at least what that partition holds and at most floor(H/s) of re-wired
cubes. Goodput is `s·boxes/n`, of at most floor((n−k)/s) boxes beside k cubes held back; the mean has a normal
interval of 95 %.
Limits: the packing is maximal and not the largest possible (a lower bound); hosts fail independently.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from simcore.fabric.lattice import best_shape
from simcore.reliability.availability import SliceSystem
from simcore.reliability.packing import pack
from simcore.streams import stream

DRAWS: Final = 4_000  # of the chosen slice
CURVE_DRAWS: Final = 1_000  # of every other size on the curve
BATCH_CELLS: Final = 1 << 22  # draws × cubes that are held at once
LARGEST_GRID: Final = 256  # cubes; the boxes of a larger grid are too many to be tried in each draw
_Z95: Final = 1.959964

Box = tuple[int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnyBoxGoodput:
    """What was drawn: the mean with its interval, and how often at least one slice fits."""

    slice_chips: int
    mean_fraction: float
    low_fraction: float
    high_fraction: float
    some_fraction: float
    draws: int
    seed: int


def grid_of(cube_count: int) -> Box:
    """Cubes along each dimension.

    >>> grid_of(64), grid_of(144)
    ((4, 4, 4), (4, 6, 6))
    """
    x, y, z = best_shape(cube_count, 3)
    return x, y, z


@lru_cache(maxsize=256)
def box_of(cubes: int, grid: Box) -> Box:
    """The smallest box of at least this many cubes that fits the grid; the most cubic, longest side last.

    >>> box_of(16, (4, 4, 4)), box_of(32, (4, 4, 4)), box_of(5, (4, 4, 4))
    ((2, 2, 4), (2, 4, 4), (1, 2, 3))
    """
    sides = [range(1, max(grid) + 1)] * 3
    fitting = (
        box
        for box in itertools.combinations_with_replacement(sides[0], 3)
        if math.prod(box) >= cubes and all(side <= most for side, most in zip(box, sorted(grid), strict=True))
    )
    return min(fitting, key=lambda box: (math.prod(box), sum(box), box))


def boxes_in(grid: Box, box: Box) -> NDArray[np.int32]:
    """The cubes of every placement, one row each: the aligned partition first, then every other place."""
    sizes = np.array(grid)
    ways = [np.array(way) for way in sorted(set(itertools.permutations(box))) if (sizes >= way).all()]
    ways.sort(key=lambda way: -int((sizes // way).prod()))  # the way that fits most often leads
    rows = [
        _placed(grid, way, _corners(sizes, way, aligned_first=not place)) for place, way in enumerate(ways)
    ]
    return np.concatenate(rows)


def _corners(sizes: NDArray[np.int64], way: NDArray[np.int64], *, aligned_first: bool) -> NDArray[np.int64]:
    """Where a box may begin; along a dimension that it fills there is one place."""
    starts = np.where(way == sizes, 1, sizes)
    corners = np.indices(tuple(starts)).reshape(3, -1).T
    if aligned_first:
        is_aligned = ((corners % way == 0) & (corners + way <= sizes)).all(axis=1)
        corners = corners[np.argsort(~is_aligned, kind="stable")]
    return corners


def _placed(grid: Box, way: NDArray[np.int64], corners: NDArray[np.int64]) -> NDArray[np.int32]:
    """Indices of the boxes' cubes; a box that runs over an edge of the grid comes in at the other side."""
    steps = np.indices(tuple(way)).reshape(3, -1).T
    places = (corners[:, None, :] + steps[None, :, :]) % np.array(grid)
    found: NDArray[np.int32] = np.ravel_multi_index(tuple(np.moveaxis(places, 2, 0)), grid).astype(np.int32)
    return found


def boxes_held(up: NDArray[np.bool_], grid: Box, box: Box) -> NDArray[np.int64]:
    """How many boxes each row of `up` (draws × cubes) holds."""
    counts = np.zeros(len(up), np.int64)
    pack(up.copy(), boxes_in(grid, box), counts)
    return counts


@lru_cache(maxsize=1024)
def any_box_goodput(system: SliceSystem, slice_chips: int, *, draws: int, seed: int) -> AnyBoxGoodput:
    """Goodput of slices of whole cubes in any contiguous box; the same seed draws the same cubes for all sizes."""
    grid = grid_of(system.cube_count)
    boxes = boxes_in(grid, box_of(system.cubes_per_slice(slice_chips), grid))
    random = stream(seed, "slices")
    batch = max(1, BATCH_CELLS // system.cube_count)
    counts = np.zeros(draws, np.int64)
    for begin in range(0, draws, batch):
        here = counts[begin : begin + batch]
        up = random.random((len(here), system.cube_count)) < system.cube_availability_fraction
        pack(up, boxes, here)
    places = system.used_cube_count // system.cubes_per_slice(slice_chips)
    goodput = np.minimum(counts, places) * (slice_chips / system.chip_count)
    mean = float(goodput.mean())
    margin = _Z95 * float(goodput.std(ddof=1)) / math.sqrt(draws) if draws > 1 else 1.0
    return AnyBoxGoodput(
        slice_chips=slice_chips,
        mean_fraction=mean,
        low_fraction=max(0.0, mean - margin),
        high_fraction=min(1.0, mean + margin),
        some_fraction=float(np.mean(counts > 0)),
        draws=draws,
        seed=seed,
    )


def has_any_box(system: SliceSystem, slice_chips: int) -> bool:
    """Whether slices of this size are drawn: whole cubes, in a grid that is not too large."""
    return (
        system.chips_per_cube <= slice_chips <= system.cube_count * system.chips_per_cube
        and system.cube_count <= LARGEST_GRID
    )


def any_box_series(system: SliceSystem, *, seed: int) -> Mapping[str, list[float]]:
    """The curve over the sizes that fill a box exactly."""
    grid = grid_of(system.cube_count)
    sizes = [size for size in range(1, system.cube_count + 1) if math.prod(box_of(size, grid)) == size]
    found = [
        any_box_goodput(system, size * system.chips_per_cube, draws=CURVE_DRAWS, seed=seed)
        for size in _thinned(sizes)
    ]
    return {
        "slice_chips": [float(point.slice_chips) for point in found],
        "mean": [point.mean_fraction for point in found],
        "low": [point.low_fraction for point in found],
        "high": [point.high_fraction for point in found],
    }


def _thinned(sizes: list[int], keep: int = 24) -> list[int]:
    """At most `keep` of them, evenly along a logarithmic axis."""
    if len(sizes) <= keep:
        return sizes
    wanted = np.geomspace(sizes[0], sizes[-1], keep)
    return sorted({min(sizes, key=lambda size: abs(size - aim)) for aim in wanted})
