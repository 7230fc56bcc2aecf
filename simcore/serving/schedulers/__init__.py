"""The schedulers: one module each with a frozen spec and a compiled `schedule`, one name in this union.

`schedule` decides what the next iteration of a lane runs; the physics of how long it takes is elsewhere.
A new scheduler is a new module, its spec in `Scheduler`, its code, and one branch in `schedule` below.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from simcore.compiled import inlined
from simcore.errors import InputError
from simcore.serving.queue_order import QueueKind
from simcore.serving.schedulers import chunked_prefill, continuous, static_batch
from simcore.serving.schedulers.chunked_prefill import ChunkedPrefill
from simcore.serving.schedulers.continuous import Continuous
from simcore.serving.schedulers.disaggregated import Disaggregated
from simcore.serving.schedulers.static_batch import StaticBatch

Scheduler = Annotated[ChunkedPrefill | Continuous | StaticBatch | Disaggregated, Field(discriminator="kind")]
SchedulerKind = Literal[  # of one pool
    "chunked_prefill", "continuous", "static_batch"
]
SCHEDULER_CODES: Final[dict[SchedulerKind, int]] = {"chunked_prefill": 0, "continuous": 1, "static_batch": 2}
WATERMARK_FRACTION: Final[dict[SchedulerKind, float]] = {
    "chunked_prefill": 0.0,
    "continuous": 0.01,
    "static_batch": 0.0,
}
LEAVES_SEATS_EMPTY: Final = frozenset({"static_batch"})  # while somebody waits and memory is free

_chunked_prefill = chunked_prefill.schedule
_continuous = continuous.schedule
_static_batch = static_batch.schedule


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerParameters:
    """A scheduler with every knob resolved."""

    kind: SchedulerKind
    max_num_seqs: int
    max_num_batched_tokens: int
    long_prefill_token_threshold: int = 0
    queue: QueueKind = "fcfs"

    @property
    def longest_chunk_tokens(self) -> int:
        """Of one prompt in an iteration."""
        return self.long_prefill_token_threshold or self.max_num_batched_tokens

    def __post_init__(self) -> None:
        if self.max_num_batched_tokens < self.max_num_seqs:
            raise InputError.at(
                "serving.scheduler.max_num_batched_tokens",
                "scheduler.budget_too_small",
                "got {got}, which is below max_num_seqs {allowed}; every running decode needs a token of the "
                "budget, so raise it or lower max_num_seqs",
                got=self.max_num_batched_tokens,
                allowed=self.max_num_seqs,
            )


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
    """The next iteration of a lane, by the scheduler that the setup names."""
    if setup.scheduler == 0:
        _chunked_prefill(lane, seats, room, rows, phases, inputs, setup, tree, totals, prefix, now)
    elif setup.scheduler == 1:
        _continuous(lane, seats, room, rows, phases, inputs, setup, tree, totals, prefix, now)
    else:
        _static_batch(lane, seats, room, rows, phases, inputs, setup, tree, totals, prefix, now)
