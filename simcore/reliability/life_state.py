"""The live state of a cluster's life: units, the jobs that hold them, and the clock, as flat numpy records.

A *unit* is what a job is given and what fails as one: a cube of chips behind optical switches, or a server. A
*slot* is the seat of one job that has units. All of it is mutable and private to one simulated life.

Every unit of every second has one of `CAUSES`, which therefore sum to units times duration:
- *useful*: work that was never done again; *rework*: work that a stop lost; *slowdown*: what a degraded link adds;
- *checkpoint*: saving; *restart*: from having its units to working;
- *stranded*: healthy, while a stopped job waits for what it lacks; *queue*: healthy, while new jobs wait for more;
- *idle*: healthy, and nobody asks for it (spares and what no job fits); *repair*, *maintenance*: down.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

CAUSES: Final = (
    "useful", "rework", "slowdown", "checkpoint", "restart", "stranded", "queue", "idle", "repair", "maintenance",
)  # fmt: skip
USEFUL: Final = 0
REWORK: Final = 1
SLOWDOWN: Final = 2
CHECKPOINT: Final = 3
RESTART: Final = 4
STRANDED: Final = 5
QUEUE: Final = 6
IDLE: Final = 7
REPAIR: Final = 8
MAINTENANCE: Final = 9

# What a unit does, as far as the picture over time is concerned.
STATES: Final = ("running", "starting", "waiting", "idle", "down", "maintenance")
SLICES: Final = 400
FAILURES: Final = len(STATES)  # column of the picture: failures in the slice
INTERRUPTIONS: Final = FAILURES + 1

EMPTY: Final = 0
STARTING: Final = 1
RUNNING: Final = 2

EVENTS: Final = (
    "failure",
    "repaired",
    "interrupted",
    "swapped",
    "waits",
    "started",
    "finished",
    "maintenance",
)
FAILED: Final = 0
REPAIRED: Final = 1
INTERRUPTED: Final = 2
SWAPPED: Final = 3
WAITS: Final = 4
STARTED: Final = 5
FINISHED: Final = 6
SERVICED: Final = 7
MOST_EVENTS: Final = 1_000

UNIT: Final = np.dtype(
    [
        ("slot", "i8"),  # that holds it, or -1
        ("failures", "i8"),  # of its parts, not yet repaired
        ("services", "i8"),  # maintenance windows that it is in
        ("slow", "i8"),  # degraded links
        ("stacked", "i8"),  # it stands in the stack of free units
    ]
)
SLOT: Final = np.dtype(
    [
        ("since_s", "f8"),  # up to when its time is counted
        ("position_s", "f8"),  # in the cycle of working and saving
        ("unsaved_s", "f8"),  # useful work since the last checkpoint
        ("job", "i8"),
        ("units", "i8"),
        ("phase", "i8"),
        ("slow", "i8"),  # degraded links of its units
        ("event", "i8"),  # the last that broke it, by number
    ]
)
JOB: Final = np.dtype(
    [
        ("arrival_s", "f8"),
        ("work_s", "f8"),  # infinite: it never ends
        ("interval_s", "f8"),  # of work between checkpoints
        ("saved_s", "f8"),
        ("waits_from_s", "f8"),
        ("first_wait_s", "f8"),  # from its arrival; negative: it never started
        ("units", "i8"),
    ]
)
CLOCK: Final = np.dtype(
    [
        ("now_s", "f8"),
        ("stop_wait_s", "f8"),  # Σ over restarts, from the stop to having units again
        ("event", "i8"),
        ("free", "i8"),  # units
        ("starting", "i8"),
        ("running", "i8"),
        ("failed", "i8"),
        ("serviced", "i8"),
        ("stranded", "i8"),  # units that stopped jobs wait for
        ("queued", "i8"),  # units that new jobs wait for
        ("stack", "i8"),  # height of the stack of free units
        ("slots", "i8"),  # height of the stack of empty slots
        ("broken", "i8"),  # slots that lost a unit in this event
        ("line_head", "i8"),  # of stopped jobs
        ("line_length", "i8"),
        ("arrived", "i8"),  # jobs
        ("started", "i8"),  # of those, for the first time
        ("failure", "i8"),  # next
        ("window", "i8"),  # next change of maintenance
        ("crews", "i8"),  # that repair
        ("repair_head", "i8"),  # of failures that wait for a crew
        ("repair_tail", "i8"),
        ("failure_count", "i8"),
        ("interruption_count", "i8"),
        ("planned_stop_count", "i8"),
        ("swap_count", "i8"),
        ("start_count", "i8"),
        ("restart_count", "i8"),
        ("finished_count", "i8"),
        ("event_count", "i8"),  # also of those that were not written down
    ]
)
EVENT: Final = np.dtype([("time_s", "f8"), ("kind", "i8"), ("part", "i8"), ("unit", "i8"), ("job", "i8")])


class Policy(NamedTuple):
    """What the cluster does, in units and seconds."""

    duration_s: float
    write_s: float
    start_s: float  # from having all units to working
    swap_s: float  # the same after one unit was replaced
    slowdown_ratio: float
    spare_count: int  # units that no new job takes
    crew_count: int  # 0: as many as there are failures
    is_aligned: bool  # a job of n units starts at a multiple of n
    keeps_state: bool  # what was not saved is not lost with a unit


class World(NamedTuple):
    """All arrays of one life."""

    clock: Any
    units: Any
    slots: Any
    jobs: Any
    at_s: Any  # clocks: one per failure (its repair), then one per slot
    winner: Any
    free: Any  # stack of units
    empty: Any  # stack of slots
    broken: Any
    line: Any  # ring of stopped jobs
    repairs: Any  # line of failures that wait for a crew
    is_out: Any  # by part: it has failed
    failure_s: Any
    part: Any  # by failure
    kind: Any
    first: Any
    span: Any
    slows: Any
    repair_s: Any
    window_s: Any
    window_first: Any
    window_span: Any
    window_step: Any
    spent_s: Any  # unit-seconds by cause
    picture: Any  # unit-seconds by slice of time and state
    job_s: Any  # Σ over jobs of the time that they had units
    log: Any


def records(count: int, dtype: Any) -> Any:
    return np.zeros(count, dtype).view(np.recarray)
