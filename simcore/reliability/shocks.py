"""A timeline of shocks as events: servers that are lost or slowed for a while, and a load that changes.

*Capacity*: each event names servers, and the share of their links into the network that is lost; all of it: they
are down. A failed leaf switch of a folded Clos cuts off whole servers; one of a rail takes one link of each server
below it; one further up takes its share of everybody's. *Re-wiring*: while a spare is free, what failed is back after
`reconfiguration_s` instead of its own duration, and the spare is free again when the failed one is repaired. Links and
switches have no spares.

*Load*: a rate of `k` times is a warp of time. With `L(t) = ∫ k dt`, the request that would have come at `u` comes at
`t` where `L(t) = u`: the same requests, in the same order, those before the window at the same instants.

Limits: what fails is drawn evenly over all servers; links and switches that fail at the same time add no more than the
worst of them; nothing fails because something else has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simcore.errors import InputError
from simcore.reliability.shock_kinds import (
    CubeFailure,
    Drain,
    HostFailure,
    LinkFailure,
    LoadBurst,
    LongPrompts,
    ModelSwap,
    Shock,
    SwitchFailure,
)
from simcore.streams import stream

Floats = NDArray[np.float64]
_PATH = "reliability.shocks"


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchTier:
    """Switches of one tier, and what one of them takes along."""

    switch_count: int
    server_count: (
        int  # below one of them, that lose `lost_fraction` of their links; all of them: a higher tier
    )
    lost_fraction: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ShockSite:
    """What can fail: servers in their order, their links, and the switches above them."""

    server_count: int
    links_per_server: int
    link_lost_fraction: float  # of what its server can send, with one of them
    servers_per_cube: int | None  # None: there are no cubes
    tiers: dict[str, SwitchTier]


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityEvent:
    """Servers that lose a share of their links for a while; all of it: they are down."""

    servers: tuple[int, ...]
    begin_s: float
    end_s: float
    lost_fraction: float = 1.0
    drains: bool = False
    switch: str = ""  # the one that failed, such as spine 3; empty: it was none


@dataclass(frozen=True, slots=True, kw_only=True)
class Swap:
    """All replicas in turn, `at_once` at a time, are out for `each_s`."""

    begin_s: float
    each_s: float
    at_once: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """What becomes of the servers, and the replicas that are swapped."""

    capacity: tuple[CapacityEvent, ...]
    swaps: tuple[Swap, ...]


def timeline(
    shocks: Sequence[Shock], site: ShockSite, *, seed: int, spares: int, reconfiguration_s: float
) -> Timeline:
    """The capacity events in order of time; without spares, what fails is back when it is repaired.

    Raises InputError where the site has nothing of the kind that fails, or too little.
    """
    found: list[CapacityEvent] = []
    free_s = [-np.inf] * spares  # when each spare can be used
    for place, shock in sorted(enumerate(shocks), key=lambda each: each[1].at_s):
        for servers, lost_fraction, switch in _hit(shock, site, place, seed):
            end_s = shock.at_s + shock.duration_s
            if (
                isinstance(shock, HostFailure | CubeFailure | Drain)
                and min(free_s, default=np.inf) <= shock.at_s
            ):
                free_s[free_s.index(min(free_s))] = end_s
                end_s = min(end_s, shock.at_s + reconfiguration_s)
            found.append(
                CapacityEvent(
                    servers=servers,
                    begin_s=shock.at_s,
                    end_s=end_s,
                    lost_fraction=lost_fraction,
                    drains=isinstance(shock, Drain),
                    switch=switch,
                )
            )
    swaps = [
        Swap(begin_s=shock.at_s, each_s=shock.duration_s, at_once=shock.at_once)
        for shock in shocks
        if isinstance(shock, ModelSwap)
    ]
    return Timeline(capacity=tuple(found), swaps=tuple(swaps))


def _hit(
    shock: Shock, site: ShockSite, place: int, seed: int
) -> Iterator[tuple[tuple[int, ...], float, str]]:
    """Groups of servers that are hit together, the share of their links that they lose, and the switch that failed."""
    match shock:
        case HostFailure() | Drain():
            for server in _drawn(shock, site.server_count, place, seed):
                yield (server,), 1.0, ""
        case LinkFailure():
            for link in _drawn(shock, site.server_count * site.links_per_server, place, seed):
                yield (link // site.links_per_server,), site.link_lost_fraction, ""
        case CubeFailure():
            size = site.servers_per_cube
            if size is None:
                raise _nothing(shock, place, "cubes")
            for cube in _drawn(shock, site.server_count // size, place, seed):
                yield tuple(range(cube * size, (cube + 1) * size)), 1.0, ""
        case SwitchFailure():
            tier = site.tiers.get(shock.tier)
            if tier is None:
                raise _nothing(shock, place, f"{shock.tier} switches")
            for switch in _drawn(shock, tier.switch_count, place, seed):
                first = switch * tier.server_count % site.server_count
                last = min(site.server_count, first + tier.server_count)
                yield tuple(range(first, last)), tier.lost_fraction, f"{shock.tier} {switch}"


def _drawn(shock: Any, population: int, place: int, seed: int) -> list[int]:
    """Which of so many fail; the same ones whatever else is on the timeline."""
    if shock.count > population:
        raise InputError.at(
            f"{_PATH}.{place}.count",
            "shocks.too_many",
            "got {got:,}, and there are {population:,}; use fewer",
            got=shock.count,
            population=population,
        )
    chosen = stream(seed, "shock", place).choice(population, size=shock.count, replace=False)
    return sorted(int(one) for one in chosen)


def _nothing(shock: Any, place: int, what: str) -> InputError:
    return InputError.at(
        f"{_PATH}.{place}.kind",
        "shocks.nothing_to_fail",
        "got {got}, and this fabric has no {what}; choose another kind, or another topology",
        got=shock.kind,
        what=what,
    )


def warped(instants_s: Floats, shocks: Sequence[Shock]) -> Floats:
    """Arrivals under all bursts of load; those before the first are untouched.

    >>> burst = LoadBurst(at_s=10, duration_s=10, rate_ratio=2)
    >>> warped(np.array([5.0, 14.0, 30.0, 45.0]), [burst])
    array([ 5., 12., 20., 35.])
    """
    bursts = [
        one for one in shocks if isinstance(one, LoadBurst) and one.duration_s > 0 and one.rate_ratio != 1.0
    ]
    if not bursts:
        return instants_s
    edges = np.unique([edge for one in bursts for edge in (one.at_s, one.at_s + one.duration_s)])
    rates = [
        np.prod([one.rate_ratio for one in bursts if one.at_s <= begin < one.at_s + one.duration_s])
        for begin in edges[:-1]
    ]
    passed = edges[0] + np.append(0.0, np.cumsum(np.array(rates) * np.diff(edges)))
    inside = np.interp(instants_s, passed, edges)
    later = edges[-1] + (instants_s - passed[-1])
    found: Floats = np.where(
        instants_s > passed[-1], later, np.where(instants_s > edges[0], inside, instants_s)
    )
    return found


def lengthened(
    input_tokens: NDArray[np.int64], arrival_s: Floats, shocks: Sequence[Shock]
) -> NDArray[np.int64]:
    """Prompts of those that arrive while prompts are longer; a token at least is left."""
    found = input_tokens
    for one in shocks:
        if isinstance(one, LongPrompts) and one.length_ratio != 1.0:
            hit = (arrival_s >= one.at_s) & (arrival_s < one.at_s + one.duration_s)
            longer = np.maximum(1, np.rint(found * one.length_ratio)).astype(np.int64)
            found = np.where(hit, longer, found)
    return found
