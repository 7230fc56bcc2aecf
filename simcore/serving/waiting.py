"""A waiting line in the order of a rank: a pairing heap per lane, linked through the requests' own rows.

The request of the lowest rank is first, of equal ranks the one that arrived first. To join costs O(1), to take the
first O(log n) amortised, and a line takes no memory of its own however long it grows (Fredman, Sedgewick, Sleator and
Tarjan 1986). `row.child` is the first of a request's children, `row.after` its next sibling.
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
    if its < mine or (its == mine and other < one):
        one, other = other, one
    rows[other].after = rows[one].child
    rows[one].child = other
    return one


@compiled_in_place
def join_line(lane: Any, rows: Any, request: int) -> None:
    """A request waits."""
    rows[request].child = -1
    lane.queue_first = melded(rows, lane.queue_first, request)


@compiled_in_place
def leave_line(lane: Any, rows: Any) -> None:
    """The first in line goes; its children are melded in pairs, then the pairs from the last to the first."""
    child: int = rows[lane.queue_first].child
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
