"""The busy lanes, as a heap by the end of their runs; lanes at one instant go in order of their number."""

from __future__ import annotations

from typing import Any

from simcore.compiled import compiled_in_place
from simcore.serving.runs import steps_until


@compiled_in_place
def order_up(lanes: Any, order: Any, place: int, index: int) -> None:
    """Sift a lane up in the heap of busy lanes, by (end, number)."""
    end_s = lanes[index].end_s
    while place > 0:
        parent = (place - 1) >> 1
        other = order[parent]
        other_s = lanes[other].end_s
        if other_s < end_s or (other_s == end_s and other < index):
            break
        order[place] = other
        lanes[other].order = place
        place = parent
    order[place] = index
    lanes[index].order = place


@compiled_in_place
def order_down(lanes: Any, order: Any, count: int, place: int, index: int) -> None:
    """Sift a lane down in the heap of busy lanes."""
    end_s = lanes[index].end_s
    while True:
        child = 2 * place + 1
        if child >= count:
            break
        best = order[child]
        best_s = lanes[best].end_s
        if child + 1 < count:
            other = order[child + 1]
            other_s = lanes[other].end_s
            if other_s < best_s or (other_s == best_s and other < best):
                child, best, best_s = child + 1, other, other_s
        if best_s > end_s or (best_s == end_s and best > index):
            break
        order[place] = best
        lanes[best].order = place
        place = child
    order[place] = index
    lanes[index].order = place


@compiled_in_place
def wake(clock: Any, lanes: Any, order: Any, index: int, now: float) -> None:
    """An idle lane has something to do: its next run begins when all that happens at this instant has happened."""
    lanes[index].end_s = now
    clock.busy_lanes += 1
    order_up(lanes, order, clock.busy_lanes - 1, index)


@compiled_in_place
def cut(lanes: Any, order: Any, index: int, now: float) -> None:
    """End the run of a busy lane with the step under way."""
    lane = lanes[index]
    steps = steps_until(lane.rate_s, lane.slope_s, now - lane.start_s - lane.moved_s, lane.steps)
    if steps < lane.steps:
        lane.steps = steps
        stepping_s = lane.rate_s * steps + lane.slope_s * 0.5 * steps * (steps + 1)
        end_s = lane.start_s + lane.moved_s + stepping_s
        lane.end_s = max(end_s, now)  # the sum is not below now, its rounding may be
        order_up(lanes, order, lane.order, index)
