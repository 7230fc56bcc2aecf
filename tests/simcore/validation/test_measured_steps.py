"""Steps of served dense models against measurements that no fit has seen, and how many their bands hold."""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from simcore.catalog import default_catalog
from simcore.validation.step_fit import engine_key, predict_steps
from simcore.validation.step_rows import StepRow, StepRows, predicted_s, read_steps, step_tables
from simcore.validation.step_targets import KNOWN_DEVIATIONS, TARGETS

CATALOG = default_catalog()
CHIPS = ("nvidia-a100-80gb-sxm", "nvidia-h100-sxm", "nvidia-b200-sxm")


@cache
def rows(slug: str, shared: Path) -> StepRows:
    files = [shared / "data" / name for name in ("endtoend_latency_agg.csv", "iterations.csv")]
    return read_steps(files, CATALOG.chip(slug), CATALOG)


@cache
def ratios(slug: str, shared: Path) -> dict[tuple[str, str], np.ndarray]:
    """Measured ÷ predicted of the rows not fitted, by phase and engine."""
    chip = CATALOG.chip(slug)
    unseen = [row for row in rows(slug, shared).rows if row.is_held_out]
    said = predict_steps(unseen, chip, CATALOG.calibration_for(chip), CATALOG)
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    for row in unseen:
        found[row.phase, row.engine].append(row.measured_s / said[row])
    return {key: np.array(values) for key, values in found.items()}


@pytest.mark.parametrize("slug", CHIPS)
def test_steps_and_the_times_of_loops_are_within_the_target_on_rows_not_fitted(
    slug: str, shared: Path
) -> None:
    checked = 0
    for (phase, engine), ratio in ratios(slug, shared).items():
        missed = np.abs(1 / ratio - 1).mean() > TARGETS[phase]
        assert missed == ((slug, f"{phase}.{engine}") in KNOWN_DEVIATIONS), (phase, engine)
        checked += phase in ("tpot", "decode")
        assert len(ratio) >= 20
    assert checked >= 1


@pytest.mark.parametrize("phases", [("tpot", "decode", "prefill"), ("ttft",)])
def test_bands_hold_nine_of_ten_measurements_that_no_fit_has_seen(
    phases: tuple[str, ...], shared: Path
) -> None:
    held, total = 0, 0
    for slug in CHIPS:
        residuals = CATALOG.calibrations[slug].residuals
        for (phase, engine), ratio in ratios(slug, shared).items():
            if phase not in phases:
                continue
            band = residuals[f"{phase}.{engine_key(engine)}"]
            held += int(((ratio >= band.p5_ratio * 0.999) & (ratio <= band.p95_ratio * 1.001)).sum())
            total += len(ratio)
    assert total > 150
    assert 0.85 <= held / total <= 0.95


def test_bands_from_one_half_of_the_unseen_rows_hold_the_other(shared: Path) -> None:
    """Quantiles of one half say about nine of ten of the half that they were not taken from."""
    held, total = 0, 0
    for slug in CHIPS:
        for (phase, _), ratio in ratios(slug, shared).items():
            if phase not in ("tpot", "decode"):
                continue
            for one, other in ((ratio[::2], ratio[1::2]), (ratio[1::2], ratio[::2])):
                low, high = np.quantile(one, (0.05, 0.95), method="weibull")
                held += int(((other >= low) & (other <= high)).sum())
                total += len(other)
    assert 0.82 <= held / total <= 0.97


def test_half_of_the_rows_are_held_out_and_published_lines_never(shared: Path) -> None:
    found = rows("nvidia-h100-sxm", shared).rows
    laws = [row for row in found if row.is_always_fitted]
    assert len(laws) == 6
    assert not any(row.is_held_out for row in laws)
    others = [row for row in found if not row.is_always_fitted]
    assert 0.35 <= sum(row.is_held_out for row in others) / len(others) <= 0.65


def test_rows_without_a_recorded_setting_are_left_out_by_name(shared: Path) -> None:
    rejected = rows("nvidia-h100-sxm", shared).rejected
    assert rejected["a power-capped chip"] == 114
    assert rejected["not a dense model that was checked"] > 100
    assert any("KV cache" in reason for reason in rejected)


def test_a_batch_that_memory_cannot_hold_is_not_compared(shared: Path) -> None:
    """Llama-2-70B on two A100: 64 prompts of 512 do not fit, and the file's time is of a smaller batch."""
    found = rows("nvidia-a100-80gb-sxm", shared)
    assert not [r for r in found.rows if r.tp == 2 and r.model == "llama-2-70b" and r.batch_count == 64]
    assert found.rejected["the memory cannot hold this batch, so the engine ran a smaller one"] >= 1


def make_row(**changes: object) -> StepRow:
    setting: dict[str, object] = {
        "phase": "decode",
        "engine": "vLLM 0.19",
        "model": "llama-3.1-8b",
        "tp": 1,
        "weights_dtype": "bf16",
        "kv_dtype": "bf16",
        "batch_count": 8,
        "input_tokens": 512.0,
        "output_tokens": 128.0,
        "context_tokens": 576.0,
        "measured_s": 0.01,
    }
    return StepRow(**(setting | changes))  # type: ignore[arg-type]


def test_an_eager_engine_is_slower_where_the_host_is_the_pace() -> None:
    chip = CATALOG.chip("nvidia-h100-sxm")
    calibration = CATALOG.calibration_for(chip)

    def seconds(engine: str) -> float:
        row = make_row(engine=engine, tp=8, model="llama-2-70b")
        return predicted_s(row, step_tables([row], chip, calibration, CATALOG)[row.engine, row.lane])

    assert seconds("vLLM 0.2") > 2 * seconds("vLLM 0.19")
