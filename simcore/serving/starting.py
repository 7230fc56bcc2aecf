"""The beginning of a lane's run: what the scheduler puts into it, how long a step takes, and for how many it lasts."""

from __future__ import annotations

from typing import Any

from simcore.compiled import inlined
from simcore.memory.kv_pool import steps_within
from simcore.serving.handover import (
    first_tokens,
    pull,
    seat_landed,
)
from simcore.serving.prefix import evict
from simcore.serving.schedulers import schedule
from simcore.serving.speculation import iterations_ahead
from simcore.serving.state import (
    DECODE,
)
from simcore.serving.tallies import looked_up
from simcore.serving.tiers import flush, write_through


@inlined
def start(
    clock: Any,
    lanes: Any,
    index: int,
    lane: Any,
    seats: Any,
    room: Any,
    rows: Any,
    phases: Any,
    inputs: Any,
    outputs: Any,
    setup: Any,
    setups: Any,
    tree: Any,
    totals: Any,
    sums: Any,
    prefix: Any,
    handover: Any,
    token_s: Any,
    sampled_s: Any,
    now: float,
) -> bool:
    """Begin the lane's next run; false when it has nothing to do."""
    lane.start_s = now
    lane.end_s = now
    lane.prefill_work = 0.0
    lane.prefill_window_work = 0.0
    lane.steps = 0
    lane.decodes = 0
    lane.chunks = 0
    lane.prefill_tokens = 0
    lane.finishing = 0
    lane.blocked = 0
    lane.may_run = 0
    lane.left = 0
    lane.moved_s = 0.0
    if setup.role == DECODE:
        seat_landed(lane, seats, room, rows, phases, inputs, outputs, setup)
    if lane.running + lane.waiting == 0:
        if setup.role == DECODE:
            pull(clock, lanes, rows, phases, inputs, setups, sums, handover, index, now)
        if setup.tiers > 0:  # what is written while nobody is here delays nobody
            flush(lane, setup, prefix)
        return False
    schedule(lane, seats, room, rows, phases, inputs, setup, tree, totals, prefix, now)
    lane.left = lane.waiting if lane.running < setup.max_num_seqs else 0
    if setup.role == DECODE:
        pull(clock, lanes, rows, phases, inputs, setups, sums, handover, index, now)
    if setup.caching == 1:
        evict(lane, setup, totals, prefix)
    if setup.stowing == 1:
        write_through(lane, seats, room, setup, prefix)
    if setup.tiers > 0:
        lane.moved_s += flush(lane, setup, prefix)
    decodes = lane.decodes
    tokens = decodes + lane.prefill_tokens
    if tokens == 0:
        return False
    if setup.drafts > 0:
        tokens += decodes * setup.drafts
    rate = looked_up(token_s, setup, tokens) + sampled_s[setup.sampled_base + decodes + lane.finishing]
    rate += setup.overhead_s_per_sequence * (decodes + lane.chunks)
    slope = 0.0
    if decodes > 0:
        rate += setup.decode_s + setup.decode_s_per_sequence * decodes
        rate += setup.decode_s_per_token * lane.held + setup.decode_s_per_window_token * lane.held_in_window
        slope = setup.decode_s_per_token * decodes + setup.decode_s_per_window_token * lane.below_window
        if setup.drafts > 0:  # each reads its drafts beside what it holds, and gains some of them
            rate += slope * (1 + setup.drafts - setup.gained_tokens)
            slope *= setup.gained_tokens
    steps = 1
    if lane.chunks > 0:
        rate += setup.prefill_s + setup.prefill_s_per_work * lane.prefill_work
        rate += setup.prefill_s_per_window_work * lane.prefill_window_work
    elif lane.may_run == 1:
        steps = room[lane.seat_base].key - lane.step
        if setup.drafts > 0:
            free = lane.free_blocks - lane.cached_blocks if lane.blocked == 1 else lane.free_blocks
            steps = iterations_ahead(lane, phases, setup, steps, free)
        elif steps > 1:  # the first step has its blocks already
            steps = 1 + steps_within(
                phases,
                lane.phase_base,
                setup.block_size,
                setup.block_shift,
                lane.step + 1,
                decodes * setup.pages,
                steps - 1,
                # Who waits for memory looks again when a prefix is evicted.
                lane.free_blocks - lane.cached_blocks if lane.blocked == 1 else lane.free_blocks,
            )
    if lane.pace != lane.slow:
        lane.slow = lane.pace
    if lane.slow > 1.0:  # a product on the way to every run's end would be felt
        rate *= lane.slow
        slope *= lane.slow
    lane.rate_s = rate
    lane.slope_s = slope
    lane.steps = steps
    lane.end_s = now + lane.moved_s + (rate * steps + slope * 0.5 * steps * (steps + 1))
    if setup.role == DECODE:
        first_tokens(lane, seats, rows, now + lane.moved_s + (rate + slope))
    return True
