"""The prefix cache of the engine: laws of blocks and holders, the closed form in the limit, and Mooncake's traces."""

import hashlib
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.errors import InputError
from simcore.memory.prefix_cache import BlockChains, prefix_hits, saved_tokens
from simcore.serving.engine import Engine
from simcore.serving.prefix import PrefixChains
from simcore.serving.routers import Router
from simcore.serving.state import FINISHED, REJECTED
from simcore.workload.block_hashes import BLOCK_TOKENS
from simcore.workload.requests import Requests
from simcore.workload.traces import read_trace
from tests.simcore.memory.test_prefix_cache import mooncake_lines
from tests.simcore.serving.tables import POLICIES, SCHEDULERS, affine_table, engine

BLOCK = 64  # KV blocks of a small pool; a hash names 8 of them
LOADS = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 2**32 - 1),
        "rate": st.sampled_from([0.02, 2.0, 20.0, 1000.0]),
        "blocks": st.sampled_from([45, 70, 150, 4096]),
        "replica_count": st.sampled_from([1, 1, 3]),
        "kinds": st.sampled_from([1, 4, 30]),
    }
)


def conversations(count: int, *, rate: float, seed: int, kinds: int) -> Requests:
    """Prompts that begin with one of `kinds` stems, go on along one of two branches, and end on their own."""
    draws = np.random.default_rng(seed)
    inputs = draws.integers(1, 2_000, count)
    lengths = -(-inputs // BLOCK_TOKENS)
    hashes = []
    for length, last in zip(lengths.tolist(), (inputs % BLOCK_TOKENS).tolist(), strict=True):
        stem, branch = int(draws.integers(kinds)), int(draws.integers(2))
        names = [stem * 100 + place + (50 * branch if place > 1 else 0) for place in range(length)]
        if last:  # the tail of a prompt is the same only where it ends at the same place
            names[-1] = 1_000_000 + (stem * 100 + length * 2 + branch) * BLOCK_TOKENS + last
        hashes.append(names)
    return Requests(
        arrival_s=np.cumsum(draws.exponential(1 / rate, count)),
        input_tokens=inputs,
        output_tokens=draws.integers(1, 120, count),
        chains=(np.append(0, np.cumsum(lengths)), np.array([name for names in hashes for name in names])),
    )


def chains_of(requests: Requests, block: int = BLOCK) -> PrefixChains:
    assert requests.chains is not None
    return PrefixChains.of(requests.chains, requests.input_tokens, block_size_tokens=block)


def caching(requests: Requests, *, block: int = BLOCK, cached: bool = True, **options) -> Engine:
    chains = chains_of(requests, block) if cached else None
    return engine(requests, block_size=block, chains=chains, **options)


def loaded(kind: str, router: Router, load: dict, count: int = 80) -> Engine:
    requests = conversations(count, rate=load["rate"], seed=load["seed"], kinds=load["kinds"])
    return caching(
        requests, kind=kind, router=router, block_count=load["blocks"], replica_count=load["replica_count"]
    )


def seats_of(run: Engine, lane):
    seat_id = lane.last_seat
    while seat_id >= 0:
        yield run._seats[seat_id]
        seat_id = run._seats[seat_id].before


def check_lane(run: Engine, lane, blocks: int) -> None:
    """Every block is private to one sequence, shared, cached or free; holders are those who hold."""
    prefix = run._prefix
    held = np.zeros(len(prefix.blocks), int)
    private = 0
    for seat in seats_of(run, lane):
        tokens = seat.done if seat.start < 0 else seat.target + lane.step - seat.start
        opened = int(seat.start >= 0 and lane.steps > 0 and lane.decodes > 0 and tokens % BLOCK == 0)
        begin = prefix.offsets[seat.request]
        mine = prefix.entries[begin : begin + seat.shared]
        assert prefix.blocks[mine].sum() == seat.shared_blocks
        held[mine] += 1
        own = -(-int(tokens) // BLOCK) + opened - seat.shared_blocks
        assert own >= 0
        private += own
    cells = prefix.cells[lane.cell_base : lane.cell_base + len(held)]
    shelved, entry, newer = [], lane.newest, -1
    while entry >= 0:
        shelved.append(entry)
        assert cells[entry].newer == newer
        entry, newer = cells[entry].older, entry
    assert newer == lane.oldest
    assert (cells.holders[held > 0] == held[held > 0] + 1).all()
    assert sorted(shelved) == np.flatnonzero(cells.holders == 1).tolist()
    assert prefix.blocks[shelved].sum() == lane.cached_blocks
    assert (prefix.blocks * np.maximum(held - 1, 0)).sum() == lane.doubled_blocks
    assert 0 <= lane.cached_blocks <= lane.free_blocks
    assert private + prefix.blocks[held > 0].sum() + lane.free_blocks == blocks


@pytest.mark.parametrize(("kind", "router"), POLICIES)
@settings(deadline=None, max_examples=40)
@given(load=LOADS)
def test_every_block_is_owned_shared_cached_or_free_at_every_pause(kind, router, load):
    run = loaded(kind, router, load)
    for _ in run.slices(target_count=25):
        for lane in run._lanes:
            check_lane(run, lane, load["blocks"])
    assert (run._lanes.free_blocks == load["blocks"]).all()
    records, totals = run.records(), run.totals()
    done = records.status == FINISHED
    assert (done | (records.status == REJECTED)).all()
    assert totals.prompt_token_sum == records.input_tokens[done].sum()
    assert totals.hit_token_sum == run.hit_tokens.sum()
    assert (run.hit_tokens < records.input_tokens).all()
    assert 0 <= totals.kv_useful_fraction <= 1
    if not totals.preemption_count:
        assert totals.prefill_token_sum == totals.prompt_token_sum - totals.hit_token_sum


@pytest.mark.parametrize(("kind", "router"), POLICIES)
@settings(deadline=None, max_examples=25)
@given(load=LOADS, pieces=st.integers(2, 50))
def test_slices_and_one_go_give_the_same_bits(kind, router, load, pieces):
    whole, sliced = loaded(kind, router, load), loaded(kind, router, load)
    whole.run()
    assert len(list(sliced.slices(target_count=pieces))) > 1
    for name in ("scheduled_s", "first_token_s", "finish_s", "preemption_count"):
        np.testing.assert_array_equal(getattr(whole.records(), name), getattr(sliced.records(), name))
    np.testing.assert_array_equal(whole.hit_tokens, sliced.hit_tokens)


@pytest.mark.parametrize(("kind", "router"), POLICIES)
@settings(deadline=None, max_examples=25)
@given(load=LOADS)
def test_prompts_without_a_common_block_fare_as_without_a_cache(kind, router, load):
    """What nobody asks for again only fills blocks that were free, however tight memory is."""
    requests = conversations(80, rate=load["rate"], seed=load["seed"], kinds=load["kinds"])
    offsets, hashes = requests.chains
    requests = replace(requests, chains=(offsets, np.arange(len(hashes))))
    options = {"kind": kind, "router": router, "block_count": load["blocks"]}
    with_cache, without = caching(requests, **options), caching(requests, cached=False, **options)
    with_cache.run()
    without.run()
    # A sequence that was preempted finds its own prompt again.
    if not without.totals().preemption_count:
        for name in ("scheduled_s", "first_token_s", "finish_s"):
            known = getattr(without.records(), name)
            np.testing.assert_allclose(getattr(with_cache.records(), name), known, rtol=1e-12)
        assert with_cache.totals().hit_token_sum == 0
    assert with_cache.totals().completed_count == without.totals().completed_count


@pytest.mark.parametrize("kind", SCHEDULERS)
@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 2**32 - 1), kinds=st.sampled_from([1, 4, 30]))
def test_requests_one_after_the_other_hit_as_in_the_closed_form(kind, seed, kinds):
    requests = conversations(60, rate=1e-4, seed=seed, kinds=kinds)
    run = caching(requests, kind=kind, block_count=100_000)
    run.run()
    np.testing.assert_array_equal(run.hit_tokens, closed_form(requests, BLOCK))
    assert run.totals().evicted_block_sum == 0


