"""Doublings are re-plans: they agree with the override, never lose, and say what binds next."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.analysis import analyse
from simcore.analysis.bottleneck import double, scaled_chip

OVERRIDES = {
    "compute": ("bf16_flop_per_s", "fp8_flop_per_s", "int8_flop_per_s"),
    "hbm_bandwidth": ("hbm_bytes_per_s",),
    "hbm_capacity": ("hbm_bytes", "hbm_visible_bytes"),
    "scaleup": ("scaleup_bytes_per_s", "pcie_bytes_per_s"),
}
PAIR = {
    "hardware.chip_count": 2,
    "serving.parallelism.tp": 2,
    "serving.scheduler": {"kind": "chunked_prefill", "max_num_seqs": 64, "max_num_batched_tokens": 2048},
    "workload.arrivals": {"kind": "closed_loop", "concurrency": 16},
}


def findings_of(planner, overrides):
    return analyse(planner.plan(overrides), planner.result(overrides))


@pytest.mark.parametrize("resource", OVERRIDES)
def test_a_doubling_is_the_plan_of_the_doubled_figures(planner, resource):
    before = planner.plan(PAIR)
    after = planner.plan(PAIR | {f"hardware.chip_overrides.{figure}": "x2" for figure in OVERRIDES[resource]})
    found = double(before.serving, resource)
    capacity = "serving.capacity_request_per_s"
    assert found.gain_ratio == pytest.approx(after.metrics[capacity] / before.metrics[capacity])
    assert found.decode_step_ratio == pytest.approx(
        after.metrics["compute.decode_step_s"] / before.metrics["compute.decode_step_s"], rel=1e-6
    )
    assert found.prefill_step_ratio == pytest.approx(
        after.metrics["compute.prefill_step_s"] / before.metrics["compute.prefill_step_s"]
    )
    assert found.next_bottleneck == after.serving.pool.bound


@settings(max_examples=20, deadline=None)
@given(st.sampled_from(sorted(OVERRIDES)), st.floats(1.0, 8.0))
def test_more_of_a_resource_never_loses_capacity_nor_gains_more_than_its_factor(planner, resource, factor):
    found = double(planner.plan(PAIR).serving, resource, factor=factor)
    assert found.gain_ratio >= 1 - 1e-9
    assert found.decode_step_ratio <= 1 + 1e-9
    if resource != "hbm_capacity":  # weights are subtracted first, so KV memory grows faster than HBM
        assert found.gain_ratio <= factor * (1 + 1e-9)


def test_once_is_no_change(planner):
    found = double(planner.plan(PAIR).serving, "hbm_bandwidth", factor=1.0)
    assert (found.gain_ratio, found.decode_step_ratio, found.prefill_step_ratio) == (1.0, 1.0, 1.0)


def test_a_figure_that_the_chip_lacks_stays_absent(catalog):
    chip = catalog.chip("nvidia-h100-sxm")
    assert chip.fp4_flop_per_s is None
    assert scaled_chip(chip, "compute", 2.0).fp4_flop_per_s is None
    assert scaled_chip(chip, "compute", 2.0).bf16_flop_per_s == 2 * chip.bf16_flop_per_s


def test_a_single_chip_has_no_scale_up_to_double(planner):
    names = set(findings_of(planner, {}).metrics)
    assert "analysis.doubling.scaleup.gain_ratio" not in names
    assert "analysis.doubling.compute.gain_ratio" in names


def test_nics_can_be_doubled_where_a_step_waits_for_them(planner):
    """Sixteen ranks on two servers send rows over NICs: twice as fast, prefill gains most, and no more than twofold."""
    wide = {
        "hardware.chip_count": 16, "model.name": "qwen3-30b-a3b",
        "serving.parallelism": {"tp": 1, "dp": 16, "ep": 16},
    }  # fmt: skip
    planned = planner.plan(wide)
    found = double(planned.serving, "scaleout")
    assert 0.5 < found.prefill_step_ratio < 1
    assert 1 <= found.gain_ratio <= 2
    boundless = double(planned.serving, "scaleout", factor=1e9)
    assert boundless.prefill_step_ratio < found.prefill_step_ratio
    assert "analysis.doubling.scaleout.gain_ratio" in findings_of(planner, wide).metrics
    inside = wide | {"hardware.chip_count": 8, "serving.parallelism": {"tp": 1, "dp": 8, "ep": 8}}
    names = findings_of(planner, inside).metrics
    assert "analysis.doubling.scaleout.gain_ratio" not in names
    assert "analysis.doubling.scaleup.gain_ratio" in names


def test_a_tensor_group_has(planner):
    assert "analysis.doubling.scaleup.gain_ratio" in findings_of(planner, PAIR).metrics


def test_the_bottleneck_is_the_resource_whose_doubling_brings_most(planner):
    metrics = findings_of(planner, PAIR).metrics
    gains = {name.split(".")[2]: value for name, value in metrics.items() if name.endswith(".gain_ratio")}
    assert metrics["analysis.bottleneck"] == max(gains, key=gains.get)


def test_gains_have_trees_with_their_values(planner):
    findings = findings_of(planner, PAIR)
    for name, term in findings.why.items():
        assert term.value == pytest.approx(findings.metrics[name])


def test_gains_do_not_add_up_to_the_whole(planner):
    """All four at once bring more than a half of the four single gains and not more than double."""
    serving = planner.plan(PAIR).serving
    singles = sum(double(serving, resource).gain_ratio - 1 for resource in OVERRIDES)
    metrics = planner.plan(
        PAIR
        | {f"hardware.chip_overrides.{figure}": "x2" for figures in OVERRIDES.values() for figure in figures}
    ).metrics
    together = (
        metrics["serving.capacity_request_per_s"] / serving.pool.operating_point.capacity_request_per_s - 1
    )
    assert together <= 1
    assert abs(together - singles) > 0.01


def test_a_doubling_that_brings_nothing_says_so(planner):
    texts = {
        message.code: message.text for message in findings_of(planner, {"workload.request_count": 5}).messages
    }
    assert "brings nothing here" in texts["doubling.nothing"]


def test_memory_bound_decoding_gains_from_bandwidth_and_not_from_compute(planner):
    few = {
        "workload.arrivals": {"kind": "closed_loop", "concurrency": 1},
        "workload.lengths.output_tokens": 512,
    }
    serving = planner.plan(few).serving
    assert 1 / double(serving, "hbm_bandwidth").decode_step_ratio > 1.45
    assert 1 / double(serving, "compute").decode_step_ratio < 1.02


def test_a_wiring_scenario_says_how_many_switches_join_how_many_chips(planner):
    base = {"workload.kind": "none", "hardware.chip_count": 2048}
    (joined,) = findings_of(planner, {**base, "topology": {"kind": "clos", "radix": 64}}).messages
    assert "join 2,048 chips in one fabric" in joined.text
    islands = {"kind": "rail_only", "radix": 64, "tiers": 1, "hb_domain_size": 8}
    (parted,) = findings_of(planner, {**base, "topology": islands}).messages
    assert "4 islands of 512" in parted.text
