"""What turns of sessions find in prefix caches: the closed form, eviction, and the routers that keep them together."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.serving.engine import Engine
from simcore.serving.routers import Router
from simcore.serving.routers.least_outstanding import LeastOutstanding
from simcore.serving.routers.prefix_affinity import PrefixAffinity
from simcore.serving.routers.random import Random
from simcore.serving.routers.round_robin import RoundRobin
from simcore.serving.routers.session import Session
from simcore.serving.session_chains import approximate_chains, expected_session_hits, session_chains
from simcore.serving.state import FINISHED
from simcore.workload.arrivals import ClosedLoop, Poisson
from simcore.workload.lengths import LogNormal
from simcore.workload.requests import Requests, draw_requests
from simcore.workload.sessions import Sessions
from tests.simcore.serving.tables import POLICIES, SCHEDULERS, engine, poisson_requests

CASES = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 2**32 - 1),
        "rate": st.sampled_from([0.5, 5.0, 200.0]),
        "blocks": st.sampled_from([60, 150, 4096]),
        "block_size": st.sampled_from([1, 16, 48, 600]),
        "replica_count": st.sampled_from([1, 3]),
        "shared": st.sampled_from([0, 40, 700]),
        "longest": st.sampled_from([900, 100_000]),
    }
)


def talk(
    count: int = 1_500,
    *,
    rate: float = 4.0,
    seed: int = 1,
    shared: int = 100,
    longest: int = 100_000,
    turns: float = 4.0,
    users: int = 0,
) -> Requests:
    return draw_requests(
        ClosedLoop(concurrency=users) if users else Poisson(request_per_s=rate),
        LogNormal(input_mean_tokens=90, output_mean_tokens=40),
        request_count=count,
        seed=seed,
        max_model_len=longest,
        sessions=Sessions(turns_mean=turns, think_time_mean_s=2.0, shared_system_prompt_tokens=shared),
    )


def caching(requests: Requests, *, block_size: int = 16, block_count: int = 50_000, **options) -> Engine:
    chains = session_chains(requests, requests.turns, block_size_tokens=block_size)
    return engine(requests, chains=chains, block_size=block_size, block_count=block_count, **options)


def hit_fraction(run: Engine) -> float:
    run.run()
    return run.totals().hit_token_sum / run.totals().prompt_token_sum


@settings(deadline=None)
@given(case=CASES)
def test_a_chain_names_each_whole_block_of_what_was_said_once(case: dict) -> None:
    """Of a turn: its prompt, and its answer but for the last token; the next turn's begins with all of that."""
    requests = talk(60, seed=case["seed"], shared=case["shared"], longest=case["longest"])
    turns, block = requests.turns, case["block_size"]
    chains = session_chains(requests, turns, block_size_tokens=block)
    named = [
        chains.entries[begin:end].tolist() for begin, end in zip(chains.offsets, chains.ends, strict=True)
    ]
    stored = (requests.input_tokens + requests.output_tokens - 1) // block
    shared = case["shared"] // block
    for request, entries in enumerate(named):
        assert len(set(entries)) == len(entries)
        assert chains.blocks[entries].sum() == max(stored[request], shared)
        assert (chains.blocks[entries] * block <= max(512, block)).all()
        later = turns.following[request]
        if later >= 0:
            assert named[later][: len(entries)] == entries
    own = [set(entries) for entries in named]
    sessions = [
        set.union(*(own[i] for i in np.flatnonzero(turns.session == s))) for s in range(turns.session_count)
    ]
    common = set.intersection(*sessions) if len(sessions) > 1 else set()
    if len(sessions) > 1:
        assert chains.blocks[sorted(common)].sum() == shared
        assert all((one - common).isdisjoint(other - common) for one, other in pairwise(sessions))


@pytest.mark.parametrize(("kind", "router"), POLICIES)
@settings(deadline=None, max_examples=15)
@given(case=CASES)
def test_blocks_are_conserved_however_tight_memory_is(kind: str, router: Router, case: dict) -> None:
    requests = talk(80, rate=case["rate"], seed=case["seed"], shared=case["shared"], longest=case["longest"])
    run = caching(
        requests,
        block_size=case["block_size"],
        block_count=case["blocks"],
        kind=kind,
        router=router,
        replica_count=case["replica_count"],
    )
    for _ in run.slices(target_count=20):
        assert (run._lanes.cached_blocks <= run._lanes.free_blocks).all()
        assert (run._lanes.free_blocks >= 0).all()
    assert (run._lanes.free_blocks == case["blocks"]).all()
    assert (run._lanes.doubled_blocks == 0).all()
    done = run.records().status == FINISHED
    assert run.totals().prompt_token_sum == requests.input_tokens[done].sum()
    assert (run.hit_tokens < requests.input_tokens).all()


