"""The rows of a step: they sum to it, whatever is switched on."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.catalog import default_catalog
from simcore.training import TrainingInputs, phase_terms, training_rows, training_step
from simcore.training.rows import PHASES
from simcore.validation.training import run_inputs

CATALOG = default_catalog()
DEGREES = st.fixed_dictionaries(
    {
        "tp": st.sampled_from([1, 4]),
        "pp": st.sampled_from([1, 4]),
        "dp": st.sampled_from([2, 16]),
        "cp": st.sampled_from([1, 2]),
    }
)
SPECS = st.fixed_dictionaries(
    {
        "recompute": st.sampled_from(["none", "selective", "full"]),
        "stack": st.sampled_from(["megatron-core", "megatron-lm-2022"]),
        "zero_stage": st.sampled_from([0, 1, 3]),
        "lora": st.sampled_from([{"rank": 0}, {"rank": 16}]),
        "cuda_graphs": st.sampled_from(["none", "full"]),
        "multi_token_prediction": st.booleans(),
    }
)
MODELS = st.sampled_from(["llama-3.1-8b", "deepseek-v3", "gpt-oss-120b", "gemma-3-12b"])


def inputs(model: str, degrees: dict[str, int], spec: dict[str, Any]) -> TrainingInputs:
    experts = {"ep": 2} if CATALOG.model(model).is_moe else {}
    return run_inputs(
        CATALOG.model(model), "nvidia-h100-sxm", degrees | experts, batch=64, length=4096, **spec
    )


@settings(max_examples=40, deadline=None)
@given(model=MODELS, degrees=DEGREES, spec=SPECS)
def test_rows_of_the_phases_sum_to_the_step(
    model: str, degrees: dict[str, int], spec: dict[str, Any]
) -> None:
    given_inputs = inputs(model, degrees, spec)
    step = training_step(given_inputs)
    forward, backward, once = (
        phase_terms(training_rows(given_inputs, step))[f"training.{phase}_s"].value for phase in PHASES
    )
    passes = (
        given_inputs.micro_batch_count + (given_inputs.parallelism.pp - 1) / given_inputs.spec.virtual_stages
    )
    assert (forward + backward) * passes + once == pytest.approx(step.step_s.value, rel=1e-9)


@settings(max_examples=20, deadline=None)
@given(model=MODELS, degrees=DEGREES, spec=SPECS)
def test_no_operator_is_faster_than_the_chip(
    model: str, degrees: dict[str, int], spec: dict[str, Any]
) -> None:
    given_inputs = inputs(model, degrees, spec)
    for row in training_rows(given_inputs, training_step(given_inputs)):
        peak = given_inputs.chip.peak_flop_per_s(row.dtype) if row.flop else 0.0
        assert row.flop <= row.seconds.value * peak


def test_each_row_is_found_by_its_name_in_the_tree_of_its_phase() -> None:
    given_inputs = inputs("deepseek-v3", {"tp": 4, "pp": 4, "dp": 2, "cp": 2}, {})
    rows = training_rows(given_inputs, training_step(given_inputs))
    trees = phase_terms(rows)
    for row in rows:
        named = [part for part in trees[f"training.{row.phase}_s"].args if part.name == row.term]
        assert [part.value for part in named] == [row.seconds.value]


def test_gradients_of_products_are_twice_the_work_and_of_frozen_ones_once() -> None:
    for rank, times in ((0, 2.0), (16, 1.0)):
        given_inputs = inputs("llama-3.1-8b", {"tp": 1, "pp": 1, "dp": 2, "cp": 1}, {"lora": {"rank": rank}})
        rows = {
            (row.phase, row.operator): row for row in training_rows(given_inputs, training_step(given_inputs))
        }
        assert rows["backward", "mlp_up"].flop == pytest.approx(times * rows["forward", "mlp_up"].flop)
