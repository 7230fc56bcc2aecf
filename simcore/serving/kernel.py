"""The discrete-event kernel: arrivals and ends of runs, in order of time, over all replica lanes.

A busy lane has one event ahead, the end of its run. A run is one iteration that prefills, or as many decode
steps as leave the batch unchanged: until the next finish or window crossing (a heap by step), the last free
block, or an arrival that could join. Its j-th step takes `rate + slope * j`, because every decoding context
grows by one token per step, so a run of k steps ends after `rate * k + slope * k (k + 1) / 2`: advancing it
costs O(1) whatever k is. KV that comes from or goes to a tier is moved before the first step (`moved_s`). An
arrival at a lane in mid-run cuts the run at the end of the step under way.

With sessions, who arrives next is looked up before each event (`follow_up.py`); without, arrivals stand in an array.

Ties: an arrival at the very instant at which an iteration begins joins it; lanes at one instant go in order
of their number. Everything is integer or closed-form float arithmetic in a fixed order, and a call pauses
only between events, so the outcome does not depend on where it was paused.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from simcore.compiled import compiled_in_place, inlined
from simcore.memory.kv_pool import blocks_for, run_blocks, steps_within
from simcore.serving.admission import is_full
from simcore.serving.busy import cut, order_down, wake
from simcore.serving.follow_up import break_off, go_on, line_up
from simcore.serving.handover import (
    first_tokens,
    hand_over,
    is_at_rest,
    land,
    next_landing_s,
    outstanding,
    part,
    pull,
    rest,
    seat_landed,
)
from simcore.serving.heap import heap_down
from simcore.serving.lane import (
    begin_decode,
    blocks_beyond,
    blocks_of_prompt,
    give_back,
    leave_decode,
    vacate,
)
from simcore.serving.prefix import evict, share
from simcore.serving.routers import choose, routed
from simcore.serving.routers.loads import note
from simcore.serving.schedulers import schedule
from simcore.serving.speculation import grow, iterations_ahead, later_blocks, spend, tokens_gained
from simcore.serving.state import (
    DECODE,
    DONE,
    FINISHED,
    GAP_BINS,
    GAP_BINS_PER_OCTAVE_LOG2,
    GAP_LOWEST_EXPONENT,
    HALTED,
    MAPPED_LANES,
    MORE_SEATS,
    PAUSED,
    PREFILL,
    REJECTED,
    SAMPLE_ROWS,
    SAMPLES_FULL,
    STUCK,
)
from simcore.serving.tiers import flush, write_through
from simcore.serving.waiting import join_line

_SHIFT = 52 - GAP_BINS_PER_OCTAVE_LOG2
_OFFSET = (1023 + GAP_LOWEST_EXPONENT) << GAP_BINS_PER_OCTAVE_LOG2
_BARREN_LIMIT = 1_000_000  # iterations without one token emitted: a 1M-token prompt in chunks of 1 is legal
_WIDEN_AFTER = 512


@inlined
def gap_bin(gap_s: float) -> int:
    """Bin of a gap: the exponent and the first bits of the mantissa of the float itself."""
    place = (np.float64(gap_s).view(np.int64) >> _SHIFT) - _OFFSET
    bounded: int = min(max(int(place), 0), GAP_BINS - 1)
    return bounded


@inlined
def add_gaps(gaps: Any, totals: Any, rate: float, slope: float, first: int, last: int, count: int) -> None:
    """Gaps of `count` sequences over steps first…last of a run."""
    steps = last - first + 1
    low, high = gap_bin(rate + slope * first), gap_bin(rate + slope * last)
    if low == high:
        gaps[low] += steps * count
    else:
        for step in range(first, last + 1):
            gaps[gap_bin(rate + slope * step)] += count
    totals.gaps += steps * count
    totals.gap_s += count * (rate * steps + slope * 0.5 * (first + last) * steps)


@compiled_in_place
def add_gap(gaps: Any, totals: Any, gap_s: float, count: int) -> None:
    """`count` equal gaps that are not one step of a run."""
    gaps[gap_bin(gap_s)] += count
    totals.gaps += count
    totals.gap_s += count * gap_s


@compiled_in_place
def looked_up(table: Any, setup: Any, count: int) -> float:
    """Entry `count` of a pool; beyond its last, that one in proportion (a prompt above the token budget)."""
    base, last = setup.token_base, setup.token_last
    value: float = table[base + count] if count <= last else table[base + last] * (count / last)
    return value


@compiled_in_place
def tally(histogram: Any, setup: Any, count: int, iterations: int) -> None:
    """Count iterations so that histogram · table is the sum of what `looked_up` gave."""
    base, last = setup.token_base, setup.token_last
    if count <= last:
        histogram[base + count] += iterations
    else:
        histogram[base + last] += iterations * (count / last)


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
    lane.rate_s = rate
    lane.slope_s = slope
    lane.steps = steps
    lane.end_s = now + lane.moved_s + (rate * steps + slope * 0.5 * steps * (steps + 1))
    if setup.role == DECODE:
        first_tokens(lane, seats, rows, now + lane.moved_s + (rate + slope))
    return True


@inlined
def finish(clock: Any, rows: Any, follow: Any, arrival: Any, request: int, now: float) -> None:
    """A request is done; in a closed loop its client sends the next one at once."""
    rows[request].finish_s = now
    rows[request].status = FINISHED
    clock.completed += 1
    if clock.sessions == 1:
        go_on(clock, follow, arrival, request, now)
    else:
        release(clock, arrival, now)


@inlined
def release(clock: Any, arrival: Any, now: float) -> None:
    """In a closed loop, the next request arrives now."""
    if clock.closed_loop == 1 and clock.released < clock.count:
        arrival[clock.released] = now
        clock.released += 1


@inlined
def reject(clock: Any, rows: Any, follow: Any, arrival: Any, request: int, now: float) -> None:
    """A request is turned away; in a closed loop its client sends the next one at once."""
    rows[request].status = REJECTED
    clock.rejected += 1
    if clock.sessions == 1:
        break_off(clock, rows, follow, arrival, request, now)
    else:
        release(clock, arrival, now)


@inlined
def end_decodes(
    clock: Any,
    lane: Any,
    seats: Any,
    room: Any,
    rows: Any,
    phases: Any,
    setup: Any,
    tree: Any,
    totals: Any,
    prefix: Any,
    follow: Any,
    arrival: Any,
    gaps: Any,
) -> None:
    """Every decoding sequence has gained `steps` tokens: sums, gaps, window crossings, finishes."""
    steps, decodes, now = lane.steps, lane.decodes, lane.end_s
    grown = decodes * steps
    first = 1
    if lane.group_count > 0:  # these waited while prompts ran
        for place in range(lane.seat_base, lane.seat_base + lane.group_count):
            gap_s = lane.start_s + lane.moved_s + (lane.rate_s + lane.slope_s) - room[place].group_s
            add_gap(gaps, totals, gap_s, room[place].group_size)
        lane.group_count = 0
        first = 2
    elif lane.moved_s > 0.0 or lane.fresh > 0:  # nothing came before a first token
        add_gap(gaps, totals, lane.moved_s + (lane.rate_s + lane.slope_s), decodes - lane.fresh)
        first = 2
    if first <= steps:
        add_gaps(gaps, totals, lane.rate_s, lane.slope_s, first, steps, decodes)
    if setup.drafts > 0:
        end_drafted(clock, lane, seats, room, rows, phases, setup, tree, totals, prefix, follow, arrival)
        return
    # Step j reads held + decodes * j context tokens.
    triangle = 0.5 * steps * (steps + 1)
    totals.decode_context_tokens += float(steps) * lane.held + decodes * triangle
    totals.decode_iterations += steps
    totals.decode_sequences += grown
    lane.held += grown
    if setup.window > 0:
        totals.decode_window_tokens += float(steps) * lane.held_in_window + lane.below_window * triangle
        lane.held_in_window += lane.below_window * steps
    lane.step += steps
    lane.barren = 0
    while lane.heap_count > 0 and room[lane.seat_base].key <= lane.step:
        seat_id = room[lane.seat_base].seat
        seat = seats[seat_id]
        if seat.finish > lane.step:  # its context has reached the window
            seat.below_window = 0
            lane.below_window -= 1
            heap_down(lane.seat_base, lane.heap_count, seats, room, 0, seat_id, seat.finish)
            continue
        lane.heap_count -= 1
        if lane.heap_count > 0:
            moved = room[lane.seat_base + lane.heap_count]
            heap_down(lane.seat_base, lane.heap_count, seats, room, 0, moved.seat, moved.key)
        held = leave_decode(lane, seat, phases, setup)
        give_back(lane, rows, setup, tree, prefix, seat, held)
        vacate(lane, seats, room, seat_id)
        finish(clock, rows, follow, arrival, seat.request, now)


@compiled_in_place
def end_drafted(
    clock: Any,
    lane: Any,
    seats: Any,
    room: Any,
    rows: Any,
    phases: Any,
    setup: Any,
    tree: Any,
    totals: Any,
    prefix: Any,
    follow: Any,
    arrival: Any,
) -> None:
    """The same sums, crossings and finishes where every iteration gave `E` tokens in the mean.

    Iteration j reads E (j - 1) + 1 + drafts tokens more of each context than were held at first. Who finishes in
    mid-iteration gives back the blocks of the tokens that are wasted.
    """
    steps, decodes, now = lane.steps, lane.decodes, lane.end_s
    gained = setup.gained_tokens
    read = gained * (0.5 * steps * (steps + 1)) + (1 + setup.drafts - gained) * steps
    totals.decode_context_tokens += float(steps) * lane.held + decodes * read
    totals.decode_iterations += steps
    totals.decode_sequences += decodes * steps
    if setup.window > 0:
        totals.decode_window_tokens += float(steps) * lane.held_in_window + lane.below_window * read
    tokens = spend(lane, setup, steps)
    last = lane.step + tokens
    totals.drafted_tokens += decodes * tokens
    lane.barren = 0
    while lane.heap_count > 0 and room[lane.seat_base].key <= last:
        grow(lane, setup, room[lane.seat_base].key - lane.step)
        seat_id = room[lane.seat_base].seat
        seat = seats[seat_id]
        if seat.finish > lane.step:
            seat.below_window = 0
            lane.below_window -= 1
            heap_down(lane.seat_base, lane.heap_count, seats, room, 0, seat_id, seat.finish)
            continue
        lane.heap_count -= 1
        if lane.heap_count > 0:
            moved = room[lane.seat_base + lane.heap_count]
            heap_down(lane.seat_base, lane.heap_count, seats, room, 0, moved.seat, moved.key)
        totals.drafted_tokens -= last - lane.step
        lane.free_blocks += setup.pages * blocks_beyond(lane, seat, setup, last - lane.step)
        held = leave_decode(lane, seat, phases, setup)
        give_back(lane, rows, setup, tree, prefix, seat, held)
        vacate(lane, seats, room, seat_id)
        finish(clock, rows, follow, arrival, seat.request, now)
    grow(lane, setup, last - lane.step)


@compiled_in_place
def share_all(lane: Any, seats: Any, room: Any, setup: Any, prefix: Any) -> None:
    """What this iteration computed of prompts can be shared from now on."""
    place = lane.ring_first
    for _ in range(lane.chunks):
        seat = seats[room[lane.seat_base + place].ring]
        share(lane, seat, setup, prefix, seat.done)
        place = place + 1 if place + 1 < lane.ring_size else 0


@compiled_in_place
def close_ranks(lane: Any, seats: Any, room: Any, left_over: int) -> None:
    """Put the prompts that were passed over and have not ended back at the head of the ring, in their order."""
    place = lane.ring_first
    while left_over > 0:
        place = place - 1 if place > 0 else lane.ring_size - 1
        seat_id = room[lane.seat_base + place].ring
        if seats[seat_id].done < seats[seat_id].target:
            lane.ring_first = lane.ring_first - 1 if lane.ring_first > 0 else lane.ring_size - 1
            lane.ring_count += 1
            room[lane.seat_base + lane.ring_first].ring = seat_id
            left_over -= 1


@inlined
def end_prefills(
    clock: Any,
    lane: Any,
    seats: Any,
    room: Any,
    rows: Any,
    phases: Any,
    setup: Any,
    tree: Any,
    totals: Any,
    prefix: Any,
    handover: Any,
    follow: Any,
    arrival: Any,
    outputs: Any,
    gaps: Any,
) -> None:
    """The prompts that ended in this iteration emit a token and join the decodes (or part, or are done)."""
    now = lane.end_s
    totals.prefill_iterations += 1
    totals.prefill_tokens += lane.prefill_tokens
    totals.prefill_work += lane.prefill_work
    totals.prefill_window_work += lane.prefill_window_work
    if setup.caching == 1:
        share_all(lane, seats, room, setup, prefix)
    if lane.finishing == 0:
        return
    if lane.decodes == 0 and lane.decoding > 0 and lane.group_count == 0:  # decodes stalled from here on
        room[lane.seat_base].group_s = lane.start_s
        room[lane.seat_base].group_size = lane.decoding
        lane.group_count = 1
    joined = lane.decoding
    left_over = 0
    while lane.finishing > 0:
        seat_id = room[lane.seat_base + lane.ring_first].ring
        lane.ring_first = lane.ring_first + 1 if lane.ring_first + 1 < lane.ring_size else 0
        lane.ring_count -= 1
        seat = seats[seat_id]
        if seat.done < seat.target:  # a capped chunk: others end before it
            left_over += 1
            continue
        lane.finishing -= 1
        request, held = seat.request, seat.target
        lane.prefilled -= held
        if setup.role == PREFILL:
            part(lane, seats, room, rows, handover, seat_id, now)
            continue
        if seat.generated == 0:
            rows[request].first_token_s = now
        else:
            add_gap(gaps, totals, now - seat.last_token_s, 1)
        seat.generated += 1
        left = outputs[request] - seat.generated
        if left > 0:
            begin_decode(lane, seats, room, phases, setup, seat_id, left)
        else:
            give_back(lane, rows, setup, tree, prefix, seat, held)
            vacate(lane, seats, room, seat_id)
            finish(clock, rows, follow, arrival, request, now)
    if left_over > 0:
        close_ranks(lane, seats, room, left_over)
    joined = lane.decoding - joined
    if lane.group_count > 0 and joined > 0:
        room[lane.seat_base + lane.group_count].group_s = now
        room[lane.seat_base + lane.group_count].group_size = joined
        lane.group_count += 1
    lane.barren = 0


@inlined
def end(
    clock: Any,
    lane: Any,
    seats: Any,
    room: Any,
    rows: Any,
    phases: Any,
    setup: Any,
    tree: Any,
    totals: Any,
    prefix: Any,
    handover: Any,
    follow: Any,
    arrival: Any,
    outputs: Any,
    gaps: Any,
    token_iterations: Any,
    sampled_iterations: Any,
) -> None:
    """The lane's run is over: account for it, and let its tokens out."""
    steps, decodes = lane.steps, lane.decodes
    seconds = lane.end_s - lane.start_s
    before = setup.block_count - lane.free_blocks
    held = lane.held + lane.prefilled + lane.parked
    tokens, grown = decodes + lane.prefill_tokens, steps
    if setup.drafts > 0:
        tokens += decodes * setup.drafts
        grown = tokens_gained(lane, setup, steps)
        if steps > 1:
            lane.free_blocks -= later_blocks(lane, phases, setup, steps)
    elif steps > 1:
        lane.free_blocks -= run_blocks(
            phases,
            lane.phase_base,
            setup.block_size,
            setup.block_shift,
            lane.step + 1,
            decodes * setup.pages,
            steps - 1,
        )
    if setup.caching == 1:
        evict(lane, setup, totals, prefix)
        held -= lane.doubled_blocks * setup.block_size
    used = setup.block_count - lane.free_blocks
    totals.most_blocks = max(totals.most_blocks, used)
    totals.block_s += seconds * 0.5 * (before + used)
    if lane.blocked == 1:
        totals.blocked_s += seconds * (setup.block_count - 0.5 * (before + used))
    totals.held_s += seconds * (held + 0.5 * decodes * (grown + 1))
    totals.busy_s += seconds
    totals.moved_s += lane.moved_s
    totals.iterations += steps
    totals.sequences += steps * (decodes + lane.chunks)
    tally(token_iterations, setup, tokens, steps)
    sampled_iterations[setup.sampled_base + decodes + lane.finishing] += steps
    lane.barren += steps
    if decodes > 0:
        end_decodes(
            clock, lane, seats, room, rows, phases, setup, tree, totals, prefix, follow, arrival, gaps
        )
    if lane.chunks > 0:
        end_prefills(
            clock,
            lane,
            seats,
            room,
            rows,
            phases,
            setup,
            tree,
            totals,
            prefix,
            handover,
            follow,
            arrival,
            outputs,
            gaps,
        )