def closed_form(requests: Requests, block: int) -> np.ndarray:
    """Hit tokens of an infinite cache: whole KV blocks of resident hashes, never the last token."""
    hits = prefix_hits(BlockChains.of(*requests.chains))
    tokens = saved_tokens(hits, requests.input_tokens, block_size_tokens=BLOCK_TOKENS)
    whole = requests.input_tokens // block * block
    return np.minimum(np.minimum(hits.hit_blocks * BLOCK_TOKENS, whole), tokens)


@pytest.mark.parametrize("kind", SCHEDULERS)
def test_a_cache_never_makes_one_request_after_the_other_slower_and_more_of_it_hits_more(kind):
    requests = conversations(300, rate=1e-4, seed=3, kinds=6)
    runs = [caching(requests, kind=kind, block_count=blocks) for blocks in (40, 60, 120, 5_000)]
    runs.append(caching(requests, kind=kind, block_count=5_000, cached=False))
    for run in runs:
        run.run()
    hits = [run.totals().hit_token_sum for run in runs[:4]]
    assert hits == sorted(hits)
    assert 0 < hits[0] < hits[3]
    off = runs[-1].records()
    for run in runs[:4]:
        assert (run.records().ttft_s <= off.ttft_s + 1e-9).all()
        again = run.hit_tokens > 0
        assert (run.records().ttft_s[again] < off.ttft_s[again]).all()


