"""How many replicas are ready over time: the rule of a Kubernetes Horizontal Pod Autoscaler, and the wait for a start.

Every `interval_s` the metric, summed over the replicas that are ready, is set against the target of one:

    desired = ceil(sum over ready replicas / target) = ceil(ready * mean / target)

unless it is within a tenth of what there are, between `min_replica_count` and `max_replica_count`; replicas that
start count as present and as doing nothing (as the HPA has it for pods that are not ready). More are started at once
and take requests `startup_s` later. Fewer are kept only when no evaluation of the last `scale_down_stabilization_s`
wanted more: those that start go first, then the ready ones of the highest number, which take no newcomers, finish
what they have, and stop. What they had cached is lost.

Limits: no rate policies; a replica that is to be ready again before it has drained goes on with what it has left.
"""

from __future__ import annotations

import math
from collections import deque
from typing import Annotated, Any, Final, Literal

import numpy as np
from pydantic import Field

from simcore.serving.prefix import Prefix
from simcore.serving.records import Floats, Replicas
from simcore.serving.routers import Routing
from simcore.serving.routers.least_kv import taken_blocks
from simcore.serving.routers.loads import NOBODY, note
from simcore.spec import Spec

TOLERANCE: Final = 0.1  # of the HPA: no change while the ratio to the target is within it
MOST_REPLICAS: Final = 1_048_576


class _Autoscaling(Spec):
    """What both metrics have, in the terms of a Horizontal Pod Autoscaler."""

    min_replica_count: Annotated[int, Field(ge=1, le=MOST_REPLICAS)] = 1
    max_replica_count: Literal["auto"] | Annotated[int, Field(ge=1, le=MOST_REPLICAS)] = "auto"
    interval_s: float = Field(default=15.0, ge=1, le=3_600)
    startup_s: float = Field(default=60.0, ge=0, le=86_400)
    scale_down_stabilization_s: float = Field(default=300.0, ge=0, le=86_400)


class ByOutstanding(_Autoscaling):
    """By requests that run or wait."""

    kind: Literal["outstanding_per_replica"] = "outstanding_per_replica"
    target: float = Field(default=32.0, gt=0, le=1e6)  # requests of one replica


class ByKvUsage(_Autoscaling):
    """By KV blocks in use."""

    kind: Literal["kv_usage"] = "kv_usage"
    target: float = Field(default=0.6, gt=0, le=1)  # share of a replica's blocks


Autoscaling = Annotated[ByOutstanding | ByKvUsage, Field(discriminator="kind")]


class ReplicaCount:
    """The rule by itself: how many are ready and how many start, as the sum of the metric goes."""

    def __init__(self, spec: Autoscaling, *, most: int, begin_s: float) -> None:
        self.spec, self.most = spec, most
        self.ready = min(spec.min_replica_count, most)
        self.starting: list[tuple[float, float]] = []  # when each began, and will be ready
        self.next_evaluation_s = begin_s + spec.interval_s
        self.up_count = self.down_count = 0
        self.cancelled_s = 0.0  # spent on starting what was not to be
        self._wanted: deque[tuple[float, int]] = deque()

    @property
    def next_s(self) -> float:
        """The next instant at which anything may change."""
        return min([self.next_evaluation_s, *(ready_s for _, ready_s in self.starting[:1])])

    def at(self, now_s: float, total: float) -> list[float]:
        """Go on to an instant; returns when those began that are ready from now on. `ready` may have fallen."""
        begun = self._started(now_s)
        if now_s >= self.next_evaluation_s:
            self.next_evaluation_s += self.spec.interval_s
            self._evaluate(now_s, total)
            begun += self._started(now_s)
        return begun

    def _started(self, now_s: float) -> list[float]:
        begun = [began_s for began_s, ready_s in self.starting if ready_s <= now_s]
        self.starting = self.starting[len(begun) :]
        self.ready += len(begun)
        return begun

    def _evaluate(self, now_s: float, total: float) -> None:
        spec, current = self.spec, self.ready + len(self.starting)
        near = abs(total / (spec.target * current) - 1.0) <= TOLERANCE
        wanted = current if near else math.ceil(total / spec.target)
        wanted = max(min(spec.min_replica_count, self.most), min(self.most, wanted))
        self._wanted.append((now_s, wanted))
        while self._wanted[0][0] < now_s - spec.scale_down_stabilization_s:
            self._wanted.popleft()
        wanted = max(wanted, min(current, max(count for _, count in self._wanted)))
        self.up_count += max(0, wanted - current)
        self.down_count += max(0, current - wanted)
        self.starting += [(now_s, now_s + spec.startup_s)] * (wanted - current)
        for _ in range(current - wanted):
            if self.starting:
                self.cancelled_s += now_s - self.starting.pop()[0]
            else:
                self.ready -= 1


