"""A number's tree is the expression that computed it."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simcore import why

positive = st.floats(min_value=1e-3, max_value=1e3)


def _step(weights: float, bandwidth: float, launch: float) -> why.Term:
    weight = why.leaf(weights, "weight_bytes", kind="catalog", source="config.json")
    rate = why.leaf(bandwidth, "hbm_bytes_per_s", path="hardware.chip_overrides.hbm_bytes_per_s")
    fixed = why.leaf(launch, "launch_s", kind="assumption", source="class default")
    return (why.maximum(weight / rate, 0.5 * weight) + fixed * 2).named("compute.decode_step_s")


@given(positive, positive, positive)
def test_the_value_is_the_expression(weights, bandwidth, launch):
    assert _step(weights, bandwidth, launch).value == pytest.approx(
        max(weights / bandwidth, 0.5 * weights) + 2 * launch
    )


@given(positive, positive, positive, positive)
def test_a_replaced_leaf_moves_the_tree_as_a_new_computation_would(weights, bandwidth, launch, other):
    changed = why.evaluate(_step(weights, bandwidth, launch), {"hbm_bytes_per_s": other})
    assert changed == pytest.approx(_step(weights, other, launch).value)


def test_a_leaf_is_found_by_its_path_as_well():
    path = "hardware.chip_overrides.hbm_bytes_per_s"
    assert why.evaluate(_step(8, 1, 0), {path: 2.0}) == pytest.approx(4.0)


def test_the_text_shows_values_units_sources_and_assumptions():
    text = why.as_text(_step(16e9, 3.35e12, 0.001))
    assert "compute.decode_step_s" in text
    assert "3.350 TB/s" in text
    assert "config.json" in text
    assert "[assumption]" in text


def test_the_json_is_complete_and_plain():
    tree = json.loads(json.dumps(why.as_dict(_step(16e9, 3.35e12, 0.001))))
    kinds = [node["kind"] for node in _leaves(tree)]
    assert {"catalog", "input", "assumption"} <= set(kinds)


def test_latex_has_a_fraction_and_no_bare_underscore():
    latex = why.as_latex(_step(16e9, 3.35e12, 0.001))
    assert "\\frac" in latex
    assert "_" not in latex.replace("\\_", "")


def test_all_operations_compute():
    two, three = why.leaf(2, "a"), why.leaf(3.5, "b")
    assert (two - three).value == -1.5
    assert (1 - two).value == -1
    assert (7 / two).value == 3.5
    assert why.floor(three).value == 3
    assert why.ceil(three).value == 4
    assert why.sqrt(two).value == math.sqrt(2)
    assert why.minimum(two, three).value == 2
    assert why.total(two, three, 1).value == 6.5
    assert why.product(two, three, 2).value == 14
    assert [leaf.name for leaf in why.leaves(two * three + two)] == ["a", "b", "a"]


def test_a_simulated_leaf_says_its_statistic_its_count_and_its_seed():
    leaf = why.simulated(0.2, "serving.ttft_s.p95", statistic="p95", count=10_000, seed=7)
    assert "p95 of 10,000 simulated, seed 7" in leaf.source


def _leaves(node):
    if "args" not in node:
        return [node]
    return [leaf for arg in node["args"] for leaf in _leaves(arg)]
