"""Lines that are not first come first served: who is first, what it buys, what no order may read."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.serving.queue_order import STARVED_RATIO, Line, starvation, waiting_line
from simcore.serving.schedulers import LEAVES_SEATS_EMPTY
from simcore.serving.state import FINISHED
from simcore.workload.classes import RequestClass
from simcore.workload.requests import Requests
from tests.simcore.serving.tables import SCHEDULERS, constant_table, engine, poisson_requests

ORDERED = sorted(set(SCHEDULERS) - LEAVES_SEATS_EMPTY)


@pytest.mark.parametrize("kind", ORDERED)
@settings(deadline=None, max_examples=30)
@given(
    seed=st.integers(0, 2**32 - 1),
    levels=st.integers(1, 100),
    seats=st.sampled_from([1, 4, 16]),
    blocks=st.sampled_from([40, 4096]),
    replica_count=st.sampled_from([1, 3]),
)
def test_nobody_waits_behind_a_lower_rank_that_is_still_waiting(
    kind: str, seed: int, levels: int, seats: int, blocks: int, replica_count: int
) -> None:
    """Whoever is admitted has the lowest rank of all who waited then; those of one rank go as they arrived."""
    requests = poisson_requests(100, rate=200.0, seed=seed)
    ranked = np.random.default_rng(seed + 1).integers(0, levels, len(requests)).astype(np.float64)
    options = {"kind": kind, "max_num_seqs": seats, "block_count": blocks, "replica_count": replica_count}
    run = engine(requests, line=Line(ranks=ranked), **options)
    run.run()
    records = run.records()
    assert (records.status == FINISHED).all()
    for one in range(len(requests)):
        waited = (records.replica == records.replica[one]) & (records.arrival_s < records.scheduled_s[one])
        later = waited & (records.scheduled_s > records.scheduled_s[one])
        assert (ranked[later] >= ranked[one]).all()
        assert (np.flatnonzero(later & (ranked == ranked[one])) > one).all()


@pytest.mark.parametrize("kind", ORDERED)
def test_equal_ranks_are_first_come_first_served_bit_for_bit(kind: str) -> None:
    requests = poisson_requests(300, rate=100.0)
    options = {"kind": kind, "block_count": 60, "replica_count": 2}
    plain, ranked = engine(requests, **options), engine(requests, line=Line(ranks=np.zeros(300)), **options)
    plain.run()
    ranked.run()
    assert plain.totals().preemption_count > 0
    np.testing.assert_array_equal(plain.records().finish_s, ranked.records().finish_s)
    np.testing.assert_array_equal(plain.records().preemption_count, ranked.records().preemption_count)


def single_seat(requests: Requests, line: Line | None) -> np.ndarray:
    """Waits at one seat, where a request takes as many seconds as it has tokens to answer."""
    run = engine(
        requests,
        constant_table(1.0, max_tokens=16, max_sequences=1),
        max_num_seqs=1,
        max_num_batched_tokens=16,
        line=line,
    )
    run.run()
    return run.records().queue_s


def test_shortest_first_with_exact_predictions_is_the_m_g_1_queue_of_that_order() -> None:
    """Phipps 1956: W(x) = λ E[S²] / 2 / ((1 - ρ(below x)) (1 - ρ(to x))), and the mean is the least of all orders."""
    load, most, count = 0.8, 9, 200_000
    draws = np.random.default_rng(3)
    rate = load / (0.5 * (1 + most))
    requests = Requests(
        arrival_s=np.cumsum(draws.exponential(1 / rate, count)),
        input_tokens=np.ones(count, np.int64),
        output_tokens=draws.integers(1, most + 1, count),
    )
    sizes = np.arange(1, most + 1)
    left = 1 - np.append(0.0, np.cumsum(rate * sizes / most))  # of the load, what shorter ones leave
    rest_s = rate * (sizes**2).mean() / 2
    shortest = single_seat(requests, waiting_line("shortest_predicted", requests))
    for size in sizes:
        expected = rest_s / (left[size - 1] * left[size])
        assert shortest[requests.output_tokens == size].mean() == pytest.approx(expected, rel=0.08)
    expected = (rest_s / (left[:-1] * left[1:])).mean()
    assert shortest.mean() == pytest.approx(expected, rel=0.05)
    arrived = single_seat(requests, None).mean()
    assert arrived == pytest.approx(rest_s / (1 - load), rel=0.05)
    guessed = single_seat(requests, waiting_line("shortest_predicted", requests, prediction_cv=1.0)).mean()
    assert shortest.mean() < guessed < arrived


def test_predictions_have_the_mean_and_the_spread_that_were_asked_for() -> None:
    requests = Requests(
        arrival_s=np.zeros(100_000), input_tokens=np.ones(100_000, int), output_tokens=np.full(100_000, 50)
    )
    predicted = waiting_line("shortest_predicted", requests, prediction_cv=0.5, seed=7).ranks
    assert predicted.mean() == pytest.approx(50, rel=0.01)
    assert predicted.std() / predicted.mean() == pytest.approx(0.5, rel=0.02)
    again = waiting_line("shortest_predicted", requests, prediction_cv=0.5, seed=7).ranks
    np.testing.assert_array_equal(predicted, again)
    assert (predicted != waiting_line("shortest_predicted", requests, prediction_cv=0.5, seed=8).ranks).all()


def test_longer_answers_behind_the_same_prediction_change_nothing_until_the_first_ends() -> None:
    requests = poisson_requests(60, rate=200.0)
    longer = Requests(
        arrival_s=requests.arrival_s,
        input_tokens=requests.input_tokens,
        output_tokens=3 * requests.output_tokens,
    )
    predicted = waiting_line("shortest_predicted", requests, prediction_cv=0.3)
    first, second = (engine(one, max_num_seqs=6, line=predicted) for one in (requests, longer))
    first.run()
    second.run()
    until = np.nanmin(first.records().finish_s)
    one, two = (np.minimum(run.records().scheduled_s, until) for run in (first, second))
    np.testing.assert_allclose(one, two, rtol=1e-12)


def test_priorities_are_those_of_the_classes() -> None:
    requests = poisson_requests(4, rate=1.0)
    classed = Requests(
        arrival_s=requests.arrival_s,
        input_tokens=requests.input_tokens,
        output_tokens=requests.output_tokens,
        class_of=np.array([1, 0, 1, 0]),
    )
    classes = [
        RequestClass(name="chat", share_fraction=0.5, priority=-3),
        RequestClass(name="batch", share_fraction=0.5, priority=8),
    ]
    assert waiting_line("priority", classed, classes=classes).ranks.tolist() == [8.0, -3.0, 8.0, -3.0]
    assert waiting_line("priority", requests).ranks.tolist() == [0.0] * 4
    assert waiting_line("fcfs", classed, classes=classes) is None


def test_starvation_is_said_aloud_and_only_where_it_is() -> None:
    draws = np.random.default_rng(4)
    requests = Requests(
        arrival_s=np.cumsum(draws.exponential(2.0 / 0.98, 20_000)),
        input_tokens=np.ones(20_000, np.int64),
        output_tokens=np.where(draws.random(20_000) < 0.02, 51, 1),
    )
    told = {}
    for queue in ("shortest_predicted", "fcfs"):
        run = engine(
            requests,
            constant_table(1.0, max_tokens=16, max_sequences=1),
            max_num_seqs=1,
            max_num_batched_tokens=16,
            line=waiting_line(queue, requests),
        )
        run.run()
        told[queue] = starvation("shortest_predicted", run.records(), slo_ttft_s=1.0)
        assert starvation("fcfs", run.records(), slo_ttft_s=1.0) == ()
        assert starvation("shortest_predicted", run.records(), slo_ttft_s=1e6) == ()
    assert told["fcfs"] == ()
    (message,) = told["shortest_predicted"]
    assert message.params["ratio"] > STARVED_RATIO
    assert "use fcfs" in message.text


def test_a_static_batch_has_no_order_but_that_of_arrival() -> None:
    with pytest.raises(ValueError, match="first come first served"):
        engine(poisson_requests(2, rate=1.0), kind="static_batch", line=Line(ranks=np.zeros(2)))
