"""Static batching, as FasterTransformer did it: a batch is formed once, and nobody joins until it has ended.

When nobody runs, those who wait then, up to `max_num_seqs` of them, become the next batch. Their prompts are
prefilled whole, in as many iterations as `max_num_batched_tokens` asks for (a longer prompt runs alone), until one
does not fit in memory; then all decode, and seats of short answers stay empty until the longest has ended. Padding is
not modelled: a seat that is done costs nothing. A missing block preempts the latest sequence, into the next batch.

It keeps no seat filled, so it is exempt from work conservation over seats (`schedulers.LEAVES_SEATS_EMPTY`).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from simcore.compiled import inlined
from simcore.serving.lane import admit, blocks_to_admit, first_waiting_tokens, prefill
from simcore.serving.preemption import decode_all
from simcore.serving.prefix import find
from simcore.spec import Spec


class StaticBatch(Spec):
    """A batch at a time; nobody joins until all of it has finished."""

    kind: Literal["static_batch"] = "static_batch"
    max_num_seqs: Literal["auto"] | Annotated[int, Field(ge=1, le=65_536)] = "auto"
    max_num_batched_tokens: Literal["auto"] | Annotated[int, Field(ge=1, le=1_048_576)] = "auto"


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
    """Fill the lane's next iteration: prompts of the batch that is forming, or one token for all of it."""
    if lane.running == 0:
        lane.gathering = min(lane.waiting, setup.max_num_seqs)
    budget = setup.max_num_batched_tokens
    while lane.gathering > 0:
        found = find(lane, rows, inputs, setup, totals, prefix) if setup.finding == 1 else 0
        tokens = first_waiting_tokens(lane, rows, inputs) - found
        blocks = blocks_to_admit(lane, rows, setup, tree, found + tokens)
        if blocks > lane.free_blocks:
            lane.blocked = 1
            lane.gathering = 0
            break
        if tokens > budget and lane.chunks > 0:
            break
        seat_id = admit(lane, seats, room, rows, inputs, setup, tree, totals, prefix, found, now)
        prefill(lane, seats[seat_id], setup, tokens, blocks)
        budget -= tokens
        lane.gathering -= 1
    if lane.chunks > 0:
        return
    seated = lane.running
    decode_all(lane, seats, room, rows, phases, setup, totals, prefix, now)
    lane.may_run = 1 if lane.running == seated else 0