class Autoscaler:
    """The replicas of one engine: the first of its lanes are ready, and routers choose among those."""

    def __init__(
        self, spec: Autoscaling, *, lanes: Any, setups: Any, routing: Routing, prefix: Prefix, begin_s: float
    ) -> None:
        self._head = setups[0]
        self._lanes_each = int(self._head.lanes_per_replica)
        self._lanes, self._setups, self._routing, self._prefix = lanes, setups, routing, prefix
        most = -(-len(lanes) // self._lanes_each)
        self._count = ReplicaCount(spec, most=most, begin_s=begin_s)
        self._since_s = [begin_s] * self._count.ready  # by ready replica
        self._draining: dict[int, tuple[float, float]] = {}  # since when it is used, and drains
        self._used_s = 0.0
        self._log: list[tuple[float, int, int]] = []
        self._let_in(0, len(lanes))
        self._note(begin_s)

    @property
    def next_s(self) -> float:
        """When the engine has to ask again."""
        return self._count.next_s

    def at(self, now_s: float, phases: Any) -> None:
        """What changes at this instant."""
        self._stop_drained()
        before = self._count.ready
        begun = self._count.at(now_s, self._total(phases, now_s))
        for _ in range(before + len(begun) - self._count.ready):
            began_s = self._since_s.pop() if self._since_s else now_s
            self._draining[len(self._since_s)] = (began_s, now_s)
        for began_s in begun[: self._count.ready - len(self._since_s)]:
            left = self._draining.pop(len(self._since_s), None)
            if left is not None:
                self._used_s += now_s - left[0]
            self._since_s.append(began_s)
        if self._count.ready != before:
            low, high = sorted((before, self._count.ready))
            self._let_in(low * self._lanes_each, high * self._lanes_each)
        self._stop_drained()
        self._note(now_s)

    def columns(self, time_s: Floats) -> dict[str, Floats]:
        """Replicas ready and starting at these instants."""
        log = np.array(self._log)
        place = np.maximum(0, np.searchsorted(log[:, 0], time_s, side="right") - 1)
        return {"replicas": log[place, 1], "replicas_starting": log[place, 2]}

    def use(self, end_s: float) -> Replicas:
        """What was used up to the end of the run."""
        self._stop_drained()
        here = [*self._since_s, *(began_s for began_s, _ in self._draining.values())]
        here += [began_s for began_s, _ in self._count.starting]
        edges = np.array([row[0] for row in self._log] + [max(end_s, self._log[-1][0])])
        ready = np.array([row[1] for row in self._log], np.float64)
        span_s, fewest = float(edges[-1] - edges[0]), float(ready.min())
        return Replicas(
            ready_mean=fewest + float((ready - fewest) @ np.diff(edges)) / span_s if span_s > 0 else fewest,
            ready_max=int(ready.max()),
            used_s=self._used_s
            + self._count.cancelled_s
            + sum(max(0.0, end_s - began_s) for began_s in here),
            up_count=self._count.up_count,
            down_count=self._count.down_count,
        )

    def _note(self, now_s: float) -> None:
        self._log.append((now_s, self._count.ready, len(self._count.starting)))

    def _total(self, phases: Any, now_s: float) -> float:
        """The metric, summed over the replicas that are ready."""
        ready = self._lanes[: int(self._head.replica_count)]
        if isinstance(self._count.spec, ByOutstanding):
            return float(ready.running.sum() + ready.waiting.sum())
        blocks = sum(taken_blocks(lane, phases, self._setups[lane.pool], now_s) for lane in ready)
        return blocks / (int(self._head.block_count) * self._lanes_each)

    def _let_in(self, first: int, last: int) -> None:
        """Routers choose among the lanes that are ready; those from `first` to `last` have become so, or not."""
        lanes, head = self._lanes, self._head
        ready = min(len(lanes), self._count.ready * self._lanes_each)
        head.replica_count = ready
        head.most_load_per_request = head.most_load / ready
        if head.tracking:
            for index in range(first, min(last, len(lanes))):
                here = int(lanes[index].running + lanes[index].waiting)
                note(self._routing.loads, index, here if index < ready else NOBODY)

    def _stop_drained(self) -> None:
        for replica, (began_s, drains_s) in list(self._draining.items()):
            mine = range(replica * self._lanes_each, min(len(self._lanes), (replica + 1) * self._lanes_each))
            lanes = self._lanes[mine.start : mine.stop]
            if not (lanes.running.any() or lanes.waiting.any()):
                self._used_s += max(drains_s, float(lanes.end_s.max(initial=0.0))) - began_s
                del self._draining[replica]
                for index in mine:
                    self._forget(index)

    def _forget(self, index: int) -> None:
        """A replica that stops loses its prefixes, those in its tiers too."""
        if not self._head.caching:
            return
        lane, entries = self._lanes[index], len(self._prefix.blocks)
        tiers = self._prefix.tiers[lane.tier_base : lane.tier_base + self._head.tiers]
        for shelf in (lane, *tiers):
            if shelf is lane or self._head.stowing:
                self._prefix.cells[shelf.cell_base : shelf.cell_base + entries] = 0
            shelf.cached_blocks = 0
            shelf.newest = shelf.oldest = -1
        self._routing.homes[self._routing.homes == index] = -1
