"""Bands of a training run's headlines: which regime, what widens them, what is said."""

from __future__ import annotations

from typing import Any

import pytest

from simcore.plan import plan
from simcore.plan.training_bands import ADAPTERS, DENSE, EXPERTS, RATES, TIMES, UNFITTED, Regime
from simcore.scenario import Scenario, apply_overrides
from simcore.simulate import Result, simulate

BASE = {
    "name": "8B on 64",
    "hardware": {"chip": "nvidia-h100-sxm", "chip_count": 64},
    "model": {"name": "llama-3.1-8b"},
    "workload": {"kind": "training"},
    "training": {
        "parallelism": {"tp": 2},
        "global_batch_tokens": 1_048_576,
        "sequence_length": 4096,
        "total_tokens": 1e12,
    },
}
MOE = {"model.name": "qwen3-30b-a3b", "training.parallelism.ep": 8}


def result(**overrides: Any) -> Result:
    document, _ = apply_overrides(BASE, {key.replace("__", "."): value for key, value in overrides.items()})
    return simulate(plan(Scenario.parse(document)))


def ratios(found: Result) -> tuple[float, float]:
    band, value = found.bands["training.step_s"], found.metrics["training.step_s"]
    return band["low"] / value, band["high"] / value


def test_every_headline_of_a_run_has_a_band() -> None:
    found = result()
    assert set(found.bands) == {*TIMES, *RATES}
    for name, band in found.bands.items():
        assert band["low"] <= found.metrics[name] <= band["high"]
        assert band["level"] == 0.9
        assert "runs that were not fitted" in band["basis"]


def test_a_rate_is_as_uncertain_as_the_time_behind_it() -> None:
    found = result()
    slow = found.bands["training.step_s"]["high"] / found.metrics["training.step_s"]
    least = found.bands["training.mfu_fraction"]["low"] / found.metrics["training.mfu_fraction"]
    assert least == pytest.approx(1 / slow, rel=1e-12)


@pytest.mark.parametrize(
    ("overrides", "regime"),
    [
        ({}, DENSE),
        (MOE, EXPERTS),
        ({"training.lora": {"rank": 16}}, ADAPTERS),
        ({"hardware.chip": "tpu-v6e", "training.zero_stage": 3}, UNFITTED),
    ],
)
def test_a_run_takes_the_residuals_of_its_kind(overrides: dict[str, Any], regime: Regime) -> None:
    found = result(**overrides)
    assert ratios(found) == pytest.approx((regime.p5_ratio, regime.p95_ratio), rel=1e-12)
    assert str(regime.run_count) in found.bands["training.step_s"]["basis"]


def test_experts_on_an_unfitted_chip_are_as_wide_as_both() -> None:
    low, high = ratios(result(**MOE, hardware__chip="amd-mi300x"))
    assert low == pytest.approx(EXPERTS.p5_ratio * UNFITTED.p5_ratio, rel=1e-12)
    assert high == pytest.approx(EXPERTS.p95_ratio * UNFITTED.p95_ratio, rel=1e-12)


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        ({"training.sequence_length": 131_072, "training.parallelism.cp": 8}, "131,072 tokens"),
        (
            {"hardware.chip_count": 16_384, "training.global_batch_tokens": 67_108_864},
            "16,384 chips, measured up to 8,192",
        ),
    ],
)
def test_beyond_what_was_measured_the_band_is_wider_and_the_run_says_so(
    overrides: dict[str, Any], said: str
) -> None:
    found = result(**overrides)
    low, high = ratios(found)
    assert low < DENSE.p5_ratio
    assert high > DENSE.p95_ratio
    assert said in found.bands["training.step_s"]["basis"]
    assert any(said in warning.text for warning in found.warnings if warning.code == "training.extrapolated")


def test_a_run_like_the_measured_ones_warns_of_nothing() -> None:
    assert "training.extrapolated" not in {warning.code for warning in result().warnings}
