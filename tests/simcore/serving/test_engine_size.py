"""The engine's memory follows the work, not the largest batch times the number of replicas."""

import numpy as np

from simcore.serving.engine import Engine
from simcore.serving.pools import LanePool
from simcore.serving.routers.round_robin import RoundRobin
from simcore.serving.schedulers import SchedulerParameters
from simcore.serving.warm import constant_table
from simcore.workload.requests import Requests


def engine(*, request_count: int, replica_count: int) -> Engine:
    pool = LanePool(
        table=constant_table(1e-3, max_tokens=128, max_sequences=64),
        scheduler=SchedulerParameters(kind="chunked_prefill", max_num_seqs=64, max_num_batched_tokens=128),
        block_count=1000,
        lane_count=replica_count,
    )
    return Engine(
        [pool],
        block_size_tokens=16,
        router=RoundRobin(),
        requests=Requests(
            arrival_s=np.arange(request_count) * 1e-2,
            input_tokens=np.full(request_count, 10),
            output_tokens=np.full(request_count, 5),
            concurrency=0,
        ),
    )


def test_thousands_of_idle_replicas_take_no_seats() -> None:
    run = engine(request_count=100, replica_count=65_536)
    assert len(run._seats) == 100 * 2
    run.run()
    totals = run.totals()
    assert totals.completed_count == 100
    assert totals.replica_count == 65_536


def test_seats_cut_to_the_requests_of_a_replica_change_nothing() -> None:
    few, many = engine(request_count=40, replica_count=4), engine(request_count=40, replica_count=1)
    assert len(few._seats) == 4 * 11
    assert len(many._seats) == 41
    few.run()
    assert few.totals().completed_count == 40
