"""One job through failures and drains: when it stands, what it does again, and how fast it is otherwise.

Pace is what the job gets done over what it would get done undisturbed. A stop that nobody planned loses what was done
since the last save: half an interval in the mean, as nobody knows when in an interval it comes, and no more than what
was done since the last restart. That is done again before anything counts. A planned stop saves first, and loses
nothing.
The job waits until all that is down is back, then restarts. One that can shrink may restart at w, now or when a part is
back, without the replicas that are down still, and go back to its whole size by a planned stop at b, once all are back.
It does where that gets more done than waiting for all,

    left · (b − w − restart) > save,   left: the pace without them,

at the best w. What fails while the job stands makes it start anew.

Limits: what slows at the same time counts once, at its worst; a save is always finished; a job that has shrunk grows
when all are back, not one by one; it knows how long repairs take, and foresees no further failure.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from simcore.reliability.recovery import RECOVERED_FRACTION, Recovery

Floats = NDArray[np.float64]
_ALL: Final[frozenset[int]] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rescue:
    """What a stop costs, at the undisturbed pace."""

    rework_s: float  # expected, of a stop that nobody planned
    save_s: float  # before a planned one
    restart_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Down:
    """Replicas that a job must do without for a while."""

    begin_s: float
    end_s: float
    replicas: frozenset[int]
    is_planned: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Slow:
    """A while at a lower pace, between 0 and 1."""

    begin_s: float
    end_s: float
    pace_ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class JobLine:
    """The pace of what counts, piece by piece from 0 on; undisturbed after the last edge."""

    edges_s: Floats
    pace_ratio: Floats

    @property
    def whole_again_s(self) -> float:
        """From when on nothing is missing."""
        missing = np.flatnonzero(self.pace_ratio < 1.0)
        return float(self.edges_s[missing[-1] + 1]) if len(missing) else 0.0

    def useful_s(self, until_s: Floats | float) -> Floats:
        """Undisturbed seconds that were got done by then."""
        done = np.append(0.0, np.cumsum(np.diff(self.edges_s) * self.pace_ratio))
        found: Floats = np.interp(until_s, self.edges_s, done) + np.maximum(0.0, until_s - self.edges_s[-1])
        return found

    def recovery(self, *, first_shock_s: float, horizon_s: float) -> Recovery:
        """Dip, recovery and loss against the undisturbed job, over a time from 0."""
        pace, edges = np.append(self.pace_ratio, 1.0), np.append(self.edges_s, self.edges_s[-1])
        least = int(pace.argmin())
        below = np.flatnonzero(pace < RECOVERED_FRACTION)
        return Recovery(
            dip_fraction=float(1.0 - pace[least]),
            dip_at_s=float(edges[least] + edges[least + 1]) / 2,
            recovery_s=max(0.0, float(edges[below[-1] + 1]) - first_shock_s) if len(below) else 0.0,
            lost_fraction=1.0 - float(self.useful_s(horizon_s)) / horizon_s,
        )


@dataclass(slots=True, kw_only=True)
class _Walk:
    """The job on its way: the time, what it has to do again, what it has done since it is safe."""

    slows: Sequence[Slow]
    now_s: float = 0.0
    behind_s: float = 0.0
    unsaved_s: float = math.inf  # it has run long before: the phase of its saves is unknown
    edges_s: list[float] = field(default_factory=lambda: [0.0])
    pace_ratio: list[float] = field(default_factory=list)

    def stand(self, until_s: float) -> None:
        self._add(until_s, 0.0)

    def lose(self, rework_s: float) -> None:
        self.behind_s += min(rework_s, self.unsaved_s)

    def run(self, until_s: float, left_ratio: float) -> None:
        """At the pace that is left: first what was lost, then what counts."""
        edges = {edge for one in self.slows for edge in (one.begin_s, one.end_s)}
        for end_s in (*sorted(edge for edge in edges if self.now_s < edge < until_s), until_s):
            slowed = (one.pace_ratio for one in self.slows if one.begin_s <= self.now_s < one.end_s)
            pace = left_ratio * min(slowed, default=1.0)
            self.unsaved_s += (end_s - self.now_s) * pace
            again_s = min(end_s, self.now_s + self.behind_s / pace)
            self.behind_s = 0.0 if again_s < end_s else max(0.0, self.behind_s - (end_s - self.now_s) * pace)
            self._add(again_s, 0.0)
            self._add(end_s, pace)

    def _add(self, until_s: float, pace: float) -> None:
        if self.now_s < until_s < math.inf:
            self.edges_s.append(until_s)
            self.pace_ratio.append(pace)
            self.now_s = until_s


def job_line(
    downs: Sequence[Down],
    slows: Sequence[Slow],
    rescue: Rescue,
    *,
    left_ratio: Callable[[int], float],
    shrinks: bool,
) -> JobLine:
    """The pace over time; `left_ratio` is the pace without so many replicas, 0 where the job cannot go on.

    >>> host = Down(begin_s=100, end_s=400, replicas=frozenset({0}))
    >>> line = job_line([host], [], Rescue(rework_s=50, save_s=10, restart_s=30), left_ratio=lambda _: 0, shrinks=False)
    >>> line.whole_again_s, float(line.useful_s(1000.0))
    (480.0, 620.0)
    """
    ordered = sorted((one for one in downs if one.begin_s < one.end_s), key=lambda one: one.begin_s)
    walk = _Walk(slows=[one for one in slows if one.begin_s < one.end_s])
    out = _ALL
    while True:
        stop_s, hit = _next_stop(ordered, walk.now_s, out)
        walk.run(stop_s, left_ratio(len(out)) if out else 1.0)
        if stop_s == math.inf:
            break
        if hit is None or hit.is_planned:
            walk.stand(stop_s + rescue.save_s)
        else:
            walk.lose(rescue.rework_s)
        ready_s, out = _restart(ordered, walk.now_s, rescue, left_ratio, shrinks=shrinks)
        walk.stand(ready_s)
        walk.unsaved_s = 0.0
    return JobLine(edges_s=np.array(walk.edges_s), pace_ratio=np.array(walk.pace_ratio))


def _next_stop(downs: Sequence[Down], now_s: float, out: frozenset[int]) -> tuple[float, Down | None]:
    """When the job stops next, and for what: none where those that it went on without are back."""
    back_s = max((one.end_s for one in downs if one.begin_s <= now_s and out), default=math.inf)
    for one in downs:
        if now_s <= one.begin_s < back_s:
            if not one.replicas <= out:
                return one.begin_s, one
            back_s = max(back_s, one.end_s)
    return back_s, None


def _restart(
    downs: Sequence[Down],
    now_s: float,
    rescue: Rescue,
    left_ratio: Callable[[int], float],
    *,
    shrinks: bool,
) -> tuple[float, frozenset[int]]:
    """When the job that stands runs again, and without which replicas."""
    while True:
        begin_s, out = _start(
            [one for one in downs if one.begin_s <= now_s < one.end_s],
            now_s,
            rescue,
            left_ratio,
            shrinks=shrinks,
        )
        ready_s = begin_s + rescue.restart_s
        later = (one.begin_s for one in downs if now_s < one.begin_s < ready_s and not one.replicas <= out)
        again_s = min(later, default=math.inf)
        if again_s == math.inf:
            return ready_s, out
        now_s = again_s


def _start(
    down: Sequence[Down],
    now_s: float,
    rescue: Rescue,
    left_ratio: Callable[[int], float],
    *,
    shrinks: bool,
) -> tuple[float, frozenset[int]]:
    """When to begin the restart, and without which replicas."""
    back_s = max((one.end_s for one in down), default=now_s)
    gain_s, best = rescue.save_s, (back_s, _ALL)
    for begin_s in sorted({now_s, *(one.end_s for one in down)} - {back_s}) if shrinks else ():
        out = _ALL.union(*(one.replicas for one in down if one.end_s > begin_s))
        gets_s = left_ratio(len(out)) * (back_s - begin_s - rescue.restart_s)
        if gets_s > gain_s:
            gain_s, best = gets_s, (begin_s, out)
    return best
