"""Slices of the plan: what is given out together, and what is said of slices that cannot be."""

from __future__ import annotations

import pytest

from simcore.catalog import default_catalog
from simcore.plan.slices import plan_slices
from simcore.reliability import ReliabilitySpec

CATALOG = default_catalog()
OCS_MEAN = "reliability.slice_goodput_fraction.mean"


def test_a_torus_is_given_out_in_cubes() -> None:
    """1,024 chips at 99.0 %: 74.7 % with optical switches, 7.6 % aligned (TPU v4, ISCA 2023, Fig. 4)."""
    spec = ReliabilitySpec(slice_chips=1024, host_availability_fraction=0.99)
    terms = plan_slices(spec, CATALOG.servers["tpu-v4-pod"], chip_count=4096).terms
    assert terms[OCS_MEAN].value == pytest.approx(0.747, abs=0.001)
    assert terms["reliability.static_goodput_fraction.mean"].value == pytest.approx(0.0763, abs=1e-4)


def test_a_switched_fabric_is_given_out_by_server() -> None:
    spec = ReliabilitySpec(slice_chips=8, host_availability_fraction=0.9)
    terms = plan_slices(spec, CATALOG.servers["dgx-h100"], chip_count=24).terms
    assert terms[OCS_MEAN].value == pytest.approx(0.9)


def test_a_fleet_that_is_no_whole_number_of_cubes_still_has_failures() -> None:
    """100,000 GPUs, all of them one job; 64 does not divide them, 8 does."""
    planned = plan_slices(
        ReliabilitySpec(slice_chips=100_000), CATALOG.servers["dgx-h100"], chip_count=100_000
    )
    assert planned.terms["reliability.mtbf_s"].value == pytest.approx(86_400 * 1000 / 6.5 / 12_500)
    assert not planned.warnings


def test_a_slice_larger_than_the_fleet_says_what_there_is() -> None:
    planned = plan_slices(ReliabilitySpec(slice_chips=64), CATALOG.servers["dgx-h100"], chip_count=20)
    assert not planned.terms
    assert "larger than the 16 chips in whole units" in planned.warnings[0].text
