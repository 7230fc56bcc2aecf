"""What fails: the published table and the rates that follow."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simcore.reliability.components import (
    COMPONENT_RATES,
    LLAMA_CAUSES,
    LLAMA_GPUS,
    LLAMA_HOURS,
    LLAMA_SERVERS,
    caused,
    fleet_mtbf_h,
)


def test_every_interruption_has_one_cause_and_one_part() -> None:
    assert sum(cause.count for cause in LLAMA_CAUSES) == 419
    assert caused("chip", "hbm", "nic", "server", "software", "network") == 419
    assert sum(cause.count for cause in LLAMA_CAUSES if cause.is_gpu) == 268


def test_the_rates_of_all_components_give_the_counts_back() -> None:
    """16,384 GPUs with memories and NICs, 2,048 servers, their leaf switches and links: 419 in 54 days."""
    fleet = {
        "chip": LLAMA_GPUS,
        "hbm": LLAMA_GPUS,
        "nic": LLAMA_GPUS,
        "server": LLAMA_SERVERS,
        "software": LLAMA_SERVERS,
        "link": 2 * LLAMA_GPUS,
        "switch": LLAMA_GPUS // 16,
    }
    hours = [fleet_mtbf_h(COMPONENT_RATES[name].fit_count, count) for name, count in fleet.items()]
    assert sum(LLAMA_HOURS / one for one in hours) == pytest.approx(419)


@given(fit=st.floats(1, 1e6), count=st.integers(1, 10**6), times=st.integers(2, 10))
def test_more_components_fail_as_much_more_often(fit: float, count: int, times: int) -> None:
    assert fleet_mtbf_h(fit, count * times) == pytest.approx(fleet_mtbf_h(fit, count) / times)


def test_every_rate_has_a_source_and_an_assumption_is_called_one() -> None:
    assert all(rate.source and rate.fit_count > 0 for rate in COMPONENT_RATES.values())
    assumed = {name for name, rate in COMPONENT_RATES.items() if rate.kind == "assumption"}
    assert assumed == {"link", "switch", "ocs"}
    assert all("assumption" in COMPONENT_RATES[name].source for name in assumed)
