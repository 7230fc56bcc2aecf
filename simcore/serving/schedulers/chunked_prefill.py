"""Chunked prefill, as vLLM V1 and Sarathi-Serve do it: decodes and pieces of prompts share an iteration.

Every running decode gets its token first. What is left of `max_num_batched_tokens` goes to prompts under
way and then to the line, first come first served, in chunks; a prompt is admitted when a seat is free and
the blocks of its chunk are. When a block is missing, a running sequence is preempted (`preemption.py`), and nobody
is admitted in that iteration. `long_prefill_token_threshold`, where it is not 0, caps the chunk of each prompt
(as in vLLM), so that short prompts overtake a long one within the budget. Who is preempted gives back first what
this iteration was to give it. Unlike there, decodes come before prompts whatever the order of admission, and where
a prompt is preempted for want of its own block, those behind it go on in the same iteration and not in the next.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from simcore.compiled import inlined
from simcore.memory.kv_pool import blocks_for
from simcore.serving.lane import admit, blocks_to_admit, first_waiting_tokens, prefill
from simcore.serving.preemption import decode_all, next_victim, preempt, retract, wrapped
from simcore.serving.prefix import find
from simcore.serving.queue_order import QueueKind
from simcore.spec import Spec


class ChunkedPrefill(Spec):
    """Decodes first, prompts in chunks within a token budget."""

    kind: Literal["chunked_prefill"] = "chunked_prefill"
    max_num_seqs: Literal["auto"] | Annotated[int, Field(ge=1, le=65_536)] = "auto"
    max_num_batched_tokens: Literal["auto"] | Annotated[int, Field(ge=1, le=1_048_576)] = "auto"
    queue: QueueKind = "fcfs"
    prediction_cv: float = Field(default=0.0, ge=0, le=10)  # of the predicted length
    long_prefill_token_threshold: int = Field(default=0, ge=0, le=1_048_576)  # 0: none


@inlined
def schedule(
    lane: Any,
    seats: Any,
    room: Any,
    rows: Any,
    phases: Any,
    inputs: Any,
    setup: Any,
    tree: Any,
    totals: Any,
    prefix: Any,
    now: float,
) -> None:
    """Fill the lane's next iteration: `decodes`, `prefill_tokens`, `chunks`, `finishing`, `may_run`."""
    size, shift = setup.block_size, setup.block_shift
    seated = lane.running
    decode_all(lane, seats, room, rows, phases, setup, totals, prefix, now)
    budget = setup.max_num_batched_tokens - lane.decoding * (1 + setup.drafts)
    longest = setup.longest_chunk
    place = lane.ring_first
    while lane.chunks < lane.ring_count and budget > 0:
        seat_id = room[lane.seat_base + place].ring
        seat = seats[seat_id]
        chunk = min(seat.target - seat.done, budget, longest)
        blocks = blocks_for(seat.done + chunk, size, shift) - blocks_for(seat.done, size, shift)
        blocks *= setup.pages
        evicted_itself = False
        while blocks > lane.free_blocks and not evicted_itself:
            victim = next_victim(lane, seats, rows, setup)
            evicted_itself = victim == seat_id
            budget += retract(lane, seats, room, setup, victim)
            preempt(lane, seats, room, rows, phases, setup, totals, prefix, victim, now)
            place = wrapped(lane, lane.chunks)
        if evicted_itself:
            continue
        prefill(lane, seat, setup, chunk, blocks)
        budget -= chunk
        place = place + 1 if place + 1 < lane.ring_size else 0
    if lane.running < seated:  # somebody was preempted
        lane.blocked = 1
        return
    while lane.waiting > 0 and budget > 0 and lane.running < setup.max_num_seqs:
        found = find(lane, rows, inputs, setup, totals, prefix) if setup.finding == 1 else 0
        chunk = min(first_waiting_tokens(lane, rows, inputs) - found, budget, longest)
        blocks = blocks_to_admit(lane, rows, setup, tree, found + chunk)
        if blocks > lane.free_blocks:
            lane.blocked = 1
            break
        seat_id = admit(lane, seats, room, rows, inputs, setup, tree, totals, prefix, found, now)
        prefill(lane, seats[seat_id], setup, chunk, blocks)
        budget -= chunk
    lane.may_run = 1
