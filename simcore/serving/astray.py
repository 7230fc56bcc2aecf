"""KV on its way from prefill to decode, where a lane at either end of it goes down.

A *decode* lane is lost: prompts that stood in its line, or whose KV was being sent to it, still have their KV where it
was computed and stand in line again, there or at another one. Those that had landed and not begun have lost it, and
wait with who ran there (`stranding.py`): they are computed again on a decode lane, as who is preempted there is.

A *prefill* lane is lost, and with it the KV of all prompts that ended there and have not landed: they leave the lines
of decode lanes, what was reserved for them there is free, and they start again at the end of a prefill lane's line. A
copy elsewhere spares either kind the computing, but for the last prompt token.

Limits: what was booked on the link stays booked, as a sender learns of a loss no sooner than it has sent. Where layers
are sent as they are computed, those of a prompt that starts again count as begun when it was first scheduled.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from simcore.compiled import compiled_in_place
from simcore.memory.kv_pool import blocks_for
from simcore.serving.handover import leave_source, pass_on, rest, stand_in_line
from simcore.serving.state import DECODE, LEVEL_KEPT, PREFILL
from simcore.serving.stranding import note_load, stop


class Interrupted(NamedTuple):
    """What is read and written of the engine where a lane goes down; none of it is ever laid out anew."""

    clock: Any
    lanes: Any
    order: Any
    rows: Any
    inputs: Any
    setups: Any
    totals: Any
    prefix: Any
    routing: Any
    phases: Any
    handover: Any


def recall(engine: Interrupted, index: int) -> list[int]:
    """What a lane that is down has lost on the way: the prompts that start again in its line, in order."""
    role = engine.setups[engine.lanes[index].pool].role
    lost = []
    if role == PREFILL:
        lost = _from_source(engine, index)
    elif role == DECODE:
        lost = _from_target(engine, index)
    for request in lost:
        _start_again(engine, request, index)
    return lost


def resend(engine: Interrupted) -> None:
    """Prompts in the lines of decode lanes that take none stand in line where there is least to do."""
    lanes = engine.lanes
    for index in np.flatnonzero((lanes["shut"] == 1) & (lanes["queued"] > 0)).tolist():
        requests = list(_line(engine, index))
        lanes[index].queued = 0
        for request in requests:
            send_on(
                engine.clock,
                lanes,
                engine.order,
                engine.rows,
                engine.phases,
                engine.inputs,
                engine.setups,
                engine.totals,
                engine.handover,
                request,
            )


def _from_source(engine: Interrupted, index: int) -> list[int]:
    """All prompts that ended on a prefill lane and have not landed: they are gone from everywhere."""
    lanes, hops = engine.lanes, engine.handover.hops
    lost = _grounded(engine, "source", index)
    left = {int(hops[request].target) for request in lost}
    for request in lost:
        lanes[hops[request].target].coming -= 1
        _unreserve(engine, request)
    for target in np.flatnonzero(lanes["queued"] > 0).tolist():
        line = list(_line(engine, target))
        gone = [request for request in line if hops[request].source == index]
        if gone:
            lost += gone
            left.add(target)
            lanes[target].queued = 0
            for request in line:
                if hops[request].source != index:
                    stand_in_line(lanes[target], engine.rows, engine.handover, request, target)
    lost.sort(key=lambda request: (hops[request].prefilled_s, request))
    for request in lost:
        give_up(
            lanes,
            engine.inputs,
            engine.setups,
            engine.totals,
            engine.prefix,
            engine.handover,
            request,
            engine.clock[0].now_s,
        )
    hops["prefilled_s"][lost] = math.nan
    for target in sorted(left):  # the next in line may have room now
        note_load(lanes, engine.setups, engine.routing, engine.handover, target)
        stop(engine.clock, lanes, engine.order, engine.setups, engine.totals, target)
    return lost


def _from_target(engine: Interrupted, index: int) -> list[int]:
    """Prompts that had landed on a decode lane; those on their way to it stand in its line again."""
    lane = engine.lanes[index]
    for request in _grounded(engine, "target", index):
        lane.coming -= 1
        _unreserve(engine, request)
        stand_in_line(lane, engine.rows, engine.handover, request, index)
    lost, request = [], int(lane.landed_first)
    for _ in range(lane.landed):
        lost.append(request)
        request = int(engine.rows[request].after)
    lane.landed = 0
    for request in lost:
        _unreserve(engine, request)
    return lost


def _grounded(engine: Interrupted, end: str, index: int) -> list[int]:
    """Take the prompts in flight from or to a lane out of the calendar; in the order in which they would land."""
    clock, handover = engine.clock[0], engine.handover
    flying = handover.order[: clock.in_flight]
    flying = flying[np.lexsort((flying, handover.landed_s[flying]))]
    taken = handover.hops[end][flying] == index
    kept = flying[~taken]
    handover.order[: len(kept)] = kept  # in order of time, which is a heap
    clock.in_flight = len(kept)
    found: list[int] = flying[taken].tolist()
    handover.hops["pulled_s"][found] = math.nan
    handover.landed_s[found] = math.nan
    return found


def _line(engine: Interrupted, index: int) -> Iterator[int]:
    """The prompts in line for blocks of a decode lane."""
    request = int(engine.lanes[index].queued_first)
    for _ in range(engine.lanes[index].queued):
        following = int(engine.rows[request].after)
        yield request
        request = following


def _start_again(engine: Interrupted, request: int, index: int) -> None:
    """A prompt counts as preempted; it has to be computed, or its copy brought back."""
    pool = engine.lanes[index].pool
    row, sums, kept = engine.rows[request], engine.totals[pool], engine.setups[pool].keeping == 1
    row.held = engine.inputs[request] - 1
    row.level = LEVEL_KEPT if kept else -1
    row.preemptions += 1
    sums.preemptions += 1
    sums.stranded += 1
    sums.discarded_tokens += 0 if kept else row.held


def _unreserve(engine: Interrupted, request: int) -> None:
    unreserve(
        engine.lanes,
        engine.inputs,
        engine.setups,
        engine.totals,
        engine.handover,
        request,
        engine.clock[0].now_s,
    )


@compiled_in_place
def unreserve(
    lanes: Any, inputs: Any, setups: Any, totals: Any, handover: Any, request: int, now: float
) -> None:
    """A decode lane gives back the blocks that it had taken for a prompt."""
    lane = lanes[handover.hops[request].target]
    setup = setups[lane.pool]
    rest(lane, setup, totals[lane.pool], now)
    tokens = inputs[request] - 1
    lane.parked -= tokens
    lane.free_blocks += blocks_for(tokens, setup.block_size, setup.block_shift)


@compiled_in_place
def give_up(
    lanes: Any, inputs: Any, setups: Any, totals: Any, prefix: Any, handover: Any, request: int, now: float
) -> None:
    """A prefill lane gives back the blocks of a prompt that had ended on it."""
    hop = handover.hops[request]
    leave_source(lanes[hop.source], hop, inputs, setups, totals, prefix, request, now)


@compiled_in_place
def send_on(
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
) -> None:
    """A prompt in line for a decode lane stands in another line."""
    now = clock[0].now_s
    pass_on(clock[0], lanes, order, rows, phases, inputs, setups, totals, handover, request, now)
