"""Offload: where bringing KV back beats computing it, and what tiers hold; limits that must come out."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.memory.offload import (
    RecomputeCost,
    break_even_bytes_per_s,
    break_even_tokens,
    recompute_s,
    replay,
    restored,
    swap_s,
    swap_to_recompute,
)
from simcore.memory.prefix_cache import BlockChains, prefix_hits
from simcore.memory.tiers import tier_of
from simcore.why import constant, evaluate, leaf

POLICIES = ("write_through", "write_back")
KV = leaf(131_072.0, "kv_bytes_per_token")  # Llama-3.1-8B in bf16
# One H100 at half its peak: 2 · 8e9 FLOP per token, 4 · 32 layers · 4,096 per token and context.
COST = RecomputeCost(
    fixed_s=leaf(5e-3, "fixed_s"),
    s_per_token=leaf(16e9 / 500e12, "s_per_token"),
    s_per_token_context=leaf(4 * 32 * 4_096 / 500e12, "s_per_token_context"),
)
CHAINS = st.lists(st.tuples(st.integers(0, 6), st.integers(1, 8), st.integers(0, 3)), min_size=1, max_size=40)


def host(bytes_per_s=50e9, latency_s=10e-6):
    return tier_of(
        "host_dram",
        capacity_bytes=constant(1e12),
        bytes_per_s=leaf(bytes_per_s, "host_bytes_per_s"),
        latency_s=latency_s,
    )


def chains_of(requests):
    names, offsets = [], [0]
    for conversation, depth, branch in requests:
        names += [
            conversation * 1_000 + (branch if place >= 3 else 0) * 100 + place for place in range(depth)
        ]
        offsets.append(len(names))
    return BlockChains.of(np.array(offsets), np.array(names))


# ---- swap against recompute


@given(tokens=st.integers(1, 200_000), latency=st.floats(0, 5e-3))
def test_at_the_break_even_bandwidth_both_take_as_long(tokens, latency):
    found = break_even_bytes_per_s(COST, host(latency_s=latency), tokens, KV)
    assert found is not None
    at = host(found.value, latency)
    assert swap_s(at, tokens, KV).value == pytest.approx(recompute_s(COST, tokens).value)
    assert evaluate(found, {"prompt_tokens": 2.0 * tokens}) != found.value


@given(rate=st.floats(1e6, 1e12), latency=st.floats(0, 1.0))
def test_from_the_break_even_length_on_every_prompt_is_better_brought_back(rate, latency):
    tier = host(rate, latency)
    found = break_even_tokens(COST, tier, KV)
    assert found is not None  # attention grows with the square
    longer = found.value * np.array([1.001, 2.0, 100.0]) + 1.0
    for tokens in longer:
        assert swap_s(tier, tokens, KV).value <= recompute_s(COST, tokens).value
    if found.value > 0:
        assert swap_s(tier, found.value, KV).value == pytest.approx(recompute_s(COST, found.value).value)


def test_without_attention_a_slow_tier_never_wins_and_a_fast_one_after_its_latency():
    linear = RecomputeCost(
        fixed_s=constant(0.0), s_per_token=constant(1e-5), s_per_token_context=constant(0.0)
    )
    assert break_even_tokens(linear, host(1e9), KV) is None
    fast = break_even_tokens(linear, host(131_072.0 / 0.5e-5, 1e-3), KV)
    assert fast is not None
    assert fast.value == pytest.approx(200.0)


def test_a_tier_whose_latency_alone_takes_longer_has_no_break_even():
    assert break_even_bytes_per_s(COST, host(latency_s=10.0), 100, KV) is None


@given(tokens=st.integers(1, 200_000), rate=st.floats(1e9, 4e11), faster=st.floats(1.01, 10.0))
def test_the_ratio_is_below_one_where_bringing_back_is_quicker_and_falls_with_bandwidth(tokens, rate, faster):
    again_s = recompute_s(COST, tokens)
    found = swap_to_recompute(again_s, host(rate), tokens, KV).value
    assert (found < 1) == (swap_s(host(rate), tokens, KV).value < again_s.value)
    assert swap_to_recompute(again_s, host(rate * faster), tokens, KV).value < found


def test_pcie_brings_a_long_prompt_of_an_8b_model_back_ten_times_faster():
    """32k tokens are 4.3 GB: 86 ms over 50 GB/s against 1.6 s of prefill."""
    assert swap_s(host(), 32_768, KV).value == pytest.approx(0.0859, rel=1e-3)
    assert recompute_s(COST, 32_768).value / swap_s(host(), 32_768, KV).value > 10


# ---- tiers over a trace


@pytest.mark.parametrize("policy", POLICIES)
@settings(deadline=None, max_examples=60)
@given(requests=CHAINS, sizes=st.lists(st.integers(0, 30), min_size=1, max_size=3))
def test_tiers_add_to_what_hbm_alone_would_hit(policy, requests, sizes):
    chains = chains_of(requests)
    found = replay(chains, [12, *sizes], policy=policy)
    alone = prefix_hits(chains, capacity_blocks=12)
    assert (found.hit_blocks[:, 0] == alone.hit_blocks).all()
    assert (found.hit_blocks.sum(axis=1) + found.computed_blocks == np.diff(chains.offsets)).all()
    assert (found.resident_blocks <= [12, *sizes]).all()
    assert (found.hit_blocks.sum(axis=1) <= prefix_hits(chains).hit_blocks).all()


@pytest.mark.parametrize("policy", POLICIES)
@settings(deadline=None, max_examples=60)
@given(requests=CHAINS, size=st.integers(0, 30), place=st.integers(1, 2))
def test_a_tier_without_capacity_is_as_if_it_were_not_there(policy, requests, size, place):
    chains = chains_of(requests)
    without = replay(chains, [12, size], policy=policy)
    sizes = [12, size]
    sizes.insert(place, 0)
    beside = replay(chains, sizes, policy=policy)
    assert (np.delete(beside.hit_blocks, place, axis=1) == without.hit_blocks).all()
    assert (np.delete(beside.written_blocks, place) == without.written_blocks).all()
    assert beside.hit_blocks[:, place].sum() == beside.written_blocks[place] == 0


@pytest.mark.parametrize("policy", POLICIES)
@settings(deadline=None, max_examples=60)
@given(requests=CHAINS)
def test_a_tier_without_limit_hits_like_an_infinite_cache(policy, requests):
    chains = chains_of(requests)
    found = replay(chains, [12, 10**9], policy=policy)
    assert (found.hit_blocks.sum(axis=1) == prefix_hits(chains).hit_blocks).all()
    written, distinct = found.written_blocks[1], chains.distinct_count
    evicted = prefix_hits(chains, capacity_blocks=12).evicted_count
    assert written == distinct if policy == "write_through" else written <= min(distinct, evicted)


def test_write_back_writes_only_what_leaves_hbm():
    """[a b] in a cache of four: write-through copies both at once, write-back none until something leaves."""
    once = BlockChains.of(np.array([0, 2]), np.array([1, 2]))
    assert replay(once, [4, 8], policy="write_through").written_blocks.tolist() == [2, 2]
    assert replay(once, [4, 8], policy="write_back").written_blocks.tolist() == [2, 0]
    then = BlockChains.of(np.array([0, 2, 5]), np.array([1, 2, 3, 4, 5]))
    assert replay(then, [4, 8], policy="write_back").written_blocks.tolist() == [5, 1]


@settings(deadline=None, max_examples=60)
@given(requests=CHAINS)
def test_over_an_infinite_link_nothing_is_computed_again_and_over_none_everything(requests):
    chains = chains_of(requests)
    traffic = replay(chains, [4, 10**6], policy="write_back")
    for rate, name in ((float("inf"), "swapped_blocks"), (1e-3, "recomputed_blocks")):
        found = restored(
            traffic, [host(rate, 0.0)], COST, kv_bytes_per_token=KV.value, block_size_tokens=16
        )  # fmt: skip
        assert (getattr(found, name) == traffic.hit_blocks[:, 1:]).all()
        assert (found.saved_s >= 0).all()
    assert (found.saved_s == 0).all()
