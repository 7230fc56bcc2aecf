"""How close each chip's shipped calibration comes, regime by regime, on rows that its fit has not seen.

Read from the residuals that a calibration carries, beside the target of the regime (`step_targets.py`) and, where
the target is missed, its cause. Collectives carry no residuals: theirs is the mean error of their fits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from simcore.catalog import Calibration, Catalog, Chip
from simcore.catalog.kernels import FitRecord
from simcore.validation.step_targets import KNOWN_DEVIATIONS, TARGETS

_UNKNOWN = float("nan")


@dataclass(frozen=True, slots=True, kw_only=True)
class AccuracyRow:
    """One regime of one chip. NaN: not known, or no target."""

    chip: Chip
    regime: str
    source: str
    fitted_rows: int  # 0: its own source says
    held_out_rows: int  # 0: the error is over the rows that were fitted
    mape_fraction: float
    median_fraction: float = _UNKNOWN
    p5_ratio: float = _UNKNOWN  # measured ÷ predicted
    p95_ratio: float = _UNKNOWN

    @property
    def target_fraction(self) -> float:
        """Of rows that were not fitted; what the fit has seen is held against none."""
        if not self.held_out_rows:
            return _UNKNOWN
        return TARGETS.get(self.regime, TARGETS.get(self.regime.partition(".")[0], _UNKNOWN))

    @property
    def is_missed(self) -> bool:
        return self.mape_fraction > self.target_fraction

    @property
    def cause(self) -> str:
        """Why a target is missed; "" where it is met or nothing is known."""
        return KNOWN_DEVIATIONS.get((self.chip.slug, self.regime), "") if self.is_missed else ""

    def as_line(self) -> str:
        target = "" if math.isnan(self.target_fraction) else f"≤ {self.target_fraction:.0%}"
        mark = "missed" if self.is_missed else "met" if target else ""
        rows = f"{self.fitted_rows or '–':>5} {self.held_out_rows or '–':>5}"
        error = f"{self.mape_fraction:>7.1%} {target:>6} {mark:<6}"
        return f"{self.chip.slug:<22} {self.regime:<26} {rows} {error}  {self.source}".rstrip()


def accuracy(catalog: Catalog) -> list[AccuracyRow]:
    """Every regime of every calibration that ships, by the chip that it was fitted on."""
    fitted = [chip for chip in catalog.chips.values() if chip.calibration == chip.slug]
    return [row for chip in fitted for row in _of(chip, catalog.calibration_for(chip))]


def _of(chip: Chip, calibration: Calibration) -> Iterator[AccuracyRow]:
    for regime, found in calibration.residuals.items():
        kind, _, key = regime.partition(".")
        fit: FitRecord | None = getattr(calibration.kernels, kind, {}).get(key)
        yield AccuracyRow(
            chip=chip,
            regime=regime,
            source=found.source.title,
            fitted_rows=fit.fitted_rows if fit else 0,
            held_out_rows=fit.held_out_rows if fit else found.row_count,
            mape_fraction=fit.held_out_mape_fraction if fit else found.mape_fraction,
            median_fraction=fit.held_out_median_fraction if fit else _UNKNOWN,
            p5_ratio=found.p5_ratio,
            p95_ratio=found.p95_ratio,
        )
    if calibration.collectives and chip.scaleup_bytes_per_s:
        fits = list(calibration.collectives.values())
        yield AccuracyRow(
            chip=chip,
            regime="collectives",
            source=fits[0].source.title,
            fitted_rows=0,
            held_out_rows=0,
            mape_fraction=math.fsum(fit.mape_fraction for fit in fits) / len(fits),
        )
