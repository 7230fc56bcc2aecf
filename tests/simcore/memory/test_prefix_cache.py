"""Prefix caches: laws of LRU on chains, one pass against many replays, and the Mooncake traces."""

import csv
import json
from collections import OrderedDict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.memory.prefix_cache import (
    BlockChains,
    hit_curve,
    least_capacities,
    prefix_hits,
    saved_tokens,
)
from simcore.workload.traces import read_trace

# A conversation is a chain of turns: [stem, own, own…]; prefixes are shared, as hashes of all before are.
CHAINS = st.lists(st.tuples(st.integers(0, 4), st.integers(1, 8), st.integers(0, 3)), min_size=1, max_size=40)


def chains_of(requests):
    """Blocks named by (conversation, branch, depth): branches share their first three blocks."""
    names, offsets = [], [0]
    for conversation, depth, branch in requests:
        names += [
            conversation * 1_000 + (branch if place >= 3 else 0) * 100 + place for place in range(depth)
        ]
        offsets.append(len(names))
    return BlockChains.of(np.array(offsets), np.array(names))


def by_hand(chains, capacity):
    """The same cache as an ordered dictionary; every resident block has its predecessor resident."""
    cache, hits, before = OrderedDict(), [], {}
    for first, last in zip(chains.offsets, chains.offsets[1:], strict=False):
        chain = chains.blocks[first:last].tolist()
        found = 0
        while found < len(chain) and chain[found] in cache:
            found += 1
        hits.append(found)
        before |= dict(zip(chain[1:], chain, strict=False))
        for block in reversed(chain):
            cache[block] = True
            cache.move_to_end(block)
            if len(cache) > capacity:
                cache.popitem(last=False)
        assert all(before[block] in cache for block in cache if block in before)
    return hits, len(cache)


@settings(deadline=None)
@given(requests=CHAINS, capacity=st.integers(0, 60))
def test_the_replay_is_a_cache_of_least_recently_used_blocks_closed_under_prefixes(requests, capacity):
    chains = chains_of(requests)
    hits, resident = by_hand(chains, capacity)
    found = prefix_hits(chains, capacity_blocks=capacity)
    assert found.hit_blocks.tolist() == hits
    assert found.resident_blocks[-1] == resident


@settings(deadline=None)
@given(requests=CHAINS)
def test_one_pass_gives_the_hit_ratio_of_every_capacity(requests):
    chains = chains_of(requests)
    capacities = range(chains.distinct_count + 2)
    replayed = [prefix_hits(chains, capacity_blocks=capacity).hit_fraction for capacity in capacities]
    assert hit_curve(chains, capacities) == pytest.approx(replayed)
    assert replayed == sorted(replayed)
    assert replayed[0] == 0.0


@settings(deadline=None)
@given(requests=CHAINS)
def test_blocks_in_use_and_evicted_are_those_computed_and_sharing_is_counted_once(requests):
    chains = chains_of(requests)
    for capacity in (None, 7):
        found = prefix_hits(chains, capacity_blocks=capacity)
        assert (found.resident_blocks <= (capacity or chains.distinct_count)).all()
        computed = found.block_count - found.hit_blocks.sum()
        assert found.resident_blocks[-1] + found.evicted_count <= computed
    assert prefix_hits(chains).resident_blocks[-1] == chains.distinct_count


def test_requests_that_share_a_prompt_share_its_blocks():
    """[a b c] [a b d] [a b c e]: five blocks for ten asked; the first two of the second hit, then three."""
    chains = BlockChains.of(np.array([0, 3, 6, 10]), np.array([7, 8, 9, 7, 8, 5, 7, 8, 9, 1]))
    found = prefix_hits(chains)
    assert found.hit_blocks.tolist() == [0, 2, 3]
    assert found.resident_blocks.tolist() == [3, 4, 5]
    assert saved_tokens(found, np.array([48, 32, 64]), block_size_tokens=16).tolist() == [0, 31, 48]


def test_a_block_behind_a_missing_one_does_not_hit():
    chains = BlockChains.of(np.array([0, 2, 4]), np.array([1, 2, 3, 2]))
    assert prefix_hits(chains).hit_blocks.tolist() == [0, 0]
    assert (least_capacities(chains) > chains.distinct_count).all()


# ---- Mooncake (FAST'25): hash chains of 512-token blocks; infinite-cache hit ratios of the published traces


def mooncake_lines(path):
    """The run-length coded CSV as the JSON lines that Mooncake publishes."""
    with path.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            spans = [span.split("-") for span in row["hash_ids_rle"].split()]
            ids = [number for span in spans for number in range(int(span[0]), int(span[-1]) + 1)]
            yield json.dumps(
                {
                    "timestamp": float(row["timestamp_s"]) * 1e3,
                    "input_length": int(row["input_tokens"]),
                    "output_length": int(row["output_tokens"]),
                    "hash_ids": ids,
                }
            )


@pytest.mark.parametrize(("name", "fraction"), [("conversation", 0.366), ("synthetic", 0.640)])
def test_mooncake_traces_hit_as_published(shared, name, fraction):
    path = shared / "data" / "traces" / f"mooncake_{name}_full_rle.csv"
    if not path.is_file():
        pytest.skip(f"needs {path.name}")
    table = read_trace("\n".join(mooncake_lines(path)).encode(), format="mooncake")
    chains = BlockChains.of(table.block_offsets, table.block_hashes)
    assert prefix_hits(chains).hit_fraction == pytest.approx(fraction, abs=5e-4)
    capacities = [1_000, 10_000, 50_000, chains.distinct_count]
    curve = hit_curve(chains, capacities)
    assert curve.tolist() == sorted(curve)
    assert curve[-1] == pytest.approx(fraction, abs=5e-4)
    middle = prefix_hits(chains, capacity_blocks=10_000).hit_fraction
    assert curve[1] == pytest.approx(middle)
    assert 0.0 < middle < fraction
