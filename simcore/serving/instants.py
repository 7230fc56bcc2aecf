"""A heap of things that are due: numbers of entries, whose instants stand in an array of their own.

The earliest is first, of equal instants the lowest number, so ties are deterministic. Whoever owns the heap keeps its
count, and an entry's instant must not change while it is in it.
"""

from __future__ import annotations

from typing import Any

from simcore.compiled import compiled_in_place


@compiled_in_place
def push(heap: Any, count: int, instants: Any, entry: int) -> int:
    """Enter one into a heap of `count`; returns how many there are then."""
    place = count
    while place > 0:
        parent = (place - 1) >> 1
        if not _before(instants, entry, heap[parent]):
            break
        heap[place] = heap[parent]
        place = parent
    heap[place] = entry
    return count + 1


@compiled_in_place
def pop(heap: Any, count: int, instants: Any) -> int:
    """Take out the first, `heap[0]`; returns how many are left."""
    left = count - 1
    entry, place = heap[left], 0
    while True:
        child = 2 * place + 1
        if child >= left:
            break
        if child + 1 < left and _before(instants, heap[child + 1], heap[child]):
            child += 1
        if not _before(instants, heap[child], entry):
            break
        heap[place] = heap[child]
        place = child
    heap[place] = entry
    return left


@compiled_in_place
def _before(instants: Any, one: int, other: int) -> bool:
    """Whether one is due before another."""
    sooner: bool = instants[one] < instants[other] or (instants[one] == instants[other] and one < other)
    return sooner
