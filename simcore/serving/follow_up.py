"""Arrivals that depend on what was served: a later turn of a session is sent some time after the answer before it.

First turns arrive as requests do without sessions. A turn that ends makes the next one of its session due, in a heap by
instant; one that is turned away ends its session, and the turns that will never be sent count as rejected with it.
`line_up` puts whoever comes next where the kernel looks for the next request, so the kernel itself knows one stream of
arrivals. A later turn goes before a first one of the same instant.

In a closed loop a user begins the next session at once when his last one has ended.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from simcore.compiled import compiled_in_place
from simcore.serving.instants import pop, push
from simcore.serving.state import REJECTED
from simcore.workload.sessions import Turns


class FollowUps(NamedTuple):
    """What the kernel reads and writes of sessions; tiny where there are none."""

    following: Any  # by request: the next turn of its session, -1: none
    think_s: Any  # by request, from the end of the answer before it
    due: Any  # heap of the later turns whose instant is known


def follow_ups(turns: Turns | None) -> FollowUps:
    """Nobody is due yet."""
    if turns is None:
        return FollowUps(np.zeros(1, np.int64), np.zeros(1), np.zeros(1, np.int64))
    return FollowUps(
        following=np.require(turns.following, np.int64, ["C", "W"]),
        think_s=np.require(turns.think_s, np.float64, ["C", "W"]),
        due=np.zeros(turns.session_count, np.int64),  # a session has one turn outstanding at most
    )


@compiled_in_place
def line_up(clock: Any, follow: Any, arrival: Any) -> None:
    """Let `clock.next_request` be who comes next of those whose instant is known, if there is anybody."""
    if clock.lined_up >= 0 and clock.next_request > clock.lined_up:  # who stood there has arrived
        if clock.lined_up < clock.count:  # a first turn
            clock.next_start += 1
        else:
            clock.due = pop(follow.due, clock.due, arrival)
    first = clock.next_start if clock.next_start < clock.starts else -1
    if clock.due > 0:
        later = follow.due[0]
        if first < 0 or arrival[later] <= arrival[first]:
            first = later
    clock.lined_up = first
    clock.next_request = max(first, 0)
    clock.released = first + 1


@compiled_in_place
def go_on(clock: Any, follow: Any, arrival: Any, request: int, now: float) -> None:
    """A turn is answered: the next one comes when its user has thought, or the session has ended."""
    later = follow.following[request]
    if later < 0:
        _begin_another(clock, arrival, now)
    else:
        arrival[later] = now + follow.think_s[later]
        clock.due = push(follow.due, clock.due, arrival, later)


@compiled_in_place
def break_off(clock: Any, rows: Any, follow: Any, arrival: Any, request: int, now: float) -> None:
    """A turn was turned away: its session has ended, and nobody sends the turns that were to come."""
    later = follow.following[request]
    while later >= 0:
        rows[later].status = REJECTED
        clock.rejected += 1
        clock.unsent += 1
        later = follow.following[later]
    _begin_another(clock, arrival, now)


@compiled_in_place
def _begin_another(clock: Any, arrival: Any, now: float) -> None:
    """In a closed loop, the user of a session that has ended begins the next one."""
    if clock.closed_loop == 1 and clock.starts < clock.count:
        arrival[clock.starts] = now
        clock.starts += 1
