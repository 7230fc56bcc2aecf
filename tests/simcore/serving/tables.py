"""Step tables by hand, and short cuts to run an engine on them."""

from dataclasses import replace
from typing import get_args

import numpy as np

from simcore.compute.drafting import verifying
from simcore.compute.step_table import StepTimeTable
from simcore.serving.admission import Admission
from simcore.serving.autoscaling import Autoscaling
from simcore.serving.engine import Engine
from simcore.serving.handover import KvLink
from simcore.serving.interruptions import Outages
from simcore.serving.metrics import PoolUse
from simcore.serving.pools import LanePool
from simcore.serving.prefix import PrefixChains
from simcore.serving.queue_order import Line
from simcore.serving.routers import Router
from simcore.serving.routers.round_robin import RoundRobin
from simcore.serving.schedulers import SCHEDULER_CODES, Scheduler, SchedulerParameters
from simcore.serving.speculation import tokens_per_iteration
from simcore.serving.tiers import KvTiers
from simcore.serving.warm import constant_table
from simcore.workload.requests import Requests
from simcore.workload.sessions import Turns

SCHEDULERS = sorted(SCHEDULER_CODES)  # of one pool
# Every member of the union: the pair of pools too, of which each batches by one of those.
ALL_SCHEDULERS = sorted(member().kind for member in get_args(get_args(Scheduler)[0]))
# Every member of the union, also once it is an annotated union of several.
ROUTERS = [member() for member in get_args(get_args(Router)[0] if get_args(Router) else None) or (Router,)]
LINK = KvLink(prefill_s_per_token=2e-6, decode_s_per_token=1e-6, latency_s=1e-4)
POLICIES = [(scheduler, router) for scheduler in SCHEDULERS for router in ROUTERS]
ALL_POLICIES = [(scheduler, router) for scheduler in ALL_SCHEDULERS for router in ROUTERS]


def affine_table(*, max_tokens: int = 512, max_sequences: int = 64, window_tokens: int = 0) -> StepTimeTable:
    """A small model whose every cost is different, so that a wrong sum shows."""
    tokens = np.arange(max_tokens + 1.0)
    sampled = np.arange(max_sequences + 1.0)
    compute = 1.3e-5 * tokens
    hbm = np.maximum(4.1e-3 - compute, 0.0)
    launch = np.full(max_tokens + 1, 3.0e-4)
    for values in (hbm, launch):
        values[0] = 0.0
    return StepTimeTable(
        linear_s=compute + hbm + launch,
        head_s=1.0e-4 * (sampled > 0) + 2.0e-6 * sampled,
        comm_s=5.0e-5 * (tokens > 0) + 1.0e-7 * tokens,
        decode_attention_s_per_token=6.1e-8,
        decode_attention_s_per_window_token=2.3e-8 if window_tokens else 0.0,
        window_tokens=window_tokens,
        decode_attention_s_per_sequence=1.7e-6,
        decode_attention_s=2.9e-5,
        prefill_attention_s_per_token_context=1.1e-9,
        prefill_attention_s_per_window_token=0.7e-9 if window_tokens else 0.0,
        prefill_attention_s=3.7e-5,
        overhead_s=8.3e-4,
        overhead_s_per_sequence=4.3e-6,
        linear_compute_s=compute,
        linear_hbm_s=hbm,
        linear_launch_s=launch,
        head_compute_s=2.0e-6 * sampled,
        head_hbm_s=0.6e-4 * (sampled > 0),
        decode_attention_compute_fraction=0.1,
        prefill_attention_compute_fraction=0.9,
        flop_per_token=1.6e10,
        flop_per_context_token=5.2e5,
        head_flop_per_sequence=1.0e9,
        weight_bytes_per_step=1.6e10 * (tokens > 0),
        kv_bytes_per_context_token=131072.0,
    )


def speculating_table(
    draft_tokens: int, acceptance_rate: float, *, max_tokens: int = 512, window_tokens: int = 0
) -> StepTimeTable:
    """The same model verifying drafts that cost nothing; the plain one where there are none."""
    rows = 1 + draft_tokens
    table = affine_table(max_tokens=max_tokens, max_sequences=64 * rows, window_tokens=window_tokens)
    if not draft_tokens:
        return table
    gained = tokens_per_iteration(acceptance_rate, draft_tokens)
    return verifying(table, draft_tokens=draft_tokens, gained_tokens=gained)


