"""What happens to one sequence on one replica lane: admission, prefill, decode, finish.

Each operation is O(1), or O(log n) where it touches the heap of the lane's next events. Schedulers are
written in terms of these; none of them reads a request's true output length except `begin_decode`, which
enters the finish into the heap the way the world will bring it about (no scheduler looks there).
"""

from __future__ import annotations

from typing import Any

from simcore.compiled import compiled_in_place, inlined
from simcore.memory.buddy import give, largest_order, order_for, take
from simcore.memory.kv_pool import blocks_for, phase_after
from simcore.serving.heap import heap_push
from simcore.serving.prefix import hold, let_go, share
from simcore.serving.state import LEVEL_KEPT
from simcore.serving.tiers import bring_back, swap_in, touch
from simcore.serving.waiting import leave_line


@compiled_in_place
def first_waiting_tokens(lane: Any, rows: Any, inputs: Any) -> int:
    """Tokens that the first in line must prefill: its prompt and, after a preemption, what it had generated."""
    tokens: int = inputs[lane.queue_first]
    if lane.returning > 0:
        tokens += rows[lane.queue_first].generated
    return tokens


@inlined
def blocks_of_prompt(rows: Any, setup: Any, request: int, tokens: int) -> int:
    """Blocks that somebody in line asks for: those of `tokens` tokens, or all that it is promised."""
    if setup.pages == 1:
        return int(blocks_for(tokens, setup.block_size, setup.block_shift))
    return int(rows[request].reserved)


@inlined
def blocks_to_admit(lane: Any, rows: Any, setup: Any, tree: Any, tokens: int) -> int:
    """Blocks that admitting the first in line takes: those of its next `tokens`, or all that it is promised.

    Blocks in use that it shares are not taken again. More than are free where no run is long enough. Who is
    promised memory is never preempted.
    """
    if setup.pages == 1:
        needed: int = blocks_for(tokens, setup.block_size, setup.block_shift) - lane.found_held
        return needed
    blocks: int = rows[lane.queue_first].reserved
    if setup.levels >= 0 and largest_order(tree, lane.tree_base, setup.levels) < order_for(blocks):
        blocks = lane.free_blocks + 1
    return blocks


@inlined
def admit(
    lane: Any,
    seats: Any,
    room: Any,
    rows: Any,
    inputs: Any,
    setup: Any,
    tree: Any,
    totals: Any,
    prefix: Any,
    found: int,
    now: float,
) -> int:
    """Seat the first in line, in prefill, with the `found` tokens that need no computing."""
    base = lane.seat_base
    lane.spare_count -= 1
    seat_id: int = room[base + lane.spare_count].spare
    seat = seats[seat_id]
    request = lane.queue_first
    row = rows[request]
    if setup.ranked == 1:
        leave_line(lane, rows)
    else:
        lane.queue_first = row.after
    seat.generated = 0
    if lane.returning > 0 and row.preemptions > 0:  # rows are far away, so none is read in vain
        lane.returning -= 1
        seat.generated = row.generated
        seat.last_token_s = row.last_token_s
        if setup.swapping == 1 and row.level >= 0:
            swap_in(lane, setup, prefix, row.level, row.held)
        elif row.level != LEVEL_KEPT:
            totals.discarded_tokens -= min(found, row.held)
    else:
        row.scheduled_s = now
        if setup.caching == 1:
            prefix.hit_tokens[request] = found
            totals.hit_tokens += found
            totals.prompt_tokens += inputs[request]
            for level in range(setup.tiers):
                tier = prefix.tiers[lane.tier_base + level]
                tier.hit_tokens += tier.incoming
    if setup.levels >= 0:
        order = order_for(row.reserved)
        row.first_block = take(tree, lane.tree_base, setup.levels, order)
    seat.request = request
    seat.target = inputs[request] + seat.generated
    seat.done = found
    lane.line_blocks -= blocks_of_prompt(rows, setup, request, seat.target)
    lane.prefilled += found
    if setup.caching == 1:
        hold(lane, seat, prefix)
    if setup.stowing == 1:
        touch(lane, setup, prefix, request, found)
    if setup.tiers + setup.keeping > 0:
        bring_back(lane, setup, prefix)
    seat.start = -1
    seat.before = lane.last_seat
    seat.after = -1
    if lane.last_seat >= 0:
        seats[lane.last_seat].after = seat_id
    lane.last_seat = seat_id
    end = lane.ring_first + lane.ring_count
    size = lane.ring_size
    room[base + (end if end < size else end - size)].ring = seat_id
    lane.ring_count += 1
    lane.waiting -= 1
    lane.running += 1
    return seat_id


