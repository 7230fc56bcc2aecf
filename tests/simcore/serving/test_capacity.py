"""The closed form of a saturated replica, held against the engine where prompts are short."""

import numpy as np
import pytest

from simcore.serving.capacity import capacity_request_per_s
from simcore.serving.schedulers import SchedulerParameters
from simcore.workload.requests import Requests
from tests.simcore.serving.tables import SCHEDULERS, affine_table, engine


@pytest.mark.parametrize("kind", SCHEDULERS)
@pytest.mark.parametrize("cap", [0, 64])
@pytest.mark.parametrize(("shown", "answered"), [(2, 3), (20, 10), (60, 30), (200, 20)])
def test_short_prompts_are_prefilled_together(kind: str, cap: int, shown: int, answered: int) -> None:
    draws = np.random.default_rng(5)
    outputs = 1 + draws.geometric(1 / answered, 4000)
    requests = Requests(
        arrival_s=np.zeros(4000), input_tokens=np.full(4000, shown), output_tokens=outputs, concurrency=4000
    )
    run = engine(requests, kind=kind, max_num_seqs=32, max_num_batched_tokens=256, longest_chunk=cap)
    run.run()
    closed = capacity_request_per_s(
        affine_table(),
        scheduler=SchedulerParameters(
            kind=kind, max_num_seqs=32, max_num_batched_tokens=256, long_prefill_token_threshold=cap
        ),
        block_count=4096,
        block_size_tokens=16,
        input_tokens=requests.input_tokens,
        output_tokens=outputs,
    )
    assert 4000 / run.totals().makespan_s == pytest.approx(closed, rel=0.08)
