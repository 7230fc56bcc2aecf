"""One router over the lanes of several pools sees all of them, whichever it is."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from simcore.serving.engine import Engine
from simcore.serving.pools import LanePool
from simcore.serving.records import Records
from simcore.serving.routers import Router
from simcore.serving.routers.least_kv import LeastKv
from simcore.serving.routers.least_outstanding import LeastOutstanding
from simcore.serving.routers.power_of_two import PowerOfTwo
from simcore.serving.routers.prefix_affinity import PrefixAffinity
from simcore.serving.routers.random import Random
from simcore.serving.routers.round_robin import RoundRobin
from simcore.serving.schedulers import SchedulerParameters
from tests.simcore.serving.tables import affine_table, poisson_requests, scaled

ROUTERS = [RoundRobin(), Random(), LeastOutstanding(), LeastKv(), PowerOfTwo(), PrefixAffinity()]
LOOKING = [LeastOutstanding(), LeastKv(), PowerOfTwo(), PrefixAffinity()]


def pool(lane_count: int, *, slower: float = 1.0) -> LanePool:
    return LanePool(
        table=scaled(affine_table(), linear_s=slower, head_s=slower),
        scheduler=SchedulerParameters(kind="chunked_prefill", max_num_seqs=8, max_num_batched_tokens=256),
        block_count=512,
        lane_count=lane_count,
    )


def run(router: Router, *pools: LanePool, rate: float = 100.0) -> Records:
    engine = Engine(
        list(pools), block_size_tokens=16, router=router, requests=poisson_requests(600, rate=rate), seed=3
    )
    for _ in engine.slices(target_count=4):
        pass
    return engine.records()


@pytest.mark.parametrize("router", ROUTERS, ids=lambda router: router.kind)
@pytest.mark.parametrize("split", [(1, 3), (3, 1), (2, 1, 1)], ids=str)
def test_equal_pools_are_one_pool_of_all_lanes(router: Router, split: tuple[int, ...]) -> None:
    """Bit for bit, and lane for lane."""
    parts, whole = run(router, *map(pool, split)), run(router, pool(sum(split)))
    for field in fields(Records):
        np.testing.assert_array_equal(getattr(parts, field.name), getattr(whole, field.name), field.name)


@pytest.mark.parametrize("router", LOOKING, ids=lambda router: router.kind)
@pytest.mark.parametrize("fast_first", [True, False])
def test_who_looks_sends_slower_lanes_less(router: Router, fast_first: bool) -> None:
    fast, slow = pool(2), pool(2, slower=3.0)
    found = run(router, *((fast, slow) if fast_first else (slow, fast)))
    got = np.bincount(found.replica, minlength=4).reshape(2, 2).sum(axis=1)
    assert got[0 if fast_first else 1] > 1.2 * got[1 if fast_first else 0]
