"""Dip, recovery, loss and who bought what, by hand and as laws."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simcore.reliability.recovery import Slices, recovery, shapley

ARRIVAL_S = np.arange(0.0, 1000.0, 0.1)
SLICES = Slices.of(ARRIVAL_S)
ALL = np.ones(len(ARRIVAL_S), bool)


def test_a_shock_that_takes_half_for_a_while_is_read_back():
    hit = (ARRIVAL_S >= 250) & (ARRIVAL_S < 500)
    found = recovery(SLICES, ALL, ~(hit & (np.arange(len(hit)) % 2 == 0)), first_shock_s=250)
    width_s = SLICES.edges_s[1]
    assert found.dip_fraction == pytest.approx(0.5, abs=0.02)
    assert found.recovery_s == pytest.approx(250, abs=width_s)
    assert found.lost_fraction == pytest.approx(0.125, abs=1e-3)
    assert 250 <= found.dip_at_s <= 500


def test_nothing_differs_where_nothing_happened():
    some = np.arange(len(ALL)) % 3 > 0
    found = recovery(SLICES, some, some, first_shock_s=0)
    assert (found.dip_fraction, found.recovery_s, found.lost_fraction) == (0, 0, 0)


def test_who_misses_the_slo_anyway_is_not_lost():
    late = ARRIVAL_S > 500
    found = recovery(SLICES, ~late, ~late, first_shock_s=0)
    assert found.dip_fraction == found.lost_fraction == 0


def test_requests_that_never_arrived_belong_to_no_slice():
    arrival = np.array([0.0, np.nan, 2.0])
    slices = Slices.of(arrival)
    assert slices.place.tolist() == [0, -1, 9]
    assert slices.counts(np.array([True, True, True])).sum() == 2


@given(values=st.lists(st.floats(-1, 1), min_size=8, max_size=8))
def test_what_each_bought_adds_up_to_what_all_bought(values):
    names = ("a", "b", "c")
    table = {
        frozenset(name for bit, name in enumerate(names) if place >> bit & 1): value
        for place, value in enumerate(values)
    }
    found = shapley(names, table.__getitem__)
    assert sum(found.values()) == pytest.approx(table[frozenset(names)] - table[frozenset()], abs=1e-12)


def test_equal_members_buy_the_same_and_idle_ones_nothing():
    found = shapley(("a", "b", "idle"), lambda some: float(bool(some & {"a", "b"})))
    assert found["a"] == found["b"] == pytest.approx(0.5)
    assert found["idle"] == pytest.approx(0.0)
