"""What each router does by itself, and what queueing theory says of it."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.errors import InputError
from simcore.serving.engine import Engine
from simcore.serving.estimate import erlang_c
from simcore.serving.routers import MOST_LANES, Router
from simcore.serving.routers.least_kv import LeastKv
from simcore.serving.routers.least_outstanding import LeastOutstanding
from simcore.serving.routers.loads import empty_loads, least_loaded, note
from simcore.serving.routers.power_of_two import PowerOfTwo
from simcore.serving.routers.prefix_affinity import PrefixAffinity
from simcore.serving.routers.random import Random
from simcore.serving.routers.round_robin import RoundRobin
from simcore.serving.seating import widened
from simcore.streams import stream
from simcore.workload.block_hashes import BLOCK_TOKENS
from simcore.workload.requests import Requests
from tests.simcore.serving.tables import (
    ROUTERS,
    constant_table,
    engine,
    poisson_requests,
)
from tests.simcore.serving.test_prefix import caching, conversations

STEP_S = 0.01
ANSWER = 200  # tokens on average; geometric answers of so many are exponential to half a per cent
SERVICE_S = STEP_S * ANSWER
TABLE = constant_table(STEP_S, max_tokens=64, max_sequences=4)


def markovian(router: Router, *, replicas: int, load: float, count: int = 200_000) -> Engine:
    """Replicas with one seat each, Poisson arrivals and exponential answers; all routers see the same requests."""
    draws = stream(11, "answers").geometric(1 / ANSWER, count)
    gaps = stream(11, "arrivals").exponential(1.0, count)
    requests = Requests(
        arrival_s=np.cumsum(gaps) * SERVICE_S / (load * replicas),
        input_tokens=np.ones(count, np.int64),
        output_tokens=draws,
    )
    run = engine(
        requests,
        TABLE,
        max_num_seqs=1,
        max_num_batched_tokens=64,
        block_count=100_000,
        replica_count=replicas,
        router=router,
    )
    run.run()
    return run


def mean_wait_s(router: Router, *, replicas: int, load: float) -> float:
    return float(markovian(router, replicas=replicas, load=load).records().queue_s.mean())


@settings(deadline=None)
@given(loads=st.lists(st.integers(0, 3), min_size=1, max_size=20), first=st.integers(0, 19))
def test_the_tree_of_loads_finds_what_a_scan_from_there_finds(loads: list[int], first: int) -> None:
    first %= len(loads)
    tree = empty_loads(len(loads))
    for index, load in enumerate(loads):
        note(tree, index, load)
    in_turn = [(first + place) % len(loads) for place in range(len(loads))]
    assert least_loaded(tree, first) == min(in_turn, key=lambda index: loads[index])


@pytest.mark.parametrize("load", [0.5, 0.8])
def test_random_is_an_m_m_1_queue_at_each_replica(load: float) -> None:
    """A thinned Poisson process is one again: mean wait ρ S / (1 - ρ), whatever the number of replicas."""
    waited_s = mean_wait_s(Random(), replicas=5, load=load)
    assert waited_s == pytest.approx(load * SERVICE_S / (1 - load), rel=0.05)


@pytest.mark.parametrize(("replicas", "load"), [(2, 0.5), (2, 0.8), (4, 0.8), (8, 0.9)])
def test_least_outstanding_lies_between_one_line_for_all_and_a_line_each(replicas: int, load: float) -> None:
    """Joining the shortest queue cannot beat M/M/k, where nobody waits beside an idle server, and comes near it."""
    shared_s = erlang_c(replicas, load * replicas) * SERVICE_S / (replicas * (1 - load))
    alone_s = load * SERVICE_S / (1 - load)
    waited_s = mean_wait_s(LeastOutstanding(), replicas=replicas, load=load)
    assert 0.97 * shared_s < waited_s < shared_s + 0.25 * (alone_s - shared_s)


def test_least_outstanding_comes_to_one_line_for_all_as_load_rises() -> None:
    """In heavy traffic the lines stay even and the servers are pooled (Foschini and Salz 1978)."""
    ratios = []
    for load in (0.5, 0.8, 0.95):
        shared_s = erlang_c(2, load * 2) * SERVICE_S / (2 * (1 - load))
        ratios.append(mean_wait_s(LeastOutstanding(), replicas=2, load=load) / shared_s)
    assert all(high > low for high, low in pairwise(ratios))
    assert ratios[-1] == pytest.approx(1.0, abs=0.12)


def test_whoever_looks_at_more_replicas_waits_less() -> None:
    """At a load of 0.9 on 10 replicas: random, then two looks, then all. The margins are several standard errors."""
    options = {"replicas": 10, "load": 0.9}
    blind_s, two_s, all_s = (
        mean_wait_s(router, **options) for router in (Random(), PowerOfTwo(), LeastOutstanding())
    )
    assert two_s < 0.5 * blind_s
    assert all_s < 0.8 * two_s


@pytest.mark.parametrize("router", [PowerOfTwo(), LeastOutstanding(), LeastKv()], ids=lambda one: one.kind)
def test_a_router_that_looks_leaves_shorter_lines_than_one_that_does_not(router: Router) -> None:
    """Real costs and many seats this time; the mean wait for a seat near saturation."""
    requests = poisson_requests(4_000, rate=160.0)
    waits_s = []
    for one in (Random(), router):
        run = engine(requests, max_num_seqs=8, replica_count=4, router=one, block_count=200)
        run.run()
        waits_s.append(float(run.records().queue_s.mean()))
    assert waits_s[1] < 0.5 * waits_s[0]


def test_power_of_two_looks_first_where_random_goes() -> None:
    """Paired draws: with nothing else to do anywhere, both send each request to the same replica."""
    requests = poisson_requests(300, rate=0.01)
    one, other = (engine(requests, router=router, replica_count=7) for router in (Random(), PowerOfTwo()))
    one.run()
    other.run()
    np.testing.assert_array_equal(one.records().replica, other.records().replica)


def test_the_draws_of_a_request_depend_on_the_seed_and_its_number_alone() -> None:
    few, many, reseeded = (
        engine(poisson_requests(count, rate=5.0), router=Random(), replica_count=8, seed=seed)
        for count, seed in ((50, 1), (400, 1), (50, 2))
    )
    for run in (few, many, reseeded):
        run.run()
    first = few.records().replica
    np.testing.assert_array_equal(first, many.records().replica[:50])
    assert (first != reseeded.records().replica).any()
    assert set(many.records().replica.tolist()) == set(range(8))


def test_ties_go_to_the_next_replica_in_turn() -> None:
    requests = poisson_requests(40, rate=0.01)  # each finds all replicas idle
    for router in (LeastOutstanding(), LeastKv(), PrefixAffinity()):
        run = engine(requests, router=router, replica_count=3)
        run.run()
        np.testing.assert_array_equal(run.records().replica, np.arange(40) % 3)


def test_least_kv_goes_where_prompts_are_short_when_numbers_are_equal() -> None:
    """Both replicas have one request; the third goes to the one whose KV cache holds less."""
    requests = Requests(
        arrival_s=np.array([0.0, 0.001, 0.05]),
        input_tokens=np.array([400, 16, 10]),
        output_tokens=np.array([50, 50, 1]),
    )
    run = engine(requests, router=LeastKv(), replica_count=2)
    run.run()
    assert run.records().replica.tolist() == [0, 1, 1]


@pytest.mark.parametrize("imbalance_ratio", [1.5, 2.0, 8.0])
def test_prefix_affinity_finds_more_prefixes_than_dealing_out_in_turn(imbalance_ratio: float) -> None:
    """Twelve families of prompts on four replicas whose caches hold a few families each."""
    requests = conversations(600, rate=4.0, seed=2, kinds=12)
    options = {"replica_count": 4, "block_count": 300, "max_num_batched_tokens": 512}
    blind = caching(requests, router=RoundRobin(), **options)
    sent = caching(requests, router=PrefixAffinity(imbalance_ratio=imbalance_ratio), **options)
    blind.run()
    sent.run()
    hits = [run.totals().hit_token_sum / run.totals().prompt_token_sum for run in (blind, sent)]
    assert hits[1] > hits[0] + 0.05


def test_prefix_affinity_keeps_a_family_together_until_its_replica_has_too_much_to_do() -> None:
    """One prefix for everybody: at low load one replica serves all; a burst spills over to the others."""
    alone, burst = (conversations(60, rate=rate, seed=2, kinds=1) for rate in (1e-3, 1e4))
    runs = [
        caching(requests, router=PrefixAffinity(), replica_count=4, block_count=4_096)
        for requests in (alone, burst)
    ]
    for run in runs:
        run.run()
    named = alone.input_tokens >= BLOCK_TOKENS  # shorter prompts have no block of the family
    assert named.sum() > 30
    assert len(set(runs[0].records().replica[named].tolist())) == 1
    counts = np.bincount(runs[1].records().replica, minlength=4)
    assert counts.max() <= 2 * (1 + 60 / 4) + 1  # passed over beyond 2 (1 + mean), with 60 in flight
    assert counts.min() > 0


def test_prefix_affinity_without_a_prefix_cache_is_least_outstanding() -> None:
    requests = conversations(200, rate=30.0, seed=4, kinds=3)
    runs = [
        caching(requests, cached=False, router=router, replica_count=4)
        for router in (PrefixAffinity(), LeastOutstanding())
    ]
    for run in runs:
        run.run()
    np.testing.assert_array_equal(runs[0].records().finish_s, runs[1].records().finish_s)


@pytest.mark.parametrize("kind", sorted(MOST_LANES))
def test_more_replicas_than_a_router_looks_after_are_refused_with_a_next_step(kind: str) -> None:
    router = next(router for router in ROUTERS if router.kind == kind)
    requests = poisson_requests(2, rate=1.0)
    with pytest.raises(InputError, match="use round_robin or least_outstanding") as caught:
        engine(requests, router=router, replica_count=MOST_LANES[kind] + 1)
    assert caught.value.message.path == "serving.router.kind"


@pytest.mark.parametrize("router", ROUTERS, ids=lambda one: one.kind)
@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 2**32 - 1), replicas=st.integers(1, 9))
def test_lanes_that_widen_change_nothing(router: Router, seed: int, replicas: int) -> None:
    """Beside an engine whose lanes begin with every seat that they could ever need."""
    requests = poisson_requests(60, rate=500.0, seed=seed)
    narrow, wide = (engine(requests, router=router, replica_count=replicas, seed=seed) for _ in range(2))
    for index in range(len(wide._lanes)):
        while wide._lanes[index].ring_size < 16:
            wide._seats, wide._room = widened(wide._lanes, wide._seats, wide._room, index, most=16)
    narrow.run()
    wide.run()
    for name in ("scheduled_s", "first_token_s", "finish_s", "replica"):
        np.testing.assert_array_equal(getattr(narrow.records(), name), getattr(wide.records(), name))
