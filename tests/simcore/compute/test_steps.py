"""Step times against published decode laws, and which resource a step waits for."""

from __future__ import annotations

import numpy as np
import pytest

from simcore.catalog import default_catalog
from simcore.compute.step_table import StepTimeTable, build_step_table
from simcore.compute.steps import decode_shares, decode_step, prefill_shares, roofline_bound, step_model
from simcore.parallelism import Parallelism
from simcore.why import evaluate, leaves
from tests.simcore.compute.shapes import make_architecture, make_calibration, make_chip

CATALOG = default_catalog()

# vLLM blog of 2026-04-22: decode step at batch 1 = slope (ms per context token) × context + intercept (ms)
LAWS = [
    ("llama-3.1-8b", "nvidia-h100-sxm", "bf16", 4.37e-5, 6.44),
    ("llama-3.1-8b", "nvidia-h100-sxm", "fp8", 2.37e-5, 6.58),
    ("llama-3.1-8b", "nvidia-b200-sxm", "bf16", 1.80e-5, 3.93),
    ("llama-3.1-8b", "nvidia-b200-sxm", "fp8", 9.72e-6, 3.96),
]


@pytest.mark.parametrize(("model", "chip", "kv_dtype", "slope", "intercept"), LAWS)
def test_the_published_decode_law_is_met_within_ten_percent(
    model: str, chip: str, kv_dtype: str, slope: float, intercept: float
) -> None:
    card = CATALOG.chip(chip)
    made = step_model(
        CATALOG.model(model),
        card,
        CATALOG.calibration_for(card),
        Parallelism(tp=1),
        weights_dtype="bf16",
        kv_dtype=kv_dtype,
        max_tokens=8192,
    )
    near, far = (decode_step(made, batch=1, context_tokens=tokens).value * 1e3 for tokens in (1000, 101_000))
    assert (far - near) / 1e5 == pytest.approx(slope, rel=0.10)
    assert near - 1000 * (far - near) / 1e5 == pytest.approx(intercept, rel=0.10)


def table(*, tp: int = 1, comm_s: float = 0.0) -> StepTimeTable:
    return build_step_table(
        make_architecture(),
        make_chip(),
        make_calibration(),
        Parallelism(tp=tp),
        weights_dtype="bf16",
        kv_dtype="bf16",
        max_tokens=4096,
        max_sequences=256,
        communication_s=np.full(4097, comm_s),
    )


def test_decode_waits_for_memory_and_prefill_computes() -> None:
    assert roofline_bound(table(), batch=8, context_tokens=1000) == "hbm_bandwidth"
    assert prefill_shares(table(), tokens=4096).bound == "compute"


def test_slow_links_and_a_slow_host_are_named() -> None:
    assert roofline_bound(table(tp=8, comm_s=0.1), batch=8, context_tokens=1000) == "scaleup"
    assert roofline_bound(table(tp=32), batch=1, context_tokens=1) == "host"


def test_shares_sum_to_the_step() -> None:
    made = table(tp=2, comm_s=1e-3)
    shares = decode_shares(made, batch=16, context_tokens=500)
    model = step_model(
        make_architecture(),
        make_chip(),
        make_calibration(),
        Parallelism(tp=2),
        weights_dtype="bf16",
        kv_dtype="bf16",
        max_tokens=4096,
    )
    step = decode_step(model, batch=16, context_tokens=500).value + 1e-3
    whole = shares.step_s
    assert whole == pytest.approx(step, rel=1e-9)


def test_the_tree_moves_with_its_leaves_as_a_new_computation_does() -> None:
    def step(bandwidth: float) -> object:
        return decode_step(
            step_model(
                make_architecture(),
                make_chip(hbm_bytes_per_s=bandwidth),
                make_calibration(),
                Parallelism(tp=1),
                weights_dtype="bf16",
                kv_dtype="bf16",
                max_tokens=4096,
            ),
            batch=4,
            context_tokens=2000,
        )

    slow, fast = step(3.35e12), step(6.7e12)
    assert evaluate(slow, {"hbm_bytes_per_s": 6.7e12}) == pytest.approx(fast.value, rel=1e-12)  # type: ignore[attr-defined, arg-type]
    assert {leaf.kind for leaf in leaves(slow)} <= {
        "input",
        "catalog",
        "calibrated",
        "assumption",
        "constant",
        "derived",
    }  # type: ignore[arg-type]
