"""Predicted step times against measured runs: what was fitted, what was held out, and how far off both are.

Fitted (simcore/training/stacks.py): every second vTrain run (two constants), every fourth MPT run (six),
Megatron-Bridge's Llama-3.1-405B rows (seven), every second of its MoE rows (nine), AMD's two
LoRA rows (two). Everything else is held out: Korthikanti's table, PTD-P's weak scaling, MLPerf, TPU, the other
rows. Known misses, each left in: vTrain's slowest runs (3.6B at tp 8 with micro-batch 2; 39.1B at tp 2, pp 16; tp
across two servers), which the file's neighbours contradict; MPT at 65,536 tokens on A100; MoE rows of containers
that were slower than the release before or after on the same machine. Not modelled: MaxText on v5e, whose rows
print no shape of the model; Megatron-Bridge's models that the catalog lacks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from simcore.plan.training_bands import ADAPTERS, DENSE, EXPERTS, UNFITTED, Regime
from simcore.training import training_step
from tests.simcore.training.measured import (
    MeasuredRun,
    bridge_runs,
    foundry_runs,
    lora_runs,
    megatron_runs,
    mlperf_runs,
    ptd_runs,
    tpu_runs,
    vtrain_runs,
)


@pytest.fixture(scope="session")
def data(shared: Path) -> Path:
    return shared / "data"


def mean_error(runs: Sequence[MeasuredRun]) -> float:
    """Mean absolute relative error."""
    return float(np.mean([abs(run.error) for run in runs]))


def rank_correlation(runs: Sequence[MeasuredRun]) -> float:
    """Spearman's: of seconds per step."""
    seen = np.argsort(np.argsort([run.step_s for run in runs]))
    said = np.argsort(np.argsort([run.predicted_s for run in runs]))
    return float(np.corrcoef(seen, said)[0, 1])


@pytest.mark.parametrize("run", megatron_runs(), ids=lambda run: run.name)
def test_megatron_step_times_are_within_a_tenth(run: MeasuredRun) -> None:
    """Eight published times, none fitted."""
    assert abs(run.error) <= 0.10


def test_megatron_step_times_are_within_four_percent_on_average() -> None:
    assert mean_error(megatron_runs()) <= 0.04


def test_vtrain_runs_not_fitted(data: Path) -> None:
    runs = vtrain_runs(data)
    held_out = runs[1::2]
    assert len(held_out) == 27
    assert mean_error(held_out) <= 0.10
    assert mean_error(runs) <= 0.10
    assert rank_correlation(held_out) >= 0.95


def test_weak_scaling_to_3072_a100_not_fitted(data: Path) -> None:
    runs = ptd_runs(data)
    assert len(runs) == 10
    assert mean_error(runs) <= 0.10
    assert rank_correlation(runs) >= 0.95


def test_mlperf_405b_not_fitted(data: Path) -> None:
    runs = mlperf_runs(data)
    assert len(runs) == 7
    assert mean_error(runs) <= 0.06
    assert max(abs(run.error) for run in runs) <= 0.10
    assert rank_correlation(runs) >= 0.95


def test_strong_scaling_of_405b_from_512_to_8192_h100(data: Path) -> None:
    """Tokens per second and chip, against 512 chips: measured and predicted fall alike."""
    runs = [run for run in mlperf_runs(data) if run.inputs.chip.slug == "nvidia-h100-sxm"]
    assert {run.inputs.chip_count for run in runs} == {512, 2048, 2432, 2560, 8192}
    base = min(runs, key=lambda run: run.inputs.chip_count)
    for run in runs:
        work = run.inputs.spec.global_batch_tokens / run.inputs.chip_count
        reference = base.inputs.spec.global_batch_tokens / base.inputs.chip_count
        measured = (work / run.step_s) / (reference / base.step_s)
        predicted = (work / run.predicted_s) / (reference / base.predicted_s)
        assert predicted == pytest.approx(measured, rel=0.08)


def test_mpt_runs_not_fitted(data: Path) -> None:
    runs = foundry_runs(data)
    held_out = [run for number, run in enumerate(runs) if number % 4]
    assert len(held_out) == 130
    assert mean_error(held_out) <= 0.10
    assert rank_correlation(held_out) >= 0.95


def test_bridge_rows_of_other_models_than_the_fitted_one(data: Path) -> None:
    held_out = [run for run in bridge_runs(data) if "405B" not in run.name]
    assert len(held_out) >= 30
    assert mean_error(held_out) <= 0.10


def test_moe_rows_not_fitted(data: Path) -> None:
    """Every second row, with its release's recipe. Misses above 30 %, left in: GPT-OSS in 26.06.01, which trains
    1.6 times as slow as the same recipe in 26.06 and 26.08; containers before 26.02.01 on H100 and B200 (the same
    rows train 1.7 to 2.1 times faster one release later)."""
    held_out = bridge_runs(data, moe=True)[1::2]
    assert len(held_out) == 55
    assert mean_error(held_out) <= 0.10
    assert float(np.median([abs(run.error) for run in held_out])) <= 0.06
    assert rank_correlation(held_out) >= 0.95


