"""How sure a simulated mean is: Student's t over replications, and warm-up and batch means of a single run.

Warm-up is cut where the standard error of what remains is least (MSER-5: White 1997; over means of five, at most
half of the run). Batch means (Conway 1963) part the rest into `BATCHES` equal batches, whose means are nearly
independent once a batch is much longer than the queue remembers; over them stands a 95 % interval by Student's t.
Limits: the end of a run, where a batch empties, is kept; a run that never settles has no steady state to speak of.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from simcore.serving.latencies import TimeName, time_of
from simcore.serving.records import Floats, Records

LEVEL_FRACTION: Final = 0.95
BATCHES: Final = 20
_TOGETHER: Final = 5
_STEADY: Final[tuple[TimeName, ...]] = ("ttft_s", "tpot_s", "e2e_s")
# Two-sided 95 % points of Student's t for 1, 2, … 31 degrees of freedom.
STUDENT_T: Final = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042, 2.040,
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A mean with its 95 % interval, in the unit of what was averaged."""

    mean: float
    low: float
    high: float
    standard_deviation: float  # of the values that were averaged


def mean_interval(values: Floats) -> Interval:
    """Mean of 2 to 32 independent values, with its 95 % interval by Student's t.

    >>> found = mean_interval(np.array([1.0, 3.0]))
    >>> found.mean, round(found.high, 3)
    (2.0, 14.706)
    """
    spread = float(values.std(ddof=1))
    half = STUDENT_T[len(values) - 2] * spread / math.sqrt(len(values))
    mean = float(values.mean())
    return Interval(mean=mean, low=mean - half, high=mean + half, standard_deviation=spread)


def batch_means(values: Floats) -> Interval:
    """Mean of a steady sequence of at least `BATCHES` values; what no batch has room for is left out at its start."""
    length = len(values) // BATCHES
    return mean_interval(values[len(values) - length * BATCHES :].reshape(BATCHES, length).mean(axis=1))


def warmup_count(values: Floats) -> int | None:
    """How many values to cut at the start by MSER-5; None where the second half has not settled either."""
    means = values[: len(values) // _TOGETHER * _TOGETHER].reshape(-1, _TOGETHER).mean(axis=1)
    count = len(means)
    most = count // 2
    if most == 0:
        return None
    centred = means - means.mean()
    kept = count - np.arange(most + 1)
    sums = np.cumsum(centred[::-1])[::-1][: most + 1]
    squares = np.cumsum(centred[::-1] ** 2)[::-1][: most + 1]
    error = (squares - sums**2 / kept) / kept**2
    cut = int(error.argmin())
    return None if cut == most else cut * _TOGETHER


def steady_rows(records: Records, front_end_s: float) -> list[dict[str, Any]]:
    """TTFT, TPOT and end-to-end time in steady state: warm-up, mean and interval in seconds.

    A time that never settles is a row without a mean; none of which too few requests have it.
    """
    rows = []
    for name in _STEADY:
        values, flags = time_of(records, name, front_end_s)
        if len(values) < _TOGETHER * BATCHES:
            continue
        cut = warmup_count(values)
        row: dict[str, Any] = {"metric": f"serving.{name}", "is_steady": cut is not None}
        if cut is not None:
            arrival_s = records.arrival_s[flags]
            found = batch_means(values[cut:])
            row |= {
                "warmup_s": float(arrival_s[cut] - arrival_s[0]),
                "warmup_count": cut,
                "batch_count": BATCHES,
                "mean_s": found.mean,
                "low_s": found.low,
                "high_s": found.high,
                "level_fraction": LEVEL_FRACTION,
            }
        rows.append(row)
    return rows


def replication_rows(runs: Sequence[Mapping[str, float | int | str]]) -> list[dict[str, Any]]:
    """One row per metric that every run has: its mean over the runs, and the 95 % interval of that mean."""
    rows = []
    for name in shared_numbers(runs):
        found = mean_interval(np.array([float(run[name]) for run in runs]))
        rows.append(
            {
                "metric": name,
                "mean": found.mean,
                "low": found.low,
                "high": found.high,
                "standard_deviation": found.standard_deviation,
                "count": len(runs),
                "level_fraction": LEVEL_FRACTION,
            }
        )
    return rows


def mean_metrics(runs: Sequence[Mapping[str, float | int | str]]) -> dict[str, float | int | str]:
    """The metrics of several runs as one: means of numbers that all have; of words, the one most often said."""
    if len(runs) == 1:
        return dict(runs[0])
    words = {name for name, value in runs[0].items() if isinstance(value, str)}
    numbers = set(shared_numbers(runs))
    found: dict[str, float | int | str] = {}
    for name in runs[0]:
        if name in numbers:
            found[name] = float(np.mean([float(run[name]) for run in runs]))
        elif name in words:
            said = [str(run[name]) for run in runs if name in run]
            found[name] = max(said, key=said.count)
    return found


def shared_numbers(runs: Sequence[Mapping[str, float | int | str]]) -> list[str]:
    """Names of the numbers that every run has, in the first one's order."""
    return [
        name
        for name, value in runs[0].items()
        if not isinstance(value, str) and all(name in run for run in runs)
    ]
