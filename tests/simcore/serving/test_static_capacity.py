"""The closed form of a saturated static batch, held against the engine inside the bands that it states."""

import numpy as np
import pytest

from simcore.serving.capacity import throughput_curve
from simcore.serving.schedulers import SchedulerParameters
from simcore.workload.requests import Requests
from tests.simcore.serving.tables import affine_table, engine

COUNT = 3200
ANSWERS = {
    "equal": lambda draws: np.full(COUNT, 40),
    "uniform": lambda draws: draws.integers(1, 100, COUNT),
    "geometric": lambda draws: draws.geometric(1 / 30, COUNT),
    "heavy": lambda draws: np.maximum(1, draws.lognormal(3, 1, COUNT)).astype(np.int64),
}


def served_and_reckoned(answers: str, *, seats: int, blocks: int, most_in: int = 200):
    draws = np.random.default_rng(5)
    requests = Requests(
        arrival_s=np.zeros(COUNT),
        input_tokens=draws.integers(1, most_in, COUNT),
        output_tokens=ANSWERS[answers](draws),
        concurrency=COUNT,
    )
    options = {"kind": "static_batch", "max_num_seqs": seats, "max_num_batched_tokens": 256}
    run = engine(requests, block_count=blocks, **options)
    run.run()
    curve = throughput_curve(
        affine_table(),
        scheduler=SchedulerParameters(**options),
        block_count=blocks,
        block_size_tokens=16,
        input_tokens=requests.input_tokens,
        output_tokens=requests.output_tokens,
    )
    return run.totals(), curve


@pytest.mark.parametrize("answers", ANSWERS)
@pytest.mark.parametrize("seats", [1, 4, 32])
def test_a_batch_lasts_as_long_as_its_longest_answer(answers: str, seats: int) -> None:
    totals, curve = served_and_reckoned(answers, seats=seats, blocks=4096)
    assert totals.preemption_count == 0
    assert COUNT / totals.makespan_s == pytest.approx(curve.capacity_request_per_s, rel=0.03)
    decoding = totals.decode_sequence_sum / totals.decode_iteration_count
    assert decoding == pytest.approx(curve.batch.max(), rel=0.02)


@pytest.mark.parametrize("answers", ANSWERS)
def test_where_memory_preempts_the_band_is_wider(answers: str) -> None:
    totals, curve = served_and_reckoned(answers, seats=32, blocks=150)
    assert totals.preemption_count > 0
    assert COUNT / totals.makespan_s == pytest.approx(curve.capacity_request_per_s, rel=0.10)


def test_the_curve_rises_with_the_batch_and_one_seat_is_the_request_alone() -> None:
    totals, curve = served_and_reckoned("equal", seats=32, blocks=4096)
    assert (np.diff(curve.request_per_s) > 0).all()
    assert curve.batch[0] == pytest.approx(1.0)
    alone, _ = served_and_reckoned("equal", seats=1, blocks=4096)
    assert COUNT / alone.makespan_s == pytest.approx(curve.request_per_s[0], rel=0.02)
    assert totals.makespan_s < alone.makespan_s
