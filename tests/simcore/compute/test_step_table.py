"""The table that the engine reads holds what the expression trees say, and obeys the laws of a step."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.compute.attention import Naive
from simcore.compute.step_table import StepTimeTable, build_step_table
from simcore.compute.steps import decode_step, prefill_step, step_model
from simcore.parallelism import Parallelism
from simcore.why import constant
from tests.simcore.compute.shapes import SHAPES, make_architecture, make_calibration, make_chip

MAX_TOKENS, MAX_SEQUENCES = 512, 64


def table(
    shape: str = "dense",
    *,
    tp: int = 1,
    pp: int = 1,
    weights_dtype: str = "bf16",
    kv_dtype: str = "bf16",
    kernels: bool = False,
    engine: str = "",
    **chip: object,
) -> StepTimeTable:
    return build_step_table(
        make_architecture(**SHAPES[shape]),
        make_chip(**chip),
        make_calibration(kernels=kernels),
        Parallelism(tp=tp, pp=pp),
        weights_dtype=weights_dtype,
        kv_dtype=kv_dtype,
        max_tokens=MAX_TOKENS,
        max_sequences=MAX_SEQUENCES,
        communication_s=np.full(MAX_TOKENS + 1, 1e-4),
        engine=engine,
    )


def decode_s(table: StepTimeTable, batch: int, context: float) -> float:
    attention = batch * (
        context * table.decode_attention_s_per_token
        + min(context, table.window_tokens) * table.decode_attention_s_per_window_token
        + table.decode_attention_s_per_sequence
    )
    host = table.overhead_s + batch * table.overhead_s_per_sequence
    return float(table.linear_s[batch] + table.head_s[batch] + table.comm_s[batch]) + attention + host


def prefill_s(table: StepTimeTable, tokens: int, done: float) -> float:
    mean = done + tokens / 2
    attention = tokens * (
        mean * table.prefill_attention_s_per_token_context
        + min(mean, table.window_tokens) * table.prefill_attention_s_per_window_token
    )
    host = table.overhead_s + table.overhead_s_per_sequence + table.prefill_attention_s
    return float(table.linear_s[tokens] + table.head_s[1] + table.comm_s[tokens]) + attention + host


@settings(max_examples=80, deadline=None)
@given(
    shape=st.sampled_from(sorted(SHAPES)),
    tp=st.sampled_from([1, 2, 8, 16]),
    pp=st.sampled_from([1, 3]),
    weights=st.sampled_from(["bf16", "fp8", "nvfp4", "int4"]),
    kv=st.sampled_from(["bf16", "fp8"]),
    batch=st.integers(1, MAX_SEQUENCES),
    context=st.integers(1, 200_000),
    kernels=st.booleans(),
    engine=st.sampled_from(["", "eager 1.0"]),
)
def test_table_and_expression_tree_agree(
    shape: str,
    tp: int,
    pp: int,
    weights: str,
    kv: str,
    batch: int,
    context: int,
    kernels: bool,
    engine: str,
) -> None:
    made = table(shape, tp=tp, pp=pp, weights_dtype=weights, kv_dtype=kv, kernels=kernels, engine=engine)
    model = step_model(
        make_architecture(**SHAPES[shape]),
        make_chip(),
        make_calibration(kernels=kernels),
        Parallelism(tp=tp, pp=pp),
        weights_dtype=weights,
        kv_dtype=kv,
        max_tokens=MAX_TOKENS,
        engine=engine,
    )
    comm = constant(1e-4)
    tree = decode_step(model, batch=batch, context_tokens=context, communication_s=comm)
    assert tree.value == pytest.approx(decode_s(made, batch, context), rel=1e-9)
    tree = prefill_step(model, tokens=batch * 8, done_tokens=context, communication_s=comm)
    assert tree.value == pytest.approx(prefill_s(made, batch * 8, context), rel=1e-9)


@pytest.mark.parametrize("kernels", [False, True])
@pytest.mark.parametrize("shape", sorted(SHAPES))
def test_attribution_sums_to_the_whole(shape: str, kernels: bool) -> None:
    made = table(shape, tp=2, kernels=kernels)
    parts = made.linear_compute_s + made.linear_hbm_s + made.linear_launch_s
    np.testing.assert_allclose(parts, made.linear_s, rtol=1e-12)
    head_s = made.head_compute_s + made.head_hbm_s  # the rest: what its tiles leave idle
    assert (head_s <= made.head_s * (1 + 1e-12)).all()
    if not kernels:
        np.testing.assert_allclose(head_s, made.head_s, rtol=1e-12)
    for array in (made.linear_compute_s, made.linear_hbm_s, made.linear_launch_s, made.head_hbm_s):
        assert (array >= 0).all()


@pytest.mark.parametrize("kernels", [False, True])
@pytest.mark.parametrize("shape", sorted(SHAPES))
def test_more_tokens_never_take_less_time(shape: str, kernels: bool) -> None:
    made = table(shape, kernels=kernels)
    assert (np.diff(made.linear_s) >= -1e-15).all()
    assert (np.diff(made.head_s) >= 0).all()
    assert made.linear_s[0] == made.head_s[0] == 0.0


@pytest.mark.parametrize("kernels", [False, True])
@pytest.mark.parametrize("shape", sorted(SHAPES))
def test_a_faster_tier_never_slows_a_step(shape: str, kernels: bool) -> None:
    slow = table(shape, kernels=kernels)
    fast = table(shape, kernels=kernels, hbm_bytes_per_s=1e30)
    assert (fast.linear_s <= slow.linear_s).all()
    # with infinite bandwidth nothing waits for memory
    assert fast.linear_hbm_s.max() == pytest.approx(0.0, abs=1e-12)
    np.testing.assert_allclose(fast.linear_compute_s, slow.linear_compute_s)


def test_an_eager_host_sets_the_pace_of_small_steps_only() -> None:
    graph, eager = table(kernels=True), table(kernels=True, engine="eager 1.0")
    assert eager.linear_s[1] == pytest.approx(32 * 400e-6)
    assert eager.linear_s[1] > 1.5 * graph.linear_s[1]
    parts = eager.linear_compute_s + eager.linear_hbm_s + eager.linear_launch_s
    np.testing.assert_allclose(parts, eager.linear_s, rtol=1e-12)
    slow_chip = table(kernels=True, engine="eager 1.0", hbm_bytes_per_s=3e11)
    assert slow_chip.linear_s[1] == table(kernels=True, hbm_bytes_per_s=3e11).linear_s[1]


def test_dense_weights_are_read_once_per_step_whatever_the_batch() -> None:
    made = table()
    assert made.weight_bytes_per_step[1] == made.weight_bytes_per_step[MAX_TOKENS] == 2 * 32 * 218_103_808


def test_experts_read_grow_from_the_chosen_to_all() -> None:
    made, arch = table("moe"), make_architecture(**SHAPES["moe"])
    expert_bytes = 2 * 3 * arch.hidden * arch.moe_intermediate * arch.layers
    shared = made.weight_bytes_per_step[1] - arch.experts_per_token * expert_bytes
    assert made.weight_bytes_per_step[MAX_TOKENS] == pytest.approx(
        shared + arch.experts * expert_bytes, rel=1e-6
    )
    distinct = arch.experts * (1 - (1 - 8 / 128) ** 16)
    assert made.weight_bytes_per_step[16] == pytest.approx(shared + distinct * expert_bytes, rel=1e-9)


def test_tensor_parallelism_splits_weights_but_replicates_scarce_kv_heads() -> None:
    one, sixteen = table(), table(tp=16)
    assert sixteen.kv_bytes_per_context_token == one.kv_bytes_per_context_token / 8
    assert sixteen.weight_bytes_per_step[1] > one.weight_bytes_per_step[1] / 16


def test_the_latent_cache_is_on_every_rank() -> None:
    assert table("latent").kv_bytes_per_context_token == 32 * (512 + 64) * 2
    assert table("latent", tp=8).kv_bytes_per_context_token == 32 * (512 + 64) * 2


def test_narrow_kv_halves_the_bytes_of_a_context_token() -> None:
    assert table(kv_dtype="fp8").kv_bytes_per_context_token == table().kv_bytes_per_context_token / 2


def test_naive_attention_costs_more_per_pair_and_nothing_else() -> None:
    flash = table()
    naive = build_step_table(
        make_architecture(),
        make_chip(),
        make_calibration(),
        Parallelism(tp=1),
        weights_dtype="bf16",
        kv_dtype="bf16",
        attention=Naive(),
        max_tokens=MAX_TOKENS,
        max_sequences=MAX_SEQUENCES,
        communication_s=np.zeros(MAX_TOKENS + 1),
    )
    assert naive.prefill_attention_s_per_token_context > 2 * flash.prefill_attention_s_per_token_context
    assert naive.prefill_attention_compute_fraction < 1.0
    np.testing.assert_array_equal(naive.linear_s, flash.linear_s)
