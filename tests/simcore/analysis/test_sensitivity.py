"""Each input alone between its ends: hand-computed swings, arcs, blocked ends, and what is known of a range."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.analysis.estimate import closed_form_metrics
from simcore.analysis.ranges import InputRange, assumed_range, default_ranges, is_integer, value_at
from simcore.analysis.sensitivity import ranges_of, swings, top_sensitivities
from simcore.cost.opex import HOURS_PER_YEAR
from simcore.errors import InputError, Message
from simcore.plan import plan
from simcore.scenario import Scenario, apply_overrides
from simcore.scenario.stories import stories
from simcore.simulate import simulate

CHAT = {"name": "chat", "hardware": {"chip_count": 8}, "model": {"name": "llama-3.1-70b"}}
FABRIC = {"name": "fabric", "hardware": {"chip_count": 1024}, "workload": {"kind": "none"}}
YOURS = Message(code="range.yours", template="yours")


def given_range(path: str, low: float, base: float, high: float) -> InputRange:
    return InputRange(path=path, low=low, base=base, high=high, basis=YOURS, confidence="yours")


def test_the_swing_of_the_power_price_is_the_energy_of_a_year_times_the_range():
    path, metric = "economics.electricity_usd_per_kwh", "cost.tco_usd_per_year"
    [one] = swings(FABRIC, metric, ranges=[given_range(path, 0.05, 0.08, 0.15)])
    kilowatts = plan(Scenario.parse(FABRIC)).metrics["cost.power_w"] / 1000
    assert one.swing == pytest.approx(kilowatts * HOURS_PER_YEAR * 0.10)
    assert one.low.value < one.base_value < one.high.value


def test_prices_double_and_capex_doubles():
    [one] = swings(FABRIC, "cost.capex_usd", ranges=[given_range("economics.price_ratio", 0.5, 1.0, 1.5)])
    chips = sum(
        row.total("mid").value for row in plan(Scenario.parse(FABRIC)).cost.bill if row.group == "compute"
    )
    assert one.swing == pytest.approx(chips)


def test_a_plain_proportion_has_the_elasticity_one_and_an_inverse_one_minus_one():
    metric = "cost.capex_usd"
    both = {"economics.price_ratio": 2.0, "economics.network_price_ratio": 1.0}
    document = apply_overrides(FABRIC | {"hardware": {"chip_count": 8}}, both)[0]
    [one] = swings(document, metric, ranges=[given_range("economics.price_ratio", 1.0, 2.0, 3.0)])
    assert one.elasticity == pytest.approx(1.0)
    serving = CHAT | {"serving": {"parallelism": {"tp": 8}}}
    path = "economics.depreciation_years"
    [years] = swings(serving | {"economics": {"electricity_usd_per_kwh": 0.0}}, "cost.tco_usd_per_year",
                     ranges=[given_range(path, 2.0, 4.0, 8.0)])  # fmt: skip
    assert -1.0 < years.elasticity < -0.9  # the building's share is not written off over these years


def test_the_widest_swing_stands_first_and_what_has_no_effect_is_left_out():
    rows = top_sensitivities(CHAT, "serving.capacity_request_per_s", n=4)
    assert len(rows) == 4
    assert [row["swing"] for row in rows] == sorted((row["swing"] for row in rows), reverse=True)
    assert not any(row["path"].startswith("economics.") for row in rows)


def test_an_end_that_cannot_be_built_says_why_and_the_cut_is_held():
    rows = {row["path"]: row for row in top_sensitivities(CHAT, "cost.usd_per_million_tokens", n=20)}
    memory = rows["hardware.chip_overrides.hbm_bytes"]
    assert memory["at_low"] is None
    assert memory["blocked_low"]["code"] == "memory.does_not_fit"
    assert memory["at_high"] < memory["base_value"]
    assert memory["elasticity"] is None


def test_ranges_say_what_they_rest_on():
    ranges = {one.path: one for one in default_ranges(plan(Scenario.parse(CHAT)))}
    assert ranges["economics.price_ratio"].confidence == "source"
    assert ranges["hardware.chip_overrides.hbm_bytes_per_s"].confidence == "calibrated"
    assert ranges["workload.arrivals.request_per_s"].confidence == "assumption"
    assert "assumption" in ranges["workload.arrivals.request_per_s"].basis.text
    assert all(one.low < one.high for one in ranges.values())
    assert len(ranges) >= 12


def test_the_range_of_a_price_is_that_of_its_book():
    planned = plan(Scenario.parse(CHAT))
    one = {found.path: found for found in default_ranges(planned)}["economics.price_ratio"]
    low = sum(row.total("low").value for row in planned.cost.bill if row.group == "compute")
    mid = sum(row.total("mid").value for row in planned.cost.bill if row.group == "compute")
    assert one.low == pytest.approx(low / mid)


def test_whole_numbers_stay_whole_and_auto_is_what_it_became():
    planned = plan(Scenario.parse(CHAT))
    assert is_integer("serving.scheduler.max_num_batched_tokens")
    assert not is_integer("workload.lengths.input_mean_tokens")
    assert value_at(planned, "serving.parallelism.tp") == 2
    assert assumed_range(planned, "serving.parallelism.tp").low == 1
    assert assumed_range(planned, "serving.router.kind") is None


def test_a_path_without_a_number_and_an_unknown_metric_are_refused():
    planned = plan(Scenario.parse(CHAT))
    with pytest.raises(InputError, match=r"serving\.router\.kind: no number stands here"):
        ranges_of(planned, ["serving.router.kind"])
    with pytest.raises(InputError, match="is no number that this scenario has"):
        swings(CHAT, "serving.ttft_s.p99")


def test_an_end_beyond_what_was_measured_is_marked():
    path = "workload.arrivals.concurrency"
    document = {"name": "loop", "workload": {"arrivals": {"kind": "closed_loop", "concurrency": 16}}}
    metric = "compute.decode_step_s"
    [one] = swings(document, metric, ranges=[given_range(path, 8, 16, 4096)])
    assert one.high.is_extrapolated
    assert not one.low.is_extrapolated


@settings(max_examples=15, deadline=None)
@given(low=st.floats(0.3, 1.0), high=st.floats(1.0, 3.0))
def test_a_wider_range_swings_at_least_as_far(low, high):
    inner = given_range("hardware.chip_overrides.hbm_bytes_per_s", 3.35e12 * low, 3.35e12, 3.35e12 * high)
    outer = given_range("hardware.chip_overrides.hbm_bytes_per_s", 0.9e12, 3.35e12, 11e12)
    metric = "compute.decode_step_s"
    document = {"name": "one", "hardware": {"chip_count": 1}}
    [first], [second] = (swings(document, metric, ranges=[one]) for one in (inner, outer))
    assert second.swing >= first.swing


@pytest.mark.parametrize("slug", ["s4-paged-kv", "s5-prefill-apart", "s8-token-budget", "s11-double-each"])
def test_the_closed_forms_of_cost_are_near_what_a_run_says(slug):
    planned = plan(Scenario.parse(stories()[slug].baseline))
    metrics, simulated = closed_form_metrics(planned), simulate(planned).metrics
    for name in ("cost.usd_per_million_tokens", "cost.joule_per_token"):
        assert metrics[name] == pytest.approx(simulated[name], rel=0.06)
