"""A pool: equal lanes, each with one batch of its own, one step table and its own share of KV blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from simcore.compute.step_table import StepTimeTable
from simcore.serving.schedulers import SchedulerParameters
from simcore.serving.tiers import KvTiers

Role = Literal["both", "prefill", "decode"]
ROLE_CODES: Final[dict[Role, int]] = {"both": 0, "prefill": 1, "decode": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class LanePool:
    """Equal lanes, of which a replica has one for each batch in flight.

    Tiers are a lane's own; they take nothing where sequences are not preempted and prefixes not kept.
    """

    table: StepTimeTable
    scheduler: SchedulerParameters
    block_count: int  # of a lane
    lane_count: int
    lanes_per_replica: int = 1
    role: Role = "both"
    tiers: KvTiers | None = None

    def __post_init__(self) -> None:
        if self.block_count < 1:
            raise ValueError(f"a replica needs at least one KV block, got {self.block_count}")
        if len(self.table.head_s) <= self.scheduler.max_num_seqs:
            seated = len(self.table.head_s) - 1
            raise ValueError(f"the step table ends at {seated} sequences, fewer than the scheduler seats")
        decodes = self.scheduler.max_num_seqs * self.table.verified_tokens
        if decodes > self.scheduler.max_num_batched_tokens:
            raise ValueError(f"drafts of all sequences need a budget of {decodes} tokens")
