"""Adapters beside frozen weights: what is not trained needs no gradient, no state and no collective."""

from __future__ import annotations

from typing import Any

import pytest

from simcore.catalog import default_catalog
from simcore.parallelism import pipeline_stages
from simcore.training import TrainingInputs, training_memory, training_step
from simcore.training.adapters import adapter_parameters
from simcore.validation.training import run_inputs

CATALOG = default_catalog()
LORA: dict[str, Any] = {"rank": 16}
NONE: dict[str, Any] = {"rank": 0}


def inputs(model: str = "llama-2-70b", *, lora: dict[str, Any] = LORA, **spec: Any) -> TrainingInputs:
    given = {"tp": 4, "dp": 2, **spec.pop("degrees", {})}
    return run_inputs(CATALOG.model(model), "nvidia-h200-sxm", given, batch=8, length=8192, lora=lora, **spec)


def test_adapters_of_attention_are_counted_by_hand() -> None:
    """Llama 2 70B, r = 16, one adapter on the fused q, k, v and one on the output: r (in + out) each, 80 layers."""
    given = inputs(degrees={"tp": 1, "dp": 8})
    found = adapter_parameters(given, pipeline_stages(given.arch, 1)[0]).value
    qkv, output = 8192 + (64 + 2 * 8) * 128, 8192 + 8192
    assert found == 80 * 16 * (qkv + output)


def test_more_targets_and_a_higher_rank_are_more_parameters() -> None:
    stage = pipeline_stages(inputs().arch, 1)[0]
    some, every, doubled = (
        adapter_parameters(inputs(lora=lora), stage).value
        for lora in (LORA, {"rank": 16, "targets": "all"}, {"rank": 32})
    )
    assert some < every
    assert doubled == 2 * some


def test_frozen_weights_hold_no_gradient_and_no_state() -> None:
    whole, adapted = (training_memory(inputs(lora=lora)).uses for lora in (NONE, LORA))
    for use in ("gradients", "optimizer"):
        assert adapted[use].value < whole[use].value / 100
    assert adapted["activations"].value == whole["activations"].value


def test_frozen_weights_are_held_as_they_are_multiplied() -> None:
    narrow, wide = (training_memory(inputs(dtype=dtype)).uses["weights"].value for dtype in ("fp8", "bf16"))
    assert wide == pytest.approx(2 * narrow, rel=1e-12)


def test_a_step_without_weight_gradients_is_a_third_shorter() -> None:
    """Products cost two forwards instead of three; attention and norms are as before."""
    whole, adapted = (
        training_step(inputs(lora=lora, recompute="none")).step_s.value for lora in (NONE, LORA)
    )
    assert 2 / 3 < adapted / whole < 0.85


def test_useful_work_of_frozen_weights_is_two_thirds() -> None:
    whole, adapted = (training_step(inputs(lora=lora)) for lora in (NONE, LORA))
    useful = [step.mfu_fraction.value * step.step_s.value for step in (adapted, whole)]
    assert 2 / 3 < useful[0] / useful[1] < 0.75


@pytest.mark.parametrize("zero_stage", [0, 1, 2, 3])
def test_only_adapters_are_exchanged_where_weights_are_not_sharded(zero_stage: int) -> None:
    degrees = {"tp": 1, "dp": 64}
    whole, adapted = (
        training_step(
            run_inputs(
                CATALOG.model("llama-3.1-8b"), "nvidia-h200-sxm", degrees, batch=64, length=2048, lora=lora,
                zero_stage=zero_stage, overlap={"dp": False},
            )
        ).split.parts["scaleout"].value
        for lora in (NONE, LORA)
    )  # fmt: skip
    assert adapted < (whole if zero_stage == 3 else whole / 20)


def test_a_model_with_experts_takes_adapters() -> None:
    step = training_step(inputs("qwen3-30b-a3b", degrees={"tp": 1, "dp": 8, "ep": 8}))
    assert 0 < step.mfu_fraction.value < 1
