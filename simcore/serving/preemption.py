"""Where a KV block is missing, a running sequence leaves and waits again: whose turn that is, and what becomes of it.

The last admitted goes, and waits ahead of the line; or, where the line is by priority, the lowest priority goes, of
several the last arrived, and waits in its turn, as vLLM's `--scheduling-policy priority` has it. The first needs no
search; the second looks at all who run, as vLLM does. What it held goes to a tier, or is computed again.
"""

from __future__ import annotations

from typing import Any

from simcore.compiled import compiled_in_place, inlined
from simcore.memory.kv_pool import blocks_for, phase_after, run_blocks
from simcore.serving.heap import heap_remove
from simcore.serving.lane import blocks_beyond, blocks_of_prompt, leave_decode, vacate
from simcore.serving.prefix import let_go
from simcore.serving.speculation import tokens_gained
from simcore.serving.tiers import swap_out
from simcore.serving.waiting import rejoin_line


@inlined
def decode_all(
    lane: Any,
    seats: Any,
    room: Any,
    rows: Any,
    phases: Any,
    setup: Any,
    totals: Any,
    prefix: Any,
    now: float,
) -> None:
    """Schedule a token for every decoding sequence; a missing block preempts a running one."""
    if setup.drafts > 0:
        speculate_all(lane, seats, room, rows, phases, setup, totals, prefix, now)
        return
    phase = lane.phase_base + phase_after(lane.step + 1, setup.block_size, setup.block_shift)
    while phases[phase] > lane.free_blocks:
        seat_id = next_victim(lane, seats, rows, setup)
        preempt(lane, seats, room, rows, phases, setup, totals, prefix, seat_id, now)
    lane.free_blocks -= phases[phase]
    lane.decodes = lane.decoding


@compiled_in_place
def speculate_all(
    lane: Any,
    seats: Any,
    room: Any,
    rows: Any,
    phases: Any,
    setup: Any,
    totals: Any,
    prefix: Any,
    now: float,
) -> None:
    """`decode_all` where an iteration gives several tokens."""
    lane.gained = tokens_gained(lane, setup, 1)
    while True:
        growing = lane.decoding * setup.pages
        needed = run_blocks(
            phases, lane.phase_base, setup.block_size, setup.block_shift, lane.step, growing, lane.gained
        )
        if needed <= lane.free_blocks:
            break
        seat_id = next_victim(lane, seats, rows, setup)
        preempt(lane, seats, room, rows, phases, setup, totals, prefix, seat_id, now)
    lane.free_blocks -= needed
    lane.decodes = lane.decoding


@compiled_in_place
def next_victim(lane: Any, seats: Any, rows: Any, setup: Any) -> int:
    """The seat of the running sequence that is preempted next."""
    lowest: int = lane.last_seat
    if setup.preempts_lowest == 0:
        return lowest
    seat_id = seats[lowest].before
    while seat_id >= 0:
        one, other = seats[lowest].request, seats[seat_id].request
        if rows[other].rank > rows[one].rank or (rows[other].rank == rows[one].rank and other > one):
            lowest = seat_id
        seat_id = seats[seat_id].before
    return lowest


@compiled_in_place
def retract(lane: Any, seats: Any, room: Any, setup: Any, seat_id: int) -> int:
    """Take back what this iteration gives a sequence, with its new blocks; returns the tokens it was to compute."""
    seat = seats[seat_id]
    if seat.start >= 0:
        lane.decodes -= 1
        if setup.drafts > 0:
            lane.free_blocks += setup.pages * blocks_beyond(lane, seat, setup, lane.gained)
            return int(1 + setup.drafts)
        if seat.phase == phase_after(lane.step + 1, setup.block_size, setup.block_shift):
            lane.free_blocks += setup.pages
        return 1
    for place in range(lane.chunks):
        if room[lane.seat_base + wrapped(lane, place)].ring == seat_id:
            return retract_chunk(lane, seat, setup)
    return 0


