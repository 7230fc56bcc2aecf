"""What the engine hands out: slices of the time series, one record per request, and the totals.

The totals are sums over iterations, so that time, FLOP and bytes of a run follow from them and the step
table by dot products (`attribution.py`), without a line per iteration ever being kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
_NOT_SUMMED: Final = frozenset(
    {
        "makespan_s",
        "iterations_by_tokens",
        "iterations_by_sampled",
        "swap_count",
        "tiers",
        "kv_usage_max_fraction",
        "gap_edges_s",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """Samples since the last slice, over all replicas, and how far the run is."""

    # time_s, running, waiting, kv_usage_fraction, batch_tokens, preemption_count (so far); with a prefix cache also
    # kv_cached_fraction, with an autoscaler replicas and replicas_starting
    columns: dict[str, Floats]
    # time_s; of all KV blocks the shares held_fraction (tokens in them), used_fraction, cached_fraction (which nobody
    # uses); and by lane, as `role.number`, the share in use
    kv_map: dict[str, Floats]
    completed_count: int
    progress_fraction: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """One entry per request. Instants in seconds of simulated time; NaN for a rejected request.

    Only the arrival of one that was never sent is NaN too.
    """

    arrival_s: Floats
    scheduled_s: Floats
    first_token_s: Floats
    finish_s: Floats
    input_tokens: Integers
    output_tokens: Integers
    preemption_count: NDArray[np.int32]
    replica: NDArray[np.int32]  # -1: never sent to one
    status: NDArray[np.int32]

    def where(self, some: NDArray[np.bool_] | Integers | slice) -> Records:
        """The records of some of the requests, in their order."""
        return Records(**{each.name: getattr(self, each.name)[some] for each in fields(self)})

    @property
    def queue_s(self) -> Floats:
        """Wait until the first piece of the prompt is scheduled."""
        return self.scheduled_s - self.arrival_s

    @property
    def ttft_s(self) -> Floats:
        return self.first_token_s - self.arrival_s

    @property
    def e2e_s(self) -> Floats:
        return self.finish_s - self.arrival_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfers:
    """Instants of each request's KV on its way from prefill to decode; NaN where it never got so far."""

    prefilled_s: Floats
    pulled_s: Floats  # the decode replica had room for it
    landed_s: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class TierUse:
    """What one tier did, over all lanes."""

    name: str
    read_token_sum: int
    written_token_sum: int
    hit_token_sum: int | None  # of prompts, brought back at their first admission; None: it takes no prefixes
    used_max_fraction: float  # of the lane that used most


@dataclass(frozen=True, slots=True, kw_only=True)
class Replicas:
    """What an autoscaler did; a replica is used from the beginning of its start until it has drained."""

    ready_mean: float
    ready_max: int
    used_s: float  # replica-seconds
    up_count: int  # replicas started
    down_count: int  # replicas given up


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Sums over all iterations of all replicas."""

    replica_count: int
    iteration_count: int
    decode_iteration_count: int
    prefill_iteration_count: int
    busy_s: float
    moved_s: float  # of it, waiting for KV on its way from or to a tier
    slowed_s: float  # of it, what steps of slowed lanes took longer
    makespan_s: float  # from the first arrival to the last finish
    iterations_by_tokens: Floats  # dot the step table's linear_s
    iterations_by_sampled: Floats  # dot the step table's head_s
    decode_sequence_sum: int
    drafted_token_sum: int  # that answers got of iterations with draft tokens; 0 without
    sequence_sum: int
    decode_context_token_sum: float
    decode_window_token_sum: float
    prefill_token_sum: int
    prefill_work_sum: float
    prefill_window_work_sum: float
    discarded_token_sum: int
    preemption_count: int
    stranded_count: int  # of those, because their lane went down
    swap_count: int | None  # of those, whose KV a tier kept; None: none takes it
    tiers: tuple[TierUse, ...]
    completed_count: int
    rejected_count: int
    refused_count: int  # of those, because the line of their replica was full
    unsent_count: int  # of those, because an earlier turn of their session was rejected
    kv_block_count: float  # of all lanes
    kv_block_s: float  # ∫ blocks in use dt
    kv_usage_max_fraction: float  # of the lane that used most
    kv_held_token_s: float  # ∫ tokens held dt
    kv_taken_token_s: float  # ∫ tokens that the blocks in use could hold dt
    kv_blocked_token_s: float  # ∫ free slots dt, while the first in line did not fit
    hit_token_sum: int  # of prompts, resident when they were admitted; 0 without a prefix cache
    prompt_token_sum: int  # of prompts that were looked up
    evicted_block_sum: int
    gap_count: int
    gap_sum_s: float
    gap_edges_s: Floats  # inter-token latency: histogram with bins under 0.8 % wide
    gap_histogram: Integers

    @property
    def kv_usage_mean_fraction(self) -> float:
        whole = self.kv_block_count * self.makespan_s
        return self.kv_block_s / whole if whole > 0 else 0.0

    @classmethod
    def of_all(cls, pools: Sequence[Totals]) -> Totals:
        """The sums over pools; what is by entry of a step table belongs to one pool, and is left out of several."""
        if len(pools) == 1:
            return pools[0]
        found: dict[str, Any] = {
            each.name: sum(getattr(pool, each.name) for pool in pools)
            for each in fields(cls)
            if each.name not in _NOT_SUMMED
        }
        counts = [pool.swap_count for pool in pools if pool.swap_count is not None]
        return cls(
            **found,
            makespan_s=pools[0].makespan_s,
            iterations_by_tokens=np.zeros(0),
            iterations_by_sampled=np.zeros(0),
            swap_count=sum(counts) if counts else None,
            tiers=tuple(use for pool in pools for use in pool.tiers),
            kv_usage_max_fraction=max(pool.kv_usage_max_fraction for pool in pools),
            gap_edges_s=pools[0].gap_edges_s,
        )

    @property
    def kv_useful_fraction(self) -> float:
        """Of the tokens that the blocks in use could hold, the share that they held."""
        return self.kv_held_token_s / self.kv_taken_token_s if self.kv_taken_token_s else 0.0
