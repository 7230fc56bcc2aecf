"""The routers: one module each with a frozen spec and a compiled `choose`, one name in this union.

A router says which replica lane takes a request at the instant of its arrival. It may read what the lanes have
to do and what it has sent where, never a request's answer. A new router is a new module, its spec in `Router`,
its code, and one branch in `choose` below. `choose` changes nothing, so an arrival may be looked at twice;
`routed` writes down what came of it.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, NamedTuple

import numpy as np
from pydantic import Field

from simcore.compiled import compiled_in_place, inlined
from simcore.errors import InputError
from simcore.serving.routers import (
    least_kv,
    least_outstanding,
    power_of_two,
    prefix_affinity,
    random,
    round_robin,
    session,
)
from simcore.serving.routers.least_kv import LeastKv
from simcore.serving.routers.least_outstanding import LeastOutstanding
from simcore.serving.routers.loads import empty_loads, note
from simcore.serving.routers.power_of_two import PowerOfTwo
from simcore.serving.routers.prefix_affinity import PrefixAffinity
from simcore.serving.routers.random import Random
from simcore.serving.routers.round_robin import RoundRobin
from simcore.serving.routers.session import Session
from simcore.streams import stream
from simcore.workload.requests import Requests
from simcore.workload.sessions import Integers

Router = Annotated[
    RoundRobin | Random | LeastOutstanding | LeastKv | PowerOfTwo | PrefixAffinity | Session,
    Field(discriminator="kind"),
]
RouterKind = Literal[
    "round_robin", "random", "least_outstanding", "least_kv", "power_of_two", "prefix_affinity", "session"
]
ROUTER_CODES: Final[dict[RouterKind, int]] = {
    "round_robin": 0,
    "random": 1,
    "least_outstanding": 2,
    "least_kv": 3,
    "power_of_two": 4,
    "prefix_affinity": 5,
    "session": 6,
}
_DRAWS: Final = frozenset[RouterKind]({"random", "power_of_two"})
_TRACKS: Final = frozenset[RouterKind]({"least_outstanding", "prefix_affinity", "session"})
KEEPS_PREFIXES: Final = frozenset[RouterKind](
    {"prefix_affinity", "session"}
)  # sends them where they were before
# Those that draw may send a request to any lane, so all of them are kept; `least_kv` looks at each for each request.
MOST_LANES: Final[dict[RouterKind, int]] = {"random": 65_536, "power_of_two": 65_536, "least_kv": 4_096}

_round_robin = round_robin.choose
_random = random.choose
_least_outstanding = least_outstanding.choose
_least_kv = least_kv.choose
_power_of_two = power_of_two.choose
_prefix_affinity = prefix_affinity.choose
_remember = prefix_affinity.remember
_session = session.choose
_keep = session.keep


class Routing(NamedTuple):
    """What the kernel reads and writes when a request arrives; tiny where nothing needs it."""

    picks: Any  # [request, 2]: uniform draws
    loads: Any  # tree of requests outstanding by lane
    homes: Any  # by entry of the prefix chains, or by session: the lane that was last sent it, -1: none
    tags: Any  # by lane and flow: the finish tag of the last one in a fair line
    sessions: Any  # by request
    open: Any  # how many lanes take requests, then those lanes; read where one that does not was chosen


def is_drawn(router: Router) -> bool:
    """Whether a seed changes where requests go."""
    return router.kind in _DRAWS


def lanes_used(router: Router, request_count: int, lane_count: int) -> int:
    """How many lanes, from the first on, can get a request at all; at least one.

    Where lanes are taken in turn, also among those that have as little to do, request i goes no further than
    to lane i. Raises InputError where the router cannot look after so many.

    >>> lanes_used(RoundRobin(), 10, 65_536), lanes_used(Random(), 10, 65_536)
    (10, 65536)
    """
    most = MOST_LANES.get(router.kind, lane_count)
    if lane_count > most:
        raise InputError.at(
            "serving.router.kind",
            "router.too_many_replicas",
            "{kind} looks after {most:,} replicas at most, and there are {lanes:,}; use round_robin or "
            "least_outstanding, or fewer replicas",
            kind=router.kind,
            most=most,
            lanes=lane_count,
        )
    return lane_count if router.kind in _DRAWS else max(1, min(lane_count, request_count))


def routing_state(
    router: Router, *, requests: Requests, lane_count: int, entry_count: int, flow_count: int, seed: int
) -> Routing:
    """What the router starts from; its draws are keyed by seed and request alone."""
    draws = len(requests) if router.kind in _DRAWS else 1
    homes = {"prefix_affinity": entry_count, "session": requests.start_count}
    return Routing(
        picks=stream(seed, "router").random((draws, 2)),
        loads=empty_loads(lane_count if router.kind in _TRACKS else 1),
        homes=np.full(homes.get(router.kind, 1), -1, np.int32),
        tags=np.zeros(max(1, lane_count * flow_count)),
        sessions=_sessions(requests) if router.kind == "session" else np.zeros(1, np.int64),
        open=np.append(lane_count, np.arange(lane_count)),
    )


def _sessions(requests: Requests) -> Integers:
    """By request, its session; without sessions each is its own."""
    turns = requests.turns
    return np.arange(len(requests)) if turns is None else np.require(turns.session, np.int64, ["C", "W"])


def set_up(head: Any, router: Router, lane_count: int) -> None:
    """What the kernel has to know of the router; `lane_count` counts those too that get no request."""
    head.router = ROUTER_CODES[router.kind]
    head.tracking = int(router.kind in _TRACKS)
    if isinstance(router, PrefixAffinity):
        head.most_load = router.imbalance_ratio
        head.most_load_per_request = router.imbalance_ratio / lane_count


@inlined
def choose(
    clock: Any, lanes: Any, phases: Any, setups: Any, prefix: Any, routing: Any, request: int, now: float
) -> int:
    """The lane for a request, by the router that the setup names. The one that reads nothing costs nothing."""
    if setups[0].router == 0:
        return _round_robin(clock, setups[0])
    return _looked_up(clock, lanes, phases, setups, prefix, routing, request, now)


@compiled_in_place
def _looked_up(
    clock: Any, lanes: Any, phases: Any, setups: Any, prefix: Any, routing: Any, request: int, now: float
) -> int:
    """The lane by one of the routers that draw or look."""
    setup = setups[0]
    if setup.router == 1:
        return _random(setup, routing, request)
    if setup.router == 2:
        return _least_outstanding(clock, setup, routing)
    if setup.router == 3:
        return _least_kv(clock, lanes, phases, setups, now)
    if setup.router == 4:
        return _power_of_two(lanes, setup, routing, request)
    if setup.router == 6:
        return _session(clock, lanes, setup, routing, request)
    return _prefix_affinity(clock, lanes, setup, prefix, routing, request)


@compiled_in_place
def elsewhere(clock: Any, routing: Any, index: int) -> int:
    """The lane instead of one that is sent nothing: those that take requests in turn; itself where none does."""
    count = routing.open[0]
    if count == 0:
        return index
    lane: int = routing.open[1 + clock.turn % count]
    return lane


@compiled_in_place
def routed(clock: Any, lane: Any, setup: Any, prefix: Any, routing: Any, request: int, index: int) -> None:
    """A request stands in the line of a lane; nothing that `round_robin` would have to know."""
    clock.last_lane = index
    if setup.tracking == 1 and lane.shut == 0:
        note(routing.loads, index, lane.running + lane.waiting)
    if setup.router == 5 and setup.caching == 1:
        _remember(prefix, routing, request, index)
    elif setup.router == 6:
        _keep(routing, request, index)
