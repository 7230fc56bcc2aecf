"""Owning, renting and buying tokens: the break-even utilisation by hand, and its laws."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore import Scenario, plan, simulate
from simcore.cost import EconomicsSpec
from simcore.cost.offers import Owning, break_even_term
from simcore.fabric import RailOptimized
from simcore.why import leaf
from tests.simcore.cost.test_cost import model_of

MONEY = st.floats(0.01, 1e4)


def owning(fixed: float, used: float) -> Owning:
    return Owning(fixed_usd_per_hour=leaf(fixed, "fixed"), used_usd_per_hour=leaf(used, "used"))


def test_break_even_by_hand() -> None:
    """9 USD an hour whatever runs and 1 more at full use, against 19: 9 / (19 − 1) = one half."""
    met = break_even_term(owning(9, 1), leaf(19, "rent"))
    assert met is not None
    assert met.value == 0.5


def test_what_is_cheaper_at_any_use_is_never_met() -> None:
    assert break_even_term(owning(9, 1), leaf(9.9, "rent")) is None
    assert break_even_term(owning(9, 1), leaf(0.5, "rent")) is None


@settings(deadline=None)
@given(fixed=MONEY, used=MONEY, offer=MONEY)
def test_both_cost_the_same_where_they_meet(fixed: float, used: float, offer: float) -> None:
    met = break_even_term(owning(fixed, used), leaf(offer, "rent"))
    if met is not None:
        assert 0 < met.value <= 1
        assert fixed + used * met.value == pytest.approx(offer * met.value)
    else:
        assert fixed + used >= offer * (1 - 1e-9)


def test_eight_h100_against_a_cloud_by_hand() -> None:
    """Capex 285,200 USD over 4 years, idle energy and floor, against 8 × 2.80 USD."""
    terms = model_of(RailOptimized(), 8, economics=EconomicsSpec()).terms()
    model = model_of(RailOptimized(), 8)
    assert model.capex is not None
    idle_w, peak_w = terms["cost.idle_power_w"].value, terms["cost.peak_power_w"].value
    floor = peak_w / 1.25 * 10 / (15 * 8_760)
    fixed = model.capex.value / 4 / 8_760 + idle_w / 1000 * 0.08 + floor
    more = (peak_w - idle_w) / 1000 * 0.08
    assert terms["cost.cloud_break_even_fraction"].value == pytest.approx(fixed / (8 * 2.8 - more))


def test_the_scenario_may_say_what_the_rent_is_and_what_operations_cost() -> None:
    cheap = model_of(RailOptimized(), 8, economics=EconomicsSpec(cloud_usd_per_hour=0.5)).terms()
    assert cheap["cost.cloud_chip_usd_per_hour"].value == 0.5
    assert "cost.cloud_break_even_fraction" not in cheap
    staffed = model_of(RailOptimized(), 8, economics=EconomicsSpec(operations_usd_per_year=87_600))
    plain = model_of(RailOptimized(), 8)
    difference = staffed.terms()["cost.tco_usd_per_year"].value - plain.terms()["cost.tco_usd_per_year"].value
    assert difference == pytest.approx(87_600)


def test_an_unpriced_bill_is_not_held_against_a_rent() -> None:
    terms = model_of(RailOptimized(), 64, "amd-mi250x").terms()
    assert terms["cost.priced_fraction"].value < 1
    assert "cost.cloud_break_even_fraction" not in terms


SERVES = {
    "name": "chat",
    "hardware": {"chip_count": 8},
    "model": {"name": "llama-3.1-70b"},
    "workload": {
        "arrivals": {"kind": "poisson", "request_per_s": 2},
        "lengths": {"kind": "constant", "input_tokens": 1000, "output_tokens": 250},
        "request_count": 200,
    },
    "economics": {"api_input_usd_per_million_tokens": 1.0, "api_output_usd_per_million_tokens": 4.0},
}


def test_tokens_of_an_api_by_hand() -> None:
    """1,000 in at 1 USD and 250 out at 4 USD per million: 2,000 USD for a million requests of 1,250 tokens."""
    metrics = simulate(plan(Scenario.parse(SERVES))).metrics
    assert metrics["cost.api_usd_per_million_tokens"] == pytest.approx(2_000 / 1_250)


def test_an_slo_costs_what_is_not_within_it_and_what_stands_idle() -> None:
    metrics = simulate(plan(Scenario.parse(SERVES))).metrics
    tco_per_s = metrics["cost.tco_usd_per_year"] / (8_760 * 3_600)
    good = metrics["serving.slo_goodput_request_per_s"] * 250
    key = "usd_per_million_output_tokens"
    assert metrics[f"cost.good_{key}"] == pytest.approx(tco_per_s / good * 1e6)
    assert metrics[f"cost.saturated_{key}"] <= metrics[f"cost.{key}"] <= metrics[f"cost.good_{key}"]
    assert metrics["cost.slo_premium_ratio"] >= 1
