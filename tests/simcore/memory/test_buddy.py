"""Buddy runs: nothing is owned twice, in use + free = total, and what is given back joins again."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.memory.buddy import give, largest_order, levels_for, order_for, take, trees

OPERATIONS = st.lists(st.tuples(st.booleans(), st.integers(0, 6), st.integers(0, 1_000)), max_size=80)


@settings(deadline=None)
@given(units=st.integers(1, 300), pools=st.integers(1, 3), operations=OPERATIONS)
def test_no_unit_is_owned_twice_and_none_is_lost(units, pools, operations):
    """
    pool of 11:  [· · · ·|· · · ·] [· ·|·] x x x x x
    """
    tree, levels = trees(pools, units), levels_for(units)
    fresh, base = tree.copy(), (pools - 1) * (2 << levels)
    owner = np.full(units, -1)
    owned = []
    for number, (taking, order, pick) in enumerate(operations):
        if taking:
            first = take(tree, base, levels, order)
            if first < 0:
                continue
            assert first % (1 << order) == 0
            assert (owner[first : first + (1 << order)] == -1).all()
            assert first + (1 << order) <= units
            owner[first : first + (1 << order)] = number
            owned.append((first, order))
        elif owned:
            first, order = owned.pop(pick % len(owned))
            owner[first : first + (1 << order)] = -1
            give(tree, base, levels, first, order)
        assert (owner >= 0).sum() == sum(1 << order for _, order in owned)
    for first, order in owned:
        give(tree, base, levels, first, order)
    assert (tree == fresh).all()


@settings(deadline=None)
@given(units=st.integers(1, 300), operations=OPERATIONS)
def test_a_run_is_refused_only_where_no_aligned_free_run_is_left(units, operations):
    tree, levels = trees(1, units), levels_for(units)
    free = np.ones(units, bool)
    for _, order, _ in operations:
        starts = range(0, units - (1 << order) + 1, 1 << order)
        fits = any(free[start : start + (1 << order)].all() for start in starts)
        first = take(tree, 0, levels, order)
        assert (first >= 0) == fits
        free[first : first + (1 << order)] &= first < 0


def test_the_smallest_free_run_is_split_first():
    """16 units: [A A A A|· · · ·|B · · ·|· · · ·]: one unit comes from beside B, not from the whole quarter."""
    tree = trees(1, 16)
    assert [take(tree, 0, 4, order) for order in (2, 2, 0)] == [0, 4, 8]
    give(tree, 0, 4, 4, 2)
    assert take(tree, 0, 4, 0) == 9
    assert take(tree, 0, 4, 2) == 4


def test_twins_join_up_to_the_whole_pool():
    tree = trees(1, 8)
    for first in [take(tree, 0, 3, 0) for _ in range(8)]:
        give(tree, 0, 3, first, 0)
    assert largest_order(tree, 0, 3) == 3


@settings(deadline=None)
@given(units=st.integers(1, 10_000))
def test_orders_are_the_powers_of_two_above(units):
    assert 2 ** order_for(units) >= units > 2 ** order_for(units) // 2