@pytest.mark.parametrize("kind", SCHEDULERS)
def test_every_turn_finds_all_whole_blocks_of_the_turns_before_it(kind: str) -> None:
    requests = talk(400, rate=0.05)  # also the first session is done with the system prompt before the second
    run = caching(requests, kind=kind)
    run.run()
    following, block = requests.turns.following, 16
    known = np.where(requests.turns.turn == 0, 100 // block * block, 0)
    known[0] = 0
    stored = (requests.input_tokens + requests.output_tokens - 1) // block * block
    known[following[following >= 0]] = stored[following >= 0]
    np.testing.assert_array_equal(run.hit_tokens, known)
    assert run.totals().evicted_block_sum == 0


@pytest.mark.parametrize("users", [0, 20])
@pytest.mark.parametrize("router", [RoundRobin(), Random(), LeastOutstanding()], ids=lambda one: one.kind)
@pytest.mark.parametrize("replica_count", [1, 2, 4])
def test_the_closed_form_is_met_where_turns_are_dealt_out(
    router: Router, replica_count: int, users: int
) -> None:
    requests = talk(6_000, users=users)
    found = hit_fraction(caching(requests, router=router, replica_count=replica_count))
    expected = expected_session_hits(requests, requests.turns, lane_count=replica_count, block_size_tokens=16)
    assert found == pytest.approx(expected, abs=0.001 if replica_count == 1 else 0.012)


def test_the_session_router_makes_one_cache_of_all_and_prefix_affinity_nearly_so() -> None:
    requests = talk(6_000)
    dealt, sticky, kept = (
        hit_fraction(caching(requests, router=router, replica_count=4))
        for router in (RoundRobin(), Session(), PrefixAffinity())
    )
    assert sticky == pytest.approx(
        expected_session_hits(requests, requests.turns, lane_count=1, block_size_tokens=16), abs=0.001
    )
    assert sticky > dealt + 0.2
    assert kept == pytest.approx(sticky, abs=0.03)


def test_a_smaller_cache_finds_less_and_turns_answer_later() -> None:
    requests = talk(3_000, rate=3.0)
    runs = [caching(requests, block_count=blocks) for blocks in (300, 600, 50_000)]
    found = [hit_fraction(run) for run in runs]
    assert found[0] < found[1] - 0.05 < found[2] - 0.1
    assert runs[0].totals().evicted_block_sum > runs[1].totals().evicted_block_sum > 0
    waits_s = [float(np.nanmean(run.records().ttft_s)) for run in runs]
    assert waits_s[0] > waits_s[2]


def test_a_session_stays_where_its_first_turn_went_and_first_turns_go_where_least_is_outstanding() -> None:
    requests = talk(2_000, rate=8.0)
    run = engine(requests, router=Session(), replica_count=4)
    run.run()
    records, turns = run.records(), requests.turns
    np.testing.assert_array_equal(records.replica, records.replica[: requests.start_count][turns.session])
    counts = np.bincount(records.replica, minlength=4)
    assert counts.min() > 0.2 * counts.sum()


def test_without_sessions_the_router_is_least_outstanding() -> None:
    requests = poisson_requests(300, rate=60.0)
    runs = [engine(requests, router=router, replica_count=4) for router in (Session(), LeastOutstanding())]
    for run in runs:
        run.run()
    np.testing.assert_array_equal(runs[0].records().finish_s, runs[1].records().finish_s)
    np.testing.assert_array_equal(runs[0].records().replica, runs[1].records().replica)


def test_the_approximate_order_is_that_of_the_turns_in_each_session() -> None:
    for users in (0, 5):
        requests = talk(300, users=users, shared=1_100)
        offsets, hashes = approximate_chains(requests, requests.turns)
        assert len(offsets) == 301
        lengths = np.diff(offsets)
        np.testing.assert_array_equal(np.sort(lengths), np.sort(requests.input_tokens // 512))
        long = np.flatnonzero(lengths >= 2)
        assert all(hashes[offsets[i] : offsets[i] + 2].tolist() == [0, 1] for i in long)
        seen: dict[int, int] = {}
        for i in np.flatnonzero(lengths > 2):  # the third block names the session; its chains only grow
            name = int(hashes[offsets[i] + 2])
            assert lengths[i] >= seen.get(name, 0)
            seen[name] = int(lengths[i])
