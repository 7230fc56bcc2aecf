"""Tiers behind the KV pool: laws of their blocks, limits in which they are as if absent, and what they are worth."""

import hashlib
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.serving.attribution import seconds_by_resource
from simcore.serving.engine import Engine
from simcore.serving.routers import Router
from simcore.serving.routers.round_robin import RoundRobin
from simcore.serving.state import FINISHED, REJECTED
from simcore.serving.tiers import UNLIMITED_BLOCKS, KvTier, KvTiers, prefill_s_per_token
from simcore.workload.requests import Requests
from tests.simcore.serving.tables import SCHEDULERS, affine_table, engine, poisson_requests
from tests.simcore.serving.test_prefix import (
    BLOCK,
    LOADS,
    caching,
    check_lane,
    closed_form,
    conversations,
)

RECORDED = ("scheduled_s", "first_token_s", "finish_s", "preemption_count", "status")
DRAM = KvTier(name="host_dram", capacity_blocks=30, s_per_token=1e-6, latency_s=1e-5)
NVME = KvTier(name="nvme", capacity_blocks=90, s_per_token=4e-6, latency_s=1e-4)
FREE = KvTier(name="host_dram", capacity_blocks=UNLIMITED_BLOCKS, s_per_token=0.0, latency_s=0.0)
TIERS = st.sampled_from(
    [
        (DRAM,),
        (DRAM, NVME),
        (replace(DRAM, write_through=True), NVME),
        (replace(DRAM, capacity_blocks=5), replace(NVME, capacity_blocks=0), replace(NVME, name="remote")),
        (replace(DRAM, write_through=True), replace(NVME, write_through=True)),
    ]
)
BEHIND = [(kind, RoundRobin()) for kind in SCHEDULERS]  # tiers belong to a lane: no router reads them
USES = st.sampled_from([(True, False), (False, True), (True, True)])


def behind(tiers: tuple[KvTier, ...], uses: tuple[bool, bool]) -> KvTiers:
    return KvTiers(tiers=tiers, swap=uses[0], stow=uses[1])


def loaded(kind: str, router: Router, load: dict, tiers: KvTiers | None, count: int = 80) -> Engine:
    requests = conversations(count, rate=load["rate"], seed=load["seed"], kinds=load["kinds"])
    options = {"block_count": load["blocks"], "replica_count": load["replica_count"], "tiers": tiers}
    return caching(requests, kind=kind, router=router, **options)


def same(one: Engine, two: Engine) -> None:
    for name in RECORDED:
        np.testing.assert_array_equal(getattr(one.records(), name), getattr(two.records(), name))
    np.testing.assert_array_equal(one.hit_tokens, two.hit_tokens)
    assert one.totals().busy_s == two.totals().busy_s
    np.testing.assert_array_equal(one.totals().gap_histogram, two.totals().gap_histogram)


