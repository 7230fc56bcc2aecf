"""The heap of what is due, beside sorting."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.serving.instants import pop, push

# Few different instants, so that ties are common.
ORDERS = st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.5]), min_size=1, max_size=60)


@settings(deadline=None)
@given(instants=ORDERS)
def test_entries_leave_in_order_of_time_and_equal_ones_by_number(instants: list[float]) -> None:
    at, heap, count = np.array(instants), np.zeros(len(instants), np.int64), 0
    for entry in reversed(range(len(at))):
        count = push(heap, count, at, entry)
    left = []
    while count:
        left.append(int(heap[0]))
        count = pop(heap, count, at)
    assert left == np.argsort(at, kind="stable").tolist()


@settings(deadline=None)
@given(instants=ORDERS, taken=st.lists(st.booleans(), max_size=120))
def test_what_comes_and_goes_in_turn_is_always_led_by_the_earliest(
    instants: list[float], taken: list[bool]
) -> None:
    at, heap, count, inside = np.array(instants), np.zeros(len(instants), np.int64), 0, []
    coming = iter(range(len(at)))
    for take in taken:
        entry = None if take else next(coming, None)
        if entry is not None:
            count = push(heap, count, at, entry)
            inside.append(entry)
        elif inside:
            first = min(inside, key=lambda one: (at[one], one))
            assert heap[0] == first
            inside.remove(first)
            count = pop(heap, count, at)
        assert count == len(inside)
