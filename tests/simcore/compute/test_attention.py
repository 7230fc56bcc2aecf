"""Attention's traffic: exponents of the FlashAttention theorems, and where K and V stay on chip."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simcore.compute.attention import (
    AttentionCost,
    Flash,
    Naive,
    attention_cost,
    fits_l2,
    flash_bytes_per_pair,
)
from simcore.compute.local_shape import LocalShape
from simcore.parallelism import Parallelism
from tests.simcore.compute.shapes import SHAPES, make_architecture, make_calibration, make_chip


def cost(
    shape: str = "dense", *, tp: int = 1, naive: bool = False, kv_dtype: str = "bf16", **chip: object
) -> AttentionCost:
    return attention_cost(
        make_architecture(**SHAPES[shape]),
        make_chip(**chip),
        make_calibration(),
        Parallelism(tp=tp),
        kv_dtype=kv_dtype,
        attention=Naive() if naive else Flash(),
        context_tokens=8192,
    )


def local(**changes: object) -> LocalShape:
    return LocalShape.of(make_architecture(**changes), Parallelism(tp=1))


@given(sram=st.sampled_from([64e3, 128e3, 256e3]), context=st.sampled_from([2**17, 2**18, 2**19]))
def test_without_l2_half_the_sram_doubles_the_traffic(sram: float, context: int) -> None:
    whole = flash_bytes_per_pair(local(), make_chip(l2_bytes=1e3, sram_bytes_per_core=2 * sram), context)
    half = flash_bytes_per_pair(local(), make_chip(l2_bytes=1e3, sram_bytes_per_core=sram), context)
    assert half.value == pytest.approx(2 * whole.value, rel=0.02)


def test_within_l2_keys_and_values_cross_once() -> None:
    chip = make_chip()
    assert fits_l2(local(), chip, 8192)
    once = flash_bytes_per_pair(local(), chip, 8192)
    assert once.value * 8192**2 == 2 * 8192 * 128 * 8 * 2


def test_a_long_context_leaves_l2() -> None:
    assert not fits_l2(local(), make_chip(), 2**20)
    assert fits_l2(local(), make_chip(l2_bytes=None), 2**20)


def test_naive_attention_moves_four_passes_over_all_scores() -> None:
    """FlashAttention figure 2: one N×N pass of 16 heads, batch 64, N = 1,024 in 16 bit is 2.147 GB."""
    one_pass = 64 * 16 * 1024**2 * 2
    assert one_pass == pytest.approx(2.147e9, rel=1e-3)
    slow = cost(naive=True, bf16_flop_per_s=1e30)
    bandwidth = 0.819 * 3.35e12
    # two computed pairs per useful one, four passes of two bytes, 32 heads
    assert slow.prefill_s_per_pair.value == pytest.approx(2 * 4 * 2 * 32 / bandwidth)


def test_prefill_is_arithmetic_bound_on_a_tiled_kernel() -> None:
    flash = cost()
    assert flash.prefill_compute_fraction == pytest.approx(1.0)
    assert flash.prefill_s_per_pair.value == pytest.approx(4 * 32 * 128 / (0.554 * 989e12))


def test_decode_reads_each_cached_byte_once() -> None:
    assert cost().decode_s_per_token.value == pytest.approx(4096 / (0.956 * 3.35e12))
    assert cost(kv_dtype="fp8").decode_s_per_token.value == pytest.approx(2048 / (0.903 * 3.35e12))


def test_latent_attention_shifts_decode_towards_arithmetic() -> None:
    assert cost("latent").decode_compute_fraction > 5 * cost().decode_compute_fraction


def test_tensor_parallelism_splits_the_heads() -> None:
    assert cost(tp=4).prefill_s_per_pair.value == pytest.approx(cost().prefill_s_per_pair.value / 4)
