"""The prefix cache of a lane: whose prompts share blocks of its KV pool, and which of them nobody uses now.

A prompt is a chain of *entries*, one per block hash of the workload; an entry is the whole KV blocks that its
tokens fill. It is resident once somebody has computed it, held by every sequence whose prompt begins with it
and counted once; one that nobody holds stays, least recently used first out, until its blocks are needed
(`free_blocks` counts such blocks as free, `cached_blocks` says how many). A sequence finds the longest
resident prefix of its chain when it is admitted, and computes one token at least, which it samples from.

As in vLLM, blocks enter when they are full and computed, at the end of the iteration. Unlike there, a block
that two sequences computed at once is kept once (SGLang merges so too), and free blocks are taken before
cached ones. Answers are shared where a chain names their blocks, as a session's does (`session_chains.py`): they enter
when the answer is done, not block by block. Those of a trace have no hash. Limit: eviction takes whole entries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Self

import numpy as np

from simcore.compiled import compiled_in_place
from simcore.errors import InputError
from simcore.memory.kv_pool import blocks_for
from simcore.serving import state
from simcore.serving.records import Integers
from simcore.serving.shelf import shelve, unshelve
from simcore.serving.state import LEVEL_KEPT
from simcore.serving.tiers import KvTiers, find_behind, stow, tier_records
from simcore.workload.block_hashes import BLOCK_TOKENS, Chains

MAX_CELLS: Final = 100_000_000  # 1.2 GB, of which only what is touched is taken


class Prefix(NamedTuple):
    """What the kernel reads and writes. A chain is `entries[offsets[i]:ends[i]]`."""

    offsets: Any
    ends: Any
    entries: Any
    blocks: Any  # by entry
    cells: Any  # by lane and entry; then, tier by tier, the same again
    hit_tokens: Any  # by request, at its first admission
    tiers: Any  # by lane and tier: what lies behind the pool


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixChains:
    """The chains of all requests, `entries[offsets[i]:ends[i]]`, with the KV blocks that each entry fills."""

    offsets: Integers
    ends: Integers
    entries: Integers
    blocks: Integers
    block_size_tokens: int

    @classmethod
    def of(cls, chains: Chains, input_tokens: Integers, *, block_size_tokens: int) -> Self:
        """Chains of block hashes over prompts of these lengths. Raises InputError where blocks do not fit in one."""
        check_block_size(block_size_tokens)
        offsets, hashes = chains
        owner = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        place = np.arange(len(hashes)) - offsets[owner]
        named = np.clip(input_tokens[owner] - place * BLOCK_TOKENS, 0, BLOCK_TOKENS)
        blocks = named // block_size_tokens
        _, names = np.unique(hashes, return_inverse=True)
        # A hash that ends elsewhere is another entry: a clipped prompt shares no part of a block.
        kinds, entries = np.unique(names.ravel() * (BLOCK_TOKENS + 1) + blocks, return_inverse=True)
        entries = entries.ravel()
        kept = (blocks > 0) & _unrepeated(owner, entries, len(kinds))
        kept &= np.cumsum(~kept) - np.append(0, np.cumsum(~kept))[offsets[owner]] == 0  # nothing behind a gap
        bounds = np.append(0, np.cumsum(np.bincount(owner[kept], minlength=len(offsets) - 1)))
        return cls(
            offsets=bounds[:-1],
            ends=bounds[1:],
            entries=entries[kept].astype(np.int64),
            blocks=(kinds % (BLOCK_TOKENS + 1)).astype(np.int64),
            block_size_tokens=block_size_tokens,
        )


def check_block_size(block_size_tokens: int) -> None:
    """Raises InputError where KV blocks do not divide what a hash stands for."""
    if BLOCK_TOKENS % block_size_tokens:
        raise InputError.at(
            "serving.kv.block_size",
            "prefix.block_size",
            "got {got}, which does not divide the {tokens} tokens that a block hash stands for; use 16 or 32, or "
            "turn enable_prefix_caching off",
            got=block_size_tokens,
            tokens=BLOCK_TOKENS,
        )


def _unrepeated(owner: Integers, entries: Integers, distinct: int) -> Any:
    """Where a chain names an entry for the first time; a hash of all before cannot come twice in one."""
    first = np.zeros(len(entries), np.bool_)
    first[np.unique(owner * max(1, distinct) + entries, return_index=True)[1]] = True
    return first


def laid_out(
    chains: PrefixChains | None,
    lane_counts: Sequence[int],
    request_count: int,
    tiers: Sequence[KvTiers | None],
) -> Prefix:
    """The arrays of an empty cache in every lane; tiny ones without chains. Lanes and tiers are given by pool."""
    lane_count = sum(lane_counts)
    behind = tier_records(tiers, lane_counts, 0 if chains is None else len(chains.blocks))
    if chains is None:
        empty = np.zeros(1, np.int64)
        return Prefix(empty, empty, empty, empty, state.records(state.CELL, 1), np.zeros(0, np.int64), behind)
    levels = 1 + max(one.count if one is not None and one.stow else 0 for one in tiers)
    cells = lane_count * len(chains.blocks) * levels
    if cells > MAX_CELLS:
        raise InputError.at(
            "serving.kv.enable_prefix_caching",
            "prefix.too_large",
            "{lanes:,} caches of {entries:,} different blocks are too many to follow; serve fewer requests or "
            "lower the number of replicas",
            lanes=lane_count * levels,
            entries=len(chains.blocks),
        )
    return Prefix(
        offsets=np.require(chains.offsets, np.int64, ["C", "W"]),
        ends=np.require(chains.ends, np.int64, ["C", "W"]),
        entries=np.require(chains.entries, np.int64, ["C", "W"]),
        blocks=np.require(chains.blocks, np.int64, ["C", "W"]),
        cells=state.records(state.CELL, max(1, cells)),
        hit_tokens=np.zeros(request_count, np.int64),
        tiers=behind,
    )


@compiled_in_place
def evict(lane: Any, setup: Any, totals: Any, prefix: Any) -> None:
    """Give up what was used longest ago, until the rest fits in what is not in use; a tier may take it."""
    while lane.cached_blocks > lane.free_blocks:
        entry = lane.oldest
        unshelve(lane, prefix, entry)
        prefix.cells[lane.cell_base + entry].holders = 0
        totals.evicted_blocks += prefix.blocks[entry]
        if setup.stowing == 1:
            stow(lane, setup, prefix, entry)


@compiled_in_place
def forget(lane: Any, setup: Any, prefix: Any) -> None:
    """A lane on which nothing runs loses all that it has cached, and what its tiers have."""
    while lane.oldest >= 0:
        entry = lane.oldest
        unshelve(lane, prefix, entry)
        prefix.cells[lane.cell_base + entry].holders = 0
    for level in range(setup.tiers if setup.stowing == 1 else 0):
        tier = prefix.tiers[lane.tier_base + level]
        while tier.oldest >= 0:
            entry = tier.oldest
            unshelve(tier, prefix, entry)
            prefix.cells[tier.cell_base + entry].holders = 0


@compiled_in_place
def find(lane: Any, rows: Any, inputs: Any, setup: Any, totals: Any, prefix: Any) -> int:
    """Tokens of the first in line that need no computing: in the pool, and in a tier where that is quicker.

    A copy elsewhere of what a lane that went down has lost is brought back whole.
    In the pool are `lane.found` entries, `found_held` blocks of them in use; tiers have `incoming` tokens each.
    """
    lane.fetch_s = 0.0
    for level in range(setup.tiers):
        prefix.tiers[lane.tier_base + level].incoming = 0
    found = _find_here(lane, rows, inputs, setup, totals, prefix) if setup.caching == 1 else 0
    request = lane.queue_first
    row = rows[request]
    if setup.swapping == 1 and row.preemptions > 0 and row.level >= 0:
        tier = prefix.tiers[lane.tier_base + row.level]
        if row.held > found:
            tier.incoming = row.held - found
            lane.fetch_s = tier.latency_s + tier.incoming * tier.s_per_token
            found = row.held
    elif setup.keeping == 1 and row.preemptions > 0 and row.level == LEVEL_KEPT and row.held > found:
        lane.fetch_s = setup.kept_latency_s + (row.held - found) * setup.kept_s_per_token
        found = row.held
    elif setup.stowing == 1:
        found = find_behind(lane, setup, prefix, request, inputs[request] + row.generated, found)
    return found


@compiled_in_place
def _find_here(lane: Any, rows: Any, inputs: Any, setup: Any, totals: Any, prefix: Any) -> int:
    """Tokens of the first in line that are in the pool."""
    evict(lane, setup, totals, prefix)
    request = lane.queue_first
    target = inputs[request] + rows[request].generated
    begin, end = prefix.offsets[request], prefix.ends[request]
    place = begin
    blocks = held = 0
    while place < end:
        entry = prefix.entries[place]
        holders = prefix.cells[lane.cell_base + entry].holders
        size = prefix.blocks[entry]
        tokens = min((blocks + size) * setup.block_size, target - 1)
        if holders == 0 or blocks_for(tokens, setup.block_size, setup.block_shift) < blocks + size:
            break
        blocks += size
        if holders > 1:
            held += size
        place += 1
    lane.found = place - begin
    lane.found_held = held
    found: int = min(blocks * setup.block_size, target - 1)
    return found


@compiled_in_place
def hold(lane: Any, seat: Any, prefix: Any) -> None:
    """A sequence that was just admitted holds what was found of its chain."""
    begin = prefix.offsets[seat.request]
    seat.shared = lane.found
    seat.shared_blocks = 0
    for place in range(begin, begin + lane.found):
        entry = prefix.entries[place]
        cell = prefix.cells[lane.cell_base + entry]
        if cell.holders == 1:
            unshelve(lane, prefix, entry)
        else:
            lane.doubled_blocks += prefix.blocks[entry]
        cell.holders += 1
        seat.shared_blocks += prefix.blocks[entry]


@compiled_in_place
def share(lane: Any, seat: Any, setup: Any, prefix: Any, tokens: int) -> None:
    """Enter the first `tokens` of a sequence's chain, which it holds; of resident blocks, one copy is freed."""
    place, end = prefix.offsets[seat.request] + seat.shared, prefix.ends[seat.request]
    while place < end:
        entry = prefix.entries[place]
        size = prefix.blocks[entry]
        if (seat.shared_blocks + size) * setup.block_size > tokens:
            return
        cell = prefix.cells[lane.cell_base + entry]
        if cell.holders == 0:
            cell.holders = 2
        elif cell.holders == 1:
            unshelve(lane, prefix, entry)
            cell.holders = 2
        else:
            cell.holders += 1
            lane.doubled_blocks += size
            lane.free_blocks += size
        seat.shared += 1
        seat.shared_blocks += size
        place += 1


@compiled_in_place
def let_go(lane: Any, seat: Any, prefix: Any) -> None:
    """A sequence that has given back all its blocks leaves its entries, tails first so that heads stay longest."""
    lane.free_blocks -= seat.shared_blocks
    begin = prefix.offsets[seat.request]
    for place in range(begin + seat.shared - 1, begin - 1, -1):
        entry = prefix.entries[place]
        cell = prefix.cells[lane.cell_base + entry]
        cell.holders -= 1
        if cell.holders == 1:
            shelve(lane, prefix, entry)
            lane.free_blocks += prefix.blocks[entry]
        else:
            lane.doubled_blocks -= prefix.blocks[entry]
    seat.shared = 0
    seat.shared_blocks = 0
