"""A cluster's life, simulated: parts fail and are repaired, windows of maintenance pass, jobs run, stop and restart.

Events, not steps: between two of them nothing changes (`life_kernel`). Jobs hold whole units (cubes or servers). A
unit that goes down stops its job. Where any healthy unit will do (optical switches, or servers behind a switched
network), another takes its place and the job goes on after `swap_s`; on a fixed torus only an aligned, whole place
will. Otherwise the job waits, and stands before all new ones. Work since the last checkpoint is done again.

Closed forms that it meets (tests): a part is up MTBF / (MTBF + MTTR); jobs that restart at once hold the slice
goodput of `availability`; one job that is always given its units has the efficiency of `checkpointing`.
Limits: the cluster begins whole and empty; failures are independent; a job stopped by maintenance saves first, in no
time; new jobs start in their order, none overtakes; a degraded link slows its whole job by one stated ratio.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from simcore.reliability.life_draws import Failures, Floats, Jobs, Windows
from simcore.reliability.life_kernel import live
from simcore.reliability.life_state import (
    CAUSES,
    CLOCK,
    EVENT,
    EVENTS,
    FAILURES,
    INTERRUPTIONS,
    JOB,
    MOST_EVENTS,
    SLICES,
    SLOT,
    STATES,
    UNIT,
    Policy,
    World,
    records,
)
from simcore.reliability.next_event import clocks


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """What came of it, in units and seconds."""

    unit_count: int
    duration_s: float
    spent_fraction: Mapping[str, float]  # of all unit time, by cause; sums to 1
    failure_count: int
    interruption_count: int  # stops of jobs by failures
    planned_stop_count: int
    swap_count: int  # units that took the place of others
    start_count: int  # of jobs, the first ones and all others
    finished_count: int
    event_count: int
    job_s: float  # Σ over jobs of the time that they had their units
    stop_wait_s: float  # Σ over the waits of stopped jobs
    restart_count: int
    wait_s: Floats  # of new jobs for their first start
    picture: Mapping[str, Floats]  # units by state, failures and interruptions, by slice of time
    events: tuple[Mapping[str, Any], ...]

    @property
    def goodput_fraction(self) -> float:
        """Useful unit time over owned unit time."""
        return self.spent_fraction["useful"]

    @property
    def utilisation_fraction(self) -> float:
        """Unit time that jobs held over owned unit time."""
        held = ("useful", "rework", "slowdown", "checkpoint", "restart")
        return float(sum(self.spent_fraction[cause] for cause in held))

    @property
    def mtti_s(self) -> float:
        """Time that a job goes on between interruptions, in the mean."""
        return self.job_s / max(1, self.interruption_count)


def cluster_life(
    *, unit_count: int, failures: Failures, windows: Windows, jobs: Jobs, policy: Policy
) -> Life:
    """Run it. The same arguments give the same life."""
    world = _world(unit_count, failures, windows, jobs)
    live(world, policy)
    clock, duration_s = world.clock[0], policy.duration_s
    whole = unit_count * duration_s
    started = world.jobs.first_wait_s >= 0
    return Life(
        unit_count=unit_count,
        duration_s=duration_s,
        spent_fraction={
            cause: float(spent) / whole for cause, spent in zip(CAUSES, world.spent_s, strict=True)
        },
        failure_count=int(clock.failure_count),
        interruption_count=int(clock.interruption_count),
        planned_stop_count=int(clock.planned_stop_count),
        swap_count=int(clock.swap_count),
        start_count=int(clock.start_count),
        finished_count=int(clock.finished_count),
        event_count=int(clock.event_count),
        job_s=_job_s(world),
        stop_wait_s=float(clock.stop_wait_s),
        restart_count=int(clock.restart_count),
        wait_s=np.asarray(world.jobs.first_wait_s[started], dtype=np.float64),
        picture=_picture(world, duration_s),
        events=_events(world),
    )


def _world(unit_count: int, failures: Failures, windows: Windows, jobs: Jobs) -> World:
    smallest = int(jobs.unit_count.min()) if len(jobs.unit_count) else unit_count
    slot_count = max(1, unit_count // max(1, smallest))
    at_s, winner = clocks(len(failures.time_s) + slot_count)
    clock, units = records(1, CLOCK), records(unit_count, UNIT)
    units.slot, units.stacked = -1, 1
    clock.free = clock.stack = unit_count
    clock.slots = slot_count
    rows = records(len(jobs.arrival_s), JOB)
    rows.arrival_s, rows.work_s = jobs.arrival_s, jobs.work_s
    rows.interval_s, rows.units, rows.first_wait_s = jobs.interval_s, jobs.unit_count, -1.0
    return World(
        clock=clock,
        units=units,
        slots=records(slot_count, SLOT),
        jobs=rows,
        at_s=at_s,
        winner=winner,
        free=np.arange(unit_count - 1, -1, -1),
        empty=np.arange(slot_count - 1, -1, -1),
        broken=np.zeros(slot_count, np.int64),
        line=np.zeros(slot_count, np.int64),
        repairs=np.zeros(len(failures.time_s), np.int64),
        is_out=np.zeros(failures.part_count, np.bool_),
        failure_s=failures.time_s,
        part=failures.part,
        kind=failures.kind,
        first=failures.first,
        span=failures.span,
        slows=failures.slows,
        repair_s=failures.repair_s,
        window_s=windows.time_s,
        window_first=windows.first,
        window_span=windows.span,
        window_step=windows.step,
        spent_s=np.zeros(len(CAUSES)),
        picture=np.zeros((SLICES, INTERRUPTIONS + 1)),
        job_s=np.zeros(1),
        log=records(MOST_EVENTS, EVENT),
    )


def _job_s(world: World) -> float:
    return float(world.job_s[0])


def _picture(world: World, duration_s: float) -> dict[str, Floats]:
    width_s = duration_s / SLICES
    columns = {name: world.picture[:, place] / width_s for place, name in enumerate(STATES)}
    return {
        "time_s": (np.arange(SLICES) + 0.5) * width_s,
        **columns,
        "failures": world.picture[:, FAILURES].copy(),
        "interruptions": world.picture[:, INTERRUPTIONS].copy(),
    }


def _events(world: World) -> tuple[Mapping[str, Any], ...]:
    written = world.log[: min(int(world.clock[0].event_count), MOST_EVENTS)]
    return tuple(
        {
            "time_s": float(row.time_s),
            "event": EVENTS[int(row.kind)],
            "part": int(row.part),
            "unit": int(row.unit),
            "job": int(row.job),
        }
        for row in written
    )
