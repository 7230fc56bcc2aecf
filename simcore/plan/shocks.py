"""What a timeline of shocks takes from which replica, and what arrives under it.

Servers are numbered pool after pool, and replicas stand on them in order. A server that is down stops all replicas with
a chip on it; one that loses a share `f` of its links makes those that talk over them slower, `1 + c (1 / (1 - f) - 1)`
where `c` is the share of such talk in a step at the operating point: collectives between servers, or over the torus.
KV kept elsewhere comes back over the NICs of the replica's chips. Replicas that prefill and those that decode stand in
for each other where they have the same chip and cut of the model (`serving/role_shift.py`).

Limits: replicas that are scaled can be shocked by load alone; a server is of one pool; links that fail slow steps, and
not the KV that passes from prefill to decode.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from simcore.catalog.types import Server
from simcore.compute.steps import decode_shares
from simcore.errors import InputError, Message
from simcore.fabric import Fabric
from simcore.plan.disaggregated import KV_LATENCY_S, rebuilt
from simcore.plan.kv_tiers import kv_bytes_per_token_per_chip
from simcore.plan.serving import lane_network
from simcore.plan.shock_site import SHOCKS_PATH as _PATH
from simcore.plan.shock_site import shock_site, shock_timeline, spares_note
from simcore.plan.types import Plan, PoolInputs, PoolPlan, ServingPlan
from simcore.reliability import (
    LOAD_KINDS,
    Abilities,
    ReliabilitySpec,
    ShockSite,
    Timeline,
)
from simcore.scenario import Scenario
from simcore.serving.interruptions import KvCopy, Outage, Outages
from simcore.serving.role_shift import Shift
from simcore.workload.requests import Requests


@dataclass(frozen=True, slots=True, kw_only=True)
class _Side:
    """Where the replicas of one pool stand: units that stop together, of equal chips and lanes."""

    pool: PoolPlan
    server: Server
    first_server: int
    first_lane: int

    @property
    def server_count(self) -> int:
        return math.ceil(self.pool.chip_count / self.server.chips_per_server)

    @property
    def unit_count(self) -> int:
        return self.pool.chip_count // self.pool.coupled_chip_count

    def lanes(self, unit: int) -> range:
        each = self.pool.lane_count // self.unit_count
        return range(self.first_lane + unit * each, self.first_lane + (unit + 1) * each)

    def units_on(self, server: int) -> range:
        """The units with a chip on a server; none where it is another pool's."""
        place, chips, each = (
            server - self.first_server,
            self.server.chips_per_server,
            self.pool.coupled_chip_count,
        )
        if not 0 <= place < self.server_count:
            return range(0)
        return range(place * chips // each, min(self.unit_count, ((place + 1) * chips - 1) // each + 1))

    def slow_ratio(self, lost_fraction: float) -> float:
        """How many times as long a step takes without a share of the links."""
        if lost_fraction >= 1.0:
            return math.inf
        return 1.0 + self._talk_fraction() * (1.0 / (1.0 - lost_fraction) - 1.0)

    def _talk_fraction(self) -> float:
        """The share of a decode step that is spent on links which can fail."""
        table, point = self.pool.step_table, self.pool.operating_point
        batch = min(max(1, round(point.batch)), self.pool.scheduler.max_num_seqs)
        talk_s = table.comm_s if self.server.scaleup_kind == "ici" else table.scaleout_s
        if talk_s is None:
            return 0.0
        step_s = decode_shares(table, batch=batch, context_tokens=point.context_tokens).step_s
        return float(talk_s[min(batch * table.verified_tokens, len(talk_s) - 1)]) / step_s


def without_shocks(plan: Plan, serving: ServingPlan) -> ServingPlan:
    """The same plan where nothing happens: the requests as they were drawn."""
    return serving if serving.undisturbed is None else rebuilt(serving, requests=serving.undisturbed)


def outages_of(plan: Plan, serving: ServingPlan, abilities: Abilities | None = None) -> Outages | None:
    """What becomes of the lanes under the scenario's abilities, or others; None: nothing does."""
    spec = plan.scenario.reliability
    able = abilities or spec.abilities
    if all(isinstance(one, LOAD_KINDS) for one in spec.shocks):
        return None
    sides = _sides(serving)
    line = shock_timeline(spec, able, site_of(plan.fabric, serving), seed=plan.seed)
    outages = (*_lost(sides, line), *_swapped(sides, line))
    return Outages(
        outages=outages,
        reroutes=able.task,
        copy=_copy(serving) if able.data else None,
        shift=_shift(sides) if able.task and serving.prefill is not None else None,
    )


def site_of(fabric: Fabric, serving: ServingPlan) -> ShockSite:
    """What can fail: the servers that replicas stand on, and the switches above them."""
    sides = _sides(serving)
    count = sides[-1].first_server + sides[-1].server_count
    return shock_site(fabric, serving.inputs.server, server_count=count)


def check_shocks(scenario: Scenario, fabric: Fabric, serving: ServingPlan) -> list[Message]:
    """Raises InputError where a shock cannot happen here; what a reader should know of those that can."""
    spec, requests = scenario.reliability, serving.inputs.requests
    scaled = serving.inputs.spec.autoscaling is not None
    for place, shock in enumerate(spec.shocks):
        if scaled and not isinstance(shock, LOAD_KINDS):
            raise InputError.at(
                f"{_PATH}.{place}.kind",
                "shocks.scaled",
                "got {got}; replicas are taken only where their number is fixed; use a shock of load, or no "
                "serving.autoscaling",
                got=shock.kind,
            )
        if shock.kind == "load" and requests.concurrency:
            raise InputError.at(
                f"{_PATH}.{place}.kind",
                "shocks.closed_loop",
                "got load; in a closed loop the users set the rate; use arrivals of another kind",
            )
    if scaled:
        return []
    line = shock_timeline(spec, spec.abilities, site_of(fabric, serving), seed=scenario.run.seed)
    sides = _sides(serving)
    found = list(_notes(spec, requests, sides, line))
    if serving.prefill is not None and spec.abilities.task and line.capacity and _shift(sides) is None:
        found.append(
            Message(
                code="shocks.no_shift",
                template="replicas that prefill and those that decode do not stand in for each other: they differ in "
                "chip or parallelism",
                path="serving.scheduler",
            )
        )
    return found


def _notes(
    spec: ReliabilitySpec, requests: Requests, sides: list[_Side], line: Timeline
) -> Iterator[Message]:
    end_s = float(requests.arrival_s[: requests.start_count].max(initial=0.0))
    for place, shock in enumerate(spec.shocks):
        if shock.at_s > end_s and not requests.concurrency:
            yield Message(
                code="shocks.too_late",
                template="has no effect: it begins {at_s:,.0f} s into the run, and the last request comes after "
                "{end_s:,.0f} s; let it begin sooner, or serve more requests",
                params={"at_s": shock.at_s, "end_s": end_s},
                path=f"{_PATH}.{place}.at_s",
            )
    if any(event.lost_fraction < 1.0 for event in line.capacity) and all(
        side.slow_ratio(event.lost_fraction) == 1.0 for side in sides for event in line.capacity
    ):
        yield Message(
            code="shocks.no_talk",
            template="links that fail have no effect: no replica talks over them in a step",
            path=_PATH,
        )
    yield from spares_note(spec)


def _sides(serving: ServingPlan) -> list[_Side]:
    found: list[_Side] = []
    server = lane = 0
    for inputs, pool in serving.sides:
        found.append(_Side(pool=pool, server=inputs.server, first_server=server, first_lane=lane))
        server += found[-1].server_count
        lane += pool.lane_count
    return found


def _lost(sides: list[_Side], line: Timeline) -> Iterator[Outage]:
    for event in line.capacity:
        for side in sides:
            units = sorted({unit for server in event.servers for unit in side.units_on(server)})
            ratio = side.slow_ratio(event.lost_fraction)
            if units and ratio > 1.0:
                yield Outage(
                    lanes=tuple(lane for unit in units for lane in side.lanes(unit)),
                    begin_s=event.begin_s,
                    end_s=event.end_s,
                    slow_ratio=ratio,
                    drains=event.drains,
                )


def _swapped(sides: list[_Side], line: Timeline) -> Iterator[Outage]:
    replicas = [
        range(first, first + side.pool.parallelism.lanes_per_replica)
        for side in sides
        for first in range(
            side.first_lane, side.first_lane + side.pool.lane_count, side.pool.parallelism.lanes_per_replica
        )
    ]
    for swap in line.swaps:
        for turn in range(math.ceil(len(replicas) / swap.at_once)):
            begin_s = swap.begin_s + turn * swap.each_s
            now = replicas[turn * swap.at_once : (turn + 1) * swap.at_once]
            yield Outage(
                lanes=tuple(lane for lanes in now for lane in lanes),
                begin_s=begin_s,
                end_s=begin_s + swap.each_s,
                drains=True,
            )


def _shift(sides: list[_Side]) -> Shift | None:
    """What a unit carries in either role; None where they are not alike."""
    kinds = {(side.pool.chip.name, side.pool.parallelism, len(side.lanes(0))) for side in sides}
    if len(kinds) > 1:
        return None
    rates = [side.pool.operating_point.capacity_request_per_s / side.unit_count for side in sides]
    return Shift(
        prefill_request_per_s=rates[0], decode_request_per_s=rates[1], lanes_per_unit=len(sides[0].lanes(0))
    )


def _copy(serving: ServingPlan) -> KvCopy:
    """Bringing back the KV of a sequence, by the replicas that are slowest at it."""
    return KvCopy(
        s_per_token=max(_s_per_token(inputs, pool) for inputs, pool in serving.sides),
        latency_s=KV_LATENCY_S,
    )


def _s_per_token(inputs: PoolInputs, pool: PoolPlan) -> float:
    rate = lane_network(inputs, pool.chip).scaleout_bytes_per_s.value
    return pool.parallelism.pp * kv_bytes_per_token_per_chip(pool.kv).value / rate
