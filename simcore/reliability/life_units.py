"""Units go down and come up, and what that does to the jobs that hold them.

A job counts its time in segments, each of one phase and one pace. Running, it works `interval_s`, saves for
`write_s`, and so on; a segment of any length is counted in closed form, so that nothing happens per checkpoint.
"""

from __future__ import annotations

import math
from typing import Any

from simcore.compiled import compiled_in_place
from simcore.reliability.life_state import (
    CHECKPOINT,
    INTERRUPTED,
    INTERRUPTIONS,
    MOST_EVENTS,
    RESTART,
    REWORK,
    RUNNING,
    SLICES,
    SLOWDOWN,
    STARTING,
    USEFUL,
)
from simcore.reliability.next_event import set_clock


@compiled_in_place
def note(world: Any, kind: int, part: int, unit: int, job: int) -> None:
    """Write an event down, where there is room."""
    clock = world.clock[0]
    if clock.event_count < MOST_EVENTS:
        row = world.log[clock.event_count]
        row.time_s, row.kind, row.part, row.unit, row.job = clock.now_s, kind, part, unit, job
    clock.event_count += 1


@compiled_in_place
def mark(world: Any, policy: Any, column: int) -> None:
    """Count something in the slice of time that is now."""
    place = min(int(world.clock[0].now_s / policy.duration_s * SLICES), SLICES - 1)
    world.picture[place, column] += 1.0


@compiled_in_place
def count_time(world: Any, policy: Any, index: int) -> None:
    """Bring a slot's account up to now."""
    slot, now = world.slots[index], world.clock[0].now_s
    elapsed, slot.since_s = now - slot.since_s, now
    world.job_s[0] += elapsed
    if slot.phase == STARTING:
        world.spent_s[RESTART] += elapsed * slot.units
        return
    job = world.jobs[slot.job]
    cycle = job.interval_s + policy.write_s
    ratio = policy.slowdown_ratio if slot.slow > 0 else 1.0
    end = slot.position_s + elapsed
    done = math.floor(end / cycle)
    rest = end - done * cycle
    worked = done * job.interval_s + min(rest, job.interval_s) - min(slot.position_s, job.interval_s)
    useful = worked / ratio
    world.spent_s[USEFUL] += useful * slot.units
    world.spent_s[SLOWDOWN] += (worked - useful) * slot.units
    world.spent_s[CHECKPOINT] += (elapsed - worked) * slot.units
    if done > 0:
        kept = min(rest, job.interval_s) / ratio
        job.saved_s += slot.unsaved_s + useful - kept
        slot.unsaved_s = kept
    else:
        slot.unsaved_s += useful
    slot.position_s = rest


@compiled_in_place
def set_end(world: Any, policy: Any, index: int) -> None:
    """When a running slot will have done its work at this pace."""
    slot = world.slots[index]
    job = world.jobs[slot.job]
    ratio = policy.slowdown_ratio if slot.slow > 0 else 1.0
    left = max(0.0, job.work_s - job.saved_s - slot.unsaved_s) * ratio
    end = math.inf
    if left < math.inf:
        worked = min(slot.position_s, job.interval_s) + left
        saves = max(0.0, math.ceil(worked / job.interval_s) - 1.0)
        end = world.clock[0].now_s + max(0.0, worked + saves * policy.write_s - slot.position_s)
    set_clock(world.at_s, world.winner, len(world.failure_s) + index, end)


@compiled_in_place
def slow_down(world: Any, policy: Any, number: int, step: int) -> None:
    """One more (or one fewer) degraded link of a unit; its job changes pace with the first and the last."""
    unit = world.units[number]
    unit.slow += step
    if unit.slot < 0:
        return
    slot = world.slots[unit.slot]
    changes = slot.slow == 0 or slot.slow + step == 0
    if changes and slot.phase == RUNNING:
        count_time(world, policy, unit.slot)
    slot.slow += step
    if changes and slot.phase == RUNNING:
        set_end(world, policy, unit.slot)


@compiled_in_place
def take_away(world: Any, policy: Any, number: int, is_planned: bool) -> None:
    """A unit leaves its job, which stops; what it had not saved is lost, unless it could prepare or has a copy."""
    clock, unit = world.clock[0], world.units[number]
    index = unit.slot
    slot = world.slots[index]
    count_time(world, policy, index)
    if slot.event != clock.event:
        slot.event = clock.event
        world.broken[clock.broken] = index
        clock.broken += 1
        if is_planned:
            clock.planned_stop_count += 1
        else:
            clock.interruption_count += 1
            mark(world, policy, INTERRUPTIONS)
        note(world, INTERRUPTED, -1, number, slot.job)
        if is_planned or policy.keeps_state:
            world.jobs[slot.job].saved_s += slot.unsaved_s
        else:
            world.spent_s[USEFUL] -= slot.unsaved_s * slot.units
            world.spent_s[REWORK] += slot.unsaved_s * slot.units
        slot.unsaved_s = 0.0
        slot.position_s = 0.0
    if slot.phase == RUNNING:
        clock.running -= 1
    else:
        clock.starting -= 1
    slot.units -= 1
    slot.slow -= unit.slow
    unit.slot = -1


@compiled_in_place
def set_free(world: Any, number: int) -> None:
    """A healthy unit that nobody holds, on the stack for the next who asks."""
    clock, unit = world.clock[0], world.units[number]
    unit.slot = -1
    clock.free += 1
    if unit.stacked == 0:
        unit.stacked = 1
        world.free[clock.stack] = number
        clock.stack += 1


@compiled_in_place
def go_down(world: Any, policy: Any, number: int, is_planned: bool) -> None:
    """One more reason why a unit is down; a failure outweighs maintenance in the count."""
    clock, unit = world.clock[0], world.units[number]
    was_up = unit.failures == 0 and unit.services == 0
    if was_up and unit.slot >= 0:
        take_away(world, policy, number, is_planned)
    elif was_up:
        clock.free -= 1
    if is_planned:
        unit.services += 1
        clock.serviced += was_up
    else:
        unit.failures += 1
        if unit.failures == 1:
            clock.failed += 1
            clock.serviced -= not was_up


@compiled_in_place
def come_up(world: Any, number: int, is_planned: bool) -> None:
    """One reason fewer; with the last the unit is free."""
    clock, unit = world.clock[0], world.units[number]
    was_failed = unit.failures > 0
    if is_planned:
        unit.services -= 1
    else:
        unit.failures -= 1
    if unit.failures > 0:
        return
    if was_failed:
        clock.failed -= 1
        clock.serviced += unit.services > 0
    elif unit.services == 0:
        clock.serviced -= 1
    if unit.services == 0:
        set_free(world, number)
