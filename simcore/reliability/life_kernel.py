"""The clock of a cluster's life: failures, repairs, maintenance, arrivals and jobs, in the order of their instants.

All that is random was drawn before (`life_draws`); at one instant, what was set first by kind goes first: repairs
and jobs, then maintenance, arrivals, failures. Between events nothing changes, so time is counted in one stride.
"""

from __future__ import annotations

import math
from typing import Any

from simcore.compiled import compiled_in_place
from simcore.reliability.life_jobs import mend, seat_all, strike
from simcore.reliability.life_state import (
    EMPTY,
    FAILED,
    FAILURES,
    IDLE,
    MAINTENANCE,
    QUEUE,
    REPAIR,
    REPAIRED,
    SERVICED,
    SLICES,
    STRANDED,
)
from simcore.reliability.life_units import come_up, count_time, go_down, mark, note, slow_down
from simcore.reliability.next_event import set_clock


@compiled_in_place
def pass_time(world: Any, policy: Any, until_s: float) -> None:
    """Nothing happens until then: count who was what."""
    clock, spent, picture = world.clock[0], world.spent_s, world.picture
    elapsed = until_s - clock.now_s
    stranded = min(clock.free, clock.stranded)
    queued = min(clock.free - stranded, clock.queued)
    idle = clock.free - stranded - queued
    spent[STRANDED] += elapsed * stranded
    spent[QUEUE] += elapsed * queued
    spent[IDLE] += elapsed * idle
    spent[REPAIR] += elapsed * clock.failed
    spent[MAINTENANCE] += elapsed * clock.serviced
    width = policy.duration_s / SLICES
    place = min(int(clock.now_s / width), SLICES - 1)
    while clock.now_s < until_s:
        end = until_s if place == SLICES - 1 else min(until_s, (place + 1) * width)
        part = end - clock.now_s
        picture[place, 0] += part * clock.running
        picture[place, 1] += part * clock.starting
        picture[place, 2] += part * (stranded + queued)
        picture[place, 3] += part * idle
        picture[place, 4] += part * clock.failed
        picture[place, 5] += part * clock.serviced
        clock.now_s = end
        place += 1


@compiled_in_place
def call_crew(world: Any, policy: Any, failure: int) -> None:
    """A crew sets out, or the failure waits for one."""
    clock = world.clock[0]
    if policy.crew_count > 0 and clock.crews == policy.crew_count:
        world.repairs[clock.repair_tail] = failure
        clock.repair_tail += 1
        return
    clock.crews += 1
    set_clock(world.at_s, world.winner, failure, clock.now_s + world.repair_s[failure])


@compiled_in_place
def fail(world: Any, policy: Any, failure: int) -> None:
    """A part fails, if it has not already; with it go down, or slow down, the units that hang on it."""
    clock = world.clock[0]
    if world.is_out[world.part[failure]]:
        return
    world.is_out[world.part[failure]] = True
    clock.failure_count += 1
    mark(world, policy, FAILURES)
    note(world, FAILED, world.kind[failure], world.first[failure], -1)
    for number in range(world.first[failure], world.first[failure] + world.span[failure]):
        if world.slows[failure]:
            slow_down(world, policy, number, 1)
        else:
            go_down(world, policy, number, False)
    call_crew(world, policy, failure)


@compiled_in_place
def repair(world: Any, policy: Any, failure: int) -> None:
    """A part is whole again, and its crew goes to the next."""
    clock = world.clock[0]
    world.is_out[world.part[failure]] = False
    set_clock(world.at_s, world.winner, failure, math.inf)
    note(world, REPAIRED, world.kind[failure], world.first[failure], -1)
    for number in range(world.first[failure], world.first[failure] + world.span[failure]):
        if world.slows[failure]:
            slow_down(world, policy, number, -1)
        else:
            come_up(world, number, False)
    clock.crews -= 1
    if clock.repair_head < clock.repair_tail:
        clock.repair_head += 1
        call_crew(world, policy, world.repairs[clock.repair_head - 1])


@compiled_in_place
def maintain(world: Any, policy: Any, window: int) -> None:
    """A window opens or closes over some units."""
    for number in range(world.window_first[window], world.window_first[window] + world.window_span[window]):
        if world.window_step[window] > 0:
            go_down(world, policy, number, True)
        else:
            come_up(world, number, True)
    if world.window_step[window] > 0:
        note(world, SERVICED, -1, world.window_first[window], -1)


@compiled_in_place
def live(world: Any, policy: Any) -> None:
    """From the first instant to the last."""
    clock = world.clock[0]
    never = math.inf
    while True:
        leaf = world.winner[1]
        struck = world.at_s[leaf]
        window = world.window_s[clock.window] if clock.window < len(world.window_s) else never
        arrival = world.jobs[clock.arrived].arrival_s if clock.arrived < len(world.jobs) else never
        failure = world.failure_s[clock.failure] if clock.failure < len(world.failure_s) else never
        instant = min(struck, window, arrival, failure)
        if instant >= policy.duration_s:
            break
        pass_time(world, policy, instant)
        clock.event += 1
        if struck == instant:
            if leaf < len(world.failure_s):
                repair(world, policy, leaf)
            else:
                strike(world, policy, leaf - len(world.failure_s))
        elif window == instant:
            clock.window += 1
            maintain(world, policy, clock.window - 1)
        elif arrival == instant:
            clock.queued += world.jobs[clock.arrived].units
            clock.arrived += 1
        else:
            clock.failure += 1
            fail(world, policy, clock.failure - 1)
        for place in range(clock.broken):
            mend(world, policy, world.broken[place])
        clock.broken = 0
        seat_all(world, policy)
    pass_time(world, policy, policy.duration_s)
    for index in range(len(world.slots)):
        if world.slots[index].phase != EMPTY:
            count_time(world, policy, index)
