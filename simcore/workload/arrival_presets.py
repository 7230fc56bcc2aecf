"""Arrivals fitted to real traces: how the rate moves, and how the gaps vary once that is divided out.

The rate is constant in each of evenly long cells of time and repeats after the last; unit-rate gamma gaps with
coefficient of variation `gap_cv` are sent through the inverse of the expected count, as for the laws of `arrivals.py`.
What it leaves out: waves shorter than a cell, days that differ from each other, and who sends the requests.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal

from simcore.workload.fitted import Fitted, fits

ArrivalPresetName = Literal[
    "azure-conversation-2023",
    "mooncake-conversation",
    "mooncake-synthetic",
    "servegen-m-large",
    "servegen-m-mid",
    "servegen-m-small",
    "servegen-mm-image",
    "servegen-deepseek-r1",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrivalFit(Fitted):
    """One trace's arrivals; the relative rates have mean 1."""

    gap_cv: float
    cell_s: float
    relative_rates: tuple[float, ...]

    @property
    def period_s(self) -> float:
        """After how long the rate repeats."""
        return self.cell_s * len(self.relative_rates)


@cache
def arrival_presets() -> Mapping[str, ArrivalFit]:
    """The presets by name, in the order in which they are offered."""
    return fits("arrival_presets.yaml", ArrivalFit)