def test_overlapping_requests_compute_what_they_share_twice_and_hold_it_once() -> None:
    """Two equal prompts of 1,024 tokens at one instant: both compute, one copy stays; a third finds it."""
    requests = Requests(
        arrival_s=np.array([0.0, 0.0, 50.0]),
        input_tokens=np.full(3, 1_024),
        output_tokens=np.array([2, 2, 2]),
        chains=(np.array([0, 2, 4, 6]), np.tile([7, 8], 3)),
    )
    run = caching(requests, block_count=40, max_num_batched_tokens=2_048)
    run.run()
    assert run.hit_tokens.tolist() == [0, 0, 1_023]
    assert run.totals().kv_usage_max_fraction == 32 / 40  # while both compute; then 16 are shared
    assert run._lanes[0].cached_blocks == 16


@pytest.mark.parametrize("kind", SCHEDULERS)
def test_more_sequences_than_blocks_can_run_on_one_shared_block(kind: str) -> None:
    """A dozen equal prompts of one block each: once it is computed they hold it together, with a seat each."""
    requests = Requests(
        arrival_s=np.append(0.0, np.full(12, 10.0)),
        input_tokens=np.full(13, BLOCK),
        output_tokens=np.ones(13, np.int64),
        chains=(np.arange(14), np.full(13, 7)),
    )
    run = caching(requests, kind=kind, block_count=2)
    run.run()
    assert run.hit_tokens.tolist() == [0, *[BLOCK - 1] * 12]
    assert len(set(run.records().finish_s[1:].tolist())) == 1
    assert run._lanes[0].free_blocks == 2


def test_a_preempted_sequence_finds_its_prompt_again() -> None:
    """Tight memory: the one that is put off had 512 tokens that another holds; it computes the rest only."""
    requests = Requests(
        arrival_s=np.zeros(2),
        input_tokens=np.full(2, 600),
        output_tokens=np.full(2, 150),
        chains=(np.array([0, 1, 2]), np.array([7, 7])),
    )
    runs = [caching(requests, cached=cached, block_count=13) for cached in (True, False)]
    for run in runs:
        run.run()
    found, computed = runs[0].totals(), runs[1].totals()
    assert found.completed_count == computed.completed_count == 2
    assert found.prefill_token_sum < computed.prefill_token_sum