@inlined
def arrive(
    clock: Any,
    lanes: Any,
    order: Any,
    rows: Any,
    phases: Any,
    setups: Any,
    prefix: Any,
    routing: Any,
    follow: Any,
    arrival: Any,
    inputs: Any,
    outputs: Any,
) -> int:
    """Route the next request. Returns the lane that it wakes, -1, or -2 where its lane must have more seats first."""
    setup = setups[0]
    request = clock.next_request
    now = arrival[request]
    if setup.pages == 1:
        tokens = inputs[request] + outputs[request] - 1  # the last token's keys and values are never stored
        tokens += setup.most_wasted
        needed = blocks_for(tokens, setup.block_size, setup.block_shift)
    else:
        needed = rows[request].reserved
    if needed > clock.most_blocks or (
        setup.role == PREFILL
        and blocks_for(inputs[request], setup.block_size, setup.block_shift) > setup.block_count
    ):
        clock.next_request += 1
        reject(clock, rows, follow, arrival, request, now)
        return -1
    index = choose(clock, lanes, phases, setups, prefix, routing, request, now)
    lane = lanes[index]
    setup = setups[lane.pool]
    full = setup.max_queue_length >= 0 and is_full(lanes, setup, index)
    if not full and lane.running + lane.waiting == lane.ring_size and lane.ring_size < setup.most_seats:
        clock.growing = index
        return -2
    clock.next_request += 1
    clock.turn += 1
    rows[request].replica = index
    if full:
        clock.refused += 1
        reject(clock, rows, follow, arrival, request, now)
        return -1
    rows[request].after = -1
    if setup.ranked == 1:
        join_line(lane, rows, setup, routing.tags, index, request, clock.turn)
    elif lane.queue_first < 0:
        lane.queue_first = request
    else:
        rows[lane.queue_last].after = request
    lane.queue_last = request
    lane.waiting += 1
    lane.line_blocks += blocks_of_prompt(rows, setup, request, inputs[request])
    if setup.router != 0:
        routed(clock, lane, setup, prefix, routing, request, index)
    if lane.order < 0:
        return index
    # A newcomer behind others, or without a seat, cannot change the run.
    if lane.steps > 1 and lane.queue_first == request and lane.running < setup.max_num_seqs:
        cut(lanes, order, index, now)
    elif setup.max_queue_length >= 0 and lane.waiting == 1 and lane.steps > 1:
        note_left(lane, now)
    return -1