def check_tiers(run: Engine, lane, tiers: KvTiers) -> None:
    """What is swapped, cached and free fills a tier; entries stand in its list once."""
    prefix = run._prefix
    waiting, request = [], lane.queue_first  # who was preempted stands first in line
    for _ in range(lane.returning):
        waiting.append(run._rows[request])
        request = run._rows[request].after
    for level, figures in enumerate(tiers.tiers):
        tier = prefix.tiers[lane.tier_base + level]
        swapped = [row.held for row in waiting if tiers.swap and row.level == level]
        assert sum(-(-int(held) // BLOCK) for held in swapped) == tier.swapped_blocks
        listed, entry, newer = [], tier.newest, -1
        while entry >= 0:
            listed.append(entry)
            assert prefix.cells[tier.cell_base + entry].newer == newer
            entry, newer = prefix.cells[tier.cell_base + entry].older, entry
        assert newer == tier.oldest
        if tiers.stow:
            cells = prefix.cells[tier.cell_base : tier.cell_base + len(prefix.blocks)]
            assert sorted(listed) == np.flatnonzero(cells.holders).tolist()
        assert prefix.blocks[listed].sum() == tier.cached_blocks
        free = figures.capacity_blocks - tier.swapped_blocks - tier.cached_blocks
        assert 0 <= free <= figures.capacity_blocks


@pytest.mark.parametrize(("kind", "router"), BEHIND)
@settings(deadline=None, max_examples=12)
@given(load=LOADS, tiers=TIERS, uses=USES)
def test_a_tier_is_swapped_cached_or_free_at_every_pause_and_every_request_ends_once(
    kind, router, load, tiers, uses
):
    given_tiers = behind(tiers, uses)
    run = loaded(kind, router, load, given_tiers)
    for _ in run.slices(target_count=25):
        for lane in run._lanes:
            check_lane(run, lane, load["blocks"])
            check_tiers(run, lane, given_tiers)
    assert (run._lanes.free_blocks == load["blocks"]).all()
    assert (run._prefix.tiers.swapped_blocks == 0).all()
    status = run.records().status
    assert ((status == FINISHED) | (status == REJECTED)).all()
    totals = run.totals()
    assert (totals.swap_count or 0) <= totals.preemption_count
    assert all(0 <= use.used_max_fraction <= 1 for use in totals.tiers)
    assert sum(use.hit_token_sum or 0 for use in totals.tiers) <= totals.hit_token_sum
    assert (totals.swap_count is not None) == uses[0]
    assert all((use.hit_token_sum is not None) == uses[1] for use in totals.tiers)


@pytest.mark.parametrize(("kind", "router"), BEHIND)
@settings(deadline=None, max_examples=8)
@given(load=LOADS, tiers=TIERS, uses=USES)
def test_transfers_take_their_time_and_the_parts_of_time_sum_to_the_whole(kind, router, load, tiers, uses):
    requests = conversations(60, rate=load["rate"], seed=load["seed"], kinds=load["kinds"])
    table = affine_table(max_tokens=2_048)
    options = {"max_num_batched_tokens": 2_048, "kind": kind, "router": router, "block_count": load["blocks"]}
    options |= {"replica_count": load["replica_count"], "tiers": behind(tiers, uses)}
    run = caching(requests, table=table, **options)
    run.run()
    totals = run.totals()
    parts = seconds_by_resource(totals, table)
    assert sum(parts.values()) == pytest.approx(totals.replica_count * totals.makespan_s, rel=1e-9)
    moved_s = sum(
        (use.read_token_sum + use.written_token_sum) * tier.s_per_token
        for use, tier in zip(totals.tiers, tiers, strict=True)
    )
    assert parts["host"] == totals.moved_s
    assert totals.moved_s <= totals.busy_s
    if uses == (True, False):  # whoever is swapped out waits for it
        latencies = 2 * totals.swap_count * max(tier.latency_s for tier in tiers)
        assert moved_s <= totals.moved_s * (1 + 1e-9)
        assert totals.moved_s <= (moved_s + latencies) * (1 + 1e-9)


@pytest.mark.parametrize(("kind", "router"), BEHIND)
@settings(deadline=None, max_examples=8)
@given(load=LOADS, tiers=TIERS, uses=USES, pieces=st.integers(2, 50))
def test_slices_and_one_go_give_the_same_bits(kind, router, load, tiers, uses, pieces):
    whole, sliced = (loaded(kind, router, load, behind(tiers, uses)) for _ in range(2))
    whole.run()
    assert len(list(sliced.slices(target_count=pieces))) > 1
    same(whole, sliced)
    assert whole.totals().tiers == sliced.totals().tiers


@pytest.mark.parametrize(("kind", "router"), BEHIND)
@settings(deadline=None, max_examples=8)
@given(load=LOADS, uses=USES, count=st.integers(1, 3), through=st.booleans())
def test_tiers_without_capacity_are_as_if_absent(kind, router, load, uses, count, through):
    nothing = (replace(DRAM, capacity_blocks=0, write_through=through),) * count
    runs = [loaded(kind, router, load, tiers) for tiers in (None, behind(nothing, uses))]
    for run in runs:
        run.run()
    same(*runs)
    assert runs[1].totals().moved_s == 0


@pytest.mark.parametrize("kind", SCHEDULERS)
@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 2**32 - 1), blocks=st.sampled_from([30, 40]))
def test_a_free_tier_loses_nothing_of_a_preempted_sequence(kind, seed, blocks):
    """It computes every token once and the one that it lacks again, each time that it comes back."""
    requests = poisson_requests(120, rate=1000.0, seed=seed)
    swap = engine(requests, kind=kind, block_count=blocks, tiers=behind((FREE,), (True, False)))
    swap.run()
    totals, done = swap.totals(), swap.records().status == FINISHED
    assert totals.discarded_token_sum == totals.moved_s == 0
    assert totals.swap_count == totals.preemption_count
    prompts = requests.input_tokens[done].sum()
    assert prompts <= totals.prefill_token_sum <= prompts + totals.preemption_count
    # Nothing is sampled twice: every answer token is one prefill's or one decode's.
    assert totals.iterations_by_sampled @ np.arange(len(totals.iterations_by_sampled)) == pytest.approx(
        requests.output_tokens[done].sum()
    )


@pytest.mark.parametrize("kind", SCHEDULERS)
@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 2**32 - 1), kinds=st.sampled_from([1, 4, 30]), through=st.booleans())
def test_a_free_tier_behind_a_small_pool_hits_as_an_endless_pool(kind, seed, kinds, through):
    requests = conversations(60, rate=1e-4, seed=seed, kinds=kinds)
    free = behind((replace(FREE, write_through=through),), (False, True))
    small = caching(requests, kind=kind, block_count=40, tiers=free)
    endless = caching(requests, kind=kind, block_count=100_000)
    small.run()
    endless.run()
    np.testing.assert_array_equal(small.hit_tokens, closed_form(requests, BLOCK))
    np.testing.assert_allclose(small.records().finish_s, endless.records().finish_s, rtol=1e-12)
    assert small.totals().tiers[0].hit_token_sum > 0 or small.totals().evicted_block_sum == 0


