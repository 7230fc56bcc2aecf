"""The lanes of an engine with their seats and room, and more of them where a lane needs more.

A lane begins with the seats of an even share of the requests. A router that reads what lanes do, or draws, may
send one of them more than its share, so a lane widens to twice the size when an arrival could need another
seat: what is laid out follows the requests in flight, and not lanes times the largest batch, which would be
gigabytes for 65,536 lanes of 1,024 seats. Nothing that is simulated depends on when a lane widens.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from simcore.serving import state


def empty_lanes(setups: Any, *, share: int) -> tuple[Any, Any, Any]:
    """Empty lanes of all pools with seats and room for `share` requests each, as far as a pool seats so many.

    One seat more than can be taken, so that no lane ends in another.
    """
    counts = setups["lane_count"]
    lanes = state.records(state.LANE, int(counts.sum()))
    lanes["pool"] = np.repeat(np.arange(len(setups)), counts)
    lanes["ring_size"] = np.minimum(setups["most_seats"], share)[lanes["pool"]]
    lanes["seat_base"] = np.cumsum(lanes["ring_size"] + 1) - lanes["ring_size"] - 1
    lanes["phase_base"] = np.arange(len(lanes)) * setups["block_size"][0]
    lanes["free_blocks"] = setups["block_count"][lanes["pool"]]
    lanes["spare_count"] = lanes["ring_size"]
    lanes["pace"] = lanes["slow"] = 1.0
    for name in ("queue_first", "queue_last", "last_seat", "order", "newest", "oldest", "parting_first"):
        lanes[name] = -1
    seat_count = int((lanes["ring_size"] + 1).sum())
    seats, room = state.records(state.SEAT, seat_count), state.records(state.ROOM, seat_count)
    # The first to be taken, at the end of the list, is the lowest.
    past = np.repeat(2 * lanes["seat_base"] + lanes["ring_size"], lanes["ring_size"] + 1)
    room["spare"] = past - np.arange(seat_count)
    return lanes, seats, room


def widened(lanes: Any, seats: Any, room: Any, index: int, *, most: int) -> tuple[Any, Any]:
    """Seats and room in which this lane has twice as many, up to `most`; the lane is changed in place.

    Seats keep their numbers and the new ones stand behind all others. The room of a lane is in one piece, so it
    moves behind all others, its ring unrolled, and the old place is left unused: never more than the new one.
    """
    lane = lanes[index]
    before, base = int(lane.ring_size), int(lane.seat_base)
    after = min(most, 2 * before)
    first_seat = int(lanes["ring_size"].sum()) + len(lanes)
    first_room = int((lanes["seat_base"] + lanes["ring_size"]).max()) + 1
    seats = _with_space(seats, first_seat, after - before)
    room = _with_space(room, first_room, after + 1)
    moved = room[first_room : first_room + after + 1]
    moved[: before + 1] = room[base : base + before + 1]
    moved["ring"][:before] = np.roll(room["ring"][base : base + before], -int(lane.ring_first))
    spare = room["spare"][base : base + int(lane.spare_count)]
    free = np.append(np.arange(first_seat, first_seat + after - before), spare)
    moved["spare"][: len(free)] = free
    lane.ring_first = 0
    lane.ring_size = after
    lane.seat_base = first_room
    lane.spare_count = len(free)
    return seats, room


def _with_space(records: Any, used: int, more: int) -> Any:
    """The records with `more` behind the `used` ones; at least twice as many in all where there was no space."""
    if used + more <= len(records):
        return records
    larger = state.records(records.dtype, max(2 * len(records), used + more))
    larger[:used] = records[:used]
    return larger
