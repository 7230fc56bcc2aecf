"""Intervals of simulated means: they cover the truth as often as they say, and warm-up is where it was put."""

from math import gamma, pi, sqrt

import numpy as np
import pytest

from simcore.serving.intervals import (
    BATCHES,
    STUDENT_T,
    batch_means,
    mean_interval,
    mean_metrics,
    replication_rows,
    warmup_count,
)


@pytest.mark.parametrize("degrees", range(1, 32))
def test_the_points_of_students_t_leave_two_and_a_half_per_cent_on_either_side(degrees: int) -> None:
    # With x = sqrt(ν) tan θ the density integrates over an angle, without a tail.
    scale = gamma((degrees + 1) / 2) / (sqrt(pi) * gamma(degrees / 2))

    def half(point: float) -> float:
        theta = np.linspace(0.0, np.arctan(point / sqrt(degrees)), 100_001)
        return float(scale * np.trapezoid(np.cos(theta) ** (degrees - 1), theta))

    printed = STUDENT_T[degrees - 1]  # to three places
    assert half(printed - 0.00051) < 0.475 < half(printed + 0.00051)


@pytest.mark.parametrize("count", [2, 5, 32])
def test_an_interval_covers_the_true_mean_nineteen_times_in_twenty(count: int) -> None:
    draws = np.random.default_rng(1).normal(3.0, 2.0, (4000, count))
    found = [mean_interval(values) for values in draws]
    covered = np.mean([one.low <= 3.0 <= one.high for one in found])
    assert covered == pytest.approx(0.95, abs=4 * sqrt(0.95 * 0.05 / 4000))


def autoregressive(count: int, length: int, *, memory: float, seed: int = 1) -> np.ndarray:
    """Sequences of mean 0 whose correlation falls by `memory` a step, begun in steady state."""
    draws = np.random.default_rng(seed).standard_normal((length, count))
    values = np.empty((length, count))
    values[0] = draws[0] / sqrt(1 - memory**2)
    for step in range(1, length):
        values[step] = memory * values[step - 1] + draws[step]
    return values.T


def test_batch_means_cover_the_mean_of_a_queue_that_remembers() -> None:
    found = [batch_means(values) for values in autoregressive(1000, 4000, memory=0.8)]
    covered = np.mean([one.low <= 0.0 <= one.high for one in found])
    naive = autoregressive(1000, 4000, memory=0.8)
    half = 1.96 * naive.std(axis=1) / sqrt(4000)
    assert np.mean(np.abs(naive.mean(axis=1)) <= half) < 0.6  # as if the values were independent
    assert 0.92 < covered < 0.98


def test_batch_means_leave_out_what_no_batch_has_room_for_at_the_start() -> None:
    values = np.concatenate([np.full(7, 1e6), np.arange(10.0 * BATCHES)])
    assert batch_means(values).mean == pytest.approx(np.arange(10.0 * BATCHES).mean())


@pytest.mark.parametrize("transient", [0, 200, 600])
def test_the_warm_up_is_cut_where_it_ends(transient: int) -> None:
    values = np.random.default_rng(5).normal(10.0, 1.0, 4000)
    values[:transient] += np.linspace(40.0, 0.0, transient)
    found = warmup_count(values)
    assert found is not None
    # The last steps of the transient lie within the noise.
    assert 0.8 * transient <= found <= transient + 100


@pytest.mark.parametrize("count", [9, 1000])
def test_what_grows_to_the_end_never_settles(count: int) -> None:
    assert warmup_count(np.linspace(0.0, 1.0, count)) is None


def test_runs_as_one_have_the_means_of_what_all_know_and_the_commonest_word() -> None:
    runs = [
        {"a": 1.0, "word": "stable", "rare": 4.0},
        {"a": 3.0, "word": "overloaded"},
        {"a": 5.0, "word": "overloaded", "rare": 6.0},
    ]
    assert mean_metrics(runs) == {"a": 3.0, "word": "overloaded"}
    assert mean_metrics(runs[:1]) == runs[0]
    (row,) = replication_rows(runs)
    assert (row["metric"], row["mean"], row["count"]) == ("a", 3.0, 3)
    assert row["high"] - row["mean"] == pytest.approx(4.303 * 2.0 / sqrt(3))
