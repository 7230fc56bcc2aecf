"""Operators scaled to measured tables: the law of the ratio, its trees, its parts, and what stays as fitted."""

from dataclasses import replace

import numpy as np
import pytest

from simcore.catalog import override_chip
from simcore.catalog.kernels import GemmKernel
from simcore.compute.calibration import kernel_fit
from simcore.compute.kernels import machine_numbers
from simcore.compute.measured import operator_correction, product_form
from simcore.compute.operator_time import operator_paces, operator_time
from simcore.compute.ops import head_operators, layer_operators
from simcore.compute.step_table import build_step_table
from simcore.compute.steps import decode_step, prefill_step, step_model
from simcore.parallelism import Parallelism
from simcore.why import evaluate, leaf, leaves
from tests.simcore.synthetic_tables import SyntheticTables, grid, shapes

CHIP = "nvidia-h100-sxm"
TOKENS = np.arange(1.0, 513.0)


@pytest.fixture
def chip(catalog):
    return catalog.chip(CHIP)


@pytest.fixture
def products():
    """Products that take twice 10 µs and 1 ps per element."""
    columns = shapes(m=[1, 16, 64, 512, 2048], n=[1024, 4096, 16384], k=[1024, 4096, 16384])
    return grid(columns, 2e-5 + 2e-12 * columns["m"] * np.sqrt(columns["n"] * columns["k"]))


@pytest.fixture
def experts():
    columns = shapes(num_tokens=[1, 64, 1024], width=[192, 384, 768], moe_ep_size=[1, 2])
    return grid(columns, 1e-4 + 1e-10 * columns["num_tokens"] * columns["width"])


def with_tables(catalog, chip, **grids):
    calibration = catalog.calibration_for(chip)
    return replace(calibration, measured=SyntheticTables(grids=grids), measured_on=chip)


def operators(catalog, chip, model="llama-3.1-8b", **parallelism):
    made = layer_operators(
        catalog.model(model),
        chip,
        Parallelism(**{"tp": 1, **parallelism}),
        weights_dtype="bf16",
        kv_dtype="bf16",
    )
    return {op.name: op for op in made}


def whole_s(op, chip, calibration, tokens=TOKENS):
    pace = operator_paces([op], chip, calibration)[op.operator_class, op.dtype]
    return operator_time(op, tokens, pace)


def test_the_isolated_form_meets_every_measured_product(catalog, chip, products):
    fit = kernel_fit(catalog.calibration_for(chip), "gemm", "bf16")
    assert isinstance(fit, GemmKernel)
    machine = tuple((name, value.item()) for name, value in machine_numbers(chip, "bf16").items())
    form = product_form(products, fit, machine, "bf16")
    calibration = with_tables(catalog, chip, gemm=products)
    op = operators(catalog, chip)["attention_output"]  # 4096 × 4096
    ratio = operator_correction(op, calibration).ratio(products.axes[0])
    square = {"m": products.axes[0], "n": np.full(5, 4096.0), "k": np.full(5, 4096.0)}
    np.testing.assert_allclose(form(square) * ratio, products.measured_s[:, 1, 1], rtol=1e-9)


def test_a_step_is_the_fitted_one_times_the_ratio(catalog, chip, products):
    plain, calibration = catalog.calibration_for(chip), with_tables(catalog, chip, gemm=products)
    op = operators(catalog, chip)["qkv"]
    ratio = operator_correction(op, calibration).ratio(TOKENS)
    fitted, scaled = whole_s(op, chip, plain), whole_s(op, chip, calibration)
    np.testing.assert_allclose(scaled.whole_s, fitted.whole_s * ratio, rtol=1e-12)
    assert (scaled.arithmetic_s <= scaled.whole_s).all()
    assert (scaled.memory_s <= scaled.whole_s).all()


def test_a_changed_chip_keeps_the_ratio(catalog, chip, products):
    plain, calibration = catalog.calibration_for(chip), with_tables(catalog, chip, gemm=products)
    faster = override_chip(chip, {"hbm_bytes_per_s": 2 * chip.hbm_bytes_per_s})
    op = operators(catalog, chip)["mlp_up"]
    before = whole_s(op, chip, calibration).whole_s / whole_s(op, chip, plain).whole_s
    after = whole_s(op, faster, calibration).whole_s / whole_s(op, faster, plain).whole_s
    np.testing.assert_allclose(after, before, rtol=1e-12)
    assert (whole_s(op, faster, calibration).whole_s < whole_s(op, chip, calibration).whole_s)[:64].all()


def test_the_tree_is_the_array_and_names_its_source(catalog, chip, products):
    calibration = with_tables(catalog, chip, gemm=products)
    op = operators(catalog, chip)["mlp_down"]
    term = whole_s(op, chip, calibration, leaf(77.0, "tokens")).whole_s
    assert term.value == pytest.approx(whole_s(op, chip, calibration).whole_s[76], rel=1e-12)
    assert evaluate(term, {}) == pytest.approx(term.value, rel=1e-12)
    assert "made up 1.0, test/1" in {found.source for found in leaves(term)}


@pytest.mark.parametrize(("tp", "ep"), [(1, 1), (2, 1), (2, 2)])
def test_experts_are_found_by_their_width_and_ranks(catalog, chip, experts, tp, ep):
    calibration = with_tables(catalog, chip, experts=experts)
    op = operators(catalog, chip, "qwen3-30b-a3b", tp=tp, ep=ep)["experts"]
    assert operator_correction(op, calibration) is not None
    assert (
        whole_s(op, chip, calibration).whole_s[0]
        != whole_s(op, chip, catalog.calibration_for(chip)).whole_s[0]
    )