def test_more_of_a_tier_hits_more_and_a_slow_one_is_left_alone() -> None:
    requests = conversations(300, rate=1e-4, seed=3, kinds=6)
    hits = []
    for blocks in (0, 60, 5_000):
        run = caching(
            requests, block_count=40, tiers=behind((replace(DRAM, capacity_blocks=blocks),), (False, True))
        )
        run.run()
        hits.append(run.totals().hit_token_sum)
    assert hits[0] < hits[1] < hits[2]
    alone = caching(requests, block_count=40)
    slow = replace(DRAM, capacity_blocks=5_000, s_per_token=1.0)
    shunned = caching(requests, block_count=40, tiers=behind((slow,), (False, True)))
    for run in (alone, shunned):
        run.run()
    assert shunned.totals().tiers[0].hit_token_sum == 0
    assert shunned.totals().hit_token_sum == alone.totals().hit_token_sum


def test_a_prefix_is_brought_back_exactly_where_that_is_quicker_than_computing_it() -> None:
    """Two prompts of 1,024 tokens push each other out of a pool of 20 blocks; then the first comes again."""
    requests = Requests(
        arrival_s=np.array([0.0, 1e3, 2e3]),
        input_tokens=np.full(3, 1_024),
        output_tokens=np.full(3, 2),
        chains=(np.array([0, 2, 4, 6]), np.array([1, 2, 3, 4, 1, 2])),
    )
    table = affine_table()
    again_s = 1_023 * prefill_s_per_token(table) + 1_023**2 / 2 * table.prefill_attention_s_per_token_context
    for factor, expected in ((0.99, 1_023), (1.01, 0)):
        tier = KvTier(name="nvme", capacity_blocks=64, s_per_token=factor * again_s / 1_023, latency_s=0.0)
        run = caching(requests, block_count=20, tiers=behind((tier,), (False, True)))
        run.run()
        assert run.totals().tiers[0].hit_token_sum == expected
        if expected:
            assert run.totals().tiers[0].read_token_sum == expected


def test_write_through_writes_what_is_computed_and_write_back_what_leaves() -> None:
    requests = Requests(
        arrival_s=np.arange(3) * 1e3,
        input_tokens=np.full(3, 1_024),
        output_tokens=np.full(3, 2),
        chains=(np.array([0, 2, 4, 6]), np.arange(6)),
    )
    for through, written in ((True, 3 * 1_024), (False, 2 * 1_024)):
        tier = replace(DRAM, capacity_blocks=1_000, write_through=through)
        run = caching(requests, block_count=20, tiers=behind((tier,), (False, True)))
        run.run()
        found = run._prefix.tiers[0]
        assert found.written_tokens + found.outgoing == written


@pytest.mark.parametrize("kind", SCHEDULERS)
def test_swap_beats_recompute_exactly_on_the_fast_side_of_where_they_meet(kind: str) -> None:
    """One sequence is put off for want of memory; out and back against computing what it held."""
    requests = Requests(
        arrival_s=np.zeros(2), input_tokens=np.full(2, 256), output_tokens=np.full(2, 200), chains=None
    )
    runs = {}
    again = engine(requests, kind=kind, block_count=40, max_num_batched_tokens=512)
    again.run()
    held = again.totals().discarded_token_sum
    free = engine(
        requests, kind=kind, block_count=40, max_num_batched_tokens=512, tiers=behind((FREE,), (True, False))
    )
    free.run()
    saved_s = again.totals().makespan_s - free.totals().makespan_s
    assert held > 0
    assert saved_s > 0
    moved = free.totals().tiers[0].read_token_sum + free.totals().tiers[0].written_token_sum
    for factor in (0.9, 1.1):
        tier = replace(FREE, s_per_token=factor * saved_s / moved)
        run = engine(
            requests,
            kind=kind,
            block_count=40,
            max_num_batched_tokens=512,
            tiers=behind((tier,), (True, False)),
        )
        run.run()
        runs[factor] = run.totals().makespan_s
    assert runs[0.9] < again.totals().makespan_s < runs[1.1]


def fingerprint(kind: str) -> str:
    requests = conversations(40, rate=30.0, seed=5, kinds=4)
    tiers = behind((replace(DRAM, write_through=True), NVME), (True, True))
    run = caching(requests, kind=kind, block_count=60, replica_count=2, tiers=tiers)
    run.run()
    assert run.totals().swap_count or kind != "chunked_prefill"
    digest = hashlib.sha256(run.records().finish_s.tobytes())
    digest.update(repr(run.totals().tiers).encode())
    return digest.hexdigest()
