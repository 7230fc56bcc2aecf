"""The heap of a lane's next events (finishes and window crossings) by step, in its rows of `room`."""

from __future__ import annotations

from typing import Any

from simcore.compiled import compiled_in_place


@compiled_in_place
def heap_push(lane: Any, seats: Any, room: Any, seat: int, key: int) -> None:
    """Enter a seat's next event."""
    base = lane.seat_base
    place = lane.heap_count
    lane.heap_count += 1
    heap_up(base, seats, room, place, seat, key)


@compiled_in_place
def heap_up(base: int, seats: Any, room: Any, place: int, seat: int, key: int) -> None:
    """Sift (key, seat) up from an empty place."""
    while place > 0:
        parent = (place - 1) >> 1
        if room[base + parent].key <= key:
            break
        room[base + place].key = room[base + parent].key
        room[base + place].seat = room[base + parent].seat
        seats[room[base + place].seat].place = place
        place = parent
    room[base + place].key = key
    room[base + place].seat = seat
    seats[seat].place = place


@compiled_in_place
def heap_down(base: int, count: int, seats: Any, room: Any, place: int, seat: int, key: int) -> None:
    """Sift (key, seat) down from an empty place of a heap of `count`."""
    while True:
        child = 2 * place + 1
        if child >= count:
            break
        if child + 1 < count and room[base + child + 1].key < room[base + child].key:
            child += 1
        if room[base + child].key >= key:
            break
        room[base + place].key = room[base + child].key
        room[base + place].seat = room[base + child].seat
        seats[room[base + place].seat].place = place
        place = child
    room[base + place].key = key
    room[base + place].seat = seat
    seats[seat].place = place


@compiled_in_place
def heap_remove(lane: Any, seats: Any, room: Any, place: int) -> None:
    """Take out whatever stands at `place`."""
    base = lane.seat_base
    lane.heap_count -= 1
    count = lane.heap_count
    if place == count:
        return
    key, seat = room[base + count].key, room[base + count].seat
    if place > 0 and room[base + ((place - 1) >> 1)].key > key:
        heap_up(base, seats, room, place, seat, key)
    else:
        heap_down(base, count, seats, room, place, seat, key)
