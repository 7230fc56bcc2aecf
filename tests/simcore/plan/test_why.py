"""Every closed-form number explains itself: its tree has its value, and moves as a re-plan moves."""

import json
import math

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from simcore import why
from simcore.plan import plan
from simcore.plan.kv_tiers import kv_bytes_per_token_per_chip
from simcore.plan.offload import recompute_cost
from simcore.scenario import Scenario, apply_overrides

# Four users on one lane: the batch, and with constant lengths the context, stay where they are.
HELD = {
    "name": "held",
    "hardware": {"chip_count": 2},
    "serving": {
        "parallelism": {"tp": 2},
        "max_model_len": 4096,
        "scheduler": {"kind": "chunked_prefill", "max_num_seqs": 64, "max_num_batched_tokens": 2048},
    },
    "workload": {
        "arrivals": {"kind": "closed_loop", "concurrency": 4},
        "lengths": {"kind": "constant", "input_tokens": 512, "output_tokens": 64},
        "request_count": 20,
    },
}
SCENARIOS = {
    "tensor parallel": {},
    "one chip": {"hardware.chip_count": 1, "serving.parallelism.tp": 1},
    "pipeline": {"hardware.chip_count": 4, "serving.parallelism.pp": 2},
    "experts": {"model.name": "qwen3-30b-a3b"},
    "ranks that share experts": {
        "model.name": "qwen3-30b-a3b", "hardware.chip_count": 4,
        "serving.parallelism": {"tp": 2, "dp": 2, "ep": 4, "expert_imbalance_ratio": 1.2},
    },
    "ranks that share slices": {
        "model.name": "qwen3-30b-a3b", "hardware.chip_count": 4, "serving.parallelism": {"tp": 2, "dp": 2},
    },
    "ranks across domains": {
        "model.name": "qwen3-30b-a3b", "hardware.chip_count": 16, "serving.parallelism": {"tp": 1, "dp": 16, "ep": 16},
    },
    "latent attention": {"model.name": "deepseek-v3", "hardware.chip_count": 16, "serving.parallelism.tp": 16},
    "sliding window": {"model.name": "gemma-3-27b"},
    "over PCIe": {"hardware.chip": "nvidia-rtx-pro-6000"},
    "naive attention": {"serving.attention.kind": "naive"},
    "open arrivals": {"workload.arrivals": {"kind": "poisson", "request_per_s": 4.0}},
    "a cluster": {"hardware.chip_count": 1024},
    "rail only": {"hardware.chip_count": 1024, "topology.kind": "rail_only"},
    "islands": {
        "hardware.chip_count": 1024, "topology.kind": "rail_only", "topology.tiers": 1, "topology.radix": 32,
        "workload.kind": "none",
    },
    "optical pod": {"hardware.chip": "tpu-v4", "hardware.chip_count": 4096, "workload.kind": "none"},
    "few slices": {"hardware.chip_count": 2048, "reliability.slice_chips": 256, "workload.kind": "none"},
}  # fmt: skip


@pytest.fixture(params=SCENARIOS, scope="module")
def planned(request, planner):
    return planner.plan(SCENARIOS[request.param], HELD)


def test_the_tree_of_every_metric_evaluates_to_the_metric(planned):
    for metric, term in planned.terms.items():
        assert why.evaluate(term, {}) == pytest.approx(planned.metrics[metric], rel=1e-12), metric


def test_the_tree_of_every_number_in_a_table_evaluates_to_it(planned):
    for name, term in planned.table_terms.items():
        assert why.evaluate(term, {}) == pytest.approx(term.value, rel=1e-12), name


def test_every_leaf_says_where_it_comes_from(planned):
    for metric, term in planned.why.items():
        without = {
            one.name for one in why.leaves(term) if not (one.source or one.path or one.kind == "constant")
        }
        assert not without, metric


def test_every_metric_is_finite_and_none_is_negative(planned):
    for metric, value in planned.metrics.items():
        assert math.isfinite(value), metric
        assert value >= 0, metric


def test_trees_print_as_text_and_latex(planned):
    for metric, term in planned.why.items():
        assert why.as_text(term).startswith(f"{term.name} = "), metric
        assert why.as_latex(term).count("{") == why.as_latex(term).count("}"), metric


def replanned(figure, factor):
    document, _ = apply_overrides(HELD, {f"hardware.chip_overrides.{figure}": f"x{factor:.17f}"})
    return plan(Scenario.parse(document))