def test_experts_of_several_ranks_are_found_at_the_tokens_of_all(catalog, chip, experts):
    """Two data parallel ranks: the table counts tokens over all experts, so 64 of each are its 128."""
    calibration = with_tables(catalog, chip, experts=experts)
    fitted = catalog.calibration_for(chip)
    shared = operators(catalog, chip, "qwen3-30b-a3b", dp=2, ep=2)["experts"]
    spread = operators(catalog, chip, "qwen3-30b-a3b", tp=2, ep=2)["experts"]
    at, of_all = np.array([1.0, 64.0, 400.0]), np.array([2.0, 128.0, 800.0])
    ratio = whole_s(shared, chip, calibration, at).whole_s / whole_s(shared, chip, fitted, at).whole_s
    known = whole_s(spread, chip, calibration, of_all).whole_s / whole_s(spread, chip, fitted, of_all).whole_s
    np.testing.assert_allclose(ratio, known, rtol=1e-9)


def test_experts_of_a_width_outside_the_table_stay_as_fitted(catalog, chip, experts):
    calibration = with_tables(catalog, chip, experts=experts)
    op = operators(catalog, chip, "qwen3-30b-a3b", tp=8)["experts"]  # 96 columns on each rank
    assert operator_correction(op, calibration) is None


def test_bytes_only_operators_stay_as_fitted(catalog, chip, products):
    calibration = with_tables(catalog, chip, gemm=products)
    assert operator_correction(operators(catalog, chip)["norms_and_activations"], calibration) is None
    sampling = head_operators(catalog.model("llama-3.1-8b"), Parallelism(tp=1))[1]
    assert operator_correction(sampling, calibration) is None


def attention_tables(chip, fitted, factor):
    """Attention that takes `factor` times what the step's terms say, and next to nothing at the least shape."""
    decode = shapes(step=[1, 1023, 4095, 16383, 65535], batch_size=[1, 8, 64, 256])
    prefill = shapes(isl=[16, 512, 2048, 8192], batch_size=[1, 4, 16])
    decode_s = decode["batch_size"] * (
        (decode["step"] + 1) * fitted.decode_s_per_token.value + fitted.decode_s_per_sequence.value
    )
    prefill_s = prefill["batch_size"] * prefill["isl"] ** 2 / 2 * fitted.prefill_s_per_pair.value
    return {"decode": grid(decode, factor * decode_s), "prefill": grid(prefill, factor * prefill_s)}


def model_of(catalog, chip, calibration, name="llama-3.1-8b"):
    return step_model(
        catalog.model(name),
        chip,
        calibration,
        Parallelism(tp=1),
        weights_dtype="bf16",
        kv_dtype="bf16",
        max_tokens=8192,
    )


def layer_of(attention, layers):
    """The figures of one layer, of a stage of equal ones."""
    figures = ("decode_s_per_token", "decode_s_per_sequence", "prefill_s_per_pair")
    return replace(attention, **{name: getattr(attention, name) / layers for name in figures})


def test_attention_takes_as_much_longer_as_it_was_measured_to(catalog, chip):
    plain = model_of(catalog, chip, catalog.calibration_for(chip)).attention
    grids = attention_tables(chip, layer_of(plain, 32), 1.5)
    found = model_of(catalog, chip, with_tables(catalog, chip, **grids)).attention
    for figure in ("decode_s_per_token", "decode_s_per_sequence", "prefill_s_per_pair"):
        assert getattr(found, figure).value == pytest.approx(1.5 * getattr(plain, figure).value, rel=0.02)
    assert found.decode_compute_fraction <= plain.decode_compute_fraction


def test_windows_stay_as_fitted(catalog, chip):
    plain = model_of(catalog, chip, catalog.calibration_for(chip), "gemma-3-27b").attention
    grids = attention_tables(chip, layer_of(plain, 10), 1.5)
    found = model_of(catalog, chip, with_tables(catalog, chip, **grids), "gemma-3-27b").attention
    assert found.decode_s_per_window_token.value == plain.decode_s_per_window_token.value
    assert found.decode_s_per_token.value > 1.4 * plain.decode_s_per_token.value


def test_table_and_trees_agree_with_measured_kernels(catalog, chip, products):
    grids = attention_tables(
        chip, layer_of(model_of(catalog, chip, catalog.calibration_for(chip)).attention, 32), 1.2
    )
    calibration = with_tables(catalog, chip, gemm=products, **grids)
    table = build_step_table(
        catalog.model("llama-3.1-8b"),
        chip,
        calibration,
        Parallelism(tp=1),
        weights_dtype="bf16",
        kv_dtype="bf16",
        max_tokens=8192,
        max_sequences=256,
        communication_s=np.zeros(8193),
    )
    model = model_of(catalog, chip, calibration)
    decode_s = (
        table.linear_s[32]
        + table.head_s[32]
        + 32 * (1000 * table.decode_attention_s_per_token + table.decode_attention_s_per_sequence)
        + table.overhead_s
        + 32 * table.overhead_s_per_sequence
    )
    assert decode_step(model, batch=32, context_tokens=1000).value == pytest.approx(decode_s, rel=1e-9)
    prefill_s = (
        table.linear_s[600]
        + table.head_s[1]
        + 600 * 300 * table.prefill_attention_s_per_token_context
        + table.overhead_s
        + table.overhead_s_per_sequence
    )
    assert prefill_step(model, tokens=600).value == pytest.approx(prefill_s, rel=1e-9)
