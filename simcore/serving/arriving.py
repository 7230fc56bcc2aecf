"""A request arrives: who it is sent to, and what that changes there."""

from __future__ import annotations

from typing import Any

from simcore.compiled import inlined
from simcore.memory.kv_pool import blocks_for
from simcore.serving.admission import is_full
from simcore.serving.busy import cut
from simcore.serving.ending import reject
from simcore.serving.lane import (
    blocks_of_prompt,
)
from simcore.serving.routers import choose, elsewhere, routed
from simcore.serving.state import (
    PREFILL,
)
from simcore.serving.waiting import join_line


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
    if lanes[index].shut == 1:
        index = elsewhere(clock, routing, index)
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
        return index if lane.down == 0 else -1
    # A newcomer behind others, or without a seat, cannot change the run.
    if lane.steps > 1 and lane.queue_first == request and lane.running < setup.max_num_seqs:
        cut(lanes, order, index, now)
    return -1
