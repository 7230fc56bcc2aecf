"""Lanes that go down, are slowed or drained, and come back, at instants that are known before the run.

An outage takes its lanes from `begin_s` to `end_s`. *Down*: what ran there waits again (`stranding.py`). *Drained*:
they are sent nothing and finish what they have. *Slowed*: each step takes `slow_ratio` times as long. Where several
overlap, a lane is down while any says so, and as slow as the slowest.

With `reroutes`, requests are sent nowhere where a lane is down, drained or slowed to half its speed, and those that
wait there stand in line elsewhere, each where the fewest are outstanding then; without, they wait until it is back, and
a drained lane, which nobody can relieve, is down. With a `copy`, who was interrupted brings its KV back from there.

Limits: a failure takes effect when the step under way ends, one that is over by then has none; the copy costs nothing
until it is read; who was interrupted is at the end of a line, as a client's new attempt is.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from simcore.serving.astray import Interrupted, recall, resend
from simcore.serving.records import Floats
from simcore.serving.role_shift import RoleShift, Shift
from simcore.serving.state import DECODE
from simcore.serving.stranding import join, note_load, stop, take_first

SHUNNED_RATIO: Final = 2.0  # a lane as slow as this is sent nothing, where requests can be sent elsewhere


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """Some lanes for a while; `slow_ratio` infinite: they are down."""

    lanes: tuple[int, ...]
    begin_s: float
    end_s: float
    slow_ratio: float = math.inf
    drains: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class KvCopy:
    """What bringing back the KV of one sequence from elsewhere takes."""

    s_per_token: float
    latency_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Outages:
    """What happens to the lanes of an engine, and what it can do about it."""

    outages: tuple[Outage, ...]
    reroutes: bool = True
    copy: KvCopy | None = None
    shift: Shift | None = None  # where prefill and decode are apart, and requests are sent elsewhere


def keep(setups: Any, copy: KvCopy) -> None:
    """What the kernel has to know of the copies of what lanes hold."""
    setups["keeping"] = 1
    setups["kept_s_per_token"] = copy.s_per_token
    setups["kept_latency_s"] = copy.latency_s


class Interruptions:
    """The outages of one engine, in order of time."""

    def __init__(self, spec: Outages, arrays: Interrupted, *, widen: Callable[[int], None]) -> None:
        """`widen` gives a lane more seats."""
        self._reroutes, self._engine, self._widen = spec.reroutes, arrays, widen
        self._outages = [one for one in spec.outages if one.end_s > one.begin_s and one.slow_ratio != 1.0]
        edges = {edge for one in self._outages for edge in (one.begin_s, one.end_s)}
        self._instants = sorted(edges, reverse=True)
        self._shift = None
        if spec.shift is not None and spec.reroutes:
            self._shift = RoleShift(spec.shift, arrays.lanes, arrays.setups)
        self._decodes = arrays.setups["role"][arrays.lanes["pool"]] == DECODE
        self._log: list[tuple[float, int]] = [(-math.inf, 0)]
        arrays.clock[0].resuming = int(bool(edges))

    @property
    def next_s(self) -> float:
        """The next instant at which anything changes."""
        looked_at_s = math.inf if self._shift is None else self._shift.next_s
        return min(self._instants[-1] if self._instants else math.inf, looked_at_s)

    def at(self, now_s: float) -> None:
        """What changes at this instant."""
        while self._instants and self._instants[-1] <= now_s:
            self._instants.pop()
        self._engine.clock[0].resuming = int(bool(self._instants))
        now = [one for one in self._outages if one.begin_s <= now_s < one.end_s]
        touched = _lanes(one for one in self._outages if now_s in (one.begin_s, one.end_s))
        if self._shift is not None:
            lost = _lanes(one for one in now if self._loses(one))
            touched |= self._shift.at(now_s, lost=lost, hurt=_lanes(now))
        for index in sorted(touched):
            self._set(index, [one for one in now if index in one.lanes])
        self._open()
        self._send_elsewhere()
        self._log.append((now_s, int(self._engine.lanes["down"].sum())))

    def recall(self, index: int) -> None:
        """A lane that is down has ended its last step: what was on its way from or to it starts again."""
        for request in recall(self._engine, index):
            self._join(request, index)

    def stranded(self) -> None:
        """Nothing is left on a lane that is down: its line may be sent elsewhere."""
        self._send_elsewhere()

    def lanes_down(self, time_s: Floats) -> Floats:
        """How many lanes are down at these instants."""
        log = np.array(self._log)
        found: Floats = log[np.searchsorted(log[:, 0], time_s, side="right") - 1, 1]
        return found

    def _set(self, index: int, outages: list[Outage]) -> None:
        """The lane is as these outages together have it."""
        engine, lane = self._engine, self._engine.lanes[index]
        down = any(self._loses(one) for one in outages)
        slow = max([1.0, *(one.slow_ratio for one in outages if math.isfinite(one.slow_ratio))])
        drained = any(one.drains for one in outages) or slow >= SHUNNED_RATIO
        if self._shift is not None:
            down = (down and index not in self._shift.filled) or index in self._shift.emptied
            drained = drained or index in self._shift.lent
        changed = (down, slow) != (bool(lane.down), float(lane.pace))
        lane.down, lane.pace = int(down), slow
        if self._reroutes:
            lane.shut = int(down or drained)
            note_load(engine.lanes, engine.setups, engine.routing, engine.handover, index)
        if changed and (down or lane.order >= 0 or lane.waiting + lane.queued > 0):
            stop(engine.clock, engine.lanes, engine.order, engine.setups, engine.totals, index)

    def _loses(self, outage: Outage) -> bool:
        """Whether lanes are down by an outage."""
        return math.isinf(outage.slow_ratio) and not (outage.drains and self._reroutes)

    def _open(self) -> None:
        """Write down which lanes take requests."""
        found = self._lanes_open(decoding=False)
        self._engine.routing.open[0] = len(found)
        self._engine.routing.open[1 : 1 + len(found)] = found

    def _lanes_open(self, *, decoding: bool) -> Any:
        """The lanes that take requests, or prompts to decode."""
        return np.flatnonzero((self._engine.lanes["shut"] == 0) & (self._decodes == decoding))

    def _send_elsewhere(self) -> None:
        """Who waits at a lane that takes nobody stands in line at one that does, of the same pool if it decodes."""
        self._relieve(decoding=False)
        if self._decodes.any():
            self._relieve(decoding=True)
            if len(self._lanes_open(decoding=True)):
                resend(self._engine)

    def _relieve(self, *, decoding: bool) -> None:
        """Who waits to be computed stands in the shortest line."""
        engine, lanes = self._engine, self._engine.lanes
        left = np.flatnonzero((lanes["shut"] == 1) & (lanes["waiting"] > 0) & (self._decodes == decoding))
        open_lanes = self._lanes_open(decoding=decoding) if len(left) else left
        if not len(open_lanes):
            return
        outstanding = lanes["running"][open_lanes] + lanes["waiting"][open_lanes]
        lines = list(zip(outstanding.tolist(), open_lanes.tolist(), strict=True))
        heapq.heapify(lines)
        for index in left.tolist():
            if lanes[index].down and lanes[index].order >= 0:  # its last step has not ended
                continue
            while True:
                request = take_first(
                    lanes, engine.rows, engine.inputs, engine.setups, engine.totals, engine.prefix, index
                )
                if request < 0:
                    break
                length, place = lines[0]
                heapq.heapreplace(lines, (length + 1, place))
                self._join(request, place)

    def _join(self, request: int, index: int) -> None:
        engine, lane = self._engine, self._engine.lanes[index]
        if lane.running + lane.waiting == lane.ring_size < engine.setups[lane.pool].most_seats:
            self._widen(index)
        join(
            engine.clock,
            engine.lanes,
            engine.order,
            engine.rows,
            engine.inputs,
            engine.setups,
            engine.totals,
            engine.routing,
            engine.handover,
            request,
            index,
        )


def _lanes(outages: Iterable[Outage]) -> set[int]:
    return {index for one in outages for index in one.lanes}
