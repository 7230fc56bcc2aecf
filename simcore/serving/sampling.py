"""The state of all lanes at an instant, as a row of the time series."""

from __future__ import annotations

from typing import Any

from simcore.compiled import compiled_in_place
from simcore.serving.state import (
    MAPPED_LANES,
)

_WIDEN_AFTER = 512


@compiled_in_place
def sample(clock: Any, lanes: Any, setups: Any, totals: Any, samples: Any) -> None:
    """Write down the state as it stands until the next event."""
    row = samples[clock.samples]
    row.time_s = clock.sample_s
    row.running = 0
    row.waiting = 0
    row.used_blocks = 0
    row.cached_blocks = 0
    row.batch_tokens = 0
    row.handing_over = 0
    row.held_tokens = 0
    for index in range(lanes.size):
        lane = lanes[index]
        row.running += lane.running
        row.waiting += lane.waiting
        used = setups[lane.pool].block_count - lane.free_blocks
        row.used_blocks += used
        if index < MAPPED_LANES:
            row.lane_blocks[index] = used
        shared = lane.doubled_blocks * setups[lane.pool].block_size
        row.held_tokens += lane.held + lane.prefilled + lane.parked - shared
        row.cached_blocks += lane.cached_blocks
        row.handing_over += lane.queued + lane.coming + lane.landed
        if lane.steps > 0:
            row.batch_tokens += lane.decodes * (1 + setups[lane.pool].drafts) + lane.prefill_tokens
    row.preemptions = 0
    for pool in range(totals.size):
        row.preemptions += totals[pool].preemptions
    clock.samples += 1
    clock.samples_until_wider -= 1
    if clock.samples_until_wider == 0:
        clock.sample_interval_s *= 2.0
        clock.samples_until_wider = _WIDEN_AFTER
    clock.sample_s += clock.sample_interval_s
    clock.watch_s = min(clock.sample_s, clock.halt_s)
