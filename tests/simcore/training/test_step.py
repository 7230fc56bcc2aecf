"""Laws of the training step, over cuts, schedules and switches."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore import why
from simcore.catalog import default_catalog
from simcore.training import TrainingInputs, check_inputs, training_step
from simcore.validation.training import run_inputs

CATALOG = default_catalog()


def inputs(
    model: str = "llama-3.1-8b",
    *,
    chip: str = "nvidia-h100-sxm",
    batch: int = 256,
    length: int = 4096,
    degrees: dict[str, int] | None = None,
    **spec: Any,
) -> TrainingInputs:
    return run_inputs(
        CATALOG.model(model), chip, {"tp": 1, **(degrees or {})}, batch=batch, length=length, **spec
    )


CUTS = st.fixed_dictionaries(
    {
        "tp": st.sampled_from([1, 2, 8, 16]),
        "pp": st.sampled_from([1, 2, 8]),
        "dp": st.sampled_from([1, 4, 16]),
        "cp": st.sampled_from([1, 2]),
    }
)
SPECS = st.fixed_dictionaries(
    {
        "zero_stage": st.sampled_from([0, 1, 2, 3]),
        "recompute": st.sampled_from(["none", "selective", "full"]),
        "sequence_parallel": st.booleans(),
        "overlap": st.fixed_dictionaries({"dp": st.booleans(), "tp": st.booleans()}),
        "stack": st.sampled_from(["megatron-core", "megatron-lm-2022", "fsdp-2023"]),
        "dtype": st.sampled_from(["bf16", "fp8"]),
    }
)


@settings(max_examples=40, deadline=None)
@given(cut=CUTS, spec=SPECS)
def test_the_split_by_resource_sums_to_the_step(cut: dict[str, int], spec: dict[str, Any]) -> None:
    step = training_step(inputs(degrees=cut, **spec))
    parts = step.split.parts
    assert sum(part.value for part in parts.values()) == pytest.approx(step.step_s.value, rel=1e-12)
    assert all(part.value > 0 for part in parts.values())


@settings(max_examples=40, deadline=None)
@given(cut=CUTS, spec=SPECS)
def test_useful_work_never_exceeds_the_peak(cut: dict[str, int], spec: dict[str, Any]) -> None:
    step = training_step(inputs(degrees=cut, **spec))
    assert 0 < step.mfu_fraction.value <= step.hfu_fraction.value < 1
    assert 0 <= step.exposed_communication_fraction.value < 1


@settings(max_examples=40, deadline=None)
@given(cut=CUTS, spec=SPECS)
def test_hiding_collectives_never_makes_a_step_slower(cut: dict[str, int], spec: dict[str, Any]) -> None:
    shown = training_step(inputs(degrees=cut, **spec | {"overlap": {"dp": False, "tp": False}})).step_s.value
    hidden = training_step(inputs(degrees=cut, **spec | {"overlap": {"dp": True, "tp": True}})).step_s.value
    assert hidden <= shown * (1 + 1e-12)


@settings(max_examples=30, deadline=None)
@given(cut=CUTS, spec=SPECS)
def test_more_recomputation_takes_longer(cut: dict[str, int], spec: dict[str, Any]) -> None:
    times = [
        training_step(inputs(degrees=cut, **spec | {"recompute": recompute})).step_s.value
        for recompute in ("none", "selective", "full")
    ]
    assert times[0] <= times[1] <= times[2]
    assert times[2] > times[0]


@pytest.mark.parametrize(("pp", "virtual", "batch"), [(2, 1, 64), (8, 1, 64), (8, 4, 64), (16, 2, 256)])
def test_the_bubble_over_ideal_time_is_the_schedules(pp: int, virtual: int, batch: int) -> None:
    """(p−1)/(v·m) of the ideal time, (p−1)/(v·m+p−1) of both."""
    step = training_step(inputs(batch=batch, degrees={"pp": pp}, virtual_stages=virtual))
    expected = (pp - 1) / (virtual * batch + pp - 1)
    assert step.bubble_fraction.value == pytest.approx(expected, rel=1e-12)
    once = {"overhead", "hbm"}  # the optimiser and what stands between steps are no part of the schedule
    bubble = step.split.bubble.value
    running = sum(part.value for name, part in step.split.parts.items() if name not in {"bubble"} | once)
    assert bubble > running * (pp - 1) / (virtual * batch) * 0.9


def test_without_a_pipeline_there_is_no_bubble() -> None:
    step = training_step(inputs(degrees={"dp": 8}))
    assert step.bubble_fraction.value == 0
    assert "bubble" not in step.split.parts


def test_one_chip_exchanges_nothing() -> None:
    step = training_step(inputs(batch=4))
    assert step.exposed_communication_fraction.value == 0
    assert not {"scaleup", "scaleout"} & step.split.parts.keys()


def test_tensor_parallel_ranks_of_one_server_use_its_links_and_of_two_the_network() -> None:
    inside, across = (training_step(inputs(degrees={"tp": tp})).split.parts for tp in (8, 16))
    assert "scaleup" in inside
    assert "scaleout" not in inside
    assert "scaleout" in across


def test_tokens_per_second_times_days_is_all_tokens() -> None:
    step = training_step(inputs(degrees={"dp": 8}, total_tokens=15e12))
    assert step.days is not None
    assert step.days.value * 86_400 * step.token_per_s.value == pytest.approx(15e12)


def test_useful_flop_are_six_per_parameter_and_token_plus_causal_attention() -> None:
    """Llama-3.1-8B: 7.50 billion multiplied weights, 32 layers of 4,096 keys' mean half."""
    given = inputs(degrees={"dp": 8})
    step = training_step(given)
    arch = given.arch
    per_token = 6 * (8_030_261_248 - arch.vocab * arch.hidden) + 6 * arch.layers * arch.hidden * 4096
    peak = given.chip.bf16_flop_per_s * 8 * step.step_s.value
    expected = per_token * given.spec.global_batch_tokens / peak
    assert step.mfu_fraction.value == pytest.approx(expected, rel=1e-3)


