"""Optical circuits: which cube face is joined to which, on every switch, for a set of jobs.

A pod of n cubes has one optical switch for each of 3 dimensions × 16 positions on a face (48). Switch (d, p)
has two ports per cube: 2c for the fibre of cube c's + face in dimension d at position p, 2c+1 for its − face. A
job of a×b×c cubes closes a ring through its cubes along every line of its box: the + face of each cube leads to
the − face of the next, and the last one's to the first (a single cube's to its own). All 16 switches of a
dimension carry the same pattern, so `next_cube[d, c]` says everything: the cube that c's + face leads to, −1
where it is dark. Every port is used at most once because `next_cube[d]` sends no two cubes to the same one.
Twisted (k×k×2k and k×2k×2k): the wrap of each short dimension enters the long ones k further on (TPU v4, ISCA
2023, section 2.8); k is a whole number of cubes, so positions on the face stay.
A failed cube of a running job is replaced by a free healthy one in its place: only circuits that ended at the
failed cube move. All mirrors move at once, then the slice's links are trained and its routes set:
`reconfiguration = switching + bring-up`.
Limits: switches and fibres do not fail here; the time to choose a spare and to restart the job is not in it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from simcore.errors import InfeasibleError, InputError
from simcore.fabric.lattice import best_shape
from simcore.why import Term, leaf

EDGE: Final = 4  # chips along a cube
POSITIONS: Final = EDGE**2  # switches per dimension
DIMENSIONS: Final = 3
DARK: Final = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class CubeJob:
    """A slice in whole cubes."""

    shape: tuple[int, int, int]
    is_twisted: bool = False

    @property
    def cube_count(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class Circuits:
    """Where every cube's + faces lead, and whose each cube is."""

    jobs: tuple[CubeJob, ...]
    next_cube: NDArray[np.int32]  # dimension × cube
    job_of: NDArray[np.int32]  # by cube; DARK: free
    place_of: NDArray[np.int32]  # by cube: its place in the job's box, in order; DARK: free

    @property
    def cube_count(self) -> int:
        return len(self.job_of)

    @property
    def circuit_count(self) -> int:
        """On all 48 switches."""
        return int((self.next_cube != DARK).sum()) * POSITIONS

    def connections(self, dimension: int) -> NDArray[np.int32]:
        """Port pairs of each of this dimension's 16 switches: (+ face's port, − face's port)."""
        cubes = np.flatnonzero(self.next_cube[dimension] != DARK)
        ends = self.next_cube[dimension, cubes]
        return np.column_stack([2 * cubes, 2 * ends + 1]).astype(np.int32)

    def first_free(self) -> int | None:
        free = np.flatnonzero(self.job_of == DARK)
        return int(free[0]) if free.size else None


def cube_job(
    *, chips: int | None = None, shape: tuple[int, int, int] | None = None, is_twisted: bool = False
) -> CubeJob:
    """A job of this many chips, as cubic as can be, or of this shape in chips, in whole cubes.

    >>> cube_job(chips=512).shape, cube_job(shape=(4, 4, 8)).shape
    ((2, 2, 2), (1, 1, 2))
    """
    if shape is None:
        x, y, z = best_shape(max(1, math.ceil((chips or 0) / EDGE**3)), DIMENSIONS)
    else:
        x, y, z = (math.ceil(size / EDGE) for size in shape)
    job = CubeJob(shape=(x, y, z), is_twisted=is_twisted)
    if is_twisted and not can_twist(job.shape):
        raise InputError.at(
            "reliability.jobs",
            "circuits.twist",
            "a slice of {shape} cubes cannot be twisted; twist k×k×2k or k×2k×2k, such as 4×4×8 chips",
            shape="×".join(map(str, job.shape)),
        )
    return job


def can_twist(shape: tuple[int, int, int]) -> bool:
    """Two sizes, the long one twice the short one."""
    short, long = min(shape), max(shape)
    return long == 2 * short and set(shape) == {short, long}


def successors(job: CubeJob) -> NDArray[np.int32]:
    """By dimension and place in the box: the place that the + face leads to.

    >>> successors(CubeJob(shape=(1, 1, 2), is_twisted=True)).tolist()
    [[1, 0], [1, 0], [1, 0]]
    """
    places = np.indices(job.shape).reshape(DIMENSIONS, -1)
    short, long = min(job.shape), max(job.shape)
    found = np.empty((DIMENSIONS, job.cube_count), np.int32)
    for dimension, size in enumerate(job.shape):
        ends = places.copy()
        ends[dimension] += 1
        wraps = ends[dimension] == size
        ends[dimension, wraps] = 0
        if job.is_twisted and size == short:
            for other in (axis for axis in range(DIMENSIONS) if job.shape[axis] == long):
                ends[other, wraps] = (ends[other, wraps] + short) % long
        found[dimension] = np.ravel_multi_index(tuple(ends), job.shape)
    return found


def assign(jobs: Sequence[CubeJob], healthy: NDArray[np.bool_]) -> Circuits:
    """Give each job the first healthy cubes that are free, whichever they are, and join them."""
    needed, there = sum(job.cube_count for job in jobs), int(healthy.sum())
    if needed > there:
        raise InfeasibleError.at(
            "reliability.jobs",
            "circuits.too_many",
            "the jobs need {needed:,} cubes, but {needed:,} > {there:,}; use at most {there:,} cubes "
            "({chips:,} chips)",
            needed=needed,
            there=there,
            chips=there * EDGE**3,
        )
    next_cube = np.full((DIMENSIONS, len(healthy)), DARK, np.int32)
    job_of = np.full(len(healthy), DARK, np.int32)
    place_of = np.full(len(healthy), DARK, np.int32)
    free = np.flatnonzero(healthy)
    starts = itertools.accumulate((job.cube_count for job in jobs), initial=0)
    for index, (job, start) in enumerate(zip(jobs, starts, strict=False)):
        cubes = free[start : start + job.cube_count]
        next_cube[:, cubes] = cubes[successors(job)]
        job_of[cubes] = index
        place_of[cubes] = np.arange(job.cube_count)
    return Circuits(jobs=tuple(jobs), next_cube=next_cube, job_of=job_of, place_of=place_of)


def replaced(circuits: Circuits, failed: int, spare: int) -> Circuits:
    """The same jobs with a free cube in the place of a failed one, which goes dark."""
    renamed = np.arange(circuits.cube_count, dtype=np.int32)
    renamed[[failed, spare]] = spare, failed
    next_cube = circuits.next_cube[:, renamed]
    joined = next_cube != DARK
    next_cube[joined] = renamed[next_cube[joined]]
    return replace(
        circuits,
        next_cube=next_cube,
        job_of=circuits.job_of[renamed],
        place_of=circuits.place_of[renamed],
    )


def moved_circuits(before: Circuits, after: Circuits) -> int:
    """Circuits of `after`, on all 48 switches, that were not there before."""
    is_new = (after.next_cube != DARK) & (after.next_cube != before.next_cube)
    return int(is_new.sum()) * POSITIONS


def reconfiguration_term(*, switching_s: float, switching_source: str, bring_up_s: float) -> Term:
    """From the choice of a spare cube to a slice that carries traffic."""
    switching = leaf(switching_s, "switching_s", kind="catalog", source=switching_source)
    bring_up = leaf(bring_up_s, "bring_up_s", path="reliability.bring_up_s")
    return (switching + bring_up).named("reconfiguration_s")
