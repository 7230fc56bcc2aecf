"""The accuracy of the shipped calibrations, chip by chip, as Methods and `trimtab validate` print it."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from simcore.catalog import default_catalog
from simcore.validation.accuracy import accuracy
from simcore.validation.step_targets import KNOWN_DEVIATIONS

CATALOG = default_catalog()
ROWS = accuracy(CATALOG)


def test_every_residual_of_every_shipped_calibration_has_its_row() -> None:
    shown = {(row.chip.slug, row.regime) for row in ROWS if row.regime != "collectives"}
    fitted = {slug for slug, one in CATALOG.calibrations.items() if not one.is_class_default}
    assert shown == {(slug, regime) for slug in fitted for regime in CATALOG.calibrations[slug].residuals}


@pytest.mark.parametrize(
    "row", [row for row in ROWS if row.is_missed], ids=lambda row: f"{row.chip.slug} {row.regime}"
)
def test_what_misses_its_target_says_why(row) -> None:  # type: ignore[no-untyped-def]  # a parameter
    assert row.cause == KNOWN_DEVIATIONS[row.chip.slug, row.regime]


def test_what_was_fitted_and_what_was_held_out_stand_beside_the_error() -> None:
    for row in ROWS:
        fits = getattr(CATALOG.calibrations[row.chip.slug].kernels, row.regime.partition(".")[0], {})
        fit = fits.get(row.regime.partition(".")[2])
        if fit is not None:
            assert (row.fitted_rows, row.held_out_rows) == (fit.fitted_rows, fit.held_out_rows)
            assert row.mape_fraction == pytest.approx(fit.held_out_mape_fraction, rel=0.01)


def test_an_error_on_fitted_rows_is_held_against_no_target() -> None:
    (row, *_) = [one for one in ROWS if one.regime == "collectives"]
    assert math.isnan(row.target_fraction)
    assert not replace(row, mape_fraction=1.0).is_missed


def test_a_larger_error_would_be_missed() -> None:
    (row, *_) = [one for one in ROWS if one.regime == "gemm.bf16" and not one.is_missed]
    assert replace(row, mape_fraction=row.target_fraction + 0.001).is_missed
