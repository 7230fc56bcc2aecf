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


def empty_lanes(
    seat_count: int, *, block_count: int, block_size_tokens: int, lane_count: int
) -> tuple[Any, Any, Any]:
    """Empty lanes with their seats and room; one seat more than can be taken, so that no lane ends in another."""
    stride = seat_count + 1
    lanes = state.records(state.LANE, lane_count)
    seats = state.records(state.SEAT, lane_count * stride)
    room = state.records(state.ROOM, lane_count * stride)
    lanes["ring_size"] = seat_count
    lanes["seat_base"] = np.arange(lane_count) * stride
    lanes["phase_base"] = np.arange(lane_count) * block_size_tokens
    lanes["free_blocks"] = block_count
    lanes["spare_count"] = seat_count
    for name in ("queue_first", "queue_last", "last_seat", "order", "newest", "oldest"):
        lanes[name] = -1
    room["spare"] = np.arange(lane_count * stride)[::-1].reshape(lane_count, stride)[::-1].ravel()
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
