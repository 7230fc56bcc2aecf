"""Paired comparison: the same requests, and whether a change is more than chance."""

from dataclasses import replace

import numpy as np
import pytest

from simcore.analysis.paired import paired
from simcore.plan import plan
from simcore.scenario import Scenario, apply_overrides
from simcore.simulate import simulate
from tests.simcore.analysis.test_layers import SERVES


@pytest.fixture(scope="module")
def records():
    return simulate(plan(Scenario.parse(SERVES))).records


def test_by_hand(records):
    """Each first token and each end 10 ms later: TTFT and end to end +10 ms exactly, TPOT unchanged."""
    later = replace(records, first_token_s=records.first_token_s + 0.01, finish_s=records.finish_s + 0.01)
    ttft, tpot, e2e = paired(records, later)
    assert (ttft.mean_s, e2e.mean_s) == (pytest.approx(0.01), pytest.approx(0.01))
    assert ttft.is_significant
    assert tpot.mean_s == pytest.approx(0.0, abs=1e-12)
    assert ttft.pair_count == 300
    assert "changes by +10.0" in ttft.message.text


def test_what_only_shakes_is_within_noise(records):
    """Every second request a millisecond later, the others earlier: no batch leans either way."""
    shake = np.where(np.arange(len(records.arrival_s)) % 2 == 0, 1e-3, -1e-3)
    ttft = paired(records, replace(records, first_token_s=records.first_token_s + shake))[0]
    assert not ttft.is_significant
    assert "within noise" in ttft.message.text


def test_the_other_way_round_is_the_same_with_its_sign(records):
    document, _ = apply_overrides(SERVES, {"hardware.chip_overrides.hbm_bytes_per_s": "x2"})
    faster = simulate(plan(Scenario.parse(document))).records
    there, back = paired(records, faster), paired(faster, records)
    assert there[2].mean_s < 0
    assert there[2].is_significant
    assert [one.mean_s for one in there] == pytest.approx([-one.mean_s for one in back])


def test_other_requests_are_not_paired(records):
    assert paired(records, replace(records, input_tokens=records.input_tokens + 1)) == ()
    assert paired(records, records.where(slice(0, 50))) == ()