def test_experts_exchange_tokens_when_they_are_shared_out() -> None:
    whole = training_step(inputs("mixtral-8x7b", degrees={"dp": 8}))
    shared = training_step(inputs("mixtral-8x7b", degrees={"dp": 8, "ep": 8}))
    assert shared.split.scaleup.value > whole.split.scaleup.value
    assert shared.token_per_s.value > 0


def test_zero_3_moves_more_than_zero_1_where_nothing_hides_it() -> None:
    options = {"overlap": {"dp": False, "tp": False}, "batch": 64, "degrees": {"dp": 16}}
    times = [training_step(inputs(zero_stage=stage, **options)).split.scaleout.value for stage in (1, 2, 3)]
    assert times[0] < times[1] < times[2]


def test_the_tree_re_evaluates_to_the_step_and_follows_its_inputs() -> None:
    """Half the HBM bandwidth in the tree is half the bandwidth in a new plan."""
    given = inputs(degrees={"tp": 2, "dp": 4, "pp": 2})
    step = training_step(given).step_s
    assert why.evaluate(step, {}) == pytest.approx(step.value)
    slower = replace(given.chip, hbm_bytes_per_s=given.chip.hbm_bytes_per_s * 0.9)
    again = training_step(replace(given, chip=slower)).step_s.value
    assert why.evaluate(step, {"hbm_bytes_per_s": slower.hbm_bytes_per_s}) == pytest.approx(again, rel=1e-6)


def test_inputs_that_can_be_run_pass_their_checks() -> None:
    given = inputs("mixtral-8x7b", degrees={"dp": 8, "ep": 8})
    assert check_inputs(given, owned_chip_count=8) is given