@compiled_in_place
def note_left(lane: Any, now: float) -> None:
    """Somebody joins a run on whose lane all seats are taken: who looks before each step leaves him waiting."""
    if now <= lane.end_s - (lane.rate_s + lane.slope_s * lane.steps):  # there is one more step to begin
        lane.left = 1


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


@compiled_in_place
def advance(
    clock: Any,
    lanes: Any,
    order: Any,
    seats: Any,
    room: Any,
    rows: Any,
    phases: Any,
    setups: Any,
    tree: Any,
    totals: Any,
    prefix: Any,
    routing: Any,
    handover: Any,
    follow: Any,
    arrival: Any,
    inputs: Any,
    outputs: Any,
    token_s: Any,
    sampled_s: Any,
    token_iterations: Any,
    sampled_iterations: Any,
    gaps: Any,
    samples: Any,
) -> int:
    """Go on until `clock.until` requests are done, the sample buffer is full, or nothing is left to do."""
    c = clock[0]
    while c.completed + c.rejected < c.until:
        if c.sessions == 1:
            line_up(c, follow, arrival)
        end_s = lanes[order[0]].end_s if c.busy_lanes > 0 else math.inf
        landing = c.in_flight > 0 and next_landing_s(handover) <= end_s
        if landing:
            end_s = next_landing_s(handover)
        arriving = c.next_request < c.released and arrival[c.next_request] <= end_s
        event_s = arrival[c.next_request] if arriving else end_s
        if event_s == math.inf:
            return DONE
        while c.watch_s < event_s:
            if c.halt_s <= c.sample_s:
                c.now_s = c.halt_s
                return HALTED
            if c.samples == SAMPLE_ROWS:
                return SAMPLES_FULL
            sample(c, lanes, setups, totals, samples)
        c.now_s = event_s
        if arriving:
            woken = arrive(
                c, lanes, order, rows, phases, setups, prefix, routing, follow, arrival, inputs, outputs
            )
            if woken == -2:
                return MORE_SEATS
            if woken >= 0:  # an event now: it starts when everybody who arrives at this instant has joined
                if setups[0].role == PREFILL:
                    rest(lanes[woken], setups[0], totals[0], event_s)
                wake(c, lanes, order, woken, event_s)
            continue
        if landing:
            land(c, lanes, order, rows, inputs, setups, totals, prefix, handover, event_s)
            continue
        index = order[0]
        lane = lanes[index]
        s, t = setups[lane.pool], totals[lane.pool]
        if lane.steps > 0:
            end(
                c,
                lane,
                seats,
                room,
                rows,
                phases,
                s,
                tree,
                t,
                prefix,
                handover,
                follow,
                arrival,
                outputs,
                gaps,
                token_iterations,
                sampled_iterations,
            )
            lane.steps = 0
            if s.role == PREFILL:
                hand_over(c, lanes, order, rows, phases, inputs, setups, totals, handover, index, event_s)
            elif s.role == DECODE:
                note(handover.loads, index - s.first_lane, outstanding(lane))
            if s.tracking == 1 and index < setups[0].replica_count:  # it is ready
                note(routing.loads, index, lane.running + lane.waiting)
            if lane.barren > _BARREN_LIMIT:
                return STUCK
            if c.next_request < c.released and arrival[c.next_request] <= event_s:
                continue
            if c.in_flight > 0 and next_landing_s(handover) <= event_s:
                continue
            if c.sessions == 1:  # somebody may be due at this very instant
                continue
        if (
            lane.landed > 0
            and lane.running + lane.waiting == lane.ring_size
            and lane.ring_size < s.most_seats
        ):
            c.growing = index
            return MORE_SEATS
        if start(
            c,
            lanes,
            index,
            lane,
            seats,
            room,
            rows,
            phases,
            inputs,
            outputs,
            s,
            setups,
            tree,
            t,
            totals,
            prefix,
            handover,
            token_s,
            sampled_s,
            event_s,
        ):
            order_down(lanes, order, c.busy_lanes, 0, index)
        elif lane.running + lane.waiting > 0 and not is_at_rest(lane, s):
            return STUCK
        else:
            lane.order = -1
            c.busy_lanes -= 1
            if c.busy_lanes > 0:
                order_down(lanes, order, c.busy_lanes, 0, order[c.busy_lanes])
    return PAUSED
