"""Static slices in any contiguous box: what a torus that is wired once still holds, by Monte Carlo.

The cubes stand in the most cubic grid with wrap-around (4×4×4 for 64). A slice of s cubes takes the smallest
box of at least s cubes that fits the grid, the most cubic of these, in any of its orientations and at any
place. Each draw has each cube up with `A^hosts`; healthy boxes are packed greedily, those of the aligned
partition first, so that a draw holds at least what that partition holds and at most floor(H/s) of re-wired
cubes. Goodput is `s·boxes/n`; the mean has a normal interval of 95 %.
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
LARGEST_GRID: Final = 512  # cubes; the boxes of a larger grid are too many to be tried in each draw
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
    found: dict[frozenset[int], tuple[int, ...]] = {}
    orientations = [way for way in sorted(set(itertools.permutations(box))) if _fits(way, grid)]
    aligned = max(orientations, key=lambda way: math.prod(g // w for g, w in zip(grid, way, strict=True)))
    starts = [range(0, g - w + 1, w) for g, w in zip(grid, aligned, strict=True)]
    placed = [(aligned, corner) for corner in itertools.product(*starts)]
    anywhere = list(itertools.product(*(range(size) for size in grid)))
    placed += [(way, corner) for way in orientations for corner in anywhere]
    for way, corner in placed:
        cubes = _cubes(grid, way, corner)
        found.setdefault(frozenset(cubes), cubes)
    return np.array(list(found.values()), dtype=np.int32)


def _fits(box: tuple[int, ...], grid: Box) -> bool:
    return all(side <= size for side, size in zip(box, grid, strict=True))


def _cubes(grid: Box, box: tuple[int, ...], corner: tuple[int, ...]) -> tuple[int, ...]:
    """Indices of a box's cubes; a box that runs over an edge of the grid comes in at the other side."""
    steps = [
        [(start + step) % size for step in range(side)]
        for start, side, size in zip(corner, box, grid, strict=True)
    ]
    return tuple((x * grid[1] + y) * grid[2] + z for x, y, z in itertools.product(*steps))


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
    goodput = counts * (slice_chips / system.chip_count)
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