def test_moe_releases_differ_as_their_recipes_do(data: Path) -> None:
    """Fusion, whole-iteration graphs and hidden exchange explain what one machine gained between releases: not one
    constant is a release's."""
    runs = bridge_runs(data, moe=True)
    name = "DeepSeekV3 gb200×256 MXFP8 PP4 VP4 EP64"
    by_stack = {run.inputs.spec.stack: run for run in runs if run.name == name}
    new, old = by_stack["megatron-core"], by_stack["megatron-core-26.04"]
    assert old.predicted_s / new.predicted_s == pytest.approx(old.step_s / new.step_s, rel=0.10)


def test_adapters_of_llama_2_70b_not_fitted(data: Path) -> None:
    """MLPerf's LoRA: nothing fitted on NVIDIA's chips, one row each on AMD's two. The miss above 30 % is Oracle's
    512 chips, whose 0.79 s step does the work per chip that takes 64 chips 0.55 s."""
    runs = lora_runs(data)
    nvidia = [run for run in runs if run.inputs.chip.vendor == "NVIDIA"]
    others = [run for run in runs if run.inputs.chip.vendor == "AMD" and not run.name.startswith("LoRA AMD")]
    assert (len(nvidia), len(others)) == (14, 8)
    assert mean_error(nvidia) <= 0.10
    assert mean_error(others) <= 0.10
    assert rank_correlation(nvidia + others) >= 0.95


def test_tpu_v6e_not_fitted(data: Path) -> None:
    """No constant of a TPU is fitted: the class default of an unmeasured chip. Off most: Gemma over several pods
    and Mixtral, whose recipes give each expert a fixed capacity."""
    runs = tpu_runs(data)
    assert len(runs) == 20
    assert mean_error(runs) <= 0.10
    assert float(np.median([abs(run.error) for run in runs])) <= 0.05


def dense_held_out(data: Path) -> list[MeasuredRun]:
    return [
        *megatron_runs(),
        *vtrain_runs(data)[1::2],
        *ptd_runs(data),
        *mlperf_runs(data),
        *(run for number, run in enumerate(foundry_runs(data)) if number % 4),
        *(run for run in bridge_runs(data) if "405B" not in run.name),
    ]


def test_all_rows_that_were_not_fitted(data: Path) -> None:
    """The target over everything: ten per cent, ranks at 0.95."""
    dense = dense_held_out(data)
    assert mean_error(dense) <= 0.10
    assert rank_correlation(dense) >= 0.95
    every = [run for _regime, runs in held_out(data) for run in runs]
    assert mean_error(every) <= 0.07
    assert rank_correlation(every) >= 0.99


def held_out(data: Path) -> list[tuple[Regime, list[MeasuredRun]]]:
    """Runs that no fit has seen, by the regime whose band they make."""
    adapters = lora_runs(data)
    others = [
        run for run in adapters if run.inputs.chip.vendor == "AMD" and not run.name.startswith("LoRA AMD")
    ]
    return [
        (DENSE, dense_held_out(data)),
        (EXPERTS, bridge_runs(data, moe=True)[1::2]),
        (ADAPTERS, [run for run in adapters if run.inputs.chip.vendor == "NVIDIA"]),
        (UNFITTED, [*tpu_runs(data), *others]),
    ]


def test_bands_are_the_quantiles_of_runs_not_fitted(data: Path) -> None:
    for regime, runs in held_out(data):
        found = np.array([run.step_s / run.predicted_s for run in runs])
        assert regime.run_count == len(runs)
        assert regime.p95_ratio == pytest.approx(np.quantile(found, 0.95), abs=2e-3)
        assert regime.p5_ratio == pytest.approx(min(1.0, np.quantile(found, 0.05)), abs=2e-3)


def test_bands_of_half_of_the_runs_cover_nine_in_ten_of_the_other_half(data: Path) -> None:
    """Both ways round, so that no run is in the band that it is held against."""
    inside = []
    for _regime, runs in held_out(data):
        found = np.array([run.step_s / run.predicted_s for run in runs])
        for made, held in ((found[::2], found[1::2]), (found[1::2], found[::2])):
            low, high = np.quantile(made, 0.05), np.quantile(made, 0.95)
            inside += list((min(1.0, low) <= held) & (held <= high))
    assert len(inside) == 313
    assert 0.85 <= np.mean(inside) <= 0.95


@pytest.mark.parametrize(
    ("chips", "degrees", "length", "batch", "published"),
    [
        (8192, {"tp": 8, "pp": 16, "dp": 64}, 8192, 2048, 430e12),
        (16384, {"tp": 8, "pp": 16, "dp": 128}, 8192, 2048, 400e12),
        (16384, {"tp": 8, "cp": 16, "pp": 16, "dp": 8}, 131072, 128, 380e12),
    ],
)
def test_llama_3_as_its_paper_ran_it(
    data: Path, chips: int, degrees: dict[str, int], length: int, batch: int, published: float
) -> None:
    """FLOP/s per chip of table 4, bf16, not fitted; the paper prints neither micro-batch nor virtual stages."""
    template = mlperf_runs(data)[0].inputs
    spec = template.spec.model_copy(
        update={
            "dtype": "bf16",
            "sequence_length": length,
            "global_batch_tokens": batch * length,
            "overlap": template.spec.overlap.model_copy(update={"tp": False}),
        }
    )
    parallelism = template.parallelism.model_copy(update={"cp": 1, **degrees})
    inputs = replace(template, spec=spec, parallelism=parallelism)
    assert inputs.chip_count == chips
    achieved = training_step(inputs).mfu_fraction.value * inputs.chip.bf16_flop_per_s
    assert achieved == pytest.approx(published, rel=0.12)
