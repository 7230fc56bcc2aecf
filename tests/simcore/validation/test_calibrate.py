"""`trimtab calibrate`: rows in, a calibration out that the catalog can load, with its errors before and after."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from simcore.catalog import default_catalog
from simcore.catalog.loader import load_calibration
from simcore.cli import main
from simcore.compute.kernels import constant_numbers, gemm_isolated_s, machine_numbers
from simcore.validation.calibrate import calibrate
from simcore.validation.calibration_file import calibration_text, outcome_text

CATALOG = default_catalog()
H100 = CATALOG.chip("nvidia-h100-sxm")
SIZES = (1024, 2048, 4096, 8192)


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    """Products that take half as long again as H100's, and rows that cannot be used."""
    import numpy as np

    kernel = replace(CATALOG.calibrations[H100.slug].kernels.gemm["bf16"], compute_fraction=0.5)
    lines = ["gpu,dtype,m,n,k,measured_us,source"]
    for m in (1, 16, 64, 129, 512, 2048, 8192):
        for n in SIZES:
            for k in SIZES:
                seconds = gemm_isolated_s(
                    constant_numbers(kernel),
                    machine_numbers(H100, "bf16"),
                    tokens=np.asarray(float(m)),
                    fan_in=np.asarray(float(k)),
                    fan_out=np.asarray(float(n)),
                    dtype="bf16",
                    exponent=kernel.overlap_exponent,
                )
                lines.append(f"h100_sxm,bfloat16,{m},{n},{k},{float(seconds) * 1e6:.3f},bench")
    lines += ["b200_sxm,bfloat16,1,1024,1024,5,bench", "h100_sxm,bfloat16,1,1024,1024,-1,bench"]
    file = tmp_path / "rows.csv"
    file.write_text("\n".join(lines) + "\n")
    return file


def test_the_error_falls_and_the_new_constant_is_found(rows: Path) -> None:
    outcome = calibrate([rows], H100, CATALOG, fitted_on="2026-11-30")
    (regime,) = outcome.regimes
    assert regime.before_fraction > 0.1
    assert regime.held_out_mape_fraction < 0.02
    assert outcome.calibration.kernels.gemm["bf16"].compute_fraction == pytest.approx(0.5, rel=0.03)
    assert dict(outcome.rejected) == {"of another chip": 1, "a time or size that is not positive": 1}


def test_what_the_rows_do_not_speak_of_stays(rows: Path) -> None:
    present = CATALOG.calibrations[H100.slug]
    made = calibrate([rows], H100, CATALOG, fitted_on="2026-11-30").calibration
    assert made.collectives == present.collectives
    assert made.kernels.gemm["fp8"] == present.kernels.gemm["fp8"]
    assert made.engine_overheads == present.engine_overheads


@pytest.mark.parametrize("slug", sorted(CATALOG.calibrations))
def test_the_file_that_is_written_is_read_back_as_it_was(slug: str) -> None:
    calibration = CATALOG.calibrations[slug]
    text = calibration_text(calibration)
    again = load_calibration(text, slug=slug, path="written.yaml")
    assert calibration_text(again) == text
    assert again.kernels.gemm.keys() == calibration.kernels.gemm.keys()
    assert again.residuals.keys() == calibration.residuals.keys()
    assert again.is_class_default == calibration.is_class_default


def test_the_command_prints_before_and_after_and_writes_a_calibration(
    rows: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "made.yaml"
    assert main(["calibrate", str(rows), "--chip", "nvidia-h100-sxm", "-o", str(file)]) == 0
    out = capsys.readouterr().out
    assert "before" in out.splitlines()[0]
    assert "gemm.bf16" in out
    assert "1 rows left out: of another chip" in out
    made = load_calibration(file.read_text(), slug="made", path="made.yaml")
    assert made.fitted_on >= "2026-01-01"
    assert "gemm.bf16" in made.residuals


def test_the_command_speaks_json(rows: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrate", str(rows), "--chip", "nvidia-h100-sxm", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["regimes"][0]["name"] == "gemm.bf16"
    assert document["rejected"]["of another chip"] == 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["absent.csv", "--chip", "nvidia-h100-sxm"], "cannot be read"),
        (["absent.csv", "--chip", "h101"], "no chip 'h101' in the catalog"),
    ],
)
def test_wrong_input_is_named(arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrate", *arguments]) == 2
    assert says in capsys.readouterr().err


def test_another_source_is_compared_and_not_fitted(rows: Path) -> None:
    text = rows.read_text()
    other = [line.replace(",bench", ",other") for line in text.splitlines()[1:40]]
    rows.write_text(text + "\n".join(other) + "\n")
    regimes = {regime.name: regime for regime in calibrate([rows], H100, CATALOG, fitted_on="2026").regimes}
    across = regimes["gemm.bf16, another source"]
    assert (across.fitted_rows, across.held_out_rows, across.source) == (0, 39, "other")
    assert across.held_out_mape_fraction < 0.05


def test_overheads_of_a_like_chip_are_marked_as_assumed(rows: Path) -> None:
    made = calibrate([rows], H100, CATALOG, fitted_on="2026-11-30", steps_like="nvidia-b200-sxm").calibration
    assert made.step_overhead.source.kind == "assumption"
    assert (
        made.step_overhead.per_iteration_s
        == CATALOG.calibrations["nvidia-b200-sxm"].step_overhead.per_iteration_s
    )


def test_the_report_says_which_fit_was_not_taken(rows: Path) -> None:
    outcome = calibrate([rows], H100, CATALOG, fitted_on="2026-11-30")
    refused = replace(outcome, regimes=(replace(outcome.regimes[0], is_kept=False),))
    assert "the plain roofline is closer" in outcome_text(refused)
    assert "not taken" not in outcome_text(outcome)
