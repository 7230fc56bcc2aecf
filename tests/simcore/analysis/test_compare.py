"""Comparison: which inputs differ, what that did, and which way is better."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simcore.analysis.compare import compare, flatten, verdict
from simcore.errors import InputError
from simcore.scenario import Scenario, apply_overrides


def scenario(**overrides):
    document, _ = apply_overrides(
        {"name": "x"}, {path.replace("__", "."): value for path, value in overrides.items()}
    )
    return Scenario.parse(document)


def test_only_the_inputs_that_differ_are_shown_and_the_equal_ones_are_counted():
    found = compare([scenario(), scenario(run__seed=2, hardware__chip_count=16)], [{}, {}])
    assert {row.path: row.values for row in found.inputs} == {
        "run.seed": (1, 2),
        "hardware.chip_count": (8, 16),
    }
    assert found.equal_input_count > 30
    assert [row.label for row in found.inputs] == ["Chips", "Seed"]


def test_a_default_and_the_same_value_written_out_are_equal():
    assert compare([scenario(), scenario(workload__slo__ttft_s="1000 ms")], [{}, {}]).inputs == ()


def test_names_are_columns_and_no_difference():
    found = compare([scenario(), scenario(name="y", description="z")], [{}, {}])
    assert found.names == ("x", "y")
    assert found.inputs == ()


def test_another_kind_shows_the_paths_that_only_one_side_has():
    found = compare(
        [scenario(), scenario(workload__arrivals={"kind": "closed_loop", "concurrency": 4})], [{}, {}]
    )
    values = {row.path: row.values for row in found.inputs}
    assert values["workload.arrivals.kind"] == ("poisson", "closed_loop")
    assert values["workload.arrivals.request_per_s"] == (8.0, None)
    assert values["workload.arrivals.concurrency"] == (None, 4)


@pytest.mark.parametrize(
    ("metric", "base", "value", "says"),
    [
        ("serving.ttft_s.p95", 1.0, 0.5, "better"),
        ("serving.ttft_s.p95", 1.0, 2.0, "worse"),
        ("serving.output_token_per_s", 1.0, 2.0, "better"),
        ("cost.usd_per_million_tokens", 1.0, 2.0, "worse"),
        ("fabric.switch_count", 1280, 256, "better"),
        ("fabric.island_count", 1, 32, "worse"),
        ("serving.mean_batch_size", 1.0, 2.0, "changed"),
        ("model.parameter_count", 1.0, 1.0, "same"),
    ],
)
def test_the_glossary_says_which_way_is_better(metric, base, value, says):
    assert verdict(metric, base, value) == says


@given(st.floats(1e-9, 1e9), st.floats(1e-9, 1e9))
def test_better_seen_from_the_other_side_is_worse(one, other):
    swapped = {"better": "worse", "worse": "better", "same": "same"}
    assert verdict("serving.ttft_s.mean", other, one) == swapped[verdict("serving.ttft_s.mean", one, other)]


def cells(found, metric):
    return next(row.cells for row in found.metrics if row.metric == metric)


def test_a_metric_is_shown_with_its_change_against_the_baseline():
    found = compare(
        [scenario(), scenario(run__seed=2)], [{"serving.ttft_s.p95": 2.0}, {"serving.ttft_s.p95": 3.0}]
    )
    base, other = cells(found, "serving.ttft_s.p95")
    assert (base.value, base.change_ratio, base.verdict) == (2.0, 0.0, "same")
    assert (other.value, other.change_ratio, other.verdict) == (3.0, 0.5, "worse")


def test_a_metric_that_one_side_lacks_is_absent_there_and_has_no_change():
    found = compare([scenario(), scenario()], [{"fabric.tiers": 3}, {"serving.regime": "stable"}])
    assert [cell.value for cell in cells(found, "fabric.tiers")] == [3, None]
    assert cells(found, "serving.regime")[1].change_ratio is None


def test_words_change_without_a_ratio_and_zero_has_none():
    metrics = [
        {"serving.regime": "stable", "serving.preemption_count": 0},
        {"serving.regime": "overloaded", "serving.preemption_count": 3},
    ]
    found = compare([scenario(), scenario()], metrics)
    assert cells(found, "serving.regime")[1].verdict == "changed"
    assert cells(found, "serving.preemption_count")[1].change_ratio is None
    assert cells(found, "serving.preemption_count")[1].verdict == "worse"


def test_different_kinds_of_work_stand_side_by_side_without_a_difference():
    metrics = [{"cost.capex_usd": 1.0}, {"cost.capex_usd": 2.0}]
    found = compare([scenario(), scenario(workload__kind="none")], metrics)
    assert not found.comparable
    assert cells(found, "cost.capex_usd")[1].change_ratio is None


@pytest.mark.parametrize("count", [0, 1, 6])
def test_two_to_five_are_compared(count):
    with pytest.raises(InputError, match="compare 2 to 5"):
        compare([scenario()] * count, [{}] * count)


def test_up_to_five_stand_beside_the_baseline():
    found = compare(
        [scenario(run__seed=seed) for seed in range(5)], [{"fabric.tiers": tier} for tier in range(5)]
    )
    assert [cell.value for cell in cells(found, "fabric.tiers")] == [0, 1, 2, 3, 4]


def test_flattening_keeps_lists_whole_and_names_paths():
    assert flatten({"a": {"b": 1, "c": {"d": [1, 2]}}, "e": {}}) == {"a.b": 1, "a.c.d": [1, 2]}
