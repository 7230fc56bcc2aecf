"""Jobs are given units, work, wait and end.

A stopped job stands before all new ones. It takes what is free in place of what it lost; where that is not
enough it gives all back and waits. New jobs start in the order of their arrival, and leave the spares alone.
"""

from __future__ import annotations

import math
from typing import Any

from simcore.compiled import compiled_in_place
from simcore.reliability.life_state import EMPTY, FINISHED, RUNNING, STARTED, STARTING, SWAPPED, WAITS
from simcore.reliability.life_units import count_time, note, set_end, set_free
from simcore.reliability.next_event import set_clock


@compiled_in_place
def begin(world: Any, index: int, wait_s: float) -> None:
    """A slot that has its units will work after `wait_s`."""
    clock, slot = world.clock[0], world.slots[index]
    slot.phase, slot.since_s, slot.position_s = STARTING, clock.now_s, 0.0
    clock.start_count += 1
    set_clock(world.at_s, world.winner, len(world.failure_s) + index, clock.now_s + wait_s)


@compiled_in_place
def hold(world: Any, index: int, number: int) -> None:
    """A free unit for a slot."""
    clock, unit, slot = world.clock[0], world.units[number], world.slots[index]
    unit.slot = index
    slot.slow += unit.slow
    slot.units += 1
    clock.free -= 1
    clock.starting += 1


@compiled_in_place
def hold_any(world: Any, index: int, count: int) -> None:
    """The units that became free last; there are enough."""
    clock = world.clock[0]
    while count > 0:
        clock.stack -= 1
        number = world.free[clock.stack]
        unit = world.units[number]
        unit.stacked = 0
        if unit.slot < 0 and unit.failures == 0 and unit.services == 0:
            hold(world, index, number)
            count -= 1


@compiled_in_place
def aligned_place(world: Any, count: int) -> int:
    """The first unit of the lowest place of the fixed partition that is free and whole, or -1."""
    for first in range(0, len(world.units) - count + 1, count):
        is_whole = True
        for number in range(first, first + count):
            unit = world.units[number]
            is_whole = is_whole and unit.slot < 0 and unit.failures == 0 and unit.services == 0
        if is_whole:
            return first
    return -1


@compiled_in_place
def release(world: Any, index: int) -> None:
    """Give all units of a slot back."""
    clock, slot = world.clock[0], world.slots[index]
    if slot.phase == RUNNING:
        clock.running -= slot.units
    else:
        clock.starting -= slot.units
    for number in range(len(world.units) - 1, -1, -1):
        if slot.units > 0 and world.units[number].slot == index:
            slot.units -= 1
            set_free(world, number)
    slot.phase, slot.slow = EMPTY, 0
    set_clock(world.at_s, world.winner, len(world.failure_s) + index, math.inf)
    world.empty[clock.slots] = index
    clock.slots += 1


@compiled_in_place
def mend(world: Any, policy: Any, index: int) -> None:
    """A slot that lost units takes others, or gives up all and waits."""
    clock, slot = world.clock[0], world.slots[index]
    job = world.jobs[slot.job]
    missing = job.units - slot.units
    if not policy.is_aligned and missing <= clock.free:
        if slot.phase == RUNNING:
            clock.running -= slot.units
            clock.starting += slot.units
        hold_any(world, index, missing)
        begin(world, index, policy.swap_s)
        clock.swap_count += missing
        clock.restart_count += 1
        note(world, SWAPPED, -1, -1, slot.job)
        return
    job.waits_from_s = clock.now_s
    world.line[(clock.line_head + clock.line_length) % len(world.line)] = slot.job
    clock.line_length += 1
    clock.stranded += job.units
    note(world, WAITS, -1, -1, slot.job)
    release(world, index)


@compiled_in_place
def seat(world: Any, policy: Any, job_number: int) -> bool:
    """Give a waiting job its units, where they are."""
    clock, job = world.clock[0], world.jobs[job_number]
    first = aligned_place(world, job.units) if policy.is_aligned else 0
    if first < 0:
        return False
    clock.slots -= 1
    index = world.empty[clock.slots]
    slot = world.slots[index]
    slot.job, slot.units, slot.slow, slot.unsaved_s, slot.event = job_number, 0, 0, 0.0, -1
    if policy.is_aligned:
        for number in range(first, first + job.units):
            hold(world, index, number)
    else:
        hold_any(world, index, job.units)
    begin(world, index, policy.start_s)
    note(world, STARTED, -1, -1, job_number)
    return True


@compiled_in_place
def seat_all(world: Any, policy: Any) -> None:
    """Stopped jobs first, then new ones in their order, until one must wait."""
    clock, jobs = world.clock[0], world.jobs
    while clock.line_length > 0:
        number = world.line[clock.line_head]
        if jobs[number].units > clock.free or not seat(world, policy, number):
            return
        clock.line_head = (clock.line_head + 1) % len(world.line)
        clock.line_length -= 1
        clock.stranded -= jobs[number].units
        clock.stop_wait_s += clock.now_s - jobs[number].waits_from_s
        clock.restart_count += 1
    while clock.started < clock.arrived:
        job = jobs[clock.started]
        if job.units + policy.spare_count > clock.free or not seat(world, policy, clock.started):
            return
        job.first_wait_s = clock.now_s - job.arrival_s
        clock.queued -= job.units
        clock.started += 1


@compiled_in_place
def strike(world: Any, policy: Any, index: int) -> None:
    """A slot's clock strikes: it has started, or it has done its work."""
    clock, slot = world.clock[0], world.slots[index]
    count_time(world, policy, index)
    if slot.phase == STARTING:
        clock.starting -= slot.units
        clock.running += slot.units
        slot.phase = RUNNING
        set_end(world, policy, index)
        return
    clock.finished_count += 1
    note(world, FINISHED, -1, -1, slot.job)
    release(world, index)
