"""From prefill to decode: prompts that end on a lane of one pool, and go on with their KV on one of another.

A prompt that is done gives up its seat and keeps its blocks until its KV has left. It is handed to the decode lane
with the fewest requests, ties in turn, and waits in that lane's line until the lane has reserved blocks and a seat
for it: a full decode pool holds prompts, and their blocks, back in the prefill pool. The lane reserves as soon as it
can, in the middle of a run too, since connectors work beside the engine.

Then the KV is sent. The ends of the link are served in turn: a transfer begins when both are free, and takes the
tokens by the slower of the two, plus the latency. Where layers are sent as they are computed, a transfer whose blocks
were reserved when the prompt ended counts as begun when the prompt did, and ends no sooner than its last layer needs.

What has landed joins the decodes at the lane's next iteration, which computes the last prompt token again and gives
the first token of the answer, as vLLM's connectors do; the token that prefill sampled is thrown away. A sequence that
is preempted on a decode lane is computed again there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from simcore.compiled import compiled_in_place, inlined
from simcore.memory.kv_pool import blocks_for, run_blocks
from simcore.serving import state
from simcore.serving.busy import cut, wake
from simcore.serving.instants import pop, push
from simcore.serving.lane import begin_decode, vacate
from simcore.serving.prefix import let_go
from simcore.serving.routers.loads import NOBODY, empty_loads, least_loaded, note
from simcore.serving.speculation import later_blocks
from simcore.serving.state import DECODE


@dataclass(frozen=True, slots=True, kw_only=True)
class KvLink:
    """What KV moves over from a prefill lane to a decode lane."""

    prefill_s_per_token: float  # at a lane's end
    decode_s_per_token: float
    latency_s: float
    last_layer_fraction: float = 1.0  # of the KV of a prompt that is sent after its end; 1: all of it


class Handover(NamedTuple):
    """What the kernel reads and writes of it; tiny where every lane does both."""

    hops: Any  # by request
    landed_s: Any  # by request
    order: Any  # heap of requests in flight, by that
    loads: Any  # tree of requests outstanding by decode lane


def empty_handover(request_count: int, decode_lane_count: int) -> Handover:
    """Nothing on its way; no decode lanes: there is nothing to hand over."""
    count = request_count if decode_lane_count else 1
    hops = state.records(state.HOP, count)
    hops["prefilled_s"] = hops["pulled_s"] = math.nan
    loads = empty_loads(max(1, decode_lane_count))
    return Handover(hops, np.full(count, math.nan), np.zeros(count, np.int64), loads)


@compiled_in_place
def part(lane: Any, seats: Any, room: Any, rows: Any, handover: Any, seat_id: int, now: float) -> None:
    """A prompt is done: its seat is free, its blocks are when its KV has left."""
    seat = seats[seat_id]
    request = seat.request
    hop = handover.hops[request]
    hop.request = request
    hop.prefilled_s = now
    hop.shared = seat.shared
    hop.shared_blocks = seat.shared_blocks
    lane.parked += seat.target
    rows[request].after = -1
    if lane.parting_first < 0:
        lane.parting_first = request
    else:
        rows[lane.parting_last].after = request
    lane.parting_last = request
    vacate(lane, seats, room, seat_id)


@compiled_in_place
def hand_over(
    clock: Any,
    lanes: Any,
    order: Any,
    rows: Any,
    phases: Any,
    inputs: Any,
    setups: Any,
    totals: Any,
    handover: Any,
    index: int,
    now: float,
) -> None:
    """What ended on a prefill lane joins the lines of decode lanes, in the order in which it ended."""
    request = lanes[index].parting_first
    lanes[index].parting_first = -1
    while request >= 0:
        following = rows[request].after
        handover.hops[request].source = index
        pass_on(clock, lanes, order, rows, phases, inputs, setups, totals, handover, request, now)
        request = following


@inlined
def pass_on(
    clock: Any,
    lanes: Any,
    order: Any,
    rows: Any,
    phases: Any,
    inputs: Any,
    setups: Any,
    totals: Any,
    handover: Any,
    request: int,
    now: float,
) -> None:
    """A prompt stands in line where there is least to do; one that is first there has its blocks reserved."""
    first, count = setups[1].first_lane, setups[1].lane_count
    place = least_loaded(handover.loads, (clock.last_target + 1 - first) % count)
    target = first + place
    clock.last_target = target
    lane = lanes[target]
    stand_in_line(lane, rows, handover, request, target)
    if handover.loads[1] < NOBODY:  # somebody takes prompts, so this lane does
        note(handover.loads, place, outstanding(lane))
    if lane.queued == 1:
        if lane.steps > 1:
            cut(lanes, order, target, now)
        pull(clock, lanes, rows, phases, inputs, setups, totals, handover, target, now)


@inlined
def stand_in_line(lane: Any, rows: Any, handover: Any, request: int, index: int) -> None:
    """A prompt waits until a decode lane has blocks for it."""
    rows[request].after = -1
    handover.hops[request].target = index
    if lane.queued == 0:
        lane.queued_first = request
    else:
        rows[lane.queued_last].after = request
    lane.queued_last = request
    lane.queued += 1


@compiled_in_place
def outstanding(lane: Any) -> int:
    """Requests that a decode lane has to see to."""
    count: int = lane.running + lane.waiting + lane.queued + lane.coming + lane.landed
    return count


@compiled_in_place
def unclaimed_blocks(lane: Any, phases: Any, setup: Any) -> int:
    """Free blocks that the run under way will not take."""
    blocks: int = lane.free_blocks
    if lane.steps > 1 and setup.drafts > 0:
        blocks -= later_blocks(lane, phases, setup, lane.steps)
    elif lane.steps > 1:
        blocks -= run_blocks(
            phases,
            lane.phase_base,
            setup.block_size,
            setup.block_shift,
            lane.step + 1,
            lane.decodes,
            lane.steps - 1,
        )
    return blocks


@compiled_in_place
def pull(
    clock: Any,
    lanes: Any,
    rows: Any,
    phases: Any,
    inputs: Any,
    setups: Any,
    totals: Any,
    handover: Any,
    index: int,
    now: float,
) -> None:
    """Reserve blocks for the first in line, as many as there is room for, and send for their KV."""
    lane = lanes[index]
    setup = setups[lane.pool]
    while lane.queued > 0 and lane.returning == 0 and lane.down == 0:
        if lane.running + lane.coming + lane.landed >= setup.most_seats:  # each is sure of a seat
            return
        request = lane.queued_first
        tokens = inputs[request] - 1
        blocks = blocks_for(tokens, setup.block_size, setup.block_shift)
        if blocks > unclaimed_blocks(lane, phases, setup):
            lane.blocked = 1
            return
        rest(lane, setup, totals[lane.pool], now)
        lane.queued_first = rows[request].after
        lane.queued -= 1
        lane.coming += 1
        lane.parked += tokens
        lane.free_blocks -= blocks
        send(clock, lanes, rows, inputs, setups, handover, request, now)


@compiled_in_place
def send(
    clock: Any, lanes: Any, rows: Any, inputs: Any, setups: Any, handover: Any, request: int, now: float
) -> None:
    """Book both ends of the link for the KV of a prompt."""
    hop = handover.hops[request]
    source, target = lanes[hop.source], lanes[hop.target]
    setup = setups[target.pool]
    seconds = inputs[request] * max(setups[source.pool].kv_s_per_token, setup.kv_s_per_token)
    in_time = setup.kv_last_fraction < 1.0 and now == hop.prefilled_s
    begin_s = max(rows[request].scheduled_s if in_time else now, source.port_s, target.port_s)
    end_s = max(begin_s + seconds, now + setup.kv_last_fraction * seconds) if in_time else begin_s + seconds
    source.port_s = end_s
    target.port_s = end_s
    hop.pulled_s = now
    handover.landed_s[request] = end_s + setup.kv_latency_s
    clock.in_flight = push(handover.order, clock.in_flight, handover.landed_s, request)


@compiled_in_place
def land(
    clock: Any,
    lanes: Any,
    order: Any,
    rows: Any,
    inputs: Any,
    setups: Any,
    totals: Any,
    prefix: Any,
    handover: Any,
    now: float,
) -> None:
    """The KV that was to land first has: its blocks in the prefill pool are free, and it waits for its decode."""
    request = handover.order[0]
    clock.in_flight = pop(handover.order, clock.in_flight, handover.landed_s)
    hop = handover.hops[request]
    source, target = lanes[hop.source], lanes[hop.target]
    leave_source(source, hop, inputs, setups, totals, prefix, request, now)
    if source.order < 0 and source.waiting > 0:
        wake(clock, lanes, order, hop.source, now)
    target.coming -= 1
    target.landed += 1
    if target.landed == 1:
        target.landed_first = request
    else:
        rows[target.landed_last].after = request
    target.landed_last = request
    if target.order < 0:
        rest(target, setups[target.pool], totals[target.pool], now)
        wake(clock, lanes, order, hop.target, now)
    elif target.steps > 1:
        cut(lanes, order, hop.target, now)


@inlined
def leave_source(
    lane: Any, hop: Any, inputs: Any, setups: Any, totals: Any, prefix: Any, request: int, now: float
) -> None:
    """The prefill lane of a prompt gives up its KV."""
    setup = setups[lane.pool]
    rest(lane, setup, totals[lane.pool], now)
    lane.parked -= inputs[request]
    lane.free_blocks += blocks_for(inputs[request], setup.block_size, setup.block_shift)
    if setup.caching == 1:
        let_go(lane, hop, prefix)


@compiled_in_place
def rest(lane: Any, setup: Any, totals: Any, now: float) -> None:
    """Account for the blocks that an idle lane has kept until now."""
    if lane.order < 0:
        seconds = now - lane.start_s
        totals.block_s += seconds * (setup.block_count - lane.free_blocks)
        totals.held_s += seconds * lane.parked
        lane.start_s = now


@compiled_in_place
def seat_landed(
    lane: Any, seats: Any, room: Any, rows: Any, phases: Any, inputs: Any, outputs: Any, setup: Any
) -> None:
    """What has landed joins the decodes: it has its blocks, even where others wait to be computed again."""
    while lane.landed > 0 and (
        lane.running + lane.waiting < lane.ring_size
        or (lane.ring_size == setup.most_seats and lane.spare_count > 0)  # many came from lanes that are down
    ):
        request = lane.landed_first
        lane.landed_first = rows[request].after
        lane.landed -= 1
        lane.spare_count -= 1
        seat_id: int = room[lane.seat_base + lane.spare_count].spare
        seat = seats[seat_id]
        seat.request = request
        seat.generated = 0
        seat.target = inputs[request] - 1
        seat.done = seat.target
        lane.parked -= seat.target
        seat.shared = 0
        seat.shared_blocks = 0
        seat.before = lane.last_seat
        seat.after = -1
        if lane.last_seat >= 0:
            seats[lane.last_seat].after = seat_id
        lane.last_seat = seat_id
        lane.running += 1
        begin_decode(lane, seats, room, phases, setup, seat_id, outputs[request])


@compiled_in_place
def first_tokens(lane: Any, seats: Any, rows: Any, at_s: float) -> None:
    """The sequences that were seated last, and not preempted since, give their first token at this instant."""
    lane.fresh = 0
    seat_id = lane.last_seat
    while seat_id >= 0:
        seat = seats[seat_id]
        if 0 <= seat.start < lane.step:
            return
        if seat.start == lane.step and seat.generated == 0:
            rows[seat.request].first_token_s = at_s
            lane.fresh += 1
        seat_id = seat.before


@compiled_in_place
def is_at_rest(lane: Any, setup: Any) -> bool:
    """Whether a lane with something to do may wait for another one: its prompts' KV has not left, or not landed."""
    return bool(lane.coming > 0 if setup.role == DECODE else lane.parked > 0)


@compiled_in_place
def next_landing_s(handover: Any) -> float:
    """When the next KV lands, of those in flight."""
    landing_s: float = handover.landed_s[handover.order[0]]
    return landing_s
