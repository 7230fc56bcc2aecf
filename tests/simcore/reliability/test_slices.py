"""Static slices in any contiguous box: between the aligned partition and re-wired cubes, in every draw."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.reliability import SliceSystem, any_box_goodput, any_box_series, has_any_box, slice_goodput
from simcore.reliability.slices import Box, box_of, boxes_held, boxes_in, grid_of

UNHURRIED = settings(deadline=None)
GRIDS = st.sampled_from([(4, 4, 4), (2, 4, 4), (3, 4, 5), (1, 1, 6), (4, 6, 6)])


def pod(availability: float, chips: int = 4096) -> SliceSystem:
    return SliceSystem(host_availability_fraction=availability, chip_count=chips)


@UNHURRIED
@given(grid=GRIDS, size=st.integers(1, 60), seed=st.integers(0, 99), chance=st.floats(0.3, 1))
def test_taken_boxes_are_healthy_and_no_more_than_re_wired_cubes_would_hold(
    grid: Box, size: int, seed: int, chance: float
) -> None:
    cubes = math.prod(grid)
    box = box_of(min(size, cubes), grid)
    up = np.random.default_rng(seed).random((5, cubes)) < chance
    held = boxes_held(up, grid, box)
    assert (held <= up.sum(axis=1) // math.prod(box)).all()
    some = up[:, boxes_in(grid, box)].all(axis=2).any(axis=1)
    assert ((held > 0) == some).all()


@UNHURRIED
@given(size=st.sampled_from([1, 2, 4, 8, 16, 32, 64]), seed=st.integers(0, 99), chance=st.floats(0.3, 1))
def test_a_draw_holds_at_least_what_its_aligned_partition_holds(size: int, seed: int, chance: float) -> None:
    grid = (4, 4, 4)
    boxes = boxes_in(grid, box_of(size, grid))
    aligned = boxes[: 64 // size]
    assert sorted(aligned.ravel()) == list(range(64))
    up = np.random.default_rng(seed).random((20, 64)) < chance
    assert (boxes_held(up, grid, box_of(size, grid)) >= up[:, aligned].all(axis=2).sum(axis=1)).all()


@pytest.mark.parametrize("slice_chips", [64, 1024, 2048, 3072, 4096])
def test_the_mean_lies_between_the_closed_forms(slice_chips: int) -> None:
    found = any_box_goodput(pod(0.995), slice_chips, draws=4000, seed=1)
    closed = slice_goodput(pod(0.995), slice_chips)
    assert closed.static_mean_fraction <= found.high_fraction
    assert found.low_fraction <= closed.ocs_mean_fraction
    assert found.low_fraction <= found.mean_fraction <= found.high_fraction


@pytest.mark.parametrize("slice_chips", [64, 4096])
def test_a_slice_of_one_cube_or_of_all_meets_the_closed_form(slice_chips: int) -> None:
    found = any_box_goodput(pod(0.998), slice_chips, draws=20_000, seed=3)
    closed = slice_goodput(pod(0.998), slice_chips).ocs_mean_fraction
    margin = found.high_fraction - found.low_fraction
    assert found.mean_fraction == pytest.approx(closed, abs=margin)


def test_perfect_hosts_fill_the_grid() -> None:
    assert any_box_goodput(pod(1.0), 1024, draws=10, seed=1).mean_fraction == 1
    assert any_box_goodput(pod(1.0), 3072, draws=10, seed=1).mean_fraction == 0.75
    assert any_box_goodput(pod(0.0), 1024, draws=10, seed=1).mean_fraction == 0


def test_cubes_held_back_leave_room_for_fewer_boxes() -> None:
    held = SliceSystem(host_availability_fraction=1.0, spare_cube_count=1)
    assert any_box_goodput(held, 1024, draws=10, seed=1).mean_fraction == 0.75


def test_the_same_seed_draws_the_same() -> None:
    drawn = [any_box_goodput.__wrapped__(pod(0.99), 1024, draws=500, seed=seed) for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1]
    assert drawn[0] != drawn[2]


def test_boxes_wrap_around_and_are_listed_once() -> None:
    """2×2×4 in 4×4×4: three orientations, 16 places of each (the long side fills its dimension)."""
    boxes = boxes_in((4, 4, 4), (2, 2, 4))
    assert len(boxes) == 48
    assert len({frozenset(box) for box in boxes.tolist()}) == 48


def test_a_size_that_no_box_has_takes_the_next_one() -> None:
    assert box_of(7, (4, 4, 4)) == (2, 2, 2)
    assert box_of(63, (4, 4, 4)) == (4, 4, 4)


def test_the_curve_has_the_sizes_that_fill_a_box() -> None:
    series = any_box_series(pod(0.995), seed=1)
    assert {1024, 2048, 3072, 4096} <= set(series["slice_chips"])
    assert 64 * 5 not in series["slice_chips"]
    assert len(any_box_series(pod(0.999, 9216), seed=1)["slice_chips"]) <= 24


def test_parts_of_cubes_and_huge_grids_are_not_drawn() -> None:
    assert has_any_box(pod(0.99), 1024)
    assert not has_any_box(pod(0.99), 32)
    assert not has_any_box(pod(0.99, 64 * 1000), 1024)
    assert grid_of(140) == (4, 5, 7)
