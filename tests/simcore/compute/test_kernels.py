"""Laws of the kernel formulas: tiles, waves, splits and blocks, as arrays and as expression trees alike."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simcore.catalog.kernels import DecodeKernel, ExpertKernel, GemmKernel, PrefillKernel
from simcore.compute.kernels import (
    constant_numbers,
    constant_terms,
    decode_isolated_s,
    experts_isolated_s,
    gemm_arithmetic_s,
    gemm_isolated_s,
    machine_numbers,
    machine_terms,
    prefill_isolated_s,
)
from simcore.compute.roofline import root_sum
from simcore.why import constant
from tests.simcore.compute.shapes import (
    DECODE_KERNEL,
    EXPERT_KERNEL,
    GEMM_KERNEL,
    PREFILL_KERNEL,
    make_chip,
)

CHIP = make_chip()
CORES = 132


def gemm(
    tokens: float, fan_in: float = 4096, fan_out: float = 4096, kernel: GemmKernel = GEMM_KERNEL
) -> float:
    numbers = constant_numbers(kernel), machine_numbers(CHIP, "bf16")
    shape = {"tokens": tokens, "fan_in": fan_in, "fan_out": fan_out}
    arrays = {name: np.asarray(float(value)) for name, value in shape.items()}
    return float(gemm_isolated_s(*numbers, **arrays, dtype="bf16", exponent=kernel.overlap_exponent))


def prefill(batch: float, tokens: float, heads: float = 32, kernel: PrefillKernel = PREFILL_KERNEL) -> float:
    shape = {"batch": batch, "tokens": tokens, "heads": heads, "kv_heads": 8}
    arrays = {name: np.asarray(float(value)) for name, value in shape.items()}
    constants, machine = constant_numbers(kernel), machine_numbers(CHIP, "bf16")
    return float(prefill_isolated_s(constants, machine, **arrays, exponent=kernel.overlap_exponent))


def decode(batch: float, context: float, kv_heads: float = 8, kernel: DecodeKernel = DECODE_KERNEL) -> float:
    shape = {"batch": batch, "context": context, "heads": 4 * kv_heads, "kv_heads": kv_heads}
    arrays = {name: np.asarray(float(value)) for name, value in shape.items()}
    constants, machine = constant_numbers(kernel), machine_numbers(CHIP, "bf16")
    exponent = kernel.overlap_exponent
    return float(decode_isolated_s(constants, machine, **arrays, kv_dtype="bf16", exponent=exponent))


def experts(tokens: float, kernel: ExpertKernel = EXPERT_KERNEL) -> float:
    shape = {"rows": 8 * tokens, "local_experts": 128, "hidden": 2048, "width": 768}
    arrays = {name: np.asarray(float(value)) for name, value in shape.items()}
    constants, machine = constant_numbers(kernel), machine_numbers(CHIP, "bf16")
    exponent = kernel.overlap_exponent
    return float(experts_isolated_s(constants, machine, **arrays, dtype="bf16", exponent=exponent))


@given(st.integers(1, 8192), st.integers(1, 512))
def test_more_work_never_takes_less_time(tokens: int, more: int) -> None:
    for kernel in (gemm, experts):
        assert kernel(tokens + more) >= kernel(tokens) * (1 - 1e-12)
    for attention in (prefill, decode):
        assert attention(4, tokens + more) >= attention(4, tokens) * (1 - 1e-12)


@given(st.integers(1, 64))
def test_rows_of_one_tile_cost_the_same_arithmetic(rows: int) -> None:
    constants, machine = constant_numbers(GEMM_KERNEL), machine_numbers(CHIP, "bf16")
    width = np.asarray(4096.0)

    def arithmetic_s(tokens: float) -> float:
        return float(
            gemm_arithmetic_s(constants, machine, tokens=np.asarray(tokens), fan_in=width, fan_out=width)
        )

    assert arithmetic_s(64 + rows) == arithmetic_s(128)
    assert arithmetic_s(129) > arithmetic_s(128)


def test_one_tile_more_than_a_wave_starts_another() -> None:
    """Tiles of 64 × 128: 132 of them fill the chip once, the next pays a share of a whole wave."""
    constants, machine = constant_numbers(GEMM_KERNEL), machine_numbers(CHIP, "bf16")
    depth = np.asarray(4096.0)

    def waves_s(tiles: int) -> float:
        columns = np.asarray(128.0 * tiles)
        return float(
            gemm_arithmetic_s(constants, machine, tokens=np.asarray(64.0), fan_in=depth, fan_out=columns)
        )

    inside = waves_s(CORES) - waves_s(CORES - 1)
    across = waves_s(CORES + 1) - waves_s(CORES)
    assert across == pytest.approx(inside + waves_s(CORES) * GEMM_KERNEL.wave_fraction, rel=1e-9)


def test_large_products_reach_the_fitted_share_of_the_peak() -> None:
    n = 16384 * 8
    seconds = gemm(n, 16384, 16384)
    assert 2 * n * 16384**2 / seconds == pytest.approx(0.8 * 989e12, rel=0.02)


def test_a_small_repeated_matrix_is_found_in_l2() -> None:
    """A quarter of L2 is read faster than HBM allows; four times L2 is not."""
    streaming = replace(GEMM_KERNEL, resident_speedup_ratio=1.0)
    assert gemm(1, 2048, 2048) < gemm(1, 2048, 2048, streaming)
    assert gemm(1, 10240, 10240) == pytest.approx(gemm(1, 10240, 10240, streaming), rel=1e-3)


def test_attention_on_all_cores_costs_per_pair_and_on_few_its_longest_block() -> None:
    pairs = 64 * 32 * 8192**2 / 2
    assert prefill(64, 8192) == pytest.approx(4 * 128 * pairs / (0.6 * 989e12), rel=0.05)
    # the last of 64 blocks sees all keys, a core's share of them all is 65/264 of that
    assert prefill(1, 8192, heads=1) > 4 * prefill(64, 8192) / (64 * 32)


def test_decode_streams_its_cache_and_a_lone_context_cannot() -> None:
    kv_bytes = 2 * 64 * 8192 * 8 * 128 * 2
    assert decode(64, 8192) == pytest.approx(kv_bytes / (0.9 * 3.35e12), rel=0.1)
    alone = decode(1, 256, kv_heads=1) - DECODE_KERNEL.launch_s
    assert alone > 5 * (2 * 256 * 128 * 2) / (0.9 * 3.35e12)


def test_experts_read_only_those_that_are_reached() -> None:
    assert experts(1) < experts(16) / 4
    assert experts(16) == pytest.approx(experts(24), rel=0.3)


@pytest.mark.parametrize("exponent", [1, 2, 4, 8])
def test_trees_and_arrays_say_the_same(exponent: int) -> None:
    whole = root_sum(np.asarray(3e-6), np.asarray(4e-6), exponent)
    assert root_sum(constant(3e-6), constant(4e-6), exponent).value == pytest.approx(float(whole), rel=1e-12)
    assert 4e-6 <= float(whole) <= 7e-6 * (1 + 1e-12)


def test_the_tree_of_a_product_names_its_constants_and_their_source() -> None:
    terms = constant_terms(GEMM_KERNEL, "gemm")
    machine = machine_terms(CHIP, CHIP.leaf("bf16_flop_per_s"))
    shape = {name: constant(4096.0, name) for name in ("tokens", "fan_in", "fan_out")}
    tree = gemm_arithmetic_s(terms, machine, **shape)
    numbers = gemm_arithmetic_s(
        constant_numbers(GEMM_KERNEL),
        machine_numbers(CHIP, "bf16"),
        **{name: np.asarray(4096.0) for name in shape},
    )
    assert tree.value == pytest.approx(float(numbers), rel=1e-12)
    assert terms["wave_fraction"].kind == "calibrated"
    assert "rows not fitted" in terms["wave_fraction"].source
