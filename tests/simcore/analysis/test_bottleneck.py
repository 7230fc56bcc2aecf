"""Doublings are re-plans: they agree with the override, never lose, and say what binds next."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.analysis import analyse
from simcore.analysis.doubling import carried, double, load_of, together, without_limit
from simcore.analysis.resources import RATES, RESOURCES, WITHOUT_LIMIT, scaled_chip, used_resources, with_more
from simcore.catalog import default_catalog
from simcore.cost import resource_prices

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
    for name, value in findings.metrics.items():
        if name != "analysis.bottleneck":
            assert findings.why[name].value == pytest.approx(value)
    (compute,) = (row for row in findings.tables["doublings"] if row["resource"] == "compute")
    assert compute["limit_ratio"] == findings.why["analysis.without_limit.compute.gain_ratio"].value
    assert compute["used_fraction"] == findings.why["analysis.used.compute.used_fraction"].value


def test_gains_do_not_add_up_to_the_whole(planner):
    """Each alone leaves the waits for all others; all at once halve every wait."""
    findings = findings_of(planner, PAIR)
    singles = sum(row["gain_ratio"] - 1 for row in findings.tables["doublings"])
    whole = findings.metrics["analysis.doublings.together_ratio"] - 1
    assert findings.metrics["analysis.doublings.sum_ratio"] == pytest.approx(1 + singles)
    assert whole - singles > 0.1
    (text,) = (one.text for one in findings.messages if one.code == "finding.not_the_whole")
    assert text.startswith("gains don't add up")


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
    joined = findings_of(planner, {**base, "topology": {"kind": "clos", "radix": 64}}).messages[0]
    assert "join 2,048 chips in one fabric" in joined.text
    islands = {"kind": "rail_only", "radix": 64, "tiers": 1, "hb_domain_size": 8}
    parted = findings_of(planner, {**base, "topology": islands}).messages[0]
    assert "4 islands of 512" in parted.text


CATALOG = default_catalog()
LOADED = {
    "workload.arrivals": {"kind": "poisson", "request_per_s": 4.0},
    "serving.scheduler": {"kind": "chunked_prefill", "max_num_seqs": 8, "max_num_batched_tokens": 512},
}
APART = {
    "hardware.chip_count": 4,
    "serving.scheduler": {"kind": "disaggregated", "kv_link_bytes_per_s": 2e9},
}
OFFLOADED = {
    "serving.kv.offload": [{"tier": "host_dram"}],
    "serving.kv.preemption": "swap",
}
SHAPES = {"one chip": {}, "pair": PAIR, "loaded": LOADED, "apart": APART, "offloaded": OFFLOADED}


def test_twice_of_every_rate_is_twice_the_capacity(planner):
    """A law of the decomposition: no time of a step belongs to no resource. One chip has no collective."""
    serving = planner.plan({}).serving
    after = with_more(serving, dict.fromkeys(RATES, 2.0))
    assert after.capacity.value / serving.capacity.value == pytest.approx(2.0, rel=0.01)


@pytest.mark.parametrize("shape", SHAPES)
def test_more_never_hurts_and_what_is_used_is_at_most_all(planner, shape):
    serving = planner.plan(SHAPES[shape]).serving
    for resource in used_resources(serving):
        once, limit, load = (
            double(serving, resource),
            without_limit(serving, resource),
            load_of(serving, resource),
        )
        assert 1 - 1e-9 <= once.gain_ratio <= limit.value * (1 + 1e-9), resource
        assert 0 <= load.used.value <= 1 + 1e-9, resource
        if load.saturation is not None:
            assert load.saturation.value >= serving.capacity.value * (1 - 1e-9), resource


def test_a_resource_that_takes_all_of_a_step_saturates_at_capacity(planner):
    """With every other rate without limit HBM is left: used = offered ÷ capacity, and more of it is all gain."""
    others = {name: WITHOUT_LIMIT for name in RATES if name != "hbm_bandwidth"}
    serving = with_more(planner.plan({}).serving, others, explained=True)
    load = load_of(serving, "hbm_bandwidth")
    assert load.saturation is not None
    assert load.saturation.value == pytest.approx(serving.capacity.value, rel=1e-6)
    assert load.used.value == pytest.approx(carried(serving).value / serving.capacity.value, rel=1e-6)
    assert double(serving, "hbm_bandwidth").gain_ratio == pytest.approx(2.0, rel=1e-3)


def test_seats_that_bind_saturate_at_capacity_by_hand(planner):
    """Eight seats: by Little's law eight sequences leave at capacity, each after prompt and 31 steps.

    KV has room for thousands, so twice the seats bring more and twice the memory nothing.
    """
    serving = planner.plan(LOADED).serving
    seats, memory = load_of(serving, "scheduler"), load_of(serving, "hbm_capacity")
    assert seats.saturation is not None
    assert seats.saturation.value == pytest.approx(serving.capacity.value)
    point = serving.pool.operating_point
    batch = point.curve.batch_at(carried(serving).value)
    assert batch < 1 < point.curve.batch.max() < 8
    assert seats.used.value == pytest.approx(batch / point.curve.batch.max())
    blocks = serving.pool.kv.sequence_block_count
    assert memory.used.value == pytest.approx(
        batch * (256 + 16) / 16 / blocks + 0.5 * batch / blocks, rel=0.01
    )
    assert double(serving, "scheduler").gain_ratio > 1.1
    assert double(serving, "hbm_capacity").gain_ratio == pytest.approx(1.0)


def test_a_slow_kv_link_is_what_external_io_doubles(planner):
    serving = planner.plan(APART).serving
    link = serving.prefill.link
    assert serving.capacity.value == pytest.approx(link.capacity_request_per_s.value), "the link binds"
    load = load_of(serving, "external_io")
    assert load.saturation is not None
    assert load.saturation.value == pytest.approx(link.capacity_request_per_s.value)
    found = double(serving, "external_io")
    assert found.gain_ratio > 1.5
    assert found.first_token_ratio < 1
    assert found.decode_step_ratio == 1.0


def test_the_front_end_is_passed_outside_of_steps(planner):
    """A quicker front end answers sooner; it carries no more, and never binds."""
    serving = planner.plan({}).serving
    assert serving.front_end_s > 0
    found = double(serving, "external_io")
    assert found.gain_ratio == 1.0
    assert found.first_token_ratio < 1
    assert load_of(serving, "external_io").saturation is None


def test_rows_are_of_resources_that_the_plan_uses(planner):
    rows = findings_of(planner, {}).tables["doublings"]
    names = [row["resource"] for row in rows]
    assert names == [name for name in RESOURCES if name not in ("scaleup", "scaleout")]
    assert all(row["headroom_fraction"] == pytest.approx(1 - row["used_fraction"]) for row in rows)


def test_all_at_once_is_a_re_plan_of_all_at_once(planner):
    serving = planner.plan(PAIR).serving
    used = used_resources(serving)
    assert together(serving, used).value == pytest.approx(
        with_more(serving, dict.fromkeys(used, 2.0)).capacity.value / serving.capacity.value
    )


def test_a_per_cent_of_gain_costs_what_twice_the_resource_does_over_its_per_cents(planner):
    """By hand: the book's price of twice the HBM of two chips, over the per cents that it brings."""
    planned, findings = planner.plan(PAIR), findings_of(planner, PAIR)
    rows = {row["resource"]: row for row in findings.tables["doublings"]}
    row = rows["hbm_bandwidth"]
    yearly = 2 * resource_prices(CATALOG.price_book("default-2026"), planned.chip)["hbm_bandwidth"].value
    assert row["percent_usd_per_year"] == pytest.approx(yearly / (100 * (row["gain_ratio"] - 1)))
    assert rows["host"]["percent_usd_per_year"] is None, "nobody sells half a host"
    (said,) = (one for one in findings.messages if one.code == "finding.cheapest_gain")
    priced = {name: one["percent_usd_per_year"] for name, one in rows.items() if one["percent_usd_per_year"]}
    assert said.path == min(priced, key=priced.get)


def test_without_prices_no_unit_of_gain_is_named(planner):
    findings = findings_of(planner, {"economics.price_book": "rail-only-2024"})
    assert all(row["percent_usd_per_year"] is None for row in findings.tables["doublings"])
    assert "finding.cheapest_gain" not in {one.code for one in findings.messages}
