"""Experts that data parallel ranks share: what a chip holds, computes and waits for."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.compute.operator_time import later_s, operator_paces, operator_time
from simcore.compute.ops import Operator, layer_operators
from simcore.compute.step_table import StepTimeTable, build_step_table
from simcore.compute.steps import decode_shares, decode_step, prefill_shares, prefill_step, step_model
from simcore.parallelism import Parallelism
from simcore.why import constant
from tests.simcore.compute.shapes import SHAPES, make_architecture, make_calibration, make_chip

MAX_TOKENS, MAX_SEQUENCES = 256, 32
EXPERTS = ("moe", "shared")


def operators(shape: str = "moe", **degrees: float) -> dict[str, Operator]:
    cut = Parallelism(**{"tp": 1, **degrees})
    made = layer_operators(
        make_architecture(**SHAPES[shape]), make_chip(), cut, weights_dtype="bf16", kv_dtype="bf16"
    )
    return {op.name: op for op in made}


def table(shape: str, cut: Parallelism, *, kernels: bool = True) -> StepTimeTable:
    return build_step_table(
        make_architecture(**SHAPES[shape]),
        make_chip(),
        make_calibration(kernels=kernels),
        cut,
        weights_dtype="bf16",
        kv_dtype="bf16",
        max_tokens=MAX_TOKENS,
        max_sequences=MAX_SEQUENCES,
        communication_s=np.full(MAX_TOKENS + 1, 1e-4),
        exchange_s=np.full(MAX_TOKENS + 1, 3e-4),
    )


@pytest.mark.parametrize("shape", EXPERTS)
@pytest.mark.parametrize(("tp", "dp"), [(1, 2), (2, 4), (4, 16)])
def test_a_chip_holds_its_share_of_experts_and_does_the_work_of_a_rank_alone(
    shape: str, tp: int, dp: int
) -> None:
    alone, shared = operators(shape, tp=tp)["experts"], operators(shape, tp=tp, dp=dp, ep=tp * dp)["experts"]
    assert shared.weight_bytes.value == pytest.approx(alone.weight_bytes.value / dp)
    assert shared.flop_per_token.value == alone.flop_per_token.value
    assert shared.rows_per_token is not None
    assert shared.rows_per_token.value == dp * 1.0 * shared.experts_per_token.value  # type: ignore[union-attr]


@pytest.mark.parametrize("shape", EXPERTS)
def test_everything_but_experts_is_that_of_a_rank_alone(shape: str) -> None:
    alone, shared = operators(shape, tp=2), operators(shape, tp=2, dp=4, ep=8)
    for name in alone.keys() - {"experts"}:
        assert shared[name].weight_bytes.value == alone[name].weight_bytes.value, name
        assert shared[name].io_bytes_per_token.value == alone[name].io_bytes_per_token.value, name


@given(tokens=st.integers(1, 4096), dp=st.sampled_from([2, 8, 64]))
def test_the_experts_that_are_reached_are_those_of_the_tokens_of_all_ranks(tokens: int, dp: int) -> None:
    alone, shared = operators()["experts"], operators(dp=dp, ep=dp)["experts"]
    mine, all_of_them = np.array([float(tokens)]), np.array([float(tokens * dp)])
    assert shared.touched_fraction(mine) == pytest.approx(alone.touched_fraction(all_of_them))


def test_rows_are_moved_on_the_chips_that_have_their_experts() -> None:
    """Whole experts: a chip moves k/ep of all rows, as wide as the residual; slices: all rows."""
    arch = make_architecture(**SHAPES["moe"])
    whole, sliced = operators(dp=8, ep=8)["experts"], operators(dp=8, ep=1)["experts"]
    width = 3.0 * arch.moe_intermediate / 8
    assert whole.io_bytes_per_token.value == pytest.approx(2 * 8 * 8 * (2 * arch.hidden / 8 + width))
    assert sliced.io_bytes_per_token.value == pytest.approx(2 * 8 * 8 * (2 * arch.hidden + width))


@settings(max_examples=40, deadline=None)
@given(
    shape=st.sampled_from(EXPERTS),
    tp=st.sampled_from([1, 2]),
    dp=st.sampled_from([1, 4, 16]),
    whole=st.booleans(),
    ratio=st.sampled_from([1.0, 1.3, 4.0]),
    kernels=st.booleans(),
    batch=st.integers(1, MAX_SEQUENCES),
)
def test_table_and_tree_agree(
    shape: str, tp: int, dp: int, whole: bool, ratio: float, kernels: bool, batch: int
) -> None:
    cut = Parallelism(tp=tp, dp=dp, ep=tp * dp if whole else 1, expert_imbalance_ratio=ratio)
    made = table(shape, cut, kernels=kernels)
    model = step_model(
        make_architecture(**SHAPES[shape]),
        make_chip(),
        make_calibration(kernels=kernels),
        cut,
        weights_dtype="bf16",
        kv_dtype="bf16",
        max_tokens=MAX_TOKENS,
    )
    given_s = {"communication_s": constant(1e-4), "exchange_s": constant(3e-4)}
    tree = decode_step(model, batch=batch, context_tokens=900.0, **given_s)
    assert tree.value == pytest.approx(
        decode_shares(made, batch=batch, context_tokens=900.0).step_s, rel=1e-9
    )
    tree = prefill_step(model, tokens=8 * batch, **given_s)
    assert tree.value == pytest.approx(prefill_shares(made, tokens=8 * batch).step_s, rel=1e-9)


@pytest.mark.parametrize("kernels", [False, True])
def test_busier_experts_make_every_step_later_and_nothing_else(kernels: bool) -> None:
    made = [
        table("moe", Parallelism(tp=1, dp=8, ep=8, expert_imbalance_ratio=ratio), kernels=kernels)
        for ratio in (1.0, 1.5, 2.0)
    ]
    for less, more in pairwise(made):
        assert (more.comm_s >= less.comm_s).all()
        assert more.comm_s[MAX_TOKENS] > less.comm_s[MAX_TOKENS]
        np.testing.assert_array_equal(more.linear_s, less.linear_s)
        assert more.flop_per_token == less.flop_per_token


@pytest.mark.parametrize("tokens", [1, 64, 16384])
def test_the_busiest_chip_is_at_most_so_many_times_later(tokens: int) -> None:
    op = operators(dp=8, ep=8, expert_imbalance_ratio=3.0)["experts"]
    pace = operator_paces([op], make_chip(), make_calibration(kernels=True))["moe", "bf16"]
    amount = np.array([float(tokens)])
    mean_s = operator_time(op, amount, pace).whole_s
    assert (later_s(op, amount, pace) >= 0).all()
    assert (later_s(op, amount, pace) <= 2.0 * mean_s * (1 + 1e-12)).all()


def test_arithmetic_of_the_busiest_is_so_many_times_the_mean_where_nothing_else_counts() -> None:
    op = operators(dp=8, ep=8, expert_imbalance_ratio=3.0)["experts"]
    pace = operator_paces([op], make_chip(hbm_bytes_per_s=1e30), make_calibration())["moe", "bf16"]
    amount = np.array([1e6])
    mean, most = (operator_time(one, amount, pace).arithmetic_s for one in (op, op.busiest))
    assert most == pytest.approx(3.0 * mean)


def test_sliced_experts_have_no_busiest_chip() -> None:
    assert operators(dp=8, ep=1, expert_imbalance_ratio=3.0)["experts"].imbalance is None


@pytest.mark.parametrize("shape", ["dense", "latent"])
def test_a_dense_model_is_cut_as_if_its_rank_were_alone(shape: str) -> None:
    alone, many = (table(shape, Parallelism(tp=2, dp=dp)) for dp in (1, 4))
    assert replace(alone, linear_s=many.linear_s, comm_s=many.comm_s).flop_per_token == many.flop_per_token
    np.testing.assert_array_equal(alone.linear_s, many.linear_s)
    np.testing.assert_array_equal(alone.comm_s, many.comm_s)
