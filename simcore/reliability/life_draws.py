"""What happens to a cluster, drawn before its life: failures with their repairs, maintenance, and jobs.

Parts of one class fail one by one at a constant rate (exponential times between failures); the engine lets a part
that is out not fail again, so each is up `MTBF / (MTBF + MTTR)` of the time. Repairs are lognormal with a mean and
a coefficient of variation (1: as spread as an exponential, 0: always the mean).
Two lives with one seed meet the same failures at the same instants, whatever the cluster does about them; a
smaller cluster meets those of its own units.
Limits: failures are independent, and rates do not age.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simcore.streams import stream

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Equal parts that fail alike, spread evenly over the units; each takes `span` units with it."""

    name: str
    count: int
    mtbf_s: float
    mttr_s: float
    repair_cv: float = 1.0
    span: int = 1
    slows: bool = False  # its units go on at a slower pace


@dataclass(frozen=True, slots=True, kw_only=True)
class Failures:
    """One column per property, in the order of time."""

    time_s: Floats
    part: Integers  # its number among all parts
    kind: Integers  # which class of parts
    first: Integers
    span: Integers
    slows: NDArray[np.bool_]
    repair_s: Floats
    part_count: int

    def of_first(self, unit_count: int) -> Failures:
        """Those that touch the first so many units."""
        held = self.first < unit_count
        return Failures(
            time_s=self.time_s[held],
            part=self.part[held],
            kind=self.kind[held],
            first=self.first[held],
            span=np.minimum(self.span[held], unit_count - self.first[held]),
            slows=self.slows[held],
            repair_s=self.repair_s[held],
            part_count=self.part_count,
        )


def draw_failures(parts: Sequence[Part], *, unit_count: int, duration_s: float, seed: int) -> Failures:
    """All failures of all parts, the ones that come while a part is out among them."""
    offsets = np.cumsum([0, *(part.count for part in parts)])
    drawn = [
        _of_part(part, kind, int(offsets[kind]), unit_count, duration_s, seed)
        for kind, part in enumerate(parts)
    ]
    time_s = np.concatenate([np.zeros(0), *(one.time_s for one in drawn)])
    order = np.argsort(time_s, kind="stable")

    def column(name: str, dtype: type) -> NDArray[np.generic]:
        return np.concatenate([np.zeros(0, dtype), *(getattr(one, name) for one in drawn)])[order]

    return Failures(
        time_s=time_s[order],
        part=column("part", np.int64).astype(np.int64),
        kind=column("kind", np.int64).astype(np.int64),
        first=column("first", np.int64).astype(np.int64),
        span=column("span", np.int64).astype(np.int64),
        slows=column("slows", np.bool_).astype(np.bool_),
        repair_s=column("repair_s", np.float64).astype(np.float64),
        part_count=int(offsets[-1]),
    )


def _of_part(part: Part, kind: int, offset: int, unit_count: int, duration_s: float, seed: int) -> Failures:
    random = stream(seed, "life", part.name)
    count = int(random.poisson(part.count / part.mtbf_s * duration_s))
    time_s = np.sort(random.random(count) * duration_s)
    number = random.integers(0, max(1, part.count), count)
    groups = math.ceil(unit_count / part.span)
    first = number * groups // max(1, part.count) * part.span
    return Failures(
        time_s=time_s,
        part=number + offset,
        kind=np.full(count, kind),
        first=first,
        span=np.minimum(part.span, unit_count - first),
        slows=np.full(count, part.slows),
        repair_s=_lognormal(random.standard_normal(count), part.mttr_s, part.repair_cv),
        part_count=part.count,
    )


def _lognormal(normal: Floats, mean: float, cv: float) -> Floats:
    variance = math.log1p(cv * cv)
    return np.asarray(mean * np.exp(normal * math.sqrt(variance) - variance / 2), dtype=np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Windows:
    """Maintenance: when it opens (+1) or closes (-1) over which units."""

    time_s: Floats
    first: Integers
    span: Integers
    step: Integers


def maintenance_windows(
    *, period_s: float, window_s: float, fraction: float, unit_count: int, duration_s: float
) -> Windows:
    """Every `period_s` all units are served once, a share at a time, one share after the other.

    >>> maintenance_windows(period_s=10, window_s=2, fraction=0.5, unit_count=4, duration_s=15).time_s
    array([10., 12., 12., 14.])
    """
    each = max(1, math.floor(fraction * unit_count + 1e-9))
    rows = [
        (
            start + wave * window_s + (step < 0) * window_s,
            wave * each,
            min(each, unit_count - wave * each),
            step,
        )
        for start in np.arange(period_s, duration_s, period_s)
        for wave in range(math.ceil(unit_count / each))
        for step in (1, -1)
    ]
    rows.sort(key=lambda row: (row[0], row[3]))
    table = np.array(rows, dtype=np.float64).reshape(-1, 4)
    return Windows(
        time_s=table[:, 0],
        first=table[:, 1].astype(np.int64),
        span=table[:, 2].astype(np.int64),
        step=table[:, 3].astype(np.int64),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Jobs:
    """Jobs in the order of their arrival; infinite work never ends."""

    arrival_s: Floats
    work_s: Floats
    unit_count: Integers
    interval_s: Floats


def endless_jobs(count: int, *, unit_count: int, interval_s: float) -> Jobs:
    """So many jobs from the first instant on, for ever: a cluster that is always full."""
    return Jobs(
        arrival_s=np.zeros(count),
        work_s=np.full(count, math.inf),
        unit_count=np.full(count, unit_count),
        interval_s=np.full(count, interval_s),
    )


def arriving_jobs(
    *,
    interarrival_s: float,
    work_s: float,
    work_cv: float,
    unit_counts: Sequence[int],
    intervals_s: Sequence[float],
    duration_s: float,
    seed: int,
) -> Jobs:
    """Poisson arrivals; each size is as likely as the others, and work is lognormal."""
    random = stream(seed, "life", "jobs")
    count = int(random.poisson(duration_s / interarrival_s))
    arrival_s = np.sort(random.random(count) * duration_s)
    size = random.integers(0, len(unit_counts), count)
    return Jobs(
        arrival_s=arrival_s,
        work_s=_lognormal(random.standard_normal(count), work_s, work_cv),
        unit_count=np.asarray(unit_counts, np.int64)[size],
        interval_s=np.asarray(intervals_s, np.float64)[size],
    )
