"""The end of a lane's run: its tokens are out, and who is done leaves."""

from __future__ import annotations

from typing import Any

from simcore.compiled import compiled_in_place, inlined
from simcore.memory.kv_pool import run_blocks
from simcore.serving.follow_up import break_off, go_on
from simcore.serving.handover import (
    part,
)
from simcore.serving.heap import heap_down
from simcore.serving.lane import (
    begin_decode,
    blocks_beyond,
    give_back,
    leave_decode,
    vacate,
)
from simcore.serving.prefix import evict, share
from simcore.serving.speculation import grow, later_blocks, spend, tokens_gained
from simcore.serving.state import (
    FINISHED,
    PREFILL,
    REJECTED,
)
from simcore.serving.tallies import add_gap, add_gaps, tally


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
    if lane.slow > 1.0:
        totals.slowed_s += (seconds - lane.moved_s) * (1.0 - 1.0 / lane.slow)
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
