"""The rows of a step: nothing is lost, nothing is counted twice, and each knows what it waits for."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.catalog import default_catalog
from simcore.compute.ops import flop_per_token
from simcore.compute.step_operators import decode_rows, prefill_rows
from simcore.compute.steps import StepModel, decode_step, prefill_step, step_model
from simcore.parallelism import Parallelism
from simcore.why import constant
from tests.simcore.compute.shapes import make_architecture, make_calibration, make_chip

CATALOG = default_catalog()
MODELS = ["llama-3.1-8b", "deepseek-v3", "gemma-3-27b", "gpt-oss-120b"]


def model_of(slug: str, *, tp: int = 1, engine: str = "") -> StepModel:
    chip = CATALOG.chip("nvidia-h100-sxm")
    return step_model(
        CATALOG.model(slug),
        chip,
        CATALOG.calibration_for(chip),
        Parallelism(tp=tp),
        weights_dtype="bf16",
        kv_dtype="bf16",
        max_tokens=8192,
        engine=engine,
    )


@pytest.mark.parametrize("slug", MODELS)
@pytest.mark.parametrize("engine", ["", "vLLM 0.2"])
def test_the_rows_sum_to_the_step(slug: str, engine: str) -> None:
    model = model_of(slug, tp=4, engine=engine)
    comm = constant(1e-3, "communication_s")
    decode = decode_step(model, batch=24, context_tokens=3000, communication_s=comm)
    prefill = prefill_step(model, tokens=2048, communication_s=comm)
    in_decode = decode_rows(model, decode, batch=24, context_tokens=3000)
    in_prefill = prefill_rows(model, prefill, tokens=2048)
    assert sum(row.s for row in in_decode) == pytest.approx(decode.value, rel=1e-12)
    assert sum(row.s for row in in_prefill) == pytest.approx(prefill.value, rel=1e-12)
    assert len({row.operator for row in in_decode}) == len(in_decode)


def plain() -> StepModel:
    return step_model(
        make_architecture(),
        make_chip(),
        make_calibration(),
        Parallelism(tp=1),
        weights_dtype="bf16",
        kv_dtype="bf16",
        max_tokens=8192,
    )


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 512), st.integers(1, 8192))
def test_flop_and_bytes_grow_with_the_batch_and_are_all_there(batch: int, context: int) -> None:
    model = plain()
    step = decode_step(model, batch=batch, context_tokens=context)
    rows = {row.operator: row for row in decode_rows(model, step, batch=batch, context_tokens=context)}
    layers = [row for row in rows.values() if row.per_layer and row.operator != "attention"]
    assert sum(row.flop for row in layers) == pytest.approx(
        batch * flop_per_token(model.layer_operators).value
    )
    # grouped-query attention: KV of 8 heads, keys and values, 2 bytes, 32 layers; and 4 bytes per query element
    kv = batch * context * 8 * 128 * 2 * 2 * 32
    assert rows["attention"].moved_bytes == pytest.approx(kv + batch * 4 * 4096 * 32)
    assert rows["attention"].flop == pytest.approx(batch * context * 4 * 4096 * 32)


def test_decode_waits_for_memory_and_prefill_computes() -> None:
    model = plain()
    decode = decode_rows(
        model, decode_step(model, batch=8, context_tokens=1000), batch=8, context_tokens=1000
    )
    prefill = prefill_rows(model, prefill_step(model, tokens=4096), tokens=4096)
    bound = {row.operator: row.bound for row in decode}
    assert bound["qkv"] == bound["mlp_up"] == bound["attention"] == bound["lm_head"] == "hbm"
    assert {row.operator: row.bound for row in prefill}["mlp_up"] == "compute"


def test_rows_stand_in_the_order_of_execution() -> None:
    model = plain()
    names = [row.operator for row in prefill_rows(model, prefill_step(model, tokens=16), tokens=16)]
    order = ["qkv", "attention", "attention_output", "mlp_up", "mlp_down", "lm_head", "sampling", "host"]
    assert [name for name in names if name in order] == order


def test_stages_multiply_the_rows() -> None:
    model = plain()
    row = prefill_rows(model, prefill_step(model, tokens=16), tokens=16)[1]
    twice = row.through(2)
    assert (twice.s, twice.flop, twice.count) == (2 * row.s, 2 * row.flop, 2 * row.count)