@pytest.mark.parametrize("block", [1, 16, 512])
def test_the_last_token_is_computed_at_any_block_size(block: int) -> None:
    requests = Requests(
        arrival_s=np.array([0.0, 1e3, 2e3]),
        input_tokens=np.array([1_024, 1_024, 512]),
        output_tokens=np.full(3, 3),
        chains=(np.array([0, 2, 4, 5]), np.array([1, 2, 1, 2, 1])),
    )
    run = caching(requests, block=block, block_count=8_192)
    run.run()
    known = [0, 512, 0] if block == 1 else [0, 1_023, 511]
    assert run.hit_tokens.tolist() == known
    assert run._lanes[0].free_blocks == 8_192


def test_a_block_size_that_does_not_divide_a_hash_is_refused_with_a_next_step() -> None:
    with pytest.raises(InputError, match="use 16 or 32") as caught:
        chains_of(conversations(3, rate=1.0, seed=1, kinds=1), block=48)
    assert caught.value.message.path == "serving.kv.block_size"


def test_a_hash_that_comes_twice_in_a_prompt_ends_its_chain() -> None:
    chains = PrefixChains.of((np.array([0, 3]), np.array([4, 4, 5])), np.array([1_536]), block_size_tokens=16)
    assert (chains.offsets.tolist(), chains.ends.tolist()) == ([0], [1])


def test_without_a_hash_no_chain_is_longer_than_zero() -> None:
    chains = PrefixChains.of(
        (np.zeros(4, np.int64), np.zeros(0, np.int64)), np.full(3, 9), block_size_tokens=16
    )
    assert chains.offsets.tolist() == chains.ends.tolist() == [0, 0, 0]


def fingerprint(kind: str) -> str:
    requests = conversations(40, rate=30.0, seed=5, kinds=4)
    run = caching(requests, kind=kind, block_count=70, replica_count=2)
    run.run()
    digest = hashlib.sha256(run.records().finish_s.tobytes())
    digest.update(run.hit_tokens.tobytes())
    return digest.hexdigest()


@pytest.mark.parametrize(("name", "fraction"), [("conversation", 0.366), ("synthetic", 0.640)])
def test_mooncake_traces_hit_in_the_engine_as_published(shared, name, fraction):
    """One request at a time, in a pool that keeps everything; at the trace's own pace some come too early."""
    path = shared / "data" / "traces" / f"mooncake_{name}_full_rle.csv"
    if not path.is_file():
        pytest.skip(f"needs {path.name}")
    table = read_trace("\n".join(mooncake_lines(path)).encode(), format="mooncake")
    apart, paced = np.arange(len(table)) * 1e4, table.timestamp_s
    shares = []
    for instants in (apart, paced):
        requests = Requests(
            arrival_s=instants,
            input_tokens=table.input_tokens,
            output_tokens=table.output_tokens,
            chains=table.block_chains,
        )
        run = engine(
            requests,
            affine_table(max_tokens=8_192),
            block_count=20_000_000,
            max_num_batched_tokens=8_192,
            chains=PrefixChains.of(requests.chains, requests.input_tokens, block_size_tokens=16),
        )
        run.run()
        if instants is apart:
            np.testing.assert_array_equal(run.hit_tokens, closed_form(requests, 16))
        blocks = np.diff(table.block_offsets)
        whole = (
            run.hit_tokens + 16 >= table.input_tokens
        )  # a tail that ends inside a KV block hits but for it
        hit_blocks = np.where(whole, blocks, run.hit_tokens // BLOCK_TOKENS)
        shares.append(hit_blocks.sum() / blocks.sum())
    assert shares[0] == pytest.approx(fraction, abs=5e-4)
    assert fraction - 0.1 < shares[1] <= shares[0]
