"""Numbers that can be dragged: between which values a slider runs, and in how many steps.

Steps are equal on a logarithmic scale: step `i` of `n` stands for `low · (high / low)^(i / n)`. Counts and rates run in
octaves, so that every power of two between is met; times run in decades.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final, Literal

from simcore.errors import InputError
from simcore.units import dimension_of, quantity

Written = Literal["count", "rate", "time"]  # how the browser writes what the slider stands at


@dataclass(frozen=True, slots=True, kw_only=True)
class Scrub:
    """A slider from `low` to `high`, in the field's SI unit; it stands at step `at`."""

    low: float
    high: float
    steps: int
    written: Written
    at: int = 0

    def step_of(self, value: float) -> int:
        """The nearest step; an end of the slider for what lies beyond it."""
        share = math.log(value / self.low) / math.log(self.high / self.low) if value > 0 else 0.0
        return round(min(max(share, 0.0), 1.0) * self.steps)


_RATE: Final = Scrub(low=0.125, high=1024, steps=13 * 8, written="rate")
_INPUT: Final = Scrub(low=16, high=131_072, steps=13 * 4, written="count")
_OUTPUT: Final = Scrub(low=1, high=16_384, steps=14 * 4, written="count")
_SLIDERS: Final = {
    "hardware.chip_count": Scrub(low=1, high=65_536, steps=16, written="count"),
    "workload.arrivals.request_per_s": _RATE,
    "workload.arrivals.concurrency": Scrub(low=1, high=4096, steps=12 * 4, written="count"),
    "workload.lengths.input_tokens": _INPUT,
    "workload.lengths.input_mean_tokens": _INPUT,
    "workload.lengths.output_tokens": _OUTPUT,
    "workload.lengths.output_mean_tokens": _OUTPUT,
    "workload.slo.ttft_s": Scrub(low=0.01, high=100, steps=80, written="time"),
    "workload.slo.tpot_s": Scrub(low=0.001, high=10, steps=80, written="time"),
    "serving.scheduler.max_num_batched_tokens": Scrub(low=64, high=65_536, steps=10 * 4, written="count"),
}


def scrub_of(path: str, shown: str) -> Scrub | None:
    """The slider of a field that shows this text; in its middle where that is no number, None where it has none."""
    slider = _SLIDERS.get(path)
    if slider is None:
        return None
    try:
        at = slider.step_of(quantity(shown, dimension_of(path.rpartition(".")[2])))
    except InputError:
        at = slider.steps // 2
    return replace(slider, at=at)
