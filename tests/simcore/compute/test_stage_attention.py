"""Kinds of layers added up: what grows with the context, what stops at a window, what is paid per sequence."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simcore.catalog.parameters import parameter_terms
from simcore.compute.attention import Flash
from simcore.compute.ops import bottleneck_stage, layer_operators
from simcore.compute.stage_attention import StageAttention, stage_attention
from simcore.compute.step_table import launch
from simcore.parallelism import Parallelism, pipeline_stages
from tests.simcore.compute.shapes import SHAPES, make_architecture, make_calibration, make_chip

BANDWIDTH = 0.956 * 3.35e12  # decode attention of the test calibration


def cost(shape: str, *, tp: int = 1, pp: int = 1, **changes: object) -> StageAttention:
    arch = make_architecture(**(SHAPES[shape] | changes))
    parallelism = Parallelism(tp=tp, pp=pp)
    return stage_attention(
        arch,
        make_chip(),
        make_calibration(),
        parallelism,
        stage=bottleneck_stage(arch, pp),
        kv_dtype="bf16",
        attention=Flash(),
        context_tokens=8192,
    )


def decode_s(of: StageAttention, context: float) -> float:
    window = min(context, of.window_tokens) * of.decode_s_per_window_token.value
    return context * of.decode_s_per_token.value + window + of.decode_s_per_sequence.value


def test_full_and_window_layers_share_the_work_by_their_counts() -> None:
    plain, mixed = cost("dense"), cost("window")
    assert mixed.decode_s_per_token.value == pytest.approx(plain.decode_s_per_token.value / 2)
    assert mixed.decode_s_per_window_token.value == pytest.approx(plain.decode_s_per_token.value / 2)
    assert (plain.window_tokens, mixed.window_tokens) == (0, 1024)


def test_recurrent_layers_read_their_state_once_per_step_and_nothing_per_token() -> None:
    plain, hybrid = cost("dense"), cost("recurrent")
    assert hybrid.decode_s_per_token.value == pytest.approx(plain.decode_s_per_token.value * 8 / 32)
    states = 2 * 24 * 2**21 / BANDWIDTH
    ends = plain.decode_s_per_sequence.value * 8 / 32
    assert hybrid.decode_s_per_sequence.value == pytest.approx(states + ends)
    assert cost("recurrent", tp=4).decode_s_per_sequence.value == pytest.approx((states + ends) / 4)


def test_sparse_attention_stops_growing_at_its_top_k_but_for_the_indexer() -> None:
    dense, sparse = cost("latent"), cost("sparse")
    assert sparse.window_tokens == 2048
    assert sparse.decode_s_per_window_token.value == pytest.approx(dense.decode_s_per_token.value)
    assert sparse.kv_bytes_per_token.value == 32 * 132
    assert decode_s(sparse, 128_000) < 0.2 * decode_s(dense, 128_000)
    # below the top-k everything is read, and the indexer comes on top
    assert decode_s(sparse, 1000) > decode_s(dense, 1000)


@given(near=st.integers(1, 2048), far=st.integers(2049, 1_000_000))
def test_more_context_never_costs_less(near: int, far: int) -> None:
    for shape in ("sparse", "compressed", "recurrent", "two_shapes"):
        of = cost(shape)
        assert decode_s(of, near) <= decode_s(of, far)


def test_compressed_layers_read_one_entry_per_ratio() -> None:
    """512 entries of 4 tokens: a window of 2,048; local windows of 128 are folded into it."""
    of = cost("compressed")
    assert of.window_tokens == 512 * 4
    entry = 512 * 2
    assert of.kv_bytes_per_token.value == pytest.approx(15 * entry / 128 + 15 * 132 / 4)
    one = (
        cost("compressed", context_groups=(), window_tokens=0, window_layers=0).decode_s_per_token.value / 32
    )
    # 15 sparse layers at a quarter entry, and 32 layers with a window of 128 tokens
    expected = one * (15 / 4 + 32 * 128 / 2048)
    assert of.decode_s_per_window_token.value == pytest.approx(expected)


def test_layers_of_two_shapes_cost_by_their_own_heads() -> None:
    of = cost("two_shapes")
    full, window = 2 * 4 * 256 * 2, 2 * 16 * 128 * 2
    assert of.kv_bytes_per_token.value == 8 * full
    ratio = of.decode_s_per_window_token.value / of.decode_s_per_token.value
    assert ratio == pytest.approx((24 * window) / (8 * full), rel=0.35)


@pytest.mark.parametrize("shape", sorted(SHAPES))
def test_operators_hold_every_weight_of_new_kinds_once(shape: str) -> None:
    arch = make_architecture(**SHAPES[shape])
    operators = layer_operators(arch, make_chip(), Parallelism(tp=1), weights_dtype="bf16", kv_dtype="bf16")
    read = sum(op.count.value * op.weight_bytes.value for op in operators)
    names = ("attention", "recurrent", "mlp", "experts", "experts_latent", "shared_experts", "router")
    held = 2 * sum(parameter_terms(arch).groups[name] for name in names)
    assert read == pytest.approx(held, rel=2e-3)


@pytest.mark.parametrize("shape", sorted(SHAPES))
@pytest.mark.parametrize("pp", [1, 3, 7])
def test_stages_share_out_every_kind_of_layer(shape: str, pp: int) -> None:
    arch = make_architecture(**SHAPES[shape])
    stages = pipeline_stages(arch, pp)
    assert sum(stage.layers for stage in stages) == arch.layers
    assert sum(stage.full_layers for stage in stages) == arch.full_layers
    assert sum(stage.window_layers for stage in stages) == arch.window_layers
    assert sum(stage.recurrent_layers for stage in stages) == arch.recurrent_layers
    assert sum(stage.moe_layers for stage in stages) == arch.moe_layers
    assert sum(stage.share for stage in stages) == pytest.approx(1)
    assert all(min(stage.full_layers, stage.dense_layers, stage.window_layers) >= 0 for stage in stages)


def test_blocks_not_layers_are_launched() -> None:
    """32 layers of one block each cost as much to launch as 16 of two."""
    arch = make_architecture(**SHAPES["one_block_per_layer"])
    stage = pipeline_stages(arch, 1)[0]
    assert stage.depth == 16
    operators = layer_operators(arch, make_chip(), Parallelism(tp=1), weights_dtype="bf16", kv_dtype="bf16")
    assert launch(operators, make_calibration(), stage.depth).value == pytest.approx(16 * 22e-6)


def test_layers_that_choose_their_keys_launch_more() -> None:
    arch = make_architecture(**SHAPES["sparse"])
    operators = layer_operators(arch, make_chip(), Parallelism(tp=1), weights_dtype="bf16", kv_dtype="bf16")
    without = [op for op in operators if op.name != "index_query"]
    more = launch(operators, make_calibration(), 32).value - launch(without, make_calibration(), 32).value
    assert more == pytest.approx(32 * 85e-6)
