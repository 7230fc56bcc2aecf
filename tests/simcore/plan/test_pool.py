"""Laws of the pool: lanes of a pipeline, steps that agree with the engine's table, capacity that only grows."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.compute.steps import decode_shares
from simcore.errors import InputError
from simcore.plan import plan
from simcore.plan.serving import build_pool, lane_block_count
from simcore.scenario import Scenario, apply_overrides

CLOSED = {"workload.arrivals": {"kind": "closed_loop", "concurrency": 8}}


def capacity(planned):
    return planned.serving.pool.operating_point.capacity_request_per_s


def test_the_decode_step_of_the_tree_is_that_of_the_engines_table(planner):
    planned = planner.plan({**CLOSED, "hardware.chip_count": 4, "serving.parallelism.tp": 4})
    point = planned.serving.pool.operating_point
    shares = decode_shares(planned.serving.pool.step_table, batch=8, context_tokens=point.context_tokens)
    in_table = shares.step_s
    assert planned.metrics["compute.decode_step_s"] == pytest.approx(in_table, rel=1e-9)


def test_a_router_that_cannot_look_after_all_replicas_is_refused_before_anything_runs(planner):
    with pytest.raises(InputError, match="4,096 replicas at most, and there are 4,097") as caught:
        planner.plan({"hardware.chip_count": 4_097, "serving.router.kind": "least_kv"})
    assert caught.value.message.path == "serving.router.kind"


def test_one_stage_has_no_lanes(planner):
    pool = planner.plan({"hardware.chip_count": 2}).serving.pool
    assert pool.parallelism.pp == 1
    assert pool.lane_count == pool.replica_count == 2
    assert lane_block_count(pool.kv, pool.parallelism) == pool.kv.sequence_block_count
    assert pool.scheduler.max_num_seqs == pool.kv.max_num_seqs


@pytest.mark.parametrize("pp", [2, 4])
def test_a_pipeline_has_a_lane_per_stage_with_an_even_share(planner, pp):
    planned = planner.plan({"hardware.chip_count": pp, "serving.parallelism": {"tp": 1, "pp": pp}})
    pool = planned.serving.pool
    assert pool.lane_count == pp
    assert pool.chip_count == pp
    assert lane_block_count(pool.kv, pool.parallelism) == pool.kv.sequence_block_count // pp
    assert pool.scheduler.max_num_seqs == pool.kv.max_num_seqs // pp
    assert "pipeline.lanes" in {warning.code for warning in planned.warnings}


def test_a_lanes_step_passes_every_stage(planner):
    """Two stages of half the layers: the same weights are read on the way, so the step is about as long."""
    whole = planner.plan(CLOSED)
    staged = planner.plan({**CLOSED, "hardware.chip_count": 2, "serving.parallelism": {"tp": 1, "pp": 2}})
    ratio = np.array(
        [
            p.serving.pool.step_table.linear_s[256] + p.serving.pool.step_table.overhead_s
            for p in (whole, staged)
        ]
    )
    assert ratio[1] / ratio[0] == pytest.approx(1.0, abs=0.25)


def test_capacity_grows_with_stages_but_not_faster_than_the_chips(planner):
    found = [
        capacity(planner.plan({"hardware.chip_count": pp, "serving.parallelism": {"tp": 1, "pp": pp}}))
        for pp in (1, 2, 4)
    ]
    assert found == sorted(found)
    assert found[2] <= 4 * found[0] * 1.05


def test_capacity_is_proportional_to_replicas(planner):
    one, three = (capacity(planner.plan({"hardware.chip_count": count})) for count in (1, 3))
    assert three == pytest.approx(3 * one)


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(["hbm_bytes_per_s", "bf16_flop_per_s", "scaleup_bytes_per_s", "hbm_visible_bytes"]),
    st.floats(1.0, 4.0),
)
def test_a_better_chip_never_has_less_capacity(planner, figure, factor):
    serving = planner.plan({"hardware.chip_count": 2, "serving.parallelism.tp": 2}).serving
    better = replace(serving.pool.chip, **{figure: getattr(serving.pool.chip, figure) * factor})
    after = build_pool(serving.inputs, better).operating_point.capacity_request_per_s
    assert after >= serving.pool.operating_point.capacity_request_per_s * (1 - 1e-9)


@settings(max_examples=25, deadline=None)
@given(st.floats(0.5, 0.95), st.floats(0.5, 0.95))
def test_more_memory_for_the_engine_never_holds_fewer_tokens(one, other):
    low, high = sorted((one, other))
    found = []
    for share in (low, high):
        document, _ = apply_overrides({"name": "x"}, {"serving.kv.gpu_memory_utilization": share})
        found.append(plan(Scenario.parse(document)).metrics["memory.kv_token_capacity"])
    assert found[0] <= found[1]


def test_longer_requests_have_less_capacity(planner):
    short = capacity(planner.plan({"workload.lengths.output_tokens": 32}))
    long = capacity(planner.plan({"workload.lengths.output_tokens": 320}))
    assert long < short


def test_a_closed_loop_keeps_the_batch_of_its_users(planner):
    assert planner.plan(CLOSED).serving.pool.operating_point.batch == 8


def test_a_faster_scale_up_link_shortens_the_step_only_where_chips_share_layers(planner):
    faster = {"hardware.chip_overrides.scaleup_bytes_per_s": "x2"}
    steps = {}
    for tp in (1, 4):
        base = {
            **CLOSED,
            "hardware.chip_count": 4,
            "serving.parallelism.tp": tp,
            "workload.lengths.input_tokens": 4096,
        }
        steps[tp] = [planner.plan(base | more).metrics["compute.prefill_step_s"] for more in ({}, faster)]
    assert steps[1][0] == steps[1][1]
    assert steps[4][0] > steps[4][1]


def test_a_faster_host_link_shortens_the_step_of_a_pcie_server(planner):
    base = {"hardware.chip": "nvidia-rtx-pro-6000", "hardware.chip_count": 4, "serving.parallelism.tp": 4}
    slow = planner.plan(base)
    fast = planner.plan(base | {"hardware.chip_overrides.pcie_bytes_per_s": "x2"})
    assert fast.metrics["compute.prefill_step_s"] < slow.metrics["compute.prefill_step_s"]
