"""Expert layers of a training step: what fusion, graphs, dispatchers and hidden exchange change."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.catalog import default_catalog
from simcore.parallelism import pipeline_stages
from simcore.training import TrainingInputs, TrainingStep, training_step
from simcore.training.experts import expert_products
from simcore.validation.training import run_inputs

CATALOG = default_catalog()


def inputs(
    model: str = "qwen3-30b-a3b", *, chip: str = "nvidia-h100-sxm", ep: int = 8, **spec: Any
) -> TrainingInputs:
    return run_inputs(
        CATALOG.model(model), chip, {"tp": 1, "dp": 16, "ep": ep}, batch=64, length=4096, **spec
    )


def step(**given: Any) -> TrainingStep:
    return training_step(inputs(**given))


@pytest.mark.parametrize("micro_batch_size", [1, 4])
def test_fewer_launches_never_take_longer(micro_batch_size: int) -> None:
    times = [
        step(cuda_graphs=graphs, micro_batch_size=micro_batch_size).step_s.value
        for graphs in ("none", "partial", "full")
    ]
    assert times[0] >= times[1] >= times[2]


def test_small_micro_batches_wait_for_the_host_and_large_ones_do_not() -> None:
    small, large = (
        step(cuda_graphs="none", micro_batch_size=size, chip="nvidia-b200-sxm") for size in (1, 4)
    )
    waits = [found.split.overhead.value / found.step_s.value for found in (small, large)]
    assert waits[0] > 0.3 > waits[1]


def test_dense_models_launch_ahead() -> None:
    """Without routing the host needs nothing back: graphs change nothing."""
    dense = [
        training_step(
            run_inputs(
                CATALOG.model("llama-3.1-8b"), "nvidia-h100-sxm", {"tp": 1, "dp": 8}, batch=64, length=4096,
                cuda_graphs=graphs,
            )
        ).step_s.value
        for graphs in ("none", "full")
    ]  # fmt: skip
    assert dense[0] == dense[1]


@settings(max_examples=20, deadline=None)
@given(ep=st.sampled_from([2, 4, 8, 16]), hidden=st.booleans())
def test_a_deduplicating_dispatcher_never_sends_more(ep: int, hidden: bool) -> None:
    plain, once = (
        step(ep=ep, dispatcher=dispatcher, overlap={"ep": hidden}).step_s.value
        for dispatcher in ("all_to_all", "deduplicating")
    )
    assert once <= plain


def test_groups_over_several_servers_use_the_network() -> None:
    inside, across = (step(ep=ep).split.parts for ep in (8, 16))
    assert "scaleup" in inside
    assert across["scaleout"].value > inside.get("scaleout", inside["scaleup"] * 0.0).value


def test_a_hidden_exchange_is_shorter_by_at_most_the_kernels() -> None:
    shown, hidden = (step(ep=16, overlap={"ep": overlapped}) for overlapped in (False, True))
    assert shown.step_s.value - hidden.step_s.value == pytest.approx(
        sum(shown.split.parts[name].value for name in ("scaleup", "scaleout") if name in shown.split.parts)
        - sum(
            hidden.split.parts[name].value for name in ("scaleup", "scaleout") if name in hidden.split.parts
        ),
        rel=1e-9,
    )
    assert hidden.step_s.value < shown.step_s.value


def test_fused_experts_pass_through_memory_less_often() -> None:
    new, old = (
        step(chip="nvidia-gb200", dtype="fp8_block", stack=stack)
        for stack in ("megatron-core", "megatron-core-26.04")
    )
    assert new.split.hbm.value < old.split.hbm.value
    assert new.split.compute.value == pytest.approx(old.split.compute.value, rel=1e-12)


@pytest.mark.parametrize("ep", [1, 2, 8])
def test_sharing_experts_out_leaves_their_arithmetic(ep: int) -> None:
    """Balanced routing: a rank's own tokens are as many rows as it receives."""
    given_inputs = inputs(ep=ep)
    stage = pipeline_stages(given_inputs.arch, 1)[0]
    alone = inputs(ep=1)
    found, reference = (
        expert_products(one, stage, one.rank_tokens).compute.value for one in (given_inputs, alone)
    )
    assert found == pytest.approx(reference, rel=1e-12)


def test_layers_that_predict_further_tokens_take_time_and_are_useful() -> None:
    plain, predicting = (
        training_step(
            run_inputs(
                CATALOG.model("deepseek-v3"), "nvidia-gb300", {"tp": 1, "pp": 2, "dp": 32, "ep": 32}, batch=256,
                length=4096, dtype="fp8_block", multi_token_prediction=wanted,
            )
        )
        for wanted in (False, True)
    )  # fmt: skip
    ratio = predicting.step_s.value / plain.step_s.value
    assert 1.01 < ratio < 1.08
    useful = [one.mfu_fraction.value * one.step_s.value for one in (plain, predicting)]
    assert 1.01 < useful[1] / useful[0] < 1.08
