"""Slice goodput: laws, limits, and the published quantisation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.errors import InfeasibleError
from simcore.reliability import (
    SliceSystem,
    kept_fraction,
    slice_goodput,
    slice_goodput_grid,
    slice_goodput_series,
    slice_goodput_terms,
    spares_series,
)
from simcore.reliability.availability import binomial
from simcore.why import evaluate

UNHURRIED = settings(deadline=None)
AVAILABILITIES = st.floats(0.9, 1.0)


def system(availability: float, **changes: int) -> SliceSystem:
    return SliceSystem(host_availability_fraction=availability, **changes)


@given(count=st.integers(0, 300), chance=st.floats(0, 1))
def test_binomial_chances_sum_to_one(count: int, chance: float) -> None:
    chances = binomial(count, chance)
    assert chances.sum() == pytest.approx(1)
    assert chances @ np.arange(count + 1) == pytest.approx(count * chance, abs=1e-6)


@UNHURRIED
@given(availability=AVAILABILITIES, cubes=st.integers(1, 64))
def test_reconfigurable_is_never_worse_than_static(availability: float, cubes: int) -> None:
    found = slice_goodput(system(availability), 64 * cubes)
    assert found.ocs_mean_fraction >= found.static_mean_fraction - 1e-12
    assert found.ocs_q97_fraction >= found.static_q97_fraction
    assert 0 <= found.static_mean_fraction <= found.ocs_mean_fraction + 1e-12 <= 1 + 2e-12


@UNHURRIED
@given(availability=AVAILABILITIES, slice_chips=st.integers(1, 4096))
def test_better_hosts_never_lower_goodput(availability: float, slice_chips: int) -> None:
    better = slice_goodput(system(min(1.0, availability + 0.01)), slice_chips)
    assert (
        better.ocs_mean_fraction >= slice_goodput(system(availability), slice_chips).ocs_mean_fraction - 1e-12
    )


def test_perfect_hosts_leave_only_quantisation() -> None:
    assert slice_goodput(system(1.0), 1024).ocs_mean_fraction == 1
    assert slice_goodput(system(1.0), 3072).ocs_mean_fraction == 0.75


@pytest.mark.parametrize(
    ("availability", "slice_chips", "ocs", "static"),
    [
        (0.990, 1024, 0.747, 0.076),
        (0.995, 1024, 0.751, 0.277),
        (0.999, 1024, 0.840, 0.774),
        (0.990, 2048, 0.500, 0.006),
        (0.995, 2048, 0.503, 0.077),
        (0.999, 2048, 0.679, 0.599),
        (0.990, 3072, 0.742, 0.000),
        (0.995, 3072, 0.750, 0.016),
        (0.999, 3072, 0.750, 0.348),
    ],
)
def test_the_story_of_static_and_reconfigurable_slices(
    availability: float, slice_chips: int, ocs: float, static: float
) -> None:
    found = slice_goodput(system(availability), slice_chips)
    assert found.ocs_mean_fraction == pytest.approx(ocs, abs=6e-4)
    assert found.static_mean_fraction == pytest.approx(static, abs=6e-4)


def test_the_closed_forms_are_what_drawing_hosts_gives() -> None:
    rng = np.random.default_rng(7)
    up = (rng.random((20_000, 64, 16)) < 0.995).all(axis=2)
    ocs = np.floor(up.sum(axis=1) / 16) * 16 / 64
    static = up.reshape(-1, 4, 16).all(axis=2).sum(axis=1) * 16 / 64
    found = slice_goodput(system(0.995), 1024)
    assert ocs.mean() == pytest.approx(found.ocs_mean_fraction, abs=0.005)
    assert static.mean() == pytest.approx(found.static_mean_fraction, abs=0.005)
    assert np.mean(ocs >= found.ocs_q97_fraction) >= 0.97


def test_a_slice_inside_a_cube_is_as_available_as_its_hosts() -> None:
    found = slice_goodput(system(0.99), 32)
    assert found.ocs_mean_fraction == found.static_mean_fraction == pytest.approx(0.99**8)


def test_other_cubes_and_hosts() -> None:
    servers = system(0.99, chip_count=1024, chips_per_cube=8, chips_per_host=8)
    assert servers.cube_count == 128
    assert servers.cube_availability_fraction == 0.99
    assert slice_goodput(servers, 8).ocs_mean_fraction == pytest.approx(0.99)


@pytest.mark.parametrize("slice_chips", [32, 64, 1024, 3072])
def test_the_trees_are_the_closed_forms(slice_chips: int) -> None:
    terms = slice_goodput_terms(system(0.995), slice_chips)
    found = slice_goodput(system(0.995), slice_chips)
    better = slice_goodput(system(0.999), slice_chips)
    ocs = terms["reliability.slice_goodput_fraction.mean"]
    static = terms["reliability.static_goodput_fraction.mean"]
    assert ocs.value == pytest.approx(found.ocs_mean_fraction)
    assert static.value == pytest.approx(found.static_mean_fraction)
    replaced = {"host_availability_fraction": 0.999}
    assert evaluate(ocs, replaced) == pytest.approx(better.ocs_mean_fraction)
    assert evaluate(static, replaced) == pytest.approx(better.static_mean_fraction)
    assert terms["reliability.slice_goodput_fraction.q97"].value == found.ocs_q97_fraction


def test_large_fleets_are_still_quick_and_right() -> None:
    fleet = system(0.999, chip_count=32_768, chips_per_cube=8, chips_per_host=8)
    terms = slice_goodput_terms(fleet, 1024)
    assert terms["reliability.slice_goodput_fraction.mean"].value == pytest.approx(
        slice_goodput(fleet, 1024).ocs_mean_fraction
    )


def test_the_series_covers_every_number_of_cubes() -> None:
    series = slice_goodput_series(system(0.995))
    assert series["slice_chips"] == [64.0 * cubes for cubes in range(1, 65)]
    assert series["ocs_mean"][15] == pytest.approx(0.7515, abs=1e-3)
    assert len(slice_goodput_series(system(0.995, chip_count=65_536))["slice_chips"]) <= 64


def test_a_slice_larger_than_the_pod_is_infeasible() -> None:
    with pytest.raises(InfeasibleError, match="use at most 4,096"):
        slice_goodput_terms(system(0.995), 4097)


@UNHURRIED
@given(availability=AVAILABILITIES, slice_chips=st.integers(1, 4096), spares=st.integers(0, 64))
def test_holding_cubes_back_never_raises_goodput_and_never_lowers_what_is_kept(
    availability: float, slice_chips: int, spares: int
) -> None:
    none, held = system(availability), system(availability, spare_cube_count=spares)
    found = slice_goodput(held, slice_chips)
    assert found.ocs_mean_fraction <= slice_goodput(none, slice_chips).ocs_mean_fraction + 1e-12
    assert found.ocs_mean_fraction >= found.static_mean_fraction - 1e-12
    kept, fixed = kept_fraction(held, slice_chips)
    assert kept >= kept_fraction(none, slice_chips)[0] - 1e-12
    assert kept >= fixed - 1e-12


def test_one_spare_cube_keeps_three_slices_of_1024_chips() -> None:
    """64 cubes at 99.5 %: four slices need all 64 (0.6 % of the time), three need any 48 of them."""
    series = spares_series(system(0.995), 1024)
    assert series["spare_cubes"][:2] == [0, 1]
    assert series["promised_fraction"][:2] == [1.0, 0.75]
    assert series["ocs_kept_fraction"][0] == pytest.approx(0.0059, abs=1e-4)
    assert series["ocs_kept_fraction"][1] > 0.9999
    assert series["static_kept_fraction"][1] == pytest.approx(0.995 ** (16 * 48))


def test_spares_are_in_the_trees() -> None:
    held = system(0.999, spare_cube_count=1)
    terms = slice_goodput_terms(held, 1024)
    found = slice_goodput(held, 1024)
    assert terms["reliability.slice_goodput_fraction.mean"].value == pytest.approx(found.ocs_mean_fraction)
    assert found.ocs_mean_fraction == pytest.approx(0.75, abs=1e-6)


def test_the_grid_has_the_storys_figures() -> None:
    rows = {
        (row["slice_chips"], row["host_availability_fraction"]): row["ocs_mean_fraction"]
        for row in slice_goodput_grid(system(0.995), 1024)
    }
    assert len(rows) == 12
    assert rows[2048, 0.999] == pytest.approx(0.679, abs=6e-4)
