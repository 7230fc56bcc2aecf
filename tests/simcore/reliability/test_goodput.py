"""Interruptions, checkpoints, replicas, and the spec."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from simcore.reliability import (
    FAILURE_RATES,
    ReliabilitySpec,
    checkpoint_interval_term,
    daly_interval_s,
    goodput_term,
    host_availability_term,
    mtbf_term,
    replica_availability_term,
    small_job_warning,
    waste_fraction,
    young_interval_s,
)
from simcore.why import leaves

WRITES_S = st.floats(1, 600)
MTBFS_S = st.floats(3600, 1e6)


def test_more_servers_fail_more_often() -> None:
    one = mtbf_term(server_count=1, failures="meta-rsc-1")
    assert one.value == pytest.approx(86_400 * 1000 / 6.5)
    assert mtbf_term(server_count=2048, failures="meta-rsc-1").value == pytest.approx(one.value / 2048)


@given(write_s=WRITES_S, mtbf_s=MTBFS_S, factor=st.floats(0.2, 5))
def test_no_other_interval_wastes_less_than_youngs(write_s: float, mtbf_s: float, factor: float) -> None:
    best = young_interval_s(write_s, mtbf_s)
    wasted = waste_fraction(best, write_s, mtbf_s)
    assert waste_fraction(best * factor, write_s, mtbf_s) >= min(1, wasted) - 1e-12


def test_daly_never_waits_longer_than_the_failures() -> None:
    assert daly_interval_s(10_000, 3600) == 3600


def test_auto_interval_is_dalys_and_a_given_one_is_kept() -> None:
    mtbf = mtbf_term(server_count=2048, failures="meta-rsc-1")
    auto = checkpoint_interval_term("auto", write_s=60, mtbf=mtbf)
    assert auto.value == daly_interval_s(60, mtbf.value)
    assert checkpoint_interval_term(1800.0, write_s=60, mtbf=mtbf).value == 1800


def test_goodput_is_what_waste_leaves() -> None:
    mtbf = mtbf_term(server_count=2048, failures="meta-rsc-1")
    interval = checkpoint_interval_term(600.0, write_s=60, mtbf=mtbf)
    goodput = goodput_term(interval=interval, write_s=60, restart_s=300, mtbf=mtbf)
    assert goodput.value == pytest.approx(1 - waste_fraction(600, 60, mtbf.value, 300))


def test_goodput_is_never_negative() -> None:
    mtbf = mtbf_term(server_count=10_000_000, failures="meta-rsc-1")
    interval = checkpoint_interval_term(600.0, write_s=60, mtbf=mtbf)
    assert goodput_term(interval=interval, write_s=60, restart_s=300, mtbf=mtbf).value == 0


def test_a_replica_needs_all_its_hosts() -> None:
    host = host_availability_term(given_fraction=0.99, mttr_s="auto", failures="meta-rsc-1")
    found = replica_availability_term(host, hosts_per_replica=2)
    assert found.value == pytest.approx(0.9801)


def test_repair_and_failures_make_availability() -> None:
    """RSC-1's 6.5 failures in 1,000 days: repaired in 4 h a server is up 99.89 % of the time, in 48 h 98.7 %."""
    for hours, expected in ((0, 1.0), (4, 0.9989), (48, 0.9871)):
        host = host_availability_term(given_fraction=0.5, mttr_s=3600.0 * hours, failures="meta-rsc-1")
        assert host.value == pytest.approx(expected, abs=1e-4)


def test_an_own_rate_takes_the_place_of_the_published_one() -> None:
    own = mtbf_term(server_count=10, failures="meta-rsc-1", own_ratio=13.0)
    assert own.value == pytest.approx(mtbf_term(server_count=20, failures="meta-rsc-1").value)
    assert leaves(own)[-1].path == "reliability.failures_per_thousand_node_days_ratio"


def test_small_jobs_are_warned_about() -> None:
    assert small_job_warning(chip_count=4096) is None
    warning = small_job_warning(chip_count=64)
    assert warning is not None
    assert "64 chips" in warning.text


def test_every_failure_preset_has_a_source() -> None:
    assert all(rate.source for rate in FAILURE_RATES.values())
    for slug in FAILURE_RATES:
        assert ReliabilitySpec.model_validate({"failures": slug}).failures == slug


@pytest.mark.parametrize(
    "wrong",
    [
        {"host_availability_fraction": 1.2},
        {"slice_chips": 0},
        {"failures": "nobody"},
        {"checkpoint_interval_s": "soon"},
        {"unknown": 1},
    ],
)
def test_wrong_values_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        ReliabilitySpec.model_validate(wrong)


def test_times_take_units() -> None:
    assert ReliabilitySpec.model_validate({"checkpoint_interval_s": "30 min"}).checkpoint_interval_s == 1800
