"""A lane goes down: what it was doing stops, what it held is lost, and whoever it had waits there or elsewhere.

The step under way when it fails still ends (so a failure is late by one iteration at most), then all that ran on the
lane wait again: they compute again what they held, or bring it back from a copy elsewhere (`LEVEL_KEPT`). What was
cached on the lane and in its tiers is gone. The kernel hands such a lane out; these are compiled for it to call back.
"""

from __future__ import annotations

from typing import Any

from simcore.compiled import compiled_in_place
from simcore.memory.buddy import give, order_for
from simcore.serving.busy import cut, order_down, wake
from simcore.serving.handover import outstanding, rest
from simcore.serving.lane import blocks_of_prompt
from simcore.serving.preemption import unseat
from simcore.serving.prefix import forget
from simcore.serving.routers.loads import NOBODY, note
from simcore.serving.state import DECODE, LEVEL_KEPT
from simcore.serving.tiers import swap_in
from simcore.serving.waiting import leave_line, melded


@compiled_in_place
def strand(
    clock: Any,
    lanes: Any,
    order: Any,
    seats: Any,
    room: Any,
    rows: Any,
    phases: Any,
    setups: Any,
    tree: Any,
    totals: Any,
    prefix: Any,
    index: int,
) -> None:
    """All that ran on the lane waits in its line, in the order in which it was admitted; the lane is idle."""
    lane = lanes[index]
    setup, sums, now = setups[lane.pool], totals[lane.pool], clock[0].now_s
    while lane.last_seat >= 0:
        seat_id = lane.last_seat
        row = rows[seats[seat_id].request]
        held = unseat(lane, seats, room, rows, phases, setup, sums, prefix, seat_id, now)
        if setup.levels >= 0:
            give(tree, lane.tree_base, setup.levels, row.first_block, order_for(row.reserved))
        row.level = LEVEL_KEPT if setup.keeping == 1 else -1
        sums.stranded += 1
        sums.discarded_tokens += 0 if setup.keeping == 1 else held
    lane.gathering = lane.barren = lane.left = 0
    if setup.caching == 1:
        forget(lane, setup, prefix)
    lane.order = -1
    lane.start_s = now
    clock[0].busy_lanes -= 1
    if clock[0].busy_lanes > 0:
        order_down(lanes, order, clock[0].busy_lanes, 0, order[clock[0].busy_lanes])


@compiled_in_place
def stop(clock: Any, lanes: Any, order: Any, setups: Any, totals: Any, index: int) -> None:
    """The lane's step under way is its last, or the last of this length; an idle one has its say at once."""
    lane = lanes[index]
    if lane.order < 0:
        rest(lane, setups[lane.pool], totals[lane.pool], clock[0].now_s)
        wake(clock[0], lanes, order, index, clock[0].now_s)
    elif lane.steps > 1:
        cut(lanes, order, index, clock[0].now_s)


@compiled_in_place
def note_load(lanes: Any, setups: Any, routing: Any, handover: Any, index: int) -> None:
    """What a lane has to do, for whoever sends requests or prompts; one that is shut is sent none."""
    lane = lanes[index]
    if setups[lane.pool].role == DECODE:
        place = index - setups[lane.pool].first_lane
        note(handover.loads, place, NOBODY if lane.shut == 1 else outstanding(lane))
    elif setups[0].tracking == 1:
        note(routing.loads, index, NOBODY if lane.shut == 1 else lane.running + lane.waiting)


@compiled_in_place
def take_first(lanes: Any, rows: Any, inputs: Any, setups: Any, totals: Any, prefix: Any, index: int) -> int:
    """Take the first in line of a lane that is given up; -1: nobody waits. What its tiers keep of it is lost."""
    lane = lanes[index]
    setup = setups[lane.pool]
    request: int = lane.queue_first
    if lane.waiting == 0:
        return -1
    row = rows[request]
    if setup.ranked == 1:
        leave_line(lane, rows)
    else:
        lane.queue_first = row.after
    lane.waiting -= 1
    if row.preemptions > 0:
        lane.returning -= 1
        if setup.swapping == 1 and row.level >= 0:
            swap_in(lane, setup, prefix, row.level, row.held)
            row.level = LEVEL_KEPT if setup.keeping == 1 else -1
            totals[lane.pool].discarded_tokens += 0 if setup.keeping == 1 else row.held
    lane.gathering = min(lane.gathering, lane.waiting)
    lane.line_blocks -= blocks_of_prompt(rows, setup, request, inputs[request] + row.generated)
    return request


@compiled_in_place
def join(
    clock: Any,
    lanes: Any,
    order: Any,
    rows: Any,
    inputs: Any,
    setups: Any,
    totals: Any,
    routing: Any,
    handover: Any,
    request: int,
    index: int,
) -> None:
    """A request that was sent elsewhere before stands at the end of this lane's line, or at its rank."""
    lane = lanes[index]
    setup, row = setups[lane.pool], rows[request]
    if setup.role != DECODE:
        row.replica = index
    row.after = -1
    if setup.ranked == 1:
        row.child = -1
        lane.queue_first = melded(rows, lane.queue_first, request)
    elif lane.queue_first < 0:
        lane.queue_first = request
    else:
        rows[lane.queue_last].after = request
    lane.queue_last = request
    lane.waiting += 1
    lane.returning += 1 if row.preemptions > 0 else 0
    lane.line_blocks += blocks_of_prompt(rows, setup, request, inputs[request] + row.generated)
    note_load(lanes, setups, routing, handover, index)
    stop(clock, lanes, order, setups, totals, index)
