"""What starting replicas cost those who arrive meanwhile."""

from dataclasses import replace

import numpy as np
import pytest

from simcore.serving.latencies import Promise
from simcore.serving.records import Records, Replicas
from simcore.serving.scaling import scaling_metrics, slow_starts
from tests.simcore.serving.tables import engine, poisson_requests

PROMISE = Promise(ttft_s=1.0, tpot_s=1.0, front_end_s=0.0)


def served() -> Records:
    run = engine(poisson_requests(400, rate=2.0))
    run.run()
    return run.records()


def late(records: Records, some: np.ndarray) -> Records:
    return replace(
        records,
        first_token_s=records.first_token_s + 10.0 * some,
        finish_s=records.finish_s + 10.0 * some,
    )


def test_misses_during_starts_are_told_with_both_shares() -> None:
    records, starting = served(), np.arange(400) < 100
    late_ones = np.arange(400) < 60
    (warning,) = slow_starts(late(records, late_ones), 2.0 * starting, PROMISE)
    assert warning.params == {"starts": pytest.approx(0.4), "rest": pytest.approx(1.0)}
    assert "40%" in warning.text


def test_misses_at_other_times_are_no_matter_of_starts() -> None:
    records, starting = served(), np.arange(400) < 100
    assert slow_starts(late(records, np.arange(400) >= 100), 1.0 * starting, PROMISE) == ()
    assert slow_starts(records, 1.0 * starting, PROMISE) == ()


@pytest.mark.parametrize("few", [0, 49, 351, 400])
def test_a_handful_says_nothing(few: int) -> None:
    starting = np.arange(400) < few
    assert slow_starts(late(served(), starting), 1.0 * starting, PROMISE) == ()


def test_what_was_used_is_a_share_of_all_that_there_might_be() -> None:
    use = Replicas(ready_mean=2.0, ready_max=3, used_s=50.0, up_count=2, down_count=1)
    assert scaling_metrics(use, replica_count=4, makespan_s=25.0)[
        "serving.autoscaling.used_fraction"
    ] == pytest.approx(0.5)
    assert scaling_metrics(use, replica_count=4, makespan_s=0.0)["serving.autoscaling.used_fraction"] == 0.0
