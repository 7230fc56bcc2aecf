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

from simcore.compiled import compiled_in_place
from simcore.serving.arriving import arrive
from simcore.serving.busy import order_down, wake
from simcore.serving.ending import end
from simcore.serving.follow_up import line_up
from simcore.serving.handover import (
    hand_over,
    is_at_rest,
    land,
    next_landing_s,
    outstanding,
    rest,
)
from simcore.serving.routers.loads import note
from simcore.serving.sampling import sample
from simcore.serving.starting import start
from simcore.serving.state import (
    DECODE,
    DONE,
    HALTED,
    LOST,
    MORE_SEATS,
    PAUSED,
    PREFILL,
    SAMPLE_ROWS,
    SAMPLES_FULL,
    STUCK,
)

_BARREN_LIMIT = 1_000_000  # iterations without one token emitted: a 1M-token prompt in chunks of 1 is legal


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
        if event_s == math.inf and c.resuming == 0:
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
            elif s.role == DECODE and lane.shut == 0:
                note(handover.loads, index - s.first_lane, outstanding(lane))
            if s.tracking == 1 and index < setups[0].replica_count and lane.shut == 0:  # it is ready
                note(routing.loads, index, lane.running + lane.waiting)
            if lane.barren > _BARREN_LIMIT:
                return STUCK
            if c.next_request < c.released and arrival[c.next_request] <= event_s:
                continue
            if c.in_flight > 0 and next_landing_s(handover) <= event_s:
                continue
            if c.sessions == 1:  # somebody may be due at this very instant
                continue
        if lane.down == 1:
            c.growing = index
            return LOST
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
