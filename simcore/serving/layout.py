"""The engine's records before its first event: what a run is set up with, and the tiers behind its lanes."""

from __future__ import annotations

from typing import Any

import numpy as np

from simcore.compute.step_table import StepTimeTable
from simcore.memory.allocators import Reservation
from simcore.memory.buddy import levels_for
from simcore.memory.kv_pool import shift_of
from simcore.serving import state
from simcore.serving.admission import Admission
from simcore.serving.schedulers import SCHEDULER_CODES, WATERMARK_FRACTION, SchedulerParameters
from simcore.serving.tiers import KvTiers, prefill_s_per_token


def setup_of(
    table: StepTimeTable,
    scheduler: SchedulerParameters,
    block_count: int,
    block_size_tokens: int,
    replica_count: int,
    reservation: Reservation | None,
) -> Any:
    """The one record of what does not change in a run; tiers are put in by `put_behind`."""
    setup = state.records(state.SETUP, 1)
    head = setup[0]
    head.decode_s_per_token = table.decode_attention_s_per_token
    head.decode_s_per_window_token = table.decode_attention_s_per_window_token
    head.decode_s_per_sequence = table.decode_attention_s_per_sequence
    head.decode_s = table.decode_attention_s
    head.prefill_s_per_work = table.prefill_attention_s_per_token_context
    head.prefill_s_per_window_work = table.prefill_attention_s_per_window_token
    head.prefill_s = table.prefill_attention_s
    head.overhead_s_per_sequence = table.overhead_s_per_sequence
    head.window = table.window_tokens
    head.scheduler = SCHEDULER_CODES[scheduler.kind]
    head.max_num_seqs = scheduler.max_num_seqs
    head.max_num_batched_tokens = scheduler.max_num_batched_tokens
    head.longest_chunk = scheduler.longest_chunk_tokens
    head.block_size = block_size_tokens
    head.block_shift = shift_of(block_size_tokens)
    head.block_count = block_count
    head.pages = int(reservation is None)
    head.levels = levels_for(block_count) if reservation is not None and reservation.in_runs else -1
    head.watermark_blocks = head.pages * int(WATERMARK_FRACTION[scheduler.kind] * block_count)
    head.replica_count = replica_count
    return setup


def bound_lines(head: Any, admission: Admission | None, lanes_per_replica: int) -> None:
    """Enter how long the line of a replica may be; -1: without bound."""
    bound = None if admission is None else admission.max_queue_length
    head.max_queue_length = -1 if bound is None else bound
    head.lanes_per_replica = lanes_per_replica


def put_behind(setup: Any, lanes: Any, tiers: KvTiers | None, table: StepTimeTable) -> tuple[str, ...]:
    """Enter the tiers behind every lane; returns the names of those that anything is sent to."""
    if tiers is None or not tiers.count:
        return ()
    setup.swapping = int(tiers.swap and setup.pages == 1)
    setup.stowing = int(tiers.stow and setup.caching == 1)
    setup.tiers = tiers.count if setup.swapping + setup.stowing else 0
    setup.again_s_per_token = prefill_s_per_token(table)
    setup.again_s_per_work = table.prefill_attention_s_per_token_context
    lanes["tier_base"] = np.arange(len(lanes)) * tiers.count
    return tuple(tier.name for tier in tiers.tiers) if setup.tiers else ()
