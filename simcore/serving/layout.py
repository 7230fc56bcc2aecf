"""The engine's records before its first event: what each pool is set up with, its step times, and its tiers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from simcore.compute.step_table import StepTimeTable
from simcore.memory.allocators import Reservation
from simcore.memory.buddy import levels_for, trees
from simcore.memory.kv_pool import shift_of
from simcore.serving import state
from simcore.serving.admission import Admission
from simcore.serving.handover import KvLink
from simcore.serving.pools import ROLE_CODES, LanePool
from simcore.serving.records import Floats
from simcore.serving.schedulers import SCHEDULER_CODES, WATERMARK_FRACTION
from simcore.serving.speculation import CREDIT_BITS, in_credit
from simcore.serving.state import DECODE
from simcore.serving.tiers import KvTiers, prefill_s_per_token


def setups_of(
    pools: Sequence[LanePool],
    lane_counts: Sequence[int],
    block_size_tokens: int,
    reservation: Reservation | None,
    *,
    shared: bool,
    admission: Admission | None,
) -> Any:
    """What does not change in a run, a record a pool; `shared`: prompts share resident prefixes.

    `lane_counts` are the lanes that can get a request at all. Tiers are put in by `put_behind`.
    """
    setups = state.records(state.SETUP, len(pools))
    first_lane = token_base = sampled_base = 0
    for head, pool, lanes in zip(setups, pools, lane_counts, strict=True):
        scheduler, blocks = pool.scheduler, pool.block_count
        head.caching = int(shared and pool.role != "decode")
        head.role = ROLE_CODES[pool.role]
        _enter_times(head, pool.table)
        head.token_base, head.token_last = token_base, len(pool.table.linear_s) - 1
        head.sampled_base = sampled_base
        head.scheduler = SCHEDULER_CODES[scheduler.kind]
        head.max_num_seqs = scheduler.max_num_seqs
        # Who shares blocks may hold none of his own.
        head.most_seats = scheduler.max_num_seqs if head.caching else min(scheduler.max_num_seqs, blocks)
        head.max_num_batched_tokens = scheduler.max_num_batched_tokens
        head.longest_chunk = scheduler.longest_chunk_tokens
        head.block_size = block_size_tokens
        head.block_shift = shift_of(block_size_tokens)
        head.block_count = blocks
        head.pages = int(reservation is None)
        head.levels = levels_for(blocks) if reservation is not None and reservation.in_runs else -1
        head.watermark_blocks = head.pages * int(WATERMARK_FRACTION[scheduler.kind] * blocks)
        bound = None if admission is None else admission.max_queue_length
        head.max_queue_length = -1 if bound is None else bound
        head.lanes_per_replica = pool.lanes_per_replica
        head.first_lane, head.lane_count = first_lane, lanes
        first_lane += lanes
        token_base += len(pool.table.linear_s)
        sampled_base += scheduler.max_num_seqs + 1
    setups["replica_count"] = first_lane - int(setups["lane_count"][setups["role"] == DECODE].sum())
    most_gained = -(-setups["gain"].max() >> CREDIT_BITS)
    setups["most_wasted"] = max(0, int(most_gained) - 1)
    return setups


def enter_link(setups: Any, link: KvLink) -> None:
    """What the kernel has to know of the link from the first pool, which prefills, to the second."""
    setups["kv_s_per_token"] = [link.prefill_s_per_token, link.decode_s_per_token]
    setups["kv_latency_s"] = link.latency_s
    setups["kv_last_fraction"] = link.last_layer_fraction


def _enter_times(head: Any, table: StepTimeTable) -> None:
    head.decode_s_per_token = table.decode_attention_s_per_token
    head.decode_s_per_window_token = table.decode_attention_s_per_window_token
    head.decode_s_per_sequence = table.decode_attention_s_per_sequence
    head.decode_s = table.decode_attention_s
    head.prefill_s_per_work = table.prefill_attention_s_per_token_context
    head.prefill_s_per_window_work = table.prefill_attention_s_per_window_token
    head.prefill_s = table.prefill_attention_s
    head.overhead_s_per_sequence = table.overhead_s_per_sequence
    head.window = table.window_tokens
    head.drafts = table.verified_tokens - 1
    head.gain = in_credit(table.gained_tokens)
    head.gained_tokens = head.gain / (1 << CREDIT_BITS)


def step_times(pools: Sequence[LanePool]) -> tuple[Floats, Floats]:
    """Seconds of a step by tokens, and of its head by sequences sampled: pool after pool."""
    by_tokens = [one.table.linear_s + one.table.comm_s + one.table.overhead_s for one in pools]
    by_sampled = [one.table.head_s[: one.scheduler.max_num_seqs + 1] for one in pools]
    return np.concatenate(by_tokens), np.concatenate(by_sampled)


def free_runs(setups: Any, lanes: Any) -> Any:
    """Trees of free runs of blocks, lane after lane, where an allocator takes its blocks in one piece."""
    found, base = [], 0
    for head in setups:
        if head.levels < 0:
            return np.zeros(2, np.int32)
        mine = slice(head.first_lane, head.first_lane + head.lane_count)
        found.append(trees(int(head.lane_count), int(head.block_count)))
        lanes["tree_base"][mine] = base + np.arange(head.lane_count) * (2 << int(head.levels))
        base += len(found[-1])
    return np.concatenate(found)


def put_behind(setup: Any, tiers: KvTiers | None, table: StepTimeTable) -> tuple[str, ...]:
    """Enter the tiers behind the lanes of a pool; returns the names of those that anything is sent to."""
    if tiers is None or not tiers.count:
        return ()
    setup.swapping = int(tiers.swap and setup.pages == 1)
    setup.stowing = int(tiers.stow and setup.caching == 1)
    setup.tiers = tiers.count if setup.swapping + setup.stowing else 0
    setup.again_s_per_token = prefill_s_per_token(table)
    setup.again_s_per_work = table.prefill_attention_s_per_token_context
    return tuple(tier.name for tier in tiers.tiers) if setup.tiers else ()
