"""A waiting line in the order of a rank: a pairing heap per lane, linked through the requests' own rows.

The request of the lowest rank is first, of equal ranks the one that arrived first. To join costs O(1), to take the
first O(log n) amortised, and a line takes no memory of its own however long it grows (Fredman, Sedgewick, Sleator and
Tarjan 1986). `row.child` is the first of a request's children, `row.after` its next sibling.

A *fair* line ranks by start-time fair queueing (Goyal, Vin and Cheng 1996): a newcomer's tag is the lane's virtual
time or the finish tag of the one before it in its flow, whichever is later; the flow's finish tag is then later by
the newcomer's cost over the flow's weight; and virtual time is the tag of the last one that left the line.
"""

from __future__ import annotations

from typing import Any

from simcore.compiled import compiled_in_place


@compiled_in_place
def melded(rows: Any, one: int, other: int) -> int:
    """The root of two heaps as one; -1 stands for an empty heap."""
    if one < 0:
        return other
    if other < 0:
        return one
    mine, its = rows[one].rank, rows[other].rank
    if its < mine or (its == mine and rows[other].number < rows[one].number):
        one, other = other, one
    rows[other].after = rows[one].child
    rows[one].child = other
    return one


@compiled_in_place
def join_line(lane: Any, rows: Any, setup: Any, tags: Any, index: int, request: int, number: int) -> None:
    """A request waits in a ranked line; it came after all with a lower number.

    `tags` are finish tags by lane and flow.
    """
    row = rows[request]
    if setup.flows > 0:
        place = index * setup.flows + row.flow
        tag = max(lane.virtual, tags[place])
        tags[place] = tag + row.rank  # until now its cost over the weight
        row.rank = tag
    row.child = -1
    row.number = number
    lane.queue_first = melded(rows, lane.queue_first, request)


@compiled_in_place
def rejoin_line(lane: Any, rows: Any, setup: Any, request: int) -> None:
    """A preempted sequence waits again: ahead of all, or by its rank where it was preempted for that."""
    first, row = lane.queue_first, rows[request]
    lane.returning += 1
    lane.waiting += 1
    if setup.ranked == 0:
        row.after = first
        if first < 0:
            lane.queue_last = request
        lane.queue_first = request
        return
    if setup.preempts_lowest == 0:
        ahead = rows[first].rank if first >= 0 else 0.0
        row.rank = min(ahead, 0.0) - 1.0
    row.after = -1
    row.child = -1
    lane.queue_first = melded(rows, first, request)


@compiled_in_place
def leave_line(lane: Any, rows: Any) -> None:
    """The first in line goes; its children are melded in pairs, then the pairs from the last to the first."""
    child: int = rows[lane.queue_first].child
    lane.virtual = max(lane.virtual, rows[lane.queue_first].rank)
    pairs = -1
    while child >= 0:
        sibling = rows[child].after
        rest = rows[sibling].after if sibling >= 0 else -1
        pair = melded(rows, child, sibling)
        rows[pair].after = pairs
        pairs = pair
        child = rest
    first = -1
    while pairs >= 0:
        rest = rows[pairs].after
        first = melded(rows, first, pairs)
        pairs = rest
    lane.queue_first = first
