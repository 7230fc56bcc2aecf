"""Calibrations that people keep: the file of a fit, under a name, for any of their scenarios to choose."""

from dataclasses import dataclass
from typing import Any

from django.db import models

from explorer.models.fields import JsonText
from explorer.models.owned import Owned, once_per_person
from simcore.catalog import Calibration
from simcore.catalog.calibrations import own_calibration


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """What a fit of somebody's rows brought, before it has a name."""

    chip: str
    text: str  # the file that `trimtab calibrate` would write
    row_count: int
    report: dict[str, Any]  # of `calibration_file.outcome_dict`: errors before and after, rows left out


class SavedCalibration(Owned):
    """One person's fit. Its slug holds a part of its content's hash, so a scenario never means another one by it."""

    slug = models.CharField(max_length=80)
    name = models.CharField(max_length=200)
    chip = models.CharField(max_length=80)
    text = models.TextField()
    row_count = models.PositiveIntegerField()
    report = JsonText(default=dict)

    class Meta:
        ordering = ("-created_at",)
        constraints = once_per_person("calibration", "slug")

    def __str__(self) -> str:
        return self.name

    @property
    def fitted_on(self) -> str:
        """The day of the fit, ISO 8601."""
        return str(self.report.get("fitted_on", ""))

    @property
    def regimes(self) -> list[dict[str, Any]]:
        return list(self.report.get("regimes", ()))

    def calibration(self) -> Calibration:
        """As the plan takes it."""
        return own_calibration(self.text, slug=self.slug)
