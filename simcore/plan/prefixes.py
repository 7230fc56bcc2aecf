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
from simcore.workload.block_hashes import BLOCK_TOKENS, picked
from simcore.workload.requests import Requests

_REPLAYED_LANES: Final = 4


def check_prefix_caching(kv: KvCache) -> None:
    """Raises InputError where prefixes cannot be shared."""
    if not kv.enable_prefix_caching:
        return
    if kv.allocator != "paged":
        raise InputError.at(
            "serving.kv.enable_prefix_caching",
            "prefix.not_paged",
            "prompts share pages, and {allocator} has none; use serving.kv.allocator=paged or turn it off",
            allocator=kv.allocator,
        )
    check_block_size(kv.block_size)


def prefix_warnings(spec: Serving, requests: Requests) -> Iterator[Message]:
    """Said where no prompt has a name by which to find it, and where a router looks for prefixes in vain."""
    kv = spec.kv
    if spec.router.kind == "prefix_affinity" and not (kv.enable_prefix_caching and requests.chains):
        yield Message(
            code="router.no_prefixes",
            template="no replica keeps a prefix that has a name, so the router goes by requests outstanding alone; "
            "set serving.kv.enable_prefix_caching and replay a trace with block hashes (Mooncake's hash_ids)",
            path="serving.router.kind",
        )
    if kv.enable_prefix_caching and requests.chains is None:
        yield Message(
            code="prefix.no_hashes",
            template="the workload names no prefixes, so no prompt finds one; replay a trace with block hashes "
            "(Mooncake's hash_ids)",
            path="serving.kv.enable_prefix_caching",
        )


def expected_hit_fraction(inputs: PoolInputs, lane_block_count: int) -> float:
    """Share of the prompt blocks that a lane's cache would find, by a replay of some lanes' requests in turn.

    A router that sends prompts to where their prefixes are makes one cache of all lanes. On the high side where
    memory is tight: what runs takes nothing from the cache here, and nobody is too early. Blocks of tiers may be
    among the lane's; bringing them back takes no time here.
    """
    kv, requests = inputs.spec.kv, inputs.requests
    if not kv.enable_prefix_caching or requests.chains is None:
        return 0.0
    lanes = inputs.replica_count * inputs.parallelism.lanes_per_replica
    capacity = lane_block_count * kv.block_size // BLOCK_TOKENS
    if inputs.spec.router.kind == "prefix_affinity":
        lanes, capacity = 1, capacity * lanes
    asked = found = 0
    for lane in range(min(lanes, _REPLAYED_LANES)):
        chains = picked(requests.chains, np.arange(lane, len(requests), lanes))
        if chains is not None and len(chains[1]):
            hits = prefix_hits(BlockChains.of(*chains), capacity_blocks=capacity)
            asked += hits.block_count
            found += int(hits.hit_blocks.sum())
    return found / asked if asked else 0.0


def prefix_chains(serving: ServingPlan) -> PrefixChains | None:
    """The chains that the engine follows; None without a prefix cache."""
    inputs, pool = serving.sides[0]
    if not inputs.spec.kv.enable_prefix_caching:
        return None
    requests = inputs.requests
    nothing = np.zeros(len(requests) + 1, np.int64), np.zeros(0, np.int64)
    return PrefixChains.of(
        requests.chains or nothing, requests.input_tokens, block_size_tokens=pool.kv.block_size_tokens
    )
