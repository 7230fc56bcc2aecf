"""Bounds on the line of a replica: loss systems, finite queues, and what is said of the refused."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.serving.admission import Admission
from simcore.serving.engine import Engine
from simcore.serving.metrics import serving_metrics
from simcore.serving.pools import LanePool
from simcore.serving.routers import Router
from simcore.serving.routers.round_robin import RoundRobin
from simcore.serving.schedulers import SchedulerParameters
from simcore.serving.state import FINISHED, REJECTED
from simcore.streams import stream
from simcore.workload.requests import Requests
from tests.simcore.serving.tables import (
    POLICIES,
    SCHEDULERS,
    affine_table,
    closed_requests,
    constant_table,
    engine,
    poisson_requests,
    pool_use,
)

STEP_S = 0.01
ANSWER = 200
TABLE = constant_table(STEP_S, max_tokens=64, max_sequences=4)


def bounded(kind: str, *, seats: int, longest_line: int, offered: float) -> Engine:
    """M/M/seats/(seats + longest_line): `offered` Erlang of exponential answers at one replica."""
    count = 200_000
    draws = stream(5, "answers").geometric(1 / ANSWER, count)
    requests = Requests(
        arrival_s=np.cumsum(stream(5, "arrivals").exponential(ANSWER * STEP_S / offered, count)),
        input_tokens=np.ones(count, np.int64),
        output_tokens=draws,
    )
    run = engine(
        requests,
        TABLE,
        kind=kind,
        max_num_seqs=seats,
        max_num_batched_tokens=64,
        block_count=100_000,
        admission=Admission(max_queue_length=longest_line),
    )
    run.run()
    return run


def blocked_fraction(seats: int, longest_line: int, offered: float) -> float:
    """Steady state of the birth-death chain, at its last state."""
    weights = [1.0]
    for jobs in range(1, seats + longest_line + 1):
        weights.append(weights[-1] * offered / min(jobs, seats))
    return weights[-1] / math.fsum(weights)


@pytest.mark.parametrize("offered", [0.5, 1.5])
@pytest.mark.parametrize("longest_line", [0, 1, 4])
def test_one_seat_and_a_bounded_line_lose_what_m_m_1_k_loses(longest_line: int, offered: float) -> None:
    totals = bounded("chunked_prefill", seats=1, longest_line=longest_line, offered=offered).totals()
    lost = totals.refused_count / (totals.completed_count + totals.refused_count)
    assert lost == pytest.approx(blocked_fraction(1, longest_line, offered), rel=0.04, abs=0.002)


def test_seats_without_a_line_lose_what_erlang_b_says() -> None:
    """Three seats share each step, so each answer takes its own time whoever else runs: M/M/3/3."""
    totals = bounded("chunked_prefill", seats=3, longest_line=0, offered=2.0).totals()
    lost = totals.refused_count / (totals.completed_count + totals.refused_count)
    assert lost == pytest.approx(blocked_fraction(3, 0, 2.0), rel=0.04)


@pytest.mark.parametrize(("kind", "router"), POLICIES)
@settings(deadline=None, max_examples=15)
@given(
    seed=st.integers(0, 2**32 - 1),
    bound=st.integers(0, 6),
    replicas=st.sampled_from([1, 3]),
    blocks=st.sampled_from([40, 4096]),
)
def test_no_line_is_longer_than_its_bound_and_everybody_is_accounted_for(
    kind: str, router: Router, seed: int, bound: int, replicas: int, blocks: int
) -> None:
    run = engine(
        poisson_requests(150, rate=300.0, seed=seed),
        kind=kind,
        router=router,
        max_num_seqs=4,
        block_count=blocks,
        replica_count=replicas,
        admission=Admission(max_queue_length=bound),
    )
    for _ in run.slices(target_count=60):
        for lane in run._lanes:
            # Newcomers who would find a seat are no line; who was preempted did not join at its end.
            assert lane.waiting <= bound + max(0, 4 - lane.running) + lane.returning
    records, totals = run.records(), run.totals()
    refused = (records.status == REJECTED) & (records.replica >= 0)
    assert int(refused.sum()) == totals.refused_count
    assert ((records.status == FINISHED) | (records.status == REJECTED)).all()
    assert np.isnan(records.scheduled_s[records.status == REJECTED]).all()


@pytest.mark.parametrize("kind", SCHEDULERS)
def test_a_bound_that_is_never_met_changes_nothing(kind: str) -> None:
    requests = poisson_requests(300, rate=60.0)
    free, bounded_ = (
        engine(requests, kind=kind, replica_count=2, admission=admission)
        for admission in (None, Admission(max_queue_length=10_000))
    )
    free.run()
    bounded_.run()
    assert bounded_.totals().refused_count == 0
    np.testing.assert_array_equal(free.records().finish_s, bounded_.records().finish_s)


def test_batches_in_flight_of_one_replica_share_its_line() -> None:
    """Two lanes of one seat each; both seats taken, a bound of 3 lets three wait in all, not three each."""
    requests = Requests(
        arrival_s=np.zeros(12), input_tokens=np.full(12, 4), output_tokens=np.full(12, 5), concurrency=0
    )
    runs = []
    for lanes_per_replica in (1, 2):
        pool = LanePool(
            table=TABLE,
            scheduler=SchedulerParameters(kind="chunked_prefill", max_num_seqs=1, max_num_batched_tokens=64),
            block_count=1_000,
            lane_count=2,
            lanes_per_replica=lanes_per_replica,
        )
        run = Engine(
            [pool],
            block_size_tokens=16,
            router=RoundRobin(),
            requests=requests,
            admission=Admission(max_queue_length=3),
        )
        run.run()
        runs.append(run)
    assert [run.totals().completed_count for run in runs] == [2 * (1 + 3), 2 + 3]


def test_a_refused_request_of_a_closed_loop_sends_the_next_one_at_once() -> None:
    """Six users and room for five: the sixth is refused, as is each that follows while nobody is done."""
    requests = closed_requests(40, concurrency=6, input_tokens=4, output_tokens=10)
    run = engine(
        requests,
        TABLE,
        max_num_seqs=4,
        max_num_batched_tokens=64,
        admission=Admission(max_queue_length=1),
    )
    run.run()
    assert run.done_count == 40
    assert run.totals().completed_count == 5
    assert run.totals().refused_count == 35


def test_users_who_all_find_a_seat_are_all_let_in() -> None:
    requests = closed_requests(40, concurrency=4, input_tokens=4, output_tokens=10)
    run = engine(
        requests,
        TABLE,
        max_num_seqs=4,
        max_num_batched_tokens=64,
        admission=Admission(max_queue_length=0),
    )
    run.run()
    assert run.totals().completed_count == 40


def test_who_was_refused_and_who_can_never_fit_are_told_apart() -> None:
    """All are offered load but the one that no replica can hold; its message names the memory, theirs the line."""
    requests = Requests(
        arrival_s=np.arange(60) * 1e-3,
        input_tokens=np.where(np.arange(60) == 7, 5_000, 30),
        output_tokens=np.full(60, 10),
    )
    run = engine(requests, max_num_seqs=2, block_count=20, admission=Admission(max_queue_length=3))
    run.run()
    told = serving_metrics(
        run.records(),
        [pool_use(run, affine_table(), chips=1)],
        slo_ttft_s=1.0,
        slo_tpot_s=1.0,
        capacity_request_per_s=50.0,
        closed_loop=False,
        chip_count=1,
    )
    refused = run.totals().refused_count
    assert refused > 40
    assert told.metrics["serving.rejected_count"] == refused + 1
    assert told.metrics["serving.offered_load_ratio"] == pytest.approx(1_000 * 58 / 59 / 50)
    said = {message.code: message for message in told.warnings}
    assert said["serving.refused"].params == {"refused": refused, "offered": 60}
    assert said["serving.refused"].path == "serving.admission.max_queue_length"
    assert said["serving.rejected"].params == {"rejected": 1, "offered": 60}
