"""The fitted constants against the measurements they were fitted to."""

import csv
from pathlib import Path
from statistics import mean

import pytest

from simcore.catalog import Calibration, Chip, default_catalog
from simcore.catalog.types import CollectiveFit

CATALOG = default_catalog()
GPUS = {
    "a100_sxm": "nvidia-a100-80gb-sxm",
    "h100_sxm": "nvidia-h100-sxm",
    "h200_sxm": "nvidia-h200-sxm",
    "b200_sxm": "nvidia-b200-sxm",
    "gb200": "nvidia-gb200",
    "rtx_pro_6000_server": "nvidia-rtx-pro-6000",
    "l40s": "nvidia-l40s",
    "gb300": "nvidia-gb300",
    "b300_sxm": "nvidia-b300-sxm",
}
# operation of a fit -> its name in the measurements, whose implementation, and up to which payload
MEASURED_AS = {
    "all_to_all": ("alltoall", "nccl", float("inf")),
    "custom_all_reduce": ("all_reduce", "custom", 8 * 2**20),
}
FITTED = [slug for slug, item in CATALOG.calibrations.items() if not item.is_class_default]


def rows(path: Path) -> list[dict[str, str]]:
    if not path.is_file():
        pytest.skip(f"needs {path.name} of the shared data")
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def gemm_s(chip: Chip, calibration: Calibration, row: dict[str, str]) -> float:
    m, n, k = (int(row[axis]) for axis in "mnk")
    fit = calibration.gemm["bf16"]
    compute_s = 2 * m * n * k / (fit.compute_fraction * chip.bf16_flop_per_s)
    memory_s = 2 * (m * k + k * n + m * n) / (fit.memory_fraction * chip.hbm_bytes_per_s)
    return max(compute_s, memory_s) + fit.launch_s


@pytest.mark.parametrize("gpu", GPUS)
def test_gemm_fit_meets_the_error_it_states(shared: Path, gpu: str) -> None:
    chip = CATALOG.chip(GPUS[gpu])
    calibration = CATALOG.calibration_for(chip)
    measured = [
        row
        for row in rows(shared / "data" / "kernels_gemm.csv")
        if row["gpu"] == gpu and row["dtype"] == "bfloat16"
    ]
    errors = [
        abs(gemm_s(chip, calibration, row) / (float(row["measured_us"]) * 1e-6) - 1) for row in measured
    ]
    assert len(errors) > 500
    assert mean(errors) == pytest.approx(calibration.gemm["bf16"].mape_fraction, abs=0.02)


@pytest.mark.parametrize("gpu", GPUS)
def test_collective_fit_meets_the_error_it_states(shared: Path, gpu: str) -> None:
    """`t = alpha + c·sqrt(w) + w/b` with w = bytes × bus-bandwidth factor, c in seconds per √byte."""
    everything = [row for row in rows(shared / "data" / "collectives_nccl.csv") if row["gpu"] == gpu]
    calibration = CATALOG.calibrations[GPUS[gpu]]
    assert ("all_reduce", 2) in calibration.collectives
    for (operation, ranks), fit in calibration.collectives.items():
        name, library, most_bytes = MEASURED_AS.get(operation, (operation, "nccl", float("inf")))
        measured = [
            row
            for row in everything
            if row["op"] == name
            and int(row["ranks"]) == ranks
            and row["impl"].startswith(library)
            and float(row["bytes"]) <= most_bytes
        ]
        newest = max(row["impl"] for row in measured)
        errors = [collective_error(fit, ranks, row) for row in measured if row["impl"] == newest]
        assert len(errors) > 15
        assert mean(errors) == pytest.approx(fit.mape_fraction, abs=0.02), (operation, ranks)


def collective_error(fit: CollectiveFit, ranks: int, row: dict[str, str]) -> float:
    factor = (2 if row["op"] == "all_reduce" else 1) * (ranks - 1) / ranks
    moved = float(row["bytes"]) * factor
    seconds = fit.alpha_s + fit.sqrt_s_per_sqrt_byte * moved**0.5 + moved / fit.bus_bytes_per_s
    return abs(seconds / (float(row["measured_us"]) * 1e-6) - 1)


@pytest.mark.parametrize("slug", FITTED)
def test_no_fit_claims_more_than_the_chip_has(slug: str) -> None:
    calibration = CATALOG.calibrations[slug]
    for table in (calibration.gemm, calibration.attention_prefill, calibration.attention_decode):
        assert "bf16" in table
        for fit in table.values():
            assert 0 < fit.compute_fraction <= 1
            assert 0 < fit.memory_fraction <= 1
            assert fit.mape_fraction <= fit.p90_fraction


def test_class_default_is_wider_than_every_fit_it_stands_for() -> None:
    default = CATALOG.calibrations["class-default"]
    assert default.is_class_default
    assert not default.collectives
    for slug in FITTED:
        for dtype in ("bf16", "fp8"):
            fit = CATALOG.calibrations[slug].gemm.get(dtype)
            assert fit is None or fit.mape_fraction <= default.gemm[dtype].mape_fraction


@pytest.mark.parametrize(
    ("slug", "kv_dtype", "slope_ms_per_token"),
    [
        ("nvidia-h100-sxm", "bf16", 4.37e-5),
        ("nvidia-h100-sxm", "fp8", 2.37e-5),
        ("nvidia-b200-sxm", "bf16", 1.8e-5),
        ("nvidia-b200-sxm", "fp8", 9.72e-6),
    ],
)
def test_decode_slope_of_llama_8b_is_the_measured_one(
    slug: str, kv_dtype: str, slope_ms_per_token: float
) -> None:
    """vLLM blog, 2026-04-22: milliseconds per token of context at batch 1."""
    chip = CATALOG.chip(slug)
    fit = CATALOG.calibration_for(chip).attention_decode[kv_dtype]
    kv_bytes = 131_072 if kv_dtype == "bf16" else 65_536
    slope_s = kv_bytes / (fit.memory_fraction * chip.hbm_bytes_per_s)
    assert slope_s * 1e3 == pytest.approx(slope_ms_per_token, rel=0.10)
