"""Ranks, and pairs in order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simcore.validation.order import Times, configurations, order_of, rank_correlation

DISTINCT = st.lists(st.floats(0.001, 1000.0), min_size=3, max_size=30, unique=True)


def rows(measured: list[float], simulated: list[float], *, configuration: str = "a") -> list[Times]:
    return [
        Times(configuration=configuration, task="one", measured_s=truth, simulated_s=said)
        for truth, said in zip(measured, simulated, strict=True)
    ]


@given(values=DISTINCT)
def test_any_rising_function_of_the_measured_times_is_in_their_order(values: list[float]) -> None:
    found = order_of(rows(values, [7.0 * value + 3.0 for value in np.argsort(np.argsort(values))]))
    assert (found.within_ratio, found.across_ratio, found.pairs_fraction) == (1.0, 1.0, 1.0)


@given(values=DISTINCT)
def test_a_falling_one_is_in_none(values: list[float]) -> None:
    found = order_of(rows(values, [-value for value in values]))
    assert (found.within_ratio, found.across_ratio, found.pairs_fraction) == (-1.0, -1.0, 0.0)


def test_ties_share_their_rank() -> None:
    """Ranks 0.5, 0.5, 2 beside 0, 1, 2: 1.5 / sqrt(1.5 × 2)."""
    ties = rank_correlation(np.array([1.0, 1.0, 2.0]), np.array([1.0, 2.0, 3.0]))
    assert ties == pytest.approx(1.5 / 3.0**0.5)


def test_configurations_are_ranked_apart_and_pairs_are_not() -> None:
    """Each in order, the second one wholly below the first where it was measured above: no mixed pair is."""
    first = rows([1.0, 2.0, 3.0], [1.0, 2.0, 3.0])
    second = rows([4.0, 5.0, 6.0], [0.1, 0.2, 0.3], configuration="b")
    found = order_of([*first, *second])
    assert found.within_ratio == 1.0
    assert found.pairs_fraction == 6 / 15
    assert found.across_ratio < 0


def test_two_rows_are_no_order() -> None:
    assert configurations(rows([1.0, 2.0], [1.0, 2.0])) == []


def test_pairs_that_were_measured_alike_do_not_count() -> None:
    found = order_of(rows([1.0, 1.0, 2.0], [5.0, 4.0, 6.0]))
    assert found.pairs_fraction == 1.0
