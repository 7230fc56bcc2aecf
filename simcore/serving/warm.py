"""Compile the kernels of the engine and of the allocators, so that the first user does not wait for it.

The install step calls `warm()`; machine code then lies on disk. The types of all arguments are the same for
every scenario, so one tiny run compiles everything.
"""

from __future__ import annotations

import numpy as np

from simcore.compute.step_table import StepTimeTable
from simcore.memory.allocators import occupancy
from simcore.serving.engine import Engine
from simcore.serving.handover import KvLink
from simcore.serving.interruptions import Outage, Outages
from simcore.serving.pools import LanePool, Role
from simcore.serving.routers.round_robin import RoundRobin
from simcore.serving.schedulers import SCHEDULER_CODES, SchedulerKind, SchedulerParameters
from simcore.workload.requests import Requests


def warm() -> None:
    """Run three requests through every scheduler and a failure, and one through an allocator."""
    requests = Requests(
        arrival_s=np.zeros(3), input_tokens=np.full(3, 5), output_tokens=np.full(3, 4), concurrency=2
    )
    failure = Outage(lanes=(0,), begin_s=1e-3, end_s=1.0)
    for kind in SCHEDULER_CODES:
        _serve([_pool(kind, "both")], requests, failure, None)
    apart = [_pool("chunked_prefill", "prefill"), _pool("chunked_prefill", "decode")]
    link = KvLink(prefill_s_per_token=1e-3, decode_s_per_token=1e-3, latency_s=0.0)
    for lane in (0, 2):  # one of each pool, while KV is on its way
        _serve(apart, requests, Outage(lanes=(lane,), begin_s=3e-3, end_s=1.0), link)
    one = np.ones(1, np.int64)
    occupancy("paged", one, one, capacity_tokens=64, max_model_len=64)


def _pool(kind: SchedulerKind, role: Role) -> LanePool:
    return LanePool(
        table=constant_table(1e-3, max_tokens=8, max_sequences=2),
        scheduler=SchedulerParameters(kind=kind, max_num_seqs=2, max_num_batched_tokens=8),
        block_count=4,
        lane_count=2,
        role=role,
    )


def _serve(pools: list[LanePool], requests: Requests, failure: Outage, link: KvLink | None) -> None:
    engine = Engine(
        pools,
        block_size_tokens=4,
        router=RoundRobin(),
        requests=requests,
        link=link,
        outages=Outages(outages=(failure,)),
    )
    engine.run()
    engine.records()


def constant_table(step_s: float, *, max_tokens: int, max_sequences: int) -> StepTimeTable:
    """A step that takes `step_s` whatever it holds, all of it host work: for warm-up and for queueing laws."""
    tokens, sampled = np.zeros(max_tokens + 1), np.zeros(max_sequences + 1)
    return StepTimeTable(
        linear_s=tokens,
        head_s=sampled,
        comm_s=tokens,
        decode_attention_s_per_token=0.0,
        decode_attention_s_per_window_token=0.0,
        window_tokens=0,
        decode_attention_s_per_sequence=0.0,
        decode_attention_s=0.0,
        prefill_attention_s_per_token_context=0.0,
        prefill_attention_s_per_window_token=0.0,
        prefill_attention_s=0.0,
        overhead_s=step_s,
        overhead_s_per_sequence=0.0,
        linear_compute_s=tokens,
        linear_hbm_s=tokens,
        linear_launch_s=tokens,
        head_compute_s=sampled,
        head_hbm_s=sampled,
        flop_per_token=0.0,
        flop_per_context_token=0.0,
        head_flop_per_sequence=0.0,
        weight_bytes_per_step=tokens,
        kv_bytes_per_context_token=0.0,
    )
