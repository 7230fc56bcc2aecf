"""Continuous batching with prefill first, as Orca and vLLM V0 do it: prompts and decodes never mix.

Whenever somebody waits, a seat is free and the blocks of the whole prompt are (keeping 1 % of the pool as
a watermark), the next iteration prefills whole prompts within `max_num_batched_tokens`, and running decodes
stall; otherwise every running sequence decodes one token. A prompt longer than the budget runs alone, as V0
requires a budget of at least `max_model_len`. A missing block preempts a running sequence (`preemption.py`).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from simcore.compiled import inlined
from simcore.serving.lane import admit, blocks_to_admit, first_waiting_tokens, prefill
from simcore.serving.preemption import decode_all
from simcore.serving.prefix import find
from simcore.serving.queue_order import QueueKind
from simcore.spec import Spec


class Continuous(Spec):
    """Whole prompts first, then decodes; never both in one iteration."""

    kind: Literal["continuous"] = "continuous"
    max_num_seqs: Literal["auto"] | Annotated[int, Field(ge=1, le=65_536)] = "auto"
    max_num_batched_tokens: Literal["auto"] | Annotated[int, Field(ge=1, le=1_048_576)] = "auto"
    queue: QueueKind = "fcfs"
    prediction_cv: float = Field(default=0.0, ge=0, le=10)  # of the predicted length


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
    """Fill the lane's next iteration: either prompts, or one token for every running sequence."""
    budget = setup.max_num_batched_tokens
    while lane.waiting > 0 and lane.running < setup.max_num_seqs:
        found = find(lane, rows, inputs, setup, totals, prefix) if setup.finding == 1 else 0
        tokens = first_waiting_tokens(lane, rows, inputs) - found
        blocks = blocks_to_admit(lane, rows, setup, tree, found + tokens)
        reserve = setup.watermark_blocks if lane.running > 0 else 0
        if blocks + reserve > lane.free_blocks:
            lane.blocked = 1
            break
        if tokens > budget and lane.chunks > 0:
            break
        seat_id = admit(lane, seats, room, rows, inputs, setup, tree, totals, prefix, found, now)
        prefill(lane, seats[seat_id], setup, tokens, blocks)
        budget -= tokens
    if lane.chunks > 0:
        return
    seated = lane.running
    decode_all(lane, seats, room, rows, phases, setup, totals, prefix, now)
    lane.may_run = 1 if lane.running == seated else 0