@compiled_in_place
def prefill(lane: Any, seat: Any, setup: Any, chunk: int, blocks: int) -> None:
    """Schedule the next `chunk` tokens of a prompt, into `blocks` new blocks."""
    done = float(seat.done)
    middle = done + 0.5 * chunk
    lane.prefill_work += chunk * middle
    if setup.window > 0:
        lane.prefill_window_work += chunk * min(float(setup.window), middle)
    lane.prefill_tokens += chunk
    lane.chunks += 1
    lane.prefilled += chunk
    lane.free_blocks -= blocks
    seat.done += chunk
    seat.chunk = chunk
    if seat.done == seat.target:
        lane.finishing += 1


@compiled_in_place
def blocks_beyond(lane: Any, seat: Any, setup: Any, tokens: int) -> int:
    """Blocks that a decoding sequence needs for so many tokens more than it holds."""
    held = seat.target + lane.step - seat.start
    more: int = blocks_for(held + tokens, setup.block_size, setup.block_shift)
    return more - blocks_for(held, setup.block_size, setup.block_shift)


@inlined
def begin_decode(lane: Any, seats: Any, room: Any, phases: Any, setup: Any, seat_id: int, left: int) -> None:
    """A prompt is done and `left` tokens are still to come: join the decoding batch."""
    seat = seats[seat_id]
    held = seat.target
    seat.start = lane.step
    seat.phase = phase_after(lane.step + 1 - held, setup.block_size, setup.block_shift)
    seat.finish = lane.step + left
    phases[lane.phase_base + seat.phase] += setup.pages
    lane.decoding += 1
    lane.held += held
    key = seat.finish
    seat.below_window = 0
    if setup.window > 0:
        lane.held_in_window += min(held, setup.window)
        if held < setup.window:
            seat.below_window = 1
            lane.below_window += 1
            key = min(key, lane.step + setup.window - held)
    heap_push(lane, seats, room, seat_id, key)


@compiled_in_place
def leave_decode(lane: Any, seat: Any, phases: Any, setup: Any) -> int:
    """Take a sequence out of the sums of the decoding batch; returns the tokens it holds."""
    held: int = seat.target + lane.step - seat.start
    phases[lane.phase_base + seat.phase] -= setup.pages
    lane.decoding -= 1
    lane.held -= held
    if setup.window > 0:
        lane.held_in_window -= min(held, setup.window)
        lane.below_window -= seat.below_window
    return held


@inlined
def give_back(lane: Any, rows: Any, setup: Any, tree: Any, prefix: Any, seat: Any, held: int) -> None:
    """Give back the blocks of a sequence that is done."""
    if setup.pages == 1:
        lane.free_blocks += blocks_for(held, setup.block_size, setup.block_shift)
        if setup.caching == 1:
            share(lane, seat, setup, prefix, held)  # its answer, where somebody may ask for it again
            let_go(lane, seat, prefix)
        return
    row = rows[seat.request]
    lane.free_blocks += row.reserved
    if setup.levels >= 0:
        give(tree, lane.tree_base, setup.levels, row.first_block, order_for(row.reserved))


@compiled_in_place
def vacate(lane: Any, seats: Any, room: Any, seat_id: int) -> None:
    """Give back a sequence's seat."""
    seat = seats[seat_id]
    if seat.before >= 0:
        seats[seat.before].after = seat.after
    if seat.after >= 0:
        seats[seat.after].before = seat.before
    else:
        lane.last_seat = seat.before
    room[lane.seat_base + lane.spare_count].spare = seat_id
    lane.spare_count += 1
    lane.running -= 1
