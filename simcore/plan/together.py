"""Replicas that each do a whole request: equal ones on the main chips, and unlike ones beside them on further pools.

One router chooses among all of them. It decides what share of the requests a pool gets: as many for every lane where it
looks at nothing, else as the lanes can carry, which is what keeps their lines equally long. Capacity is the sum.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from simcore.catalog.types import Chip
from simcore.errors import InputError, Message, TrimtabError
from simcore.plan.autoscaling import most_replicas, refuse_unlike
from simcore.plan.chip_pools import Pools, Resolve, on_pool, placed
from simcore.plan.resolve import OwnedChips
from simcore.plan.serving import build_pool
from simcore.plan.types import PoolInputs, PoolPlan, ServingPlan
from simcore.serving.schedulers.disaggregated import MAIN_POOL
from simcore.why import Term, leaf, total

_BLIND_ROUTERS: Final = ("round_robin", "random")
_UNLIKE_RATIO: Final = 0.98  # of what all carry, below which it is said that the slow ones bind
_ESTIMATES: Final = ("serving.estimate.ttft_s", "serving.estimate.tpot_s")


def plan_together(common: PoolInputs, pools: Pools, resolve: Resolve) -> ServingPlan:
    """Replicas on every pool. Raises InputError or InfeasibleError where one of them does not hold a replica."""
    spec = common.spec
    if len(pools) > 1 and spec.kv.allocator != "paged":
        raise InputError.at(
            "serving.kv.allocator",
            "pools.pages",
            "got {got}; unlike replicas hold KV in pages alone, so use paged or remove hardware.pools",
            got=spec.kv.allocator,
        )
    if len(pools) > 1:
        refuse_unlike(spec)
    sides = [(_replicas(common, chips, resolve), chips.chip) for chips in pools.values()]
    built = shared_out(sides, list(pools.values()))
    owned = sum(chips.chip_count for chips in pools.values())
    (inputs, pool), *beside = built
    used = sum(one.chip_count for _, one in built)
    return ServingPlan(inputs=inputs, pool=pool, beside=tuple(beside), idle_chip_count=owned - used)


def shared_out(
    sides: Sequence[tuple[PoolInputs, Chip]], chips: Sequence[OwnedChips] = ()
) -> list[tuple[PoolInputs, PoolPlan]]:
    """Each pool's replicas under their share of the requests; errors are at `chips`, where they are given."""
    pools = [
        _built(inputs, chip, chips[place] if chips else None) for place, (inputs, chip) in enumerate(sides)
    ]
    if len(pools) == 1:
        return [(sides[0][0], pools[0])]
    blind = sides[0][0].spec.router.kind in _BLIND_ROUTERS
    weights = [pool.lane_count if blind else pool.operating_point.capacity_request_per_s for pool in pools]
    shares = [
        replace(inputs, request_fraction=weight / sum(weights))
        for (inputs, _), weight in zip(sides, weights, strict=True)
    ]
    return [(inputs, build_pool(inputs, pool.chip)) for inputs, pool in zip(shares, pools, strict=True)]


def together_terms(serving: ServingPlan) -> dict[str, Term]:
    """TTFT and TPOT of a mean request, which may come to any pool; empty where there is one pool."""
    if not serving.beside:
        return {}
    found = {}
    for name in _ESTIMATES:
        parts = [
            leaf(inputs.request_fraction, "request_fraction", kind="derived", source="the router")
            * pool.terms[name]
            for inputs, pool in serving.sides
            if name in pool.terms
        ]
        if len(parts) == len(serving.sides):
            found[name] = total(*parts)
    return found


def own_terms(serving: ServingPlan) -> dict[str, Term]:
    """The closed forms of the main replicas, less those that hold of all replicas or of none."""
    if not serving.beside:
        return dict(serving.pool.terms)
    return {name: term for name, term in serving.pool.terms.items() if name not in _ESTIMATES}


def unlike_warnings(serving: ServingPlan) -> Iterator[Message]:
    """Said where a router that looks at nothing sends slow replicas as much as fast ones."""
    router = serving.inputs.spec.router.kind
    if not serving.beside or router not in _BLIND_ROUTERS:
        return
    slowest = min(pool.operating_point.capacity_request_per_s / pool.lane_count for pool in serving.pools)
    bound, capacity = slowest * sum(pool.lane_count for pool in serving.pools), serving.capacity.value
    if bound < _UNLIKE_RATIO * capacity:
        yield Message(
            code="router.unlike_replicas",
            template="{router} sends unlike replicas as many requests each, so the slowest fall behind from "
            "{bound:.3g} of {capacity:.3g} requests per second; use least_outstanding",
            params={"router": router, "bound": bound, "capacity": capacity},
            path="serving.router.kind",
        )


def _replicas(common: PoolInputs, chips: OwnedChips, resolve: Resolve) -> PoolInputs:
    """As many as were asked for on the main chips; as many as a further pool holds on its own."""
    spec = common.spec
    try:
        parallelism = resolve(spec, chips)
    except TrimtabError as error:
        raise on_pool(error, chips) from None
    each = parallelism.replica_chip_count
    count = max(1, chips.chip_count // each)
    if chips.name == MAIN_POOL:
        count = most_replicas(spec, each, chips.chip_count)
    return replace(placed(common, chips), parallelism=parallelism, replica_count=count)


def _built(inputs: PoolInputs, chip: Chip, chips: OwnedChips | None) -> PoolPlan:
    try:
        return build_pool(inputs, chip)
    except TrimtabError as error:
        raise (error if chips is None else on_pool(error, chips)) from None
