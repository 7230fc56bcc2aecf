"""What a plan has to say of prefix caching: whether it can be, and what it would find."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from simcore.errors import InputError, Message
from simcore.memory.prefix_cache import BlockChains, prefix_hits
from simcore.plan.types import PoolInputs, ServingPlan
from simcore.scenario.schema import KvCache, Serving
from simcore.serving.prefix import PrefixChains, check_block_size
from simcore.serving.routers import KEEPS_PREFIXES
from simcore.serving.session_chains import approximate_chains, expected_session_hits, session_chains
from simcore.workload.block_hashes import BLOCK_TOKENS, Chains, picked
from simcore.workload.requests import Requests

_REPLAYED_LANES: Final = 4


def check_prefix_caching(kv: KvCache, *, hashed: bool) -> None:
    """Raises InputError where prefixes cannot be shared; `hashed`: by the block hashes of a trace, if at all."""
    if not kv.enable_prefix_caching:
        return
    if kv.allocator != "paged":
        raise InputError.at(
            "serving.kv.enable_prefix_caching",
            "prefix.not_paged",
            "prompts share pages, and {allocator} has none; use serving.kv.allocator=paged or turn it off",
            allocator=kv.allocator,
        )
    if hashed:
        check_block_size(kv.block_size)


def prefix_warnings(spec: Serving, requests: Requests) -> Iterator[Message]:
    """Said where no prompt has a name by which to find it, and where a router looks for prefixes in vain."""
    kv = spec.kv
    named = requests.chains is not None or requests.turns is not None
    if spec.router.kind == "prefix_affinity" and not (kv.enable_prefix_caching and named):
        yield Message(
            code="router.no_prefixes",
            template="no replica keeps a prefix that has a name, so the router goes by requests outstanding alone; "
            "set serving.kv.enable_prefix_caching, and workload.sessions or a trace with block hashes (Mooncake's "
            "hash_ids)",
            path="serving.router.kind",
        )
    if kv.enable_prefix_caching and not named:
        yield Message(
            code="prefix.no_hashes",
            template="the workload names no prefixes, so no prompt finds one; set workload.sessions, or replay a "
            "trace with block hashes (Mooncake's hash_ids)",
            path="serving.kv.enable_prefix_caching",
        )


def expected_hit_fraction(inputs: PoolInputs, lane_block_count: int) -> float:
    """Share of the prompt blocks that a lane's cache would find, by a replay of some lanes' requests in turn.

    A router that sends prompts to where their prefixes are makes one cache of all lanes. On the high side where
    memory is tight: what runs takes nothing from the cache here, and nobody is too early. Blocks of tiers may be
    among the lane's; bringing them back takes no time here. Of sessions it is the closed form of a cache without an
    end, and less by what a replay of turns that are answered at once loses to the cache's size.
    """
    kv, requests = inputs.spec.kv, inputs.requests
    if not kv.enable_prefix_caching:
        return 0.0
    own = inputs.replica_count * inputs.parallelism.lanes_per_replica
    lanes = max(1, round(own / inputs.request_fraction))  # as if all were like these
    capacity = lane_block_count * kv.block_size // BLOCK_TOKENS
    if inputs.spec.router.kind in KEEPS_PREFIXES:
        lanes, capacity = 1, capacity * lanes
    if requests.turns is not None:
        endless = expected_session_hits(
            requests, requests.turns, lane_count=lanes, block_size_tokens=kv.block_size
        )
        return endless * _kept_fraction(approximate_chains(requests, requests.turns), lanes, capacity)
    return 0.0 if requests.chains is None else _replayed(requests.chains, lanes, capacity)


def _replayed(chains: Chains, lanes: int, capacity_blocks: int | None) -> float:
    """Share of the blocks of some lanes' requests, dealt out in turn, that a cache of each would find."""
    asked = found = 0
    for lane in range(min(lanes, _REPLAYED_LANES)):
        mine = picked(chains, np.arange(lane, len(chains[0]) - 1, lanes))
        if mine is not None and len(mine[1]):
            hits = prefix_hits(BlockChains.of(*mine), capacity_blocks=capacity_blocks)
            asked += hits.block_count
            found += int(hits.hit_blocks.sum())
    return found / asked if asked else 0.0


def _kept_fraction(chains: Chains, lanes: int, capacity_blocks: int) -> float:
    """Of what caches without an end would find, what those of a capacity still have."""
    if capacity_blocks * lanes >= len(chains[1]):
        return 1.0
    endless = _replayed(chains, lanes, None)
    return _replayed(chains, lanes, capacity_blocks) / endless if endless else 1.0


def prefix_chains(serving: ServingPlan) -> PrefixChains | None:
    """The chains that the engine follows; None without a prefix cache."""
    inputs, pool = serving.sides[0]
    if not inputs.spec.kv.enable_prefix_caching:
        return None
    requests = inputs.requests
    if requests.turns is not None:
        return session_chains(requests, requests.turns, block_size_tokens=serving.pool.kv.block_size_tokens)
    nothing = np.zeros(len(requests) + 1, np.int64), np.zeros(0, np.int64)
    return PrefixChains.of(
        requests.chains or nothing, requests.input_tokens, block_size_tokens=pool.kv.block_size_tokens
    )
