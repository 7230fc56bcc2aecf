"""Where queueing theory has a formula, the engine meets it: M/D/1, M/M/1, processor sharing, and the closed loop."""

from dataclasses import replace

import numpy as np
import pytest

from simcore.serving.schedulers import LEAVES_SEATS_EMPTY
from simcore.streams import stream
from simcore.workload.requests import Requests
from tests.simcore.serving.tables import SCHEDULERS, affine_table, closed_requests, constant_table, engine

STEP_S = 0.01
TABLE = constant_table(STEP_S, max_tokens=64, max_sequences=4)


def served_one_by_one(service_steps: np.ndarray, load: float, kind: str) -> np.ndarray:
    """Queue times with one seat: a request holds the server for one step per token."""
    count = len(service_steps)
    gaps = stream(3, "arrivals").exponential(1.0, count)
    requests = Requests(
        arrival_s=np.cumsum(gaps) * STEP_S * service_steps.mean() / load,
        input_tokens=np.ones(count, np.int64),
        output_tokens=service_steps,
    )
    run = engine(requests, TABLE, kind=kind, max_num_seqs=1, max_num_batched_tokens=64, block_count=100_000)
    run.run()
    return run.records().queue_s


@pytest.mark.parametrize("kind", SCHEDULERS)
@pytest.mark.parametrize("load", [0.3, 0.7])
def test_it_is_an_m_d_1_queue_with_one_seat_and_equal_answers(kind: str, load: float) -> None:
    """Mean wait ρ D / (2 (1 - ρ)) with service time D."""
    steps = 10
    queue_s = served_one_by_one(np.full(200_000, steps), load, kind)
    assert queue_s.mean() == pytest.approx(load * steps * STEP_S / (2 * (1 - load)), rel=0.03)


@pytest.mark.parametrize("kind", SCHEDULERS)
@pytest.mark.parametrize("load", [0.3, 0.7])
def test_it_is_an_m_m_1_queue_with_one_seat_and_exponential_answers(kind: str, load: float) -> None:
    """Mean wait ρ S / (1 - ρ); geometric answers of 200 tokens are exponential to half a per cent."""
    mean = 200
    steps = stream(3, "answers").geometric(1 / mean, 200_000)
    queue_s = served_one_by_one(steps, load, kind)
    assert queue_s.mean() == pytest.approx(load * mean * STEP_S / (1 - load), rel=0.05)


@pytest.mark.parametrize("kind", sorted(set(SCHEDULERS) - LEAVES_SEATS_EMPTY))
@pytest.mark.parametrize("load", [0.3, 0.7])
@pytest.mark.parametrize("spread", ["equal", "exponential"])
def test_it_shares_a_processor_where_a_step_costs_its_sequences_alone(
    kind: str, load: float, spread: str
) -> None:
    """M/G/1-PS: the mean stay is S / (1 - ρ) whatever the spread of the answers, S being an answer's cost alone.

    A token is the quantum: with answers of 100, stays are whole steps to a few per cent.
    """
    mean, each_s, seats, count = 100, 1e-3, 2_000, 40_000
    table = replace(
        constant_table(0.0, max_tokens=4_096, max_sequences=seats), overhead_s_per_sequence=each_s
    )
    answers = (
        stream(3, "answers").geometric(1 / mean, count) if spread == "exponential" else np.full(count, mean)
    )
    requests = Requests(
        arrival_s=np.cumsum(stream(3, "arrivals").exponential(1.0, count)) * each_s * mean / load,
        input_tokens=np.ones(count, np.int64),
        output_tokens=answers,
    )
    run = engine(
        requests, table, kind=kind, max_num_seqs=seats, max_num_batched_tokens=4_096, block_count=1_000_000
    )
    run.run()
    assert run.records().e2e_s.mean() == pytest.approx(mean * each_s / (1 - load), rel=0.05)


@pytest.mark.parametrize("kind", SCHEDULERS)
def test_a_closed_loop_serves_its_batch_per_step_time(kind: str) -> None:
    """With n seats full and every step alike, output tokens per second are n / step."""
    seats, answer = 4, 100
    requests = closed_requests(4 * 250, concurrency=seats, input_tokens=1, output_tokens=answer)
    run = engine(requests, TABLE, kind=kind, max_num_seqs=seats, max_num_batched_tokens=64, block_count=1000)
    run.run()
    totals = run.totals()
    # All finish together and start together: each generation takes one step per token.
    assert totals.makespan_s == pytest.approx(250 * answer * STEP_S)
    assert totals.completed_count * answer / totals.makespan_s == pytest.approx(seats / STEP_S)


# a static batch that ends releases its users together, over all replicas: each then forms a batch of a part of them
@pytest.mark.parametrize("kind", sorted(set(SCHEDULERS) - LEAVES_SEATS_EMPTY))
@pytest.mark.parametrize("replica_count", [1, 2, 4])
def test_replicas_of_a_closed_loop_share_the_work_evenly(kind: str, replica_count: int) -> None:
    requests = closed_requests(400, concurrency=4 * replica_count, input_tokens=64, output_tokens=20)
    run = engine(requests, affine_table(), kind=kind, replica_count=replica_count)
    run.run()
    counts = np.bincount(run.records().replica, minlength=replica_count)
    assert counts.max() - counts.min() <= 1
    alone = engine(
        closed_requests(400 // replica_count, concurrency=4, input_tokens=64, output_tokens=20),
        affine_table(),
        kind=kind,
    )
    alone.run()
    assert run.totals().makespan_s == pytest.approx(alone.totals().makespan_s, rel=0.05)
