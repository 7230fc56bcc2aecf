"""Collectives scaled to measured tables, inside the domain that was measured and nowhere else."""

from dataclasses import replace

import numpy as np
import pytest

from simcore.fabric.collectives import (
    ENGINE_KERNEL_LIMIT_BYTES,
    collective_s,
    collective_times_s,
    interconnect,
)
from simcore.why import constant
from tests.simcore.synthetic_tables import SyntheticTables, grid

PAYLOADS = np.array([1024.0, 2.0**20, 2.0**23, 2.0**26, 2.0**29])


@pytest.fixture
def fitted(catalog):
    chip = catalog.chip("nvidia-h100-sxm")
    return interconnect(chip, catalog.server(chip.default_server), catalog.calibration_for(chip))


def measured(fitted, **grids):
    return replace(fitted, measured=SyntheticTables(grids=grids))


def test_on_measured_payloads_it_is_the_measurement(fitted):
    times_s = np.array([1e-5, 3e-5, 9e-5, 5e-4, 3e-3])
    over = measured(fitted, collective=grid({"payload_bytes": PAYLOADS}, times_s))
    np.testing.assert_allclose(collective_times_s("all_gather", PAYLOADS, 8, over), times_s, rtol=1e-9)
    between = collective_times_s("all_gather", np.array([3e6]), 8, over)
    tree = collective_s("all_gather", 3e6, 8, over)
    assert tree.value == pytest.approx(between[0])


def test_the_faster_of_library_and_engine_counts_up_to_the_engines_limit(fitted):
    library = grid({"payload_bytes": PAYLOADS}, np.array([2e-5, 3e-5, 9e-5, 5e-4, 3e-3]))
    own = grid({"payload_bytes": PAYLOADS}, np.array([5e-6, 4e-5, 8e-5, 1e-4, 1e-3]))
    over = measured(fitted, collective=library, engine_all_reduce=own)
    found = collective_times_s("all_reduce", PAYLOADS, 8, over)
    assert PAYLOADS[2] == ENGINE_KERNEL_LIMIT_BYTES
    np.testing.assert_allclose(found, [5e-6, 3e-5, 8e-5, 5e-4, 3e-3], rtol=1e-9)


def test_a_faster_link_stays_faster(fitted):
    table = grid({"payload_bytes": PAYLOADS}, np.array([1e-5, 3e-5, 9e-5, 5e-4, 3e-3]))
    slow = measured(fitted, collective=table)
    fast = replace(slow, scaleup_bytes_per_s=constant(2 * fitted.scaleup_bytes_per_s.value))
    before, after = (collective_times_s("all_gather", PAYLOADS, 8, over) for over in (slow, fast))
    assert (after < before).all()


def test_beyond_the_domain_and_over_pcie_nothing_changes(fitted):
    table = grid({"payload_bytes": PAYLOADS}, np.full(5, 1.0))
    over = measured(fitted, collective=table)
    for ranks, one, other in (
        (64, over, fitted),
        (8, replace(over, link="pcie"), replace(fitted, link="pcie")),
    ):
        np.testing.assert_array_equal(
            collective_times_s("all_gather", PAYLOADS, ranks, one),
            collective_times_s("all_gather", PAYLOADS, ranks, other),
        )
