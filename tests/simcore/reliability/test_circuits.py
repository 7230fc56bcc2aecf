"""Optical circuits: no port twice, every ring closed, and a failure moves only what touched the failed cube."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.errors import InfeasibleError, InputError
from simcore.reliability.circuits import (
    DARK,
    POSITIONS,
    Circuits,
    CubeJob,
    assign,
    cube_job,
    moved_circuits,
    replaced,
    successors,
)

UNHURRIED = settings(deadline=None)
SHAPES = st.tuples(*[st.integers(1, 4)] * 3)
TWISTABLE = st.sampled_from([(1, 1, 2), (1, 2, 2), (2, 2, 4), (2, 4, 4), (2, 1, 1), (4, 2, 2)])
JOBS = st.one_of(
    st.builds(CubeJob, shape=SHAPES), st.builds(CubeJob, shape=TWISTABLE, is_twisted=st.just(True))
)


@st.composite
def assignments(draw: st.DrawFn) -> tuple[Circuits, np.ndarray]:
    """Jobs in a pod of which some cubes are down, with at least one free healthy cube."""
    jobs = draw(st.lists(JOBS, min_size=1, max_size=5))
    needed = sum(job.cube_count for job in jobs)
    healthy = np.ones(needed + draw(st.integers(1, 20)), bool)
    down = draw(st.lists(st.integers(0, len(healthy) - 1), max_size=int(healthy.sum()) - needed - 1))
    healthy[down] = False
    return assign(jobs, healthy), healthy


def cycle(successor: np.ndarray, start: int) -> list[int]:
    """The ring through one cube."""
    found, here = [start], int(successor[start])
    while here != start:
        found.append(here)
        here = int(successor[here])
        assert len(found) <= len(successor), "a ring that does not close"
    return found


@UNHURRIED
@given(assignments())
def test_no_port_of_any_switch_is_used_twice(drawn: tuple[Circuits, np.ndarray]) -> None:
    circuits, _ = drawn
    for dimension in range(3):
        ports = circuits.connections(dimension).ravel()
        assert len(set(ports.tolist())) == len(ports)
        assert ports.min() >= 0
        assert ports.max() < 2 * circuits.cube_count


@UNHURRIED
@given(assignments())
def test_every_ring_closes_within_its_job(drawn: tuple[Circuits, np.ndarray]) -> None:
    circuits, healthy = drawn
    for dimension in range(3):
        successor = circuits.next_cube[dimension]
        for cube in np.flatnonzero(circuits.job_of != DARK):
            ring = cycle(successor, int(cube))
            job = circuits.jobs[circuits.job_of[cube]]
            assert {int(circuits.job_of[member]) for member in ring} == {int(circuits.job_of[cube])}
            if not job.is_twisted:
                assert len(ring) == job.shape[dimension]
    assert healthy[circuits.job_of != DARK].all()
    assert (circuits.next_cube[:, circuits.job_of == DARK] == DARK).all()


@UNHURRIED
@given(assignments())
def test_every_job_has_its_cubes_and_all_their_faces_are_joined(drawn: tuple[Circuits, np.ndarray]) -> None:
    circuits, _ = drawn
    for index, job in enumerate(circuits.jobs):
        cubes = circuits.job_of == index
        assert cubes.sum() == job.cube_count
        assert sorted(circuits.place_of[cubes]) == list(range(job.cube_count))
    used = int((circuits.job_of != DARK).sum())
    assert circuits.circuit_count == 48 * used


@UNHURRIED
@given(drawn=assignments(), data=st.data())
def test_a_replacement_moves_only_circuits_that_touched_the_failed_cube(
    drawn: tuple[Circuits, np.ndarray], data: st.DataObject
) -> None:
    before, healthy = drawn
    failed = data.draw(st.sampled_from(np.flatnonzero(before.job_of != DARK).tolist()))
    spare = data.draw(st.sampled_from(np.flatnonzero((before.job_of == DARK) & healthy).tolist()))
    after = replaced(before, failed, spare)
    for dimension in range(3):
        old, new = before.connections(dimension), after.connections(dimension)
        kept = {tuple(pair) for pair in old.tolist() if failed not in (pair[0] // 2, pair[1] // 2)}
        assert kept <= {tuple(pair) for pair in new.tolist()}
        assert len(set(new.ravel().tolist())) == new.size
        ring = cycle(after.next_cube[dimension], spare)
        assert len(ring) == len(cycle(before.next_cube[dimension], failed))
    ends = sum(1 if before.next_cube[d, failed] == failed else 2 for d in range(3))
    assert moved_circuits(before, after) == ends * POSITIONS
    assert after.job_of[spare] == before.job_of[failed]
    assert after.job_of[failed] == DARK
    assert np.array_equal(replaced(after, spare, failed).next_cube, before.next_cube)


def test_a_twist_shifts_the_long_dimensions_by_the_short_ones() -> None:
    """2×2×4: the wrap of x from (1, y, z) enters (0, y, z + 2)."""
    twisted = successors(CubeJob(shape=(2, 2, 4), is_twisted=True))
    place = np.ravel_multi_index((1, 0, 1), (2, 2, 4))
    assert twisted[0, place] == np.ravel_multi_index((0, 0, 3), (2, 2, 4))
    assert twisted[2, np.ravel_multi_index((1, 1, 3), (2, 2, 4))] == np.ravel_multi_index(
        (1, 1, 0), (2, 2, 4)
    )


def test_a_full_pod_of_64_cubes_lights_128_ports_of_each_switch() -> None:
    circuits = assign([cube_job(chips=4096)], np.ones(64, bool))
    assert [circuits.connections(dimension).size for dimension in range(3)] == [128] * 3
    assert circuits.circuit_count == 48 * 64


def test_jobs_larger_than_the_healthy_cubes_are_infeasible() -> None:
    with pytest.raises(InfeasibleError, match=r"64 > 63; use at most 63 cubes \(4,032 chips\)"):
        assign([cube_job(chips=4096)], np.arange(64) > 0)


def test_a_shape_that_has_no_twist_is_refused() -> None:
    with pytest.raises(InputError, match="2×2×2 cubes cannot be twisted"):
        cube_job(chips=512, is_twisted=True)