def scaled(table: StepTimeTable, **factors: float) -> StepTimeTable:
    """The table with some entries multiplied."""
    return replace(table, **{name: getattr(table, name) * factor for name, factor in factors.items()})


def engine(
    requests: Requests,
    table: StepTimeTable | None = None,
    *,
    kind: str = "chunked_prefill",
    max_num_seqs: int = 16,
    max_num_batched_tokens: int = 256,
    block_count: int = 4096,
    block_size: int = 16,
    replica_count: int = 1,
    router: Router | None = None,
    chains: PrefixChains | None = None,
    longest_chunk: int = 0,
    admission: Admission | None = None,
    seed: int = 1,
    line: Line | None = None,
    tiers: KvTiers | None = None,
    link: KvLink = LINK,
    autoscaling: Autoscaling | None = None,
    outages: Outages | None = None,
) -> Engine:
    apart = kind == "disaggregated"
    pool = LanePool(
        table=affine_table() if table is None else table,
        scheduler=SchedulerParameters(
            kind="chunked_prefill" if apart else kind,
            max_num_seqs=max_num_seqs,
            max_num_batched_tokens=max_num_batched_tokens,
            long_prefill_token_threshold=longest_chunk,
        ),
        block_count=block_count,
        lane_count=replica_count,
        tiers=tiers,
    )
    return Engine(
        [replace(pool, role="prefill"), replace(pool, role="decode")] if apart else [pool],
        block_size_tokens=block_size,
        router=router or RoundRobin(),
        requests=requests,
        chains=chains,
        admission=admission,
        seed=seed,
        line=line,
        link=link if apart else None,
        autoscaling=autoscaling,
        outages=outages,
    )


def poisson_requests(
    count: int, *, rate: float, seed: int = 1, most_in: int = 400, most_out: int = 60
) -> Requests:
    draws = np.random.default_rng(seed)
    return Requests(
        arrival_s=np.cumsum(draws.exponential(1 / rate, count)),
        input_tokens=draws.integers(1, most_in + 1, count),
        output_tokens=draws.integers(1, most_out + 1, count),
    )


def in_sessions(requests: Requests, seed: int, think_s: float, *, most_turns: int = 6) -> Requests:
    """The same requests as turns of sessions, whose first turns come at the first instants."""
    draws = np.random.default_rng(seed)
    sizes: list[int] = []
    while sum(sizes) < len(requests):
        sizes.append(min(int(draws.integers(1, most_turns + 1)), len(requests) - sum(sizes)))
    session = np.repeat(np.arange(len(sizes)), sizes)
    turn = np.concatenate([np.arange(size) for size in sizes])
    order = np.lexsort((session, turn))
    turns = Turns(
        session=session[order],
        turn=turn[order],
        think_s=np.where(turn[order] > 0, draws.exponential(1.0, len(requests)) * think_s, 0.0),
        shared_tokens=0,
    )
    instants = np.where(turns.turn == 0, requests.arrival_s, np.nan)
    return replace(requests, arrival_s=instants, turns=turns)


def closed_requests(count: int, *, concurrency: int, input_tokens: int, output_tokens: int) -> Requests:
    return Requests(
        arrival_s=np.zeros(count),
        input_tokens=np.full(count, input_tokens),
        output_tokens=np.full(count, output_tokens),
        concurrency=concurrency,
    )


__all__ = [
    "ALL_POLICIES",
    "ALL_SCHEDULERS",
    "POLICIES",
    "ROUTERS",
    "SCHEDULERS",
    "affine_table",
    "closed_requests",
    "constant_table",
    "engine",
    "in_sessions",
    "poisson_requests",
    "scaled",
    "speculating_table",
]


def pool_use(run: Engine, table: StepTimeTable | None = None, *, chips: int = 1) -> PoolUse:
    """What one pool of H100s did, for the metrics of a run."""
    return PoolUse(
        totals=run.totals(),
        table=table or affine_table(),
        chips_per_lane=chips,
        peak_flop_per_s=989e12,
        hbm_bytes_per_s=3.35e12,
    )
