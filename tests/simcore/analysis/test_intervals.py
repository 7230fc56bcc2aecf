"""Intervals written as people do: hand-computed quantiles, units, and the laws of draws."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.analysis.intervals import Interval, Uncertain, bounds_at, interval
from simcore.analysis.monte_carlo import rank_correlation, strata
from simcore.errors import InputError

RATE = "workload.arrivals.request_per_s"
MEMORY = "serving.kv.gpu_memory_utilization"


def quantile(path, given_as, *shares):
    return Uncertain(path=path, given=interval(path, given_as)).quantiles(np.array(shares))


def test_five_to_eight_is_lognormal_with_its_ends_at_5_and_95_per_cent():
    low, middle, high = quantile(RATE, "5 to 8", 0.05, 0.5, 0.95)
    assert (low, middle, high) == pytest.approx((5.0, math.sqrt(40), 8.0))
    # mu = (ln 5 + ln 8) / 2 = 1.844440, sigma = (ln 8 - ln 5) / 3.289707 = 0.142871; at 84.134 % one sigma above
    assert quantile(RATE, "5 to 8", 0.8413447461)[0] == pytest.approx(math.exp(1.844440 + 0.142871), rel=1e-5)


def test_a_share_stays_a_share_and_zero_makes_it_normal():
    assert quantile(MEMORY, "0.8 to 0.95", 0.05, 0.95) == pytest.approx([0.8, 0.95])
    assert (quantile(MEMORY, "0.8 to 0.95", 0.999999) < 1).all()
    assert quantile("economics.labour_usd_per_hour", "0 to 100", 0.5)[0] == pytest.approx(50.0)


def test_units_are_read_and_one_unit_serves_both_ends():
    path = "hardware.chip_overrides.hbm_bytes_per_s"
    assert interval(path, "3 to 4 TB/s") == Interval(low=3e12, high=4e12)
    assert interval(path, "900 GB/s to 1 TB/s") == Interval(low=9e11, high=1e12)
    assert interval(path, {"low": "3 TB/s", "high": 4e12}) == Interval(low=3e12, high=4e12)
    assert interval("workload.lengths.input_mean_tokens", "800 到 1200") == Interval(low=800, high=1200)


@pytest.mark.parametrize("text", ["5", "", "to 8", 7, {"low": 5}, None])
def test_what_is_no_interval_is_refused_with_an_example(text):
    with pytest.raises(InputError, match="like 5 to 8"):
        interval(RATE, text)


def test_ends_the_wrong_way_round_are_refused():
    with pytest.raises(InputError, match="lower end first"):
        interval(RATE, "8 to 5")


def test_draws_stay_within_the_schema():
    assert bounds_at("economics.pue") == (1.0, 5.0)
    assert quantile("economics.pue", "1.01 to 1.5", 1e-6)[0] == 1.0


@settings(max_examples=60, deadline=None)
@given(
    low=st.floats(1e-3, 1e6), ratio=st.floats(1.0, 100.0), count=st.integers(20, 300), seed=st.integers(0, 99)
)
def test_nine_of_ten_draws_lie_between_the_ends(low, ratio, count, seed):
    one = Uncertain(path="hardware.chip_overrides.tdp_w", given=Interval(low=low, high=low * ratio))
    values = one.quantiles(strata(count, seed, one.path))
    inside = np.mean((values >= low * (1 - 1e-9)) & (values <= low * ratio * (1 + 1e-9)))
    assert inside == 1.0 if ratio == 1.0 else abs(inside - 0.9) <= 2 / count
    assert (np.diff(one.quantiles(np.array([0.1, 0.5, 0.9]))) >= 0).all()


@given(count=st.integers(2, 400), seed=st.integers(0, 2**40))
def test_a_latin_hypercube_has_one_draw_in_each_stratum(count, seed):
    shares = strata(count, seed, RATE)
    assert sorted((shares * count).astype(int)) == list(range(count))
    assert (shares == strata(count, seed, RATE)).all()
    assert count < 20 or (shares != strata(count, seed, MEMORY)).any()


def test_rank_correlation_by_hand():
    first = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    assert rank_correlation(first, np.exp(first)) == pytest.approx(1.0)
    assert rank_correlation(first, -first) == pytest.approx(-1.0)
    # ranks 1 2 3 4 5 against 2 1 4 3 5: 1 - 6 · (1 + 1 + 1 + 1 + 0) / (5 · 24) = 0.8
    assert rank_correlation(first, np.array([20.0, 10.0, 40.0, 30.0, 50.0])) == pytest.approx(0.8)
    assert rank_correlation(first, np.ones(5)) is None