MOVED = {
    "bf16_flop_per_s": ("compute.decode_step_s", "compute.prefill_step_s"),
    "hbm_bytes_per_s": ("compute.decode_step_s", "compute.prefill_step_s"),
    "scaleup_bytes_per_s": (
        "compute.decode_step_s",
        "compute.prefill_step_s",
        "fabric.collective.all_reduce_s",
    ),
    "hbm_visible_bytes": (
        "memory.kv_bytes_per_chip",
        "memory.kv_block_count",
        "memory.kv_token_capacity",
        "memory.max_concurrency_at_max_len",
    ),
    "tdp_w": ("cost.power_w", "cost.opex_usd_per_hour", "cost.tco_usd_per_year"),
}


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(sorted(MOVED)), st.floats(0.7, 3.0))
def test_a_tree_with_another_figure_is_the_plan_of_that_figure(planner, figure, factor):
    before, after = planner.plan({}, HELD), replanned(figure, factor)
    figures = {figure: getattr(after.chip, figure)}
    assert after.serving.pool.operating_point.batch == before.serving.pool.operating_point.batch
    for metric in MOVED[figure]:
        assert why.evaluate(before.terms[metric], figures) == pytest.approx(
            after.metrics[metric], rel=1e-9
        ), metric


# Serving scenarios whose batch and context do not follow the chip: every closed form is then a function of figures.
STEADY = (
    "tensor parallel",
    "one chip",
    "pipeline",
    "experts",
    "latent attention",
    "sliding window",
    "over PCIe",
)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(STEADY),
    st.sampled_from(sorted(MOVED)),
    st.floats(0.8, 3.0),
    st.sampled_from([4, 16, 48]),
    st.sampled_from([64, 512, 1500]),
)
def test_all_memory_and_step_times_of_any_scenario_move_as_its_plan_moves(
    planner, body, figure, factor, users, prompt
):
    overrides = SCENARIOS[body] | {
        "workload.arrivals.concurrency": users,
        "workload.lengths.input_tokens": prompt,
    }
    before = planner.plan(overrides, HELD)
    assume(getattr(before.chip, figure))  # a chip without scale-up links keeps none
    after = planner.plan(overrides | {f"hardware.chip_overrides.{figure}": f"x{factor:.17f}"}, HELD)
    points = [planned.serving.pool.operating_point for planned in (before, after)]
    assume(points[0].batch == points[1].batch)  # the batch is a leaf of its own
    assume(points[0].context_tokens == points[1].context_tokens)
    figures = {figure: getattr(after.chip, figure)} | _unfolded_elsewhere(after)
    for metric, tree in before.why.items():
        if metric.startswith(("memory.", "compute.")):
            expected = pytest.approx(after.why[metric].value, rel=1e-9, abs=1e-12)
            assert why.evaluate(tree, figures) == expected, (metric, figure)


def _unfolded_elsewhere(planned):
    """Leaves of the numbers on offload whose own trees stand in other numbers, which move above."""
    cost, kv = recompute_cost(planned.serving), kv_bytes_per_token_per_chip(planned.serving.pool.kv)
    return {term.name: term.value for term in (cost.fixed_s, cost.s_per_token, cost.s_per_token_context, kv)}


def test_a_tree_survives_its_document(planned):
    for metric, term in planned.why.items():
        again = why.from_dict(json.loads(json.dumps(why.as_dict(term))))
        assert why.as_text(again) == why.as_text(term), metric
        assert why.as_latex(again) == why.as_latex(term), metric


@pytest.mark.parametrize("figure", sorted(MOVED))
def test_the_metrics_that_are_said_to_move_do_move(planner, figure):
    before, after = planner.plan({}, HELD), replanned(figure, 2.0)
    assert any(before.metrics[metric] != after.metrics[metric] for metric in MOVED[figure])


def test_a_tree_with_another_input_is_the_plan_of_that_input(planner):
    before = planner.plan({}, HELD)
    after = planner.plan({"serving.kv.gpu_memory_utilization": 0.8}, HELD)
    for metric in ("memory.kv_bytes_per_chip", "memory.kv_token_capacity"):
        tree = before.terms[metric]
        assert why.evaluate(tree, {"serving.kv.gpu_memory_utilization": 0.8}) == after.metrics[metric]
