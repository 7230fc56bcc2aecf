"""Memory of a training chip: the published activation formulas, sharding, and what is suggested."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from simcore.catalog import default_catalog
from simcore.errors import InfeasibleError, InputError
from simcore.parallelism import pipeline_stages
from simcore.training import (
    TrainingInputs,
    check_inputs,
    fitting_changes,
    memory_rows,
    require_fit,
    training_memory,
)
from simcore.training.memory import in_flight_term, layer_activation_bytes
from simcore.validation.training import gpt, run_inputs

CATALOG = default_catalog()


def gpt_inputs(**spec: Any) -> TrainingInputs:
    degrees = spec.pop("degrees", {"tp": 8})
    options = {"stack": "megatron-lm-2022", "micro_batch_size": 1} | spec
    return run_inputs(gpt(96, 12288, 96), "nvidia-a100-80gb-sxm", degrees, batch=64, length=2048, **options)


@pytest.mark.parametrize(
    ("recompute", "sequence_parallel", "formula"),
    [
        ("none", False, lambda s, h, a, t: s * h * (10 + 24 / t + 5 * a * s / (h * t))),
        ("none", True, lambda s, h, a, t: s * h / t * (34 + 5 * a * s / h)),
        ("selective", True, lambda s, h, a, t: s * h / t * 34),
        ("selective", False, lambda s, h, a, t: s * h * (10 + 24 / t)),
    ],
)
def test_activations_per_layer_are_korthikantis(
    recompute: str, sequence_parallel: bool, formula: Any
) -> None:
    """TR-act: exact."""
    given = gpt_inputs(recompute=recompute, sequence_parallel=sequence_parallel)
    stage = pipeline_stages(given.arch, 1)[0]
    found = layer_activation_bytes(given, stage).value
    assert found == pytest.approx(formula(2048, 12288, 96, 8), rel=1e-12)


def test_full_recomputation_keeps_each_layers_input_and_one_layer() -> None:
    given = gpt_inputs(recompute="full", sequence_parallel=False)
    whole = layer_activation_bytes(given, pipeline_stages(given.arch, 1)[0]).value
    expected = 96 * 2 * 2048 * 12288 + whole
    assert training_memory(given).uses["activations"].value == pytest.approx(expected)


def test_weights_gradients_and_states_take_18_bytes_per_parameter() -> None:
    uses = training_memory(gpt_inputs(zero_stage=0)).uses
    states = sum(uses[name].value for name in ("weights", "gradients", "optimizer"))
    assert states == pytest.approx(uses["weights"].value / 2 * 18)


@pytest.mark.parametrize(
    ("stage", "sharded"),
    [(0, ()), (1, ("optimizer",)), (2, ("optimizer", "gradients"))],
)
def test_zero_stages_shard_over_the_data_group(stage: int, sharded: tuple[str, ...]) -> None:
    whole = training_memory(gpt_inputs(zero_stage=0, degrees={"tp": 8, "dp": 4})).uses
    uses = training_memory(gpt_inputs(zero_stage=stage, degrees={"tp": 8, "dp": 4})).uses
    for name in ("weights", "gradients", "optimizer"):
        factor = 4 if name in sharded else 1
        assert uses[name].value == pytest.approx(whole[name].value / factor)


def test_zero_3_shards_weights_but_two_layers() -> None:
    uses = training_memory(gpt_inputs(zero_stage=3, degrees={"tp": 8, "dp": 8})).uses
    whole = training_memory(gpt_inputs(zero_stage=0, degrees={"tp": 8, "dp": 8})).uses["weights"].value
    assert uses["weights"].value == pytest.approx(whole / 8 + 2 * whole / 96)


@pytest.mark.parametrize(
    ("virtual", "first", "last"),
    [(1, 8.0, 1.0), (3, 8 + 7 / 3, 1 + 7 / 3)],
)
def test_a_pipelines_first_stage_holds_most_micro_batches(virtual: int, first: float, last: float) -> None:
    given = gpt_inputs(degrees={"tp": 8, "pp": 8}, virtual_stages=virtual)
    stages = pipeline_stages(given.arch, 8)
    assert in_flight_term(given, stages[0]).value == pytest.approx(first)
    assert in_flight_term(given, stages[-1]).value == pytest.approx(last)


def test_experts_are_shared_over_their_group() -> None:
    def weights(ep: int) -> float:
        given = run_inputs(
            CATALOG.model("mixtral-8x7b"),
            "nvidia-h100-sxm",
            {"tp": 1, "dp": 8, "ep": ep},
            batch=64,
            length=4096,
        )
        return training_memory(given).uses["weights"].value

    routed = 32 * 8 * 3 * 4096 * 14336 * 2
    assert weights(1) - weights(8) == pytest.approx(routed * 7 / 8)


def test_the_waterfall_ends_at_what_is_free() -> None:
    memory = training_memory(gpt_inputs(degrees={"tp": 8, "pp": 8}))
    rows = {row["item"]: row["bytes"] for row in memory_rows(memory)}
    used = sum(row["bytes"] for row in memory_rows(memory) if row["kind"] == "use")
    assert rows["visible"] - used == pytest.approx(rows["free"])


def test_what_does_not_fit_names_what_binds_and_three_changes_that_fit() -> None:
    given = run_inputs(
        CATALOG.model("llama-3.1-70b"),
        "nvidia-h100-sxm",
        {"tp": 8, "dp": 8},
        batch=64,
        length=8192,
        zero_stage=0,
    )
    memory = training_memory(given)
    assert not memory.fits
    changes = fitting_changes(given, tuple(CATALOG.chips.values()))
    assert len(changes) == 3
    assert len({change.edits[0][0] for change in changes}) == 3
    assert [change.token_per_s for change in changes] == sorted(
        (change.token_per_s for change in changes), reverse=True
    )
    with pytest.raises(InfeasibleError) as caught:
        require_fit(given, memory, tuple(CATALOG.chips.values()))
    text = str(caught.value)
    assert "optimiser states bind" in text
    assert changes[0].edits[0][0] in text


def test_each_suggested_change_fits_when_made_alone() -> None:
    given = run_inputs(
        CATALOG.model("llama-3.1-8b"),
        "nvidia-h100-sxm",
        {"tp": 1, "dp": 8},
        batch=64,
        length=8192,
        micro_batch_size=8,
        recompute="none",
        zero_stage=1,
    )
    memory = training_memory(given)
    assert memory.binding == "activations"
    for change in fitting_changes(given):
        assert change.used_bytes <= memory.visible.value


def test_where_one_change_is_not_enough_two_are_tried() -> None:
    given = run_inputs(
        CATALOG.model("llama-3.1-70b"), "nvidia-h100-sxm", {"tp": 1, "dp": 64}, batch=64, length=8192
    )
    changes = fitting_changes(given)
    assert len(changes) == 3
    assert {len(change.edits) for change in changes} == {1, 2}


@pytest.mark.parametrize(
    ("degrees", "spec", "path"),
    [
        ({"tp": 3}, {}, "training.parallelism.tp"),
        ({"tp": 1, "dp": 7}, {}, "training.global_batch_tokens"),
        ({"tp": 1, "pp": 64}, {}, "training.parallelism.pp"),
        ({"tp": 1, "pp": 8}, {"virtual_stages": 5}, "training.virtual_stages"),
        ({"tp": 1}, {"virtual_stages": 2}, "training.virtual_stages"),
        ({"tp": 1, "ep": 2}, {}, "training.parallelism.ep"),
        ({"tp": 1, "cp": 3}, {}, "training.parallelism.cp"),
    ],
)
def test_a_cut_that_cannot_be_is_refused_at_its_path(
    degrees: dict[str, int], spec: dict[str, Any], path: str
) -> None:
    given = run_inputs(
        CATALOG.model("llama-3.1-8b"), "nvidia-h100-sxm", degrees, batch=64, length=4096, **spec
    )
    with pytest.raises(InputError) as caught:
        check_inputs(given)
    assert caught.value.message.path == path


def test_more_chips_than_are_owned_are_refused() -> None:
    given = run_inputs(
        CATALOG.model("llama-3.1-8b"), "nvidia-h100-sxm", {"tp": 8, "dp": 8}, batch=64, length=4096
    )
    with pytest.raises(InputError, match="64 chips and 16 are owned"):
        check_inputs(given, owned_chip_count=16)


def test_a_chip_with_more_memory_leaves_more_free() -> None:
    given = gpt_inputs(degrees={"tp": 8, "pp": 8})
    larger = replace(given, chip=CATALOG.chip("nvidia-h200-sxm"))
    assert training_memory(larger).free.value > training_memory(given).free.value