@compiled_in_place
def retract_chunk(lane: Any, seat: Any, setup: Any) -> int:
    """Take back the piece of a prompt that this iteration was to compute."""
    chunk: int = seat.chunk
    before = seat.done - chunk
    middle = float(before) + 0.5 * chunk
    lane.prefill_work -= chunk * middle
    if setup.window > 0:
        lane.prefill_window_work -= chunk * min(float(setup.window), middle)
    lane.prefill_tokens -= chunk
    lane.chunks -= 1
    lane.prefilled -= chunk
    if seat.done == seat.target:
        lane.finishing -= 1
    lane.free_blocks += blocks_for(seat.done, setup.block_size, setup.block_shift)
    lane.free_blocks -= blocks_for(before, setup.block_size, setup.block_shift)
    seat.done = before
    return chunk


@compiled_in_place
def wrapped(lane: Any, place: int) -> int:
    """Where the ring of prompts has its member number `place`."""
    at: int = lane.ring_first + place
    return at if at < lane.ring_size else at - lane.ring_size


@compiled_in_place
def leave_ring(lane: Any, room: Any, seat_id: int) -> None:
    """Take a prompt out of the ring; those behind it move up."""
    place = lane.ring_count - 1
    lane.ring_count = place
    behind = -1
    while behind != seat_id:
        at = lane.seat_base + wrapped(lane, place)
        here = room[at].ring
        room[at].ring = behind
        behind = here
        place -= 1


@compiled_in_place
def leave_group(lane: Any, seats: Any, room: Any, seat_id: int, now: float) -> float:
    """Take a decode out of those that wait for prompts; returns when its last token was.

    Prompts end in the order of their admission, so groups part the running sequences in that order.
    """
    if lane.group_count == 0:
        return now
    behind = 0
    after = seats[seat_id].after
    while after >= 0:
        behind += 1
        after = seats[after].after
    place: int = lane.seat_base + lane.group_count - 1
    while behind >= room[place].group_size:
        behind -= room[place].group_size
        place -= 1
    last_token_s: float = room[place].group_s
    room[place].group_size -= 1
    if room[place].group_size == 0:
        lane.group_count -= 1
        for later in range(place, lane.seat_base + lane.group_count):
            room[later].group_s = room[later + 1].group_s
            room[later].group_size = room[later + 1].group_size
    return last_token_s


@compiled_in_place
def preempt(
    lane: Any,
    seats: Any,
    room: Any,
    rows: Any,
    phases: Any,
    setup: Any,
    totals: Any,
    prefix: Any,
    seat_id: int,
    now: float,
) -> None:
    """A running sequence waits again; a tier keeps what it held, or it computes it again."""
    held = unseat(lane, seats, room, rows, phases, setup, totals, prefix, seat_id, now)
    row = rows[seats[seat_id].request]
    row.level = swap_out(lane, setup, prefix, held) if setup.swapping == 1 else -1
    if row.level >= 0:
        totals.swaps += 1
    else:
        totals.discarded_tokens += held


@compiled_in_place
def unseat(
    lane: Any,
    seats: Any,
    room: Any,
    rows: Any,
    phases: Any,
    setup: Any,
    totals: Any,
    prefix: Any,
    seat_id: int,
    now: float,
) -> int:
    """Put a running sequence back into the line of its lane; returns the tokens that it held."""
    seat = seats[seat_id]
    row = rows[seat.request]
    held: int = seat.done
    if seat.start < 0:
        asked = seat.target
        leave_ring(lane, room, seat_id)
        lane.prefilled -= held
        row.generated = seat.generated
        row.last_token_s = seat.last_token_s
    else:
        row.last_token_s = leave_group(lane, seats, room, seat_id, now)
        heap_remove(lane, seats, room, seat.place)
        row.generated = seat.generated + lane.step - seat.start
        held = leave_decode(lane, seat, phases, setup)
        asked = held + 1  # the token sampled last is not held yet
    row.held = held
    lane.line_blocks += blocks_of_prompt(rows, setup, seat.request, asked)
    if setup.pages == 1:
        lane.free_blocks += blocks_for(held, setup.block_size, setup.block_shift)
        if setup.caching == 1:
            let_go(lane, seat, prefix)
    else:
        lane.free_blocks += row.reserved
    vacate(lane, seats, room, seat_id)
    row.preemptions += 1
    rejoin_line(lane, rows, setup, seat.request)
    totals.preemptions += 1
    return held
