"""Prefix caching on chains of block hashes: which part of each prompt is resident already.

A prompt is a chain of blocks, each hash standing for its tokens *and all before them*; equal hashes are one
block in memory, however many requests share it. A request finds the longest resident prefix of its chain,
computes the rest, and leaves all of it most recently used, head last, so that eviction (least recently used)
takes tails before heads and a resident block's predecessors are resident too.

Because touching does not depend on capacity, a cache of `C` blocks holds the `C` most recently used of an
infinite one: the number of distinct blocks used since says for every capacity at once whether a block hits
(Mattson's stack distance), which gives the whole curve of hit ratio by capacity in one pass. Limits: requests
come one after the other; running ones do not pin their blocks against others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from simcore.compiled import compiled

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
_NEVER: Final = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockChains:
    """Chain `i` is `blocks[offsets[i]:offsets[i + 1]]`; blocks are numbered from 0 in order of their hashes."""

    offsets: Integers
    blocks: Integers
    distinct_count: int

    @classmethod
    def of(cls, offsets: Integers, hashes: Integers) -> Self:
        """Chains of hashes, whatever numbers these are."""
        distinct, blocks = np.unique(hashes, return_inverse=True)
        return cls(
            offsets=np.ascontiguousarray(offsets, np.int64),
            blocks=blocks.astype(np.int64).ravel(),
            distinct_count=len(distinct),
        )

    def __len__(self) -> int:
        return len(self.offsets) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixHits:
    """What a cache of a given size did for each request."""

    hit_blocks: Integers  # the resident prefix of each request
    resident_blocks: Integers  # in the cache after it, each counted once
    evicted_count: int
    block_count: int  # asked for by all requests together

    @property
    def hit_fraction(self) -> float:
        """Of all blocks asked for, the share that was resident."""
        return float(self.hit_blocks.sum()) / self.block_count if self.block_count else 0.0


def prefix_hits(chains: BlockChains, *, capacity_blocks: int | None = None) -> PrefixHits:
    """Replay the chains through a cache; without a capacity it never evicts."""
    capacity = chains.distinct_count if capacity_blocks is None else capacity_blocks
    hits, resident, evicted = _replay(chains.offsets, chains.blocks, chains.distinct_count, capacity)
    return PrefixHits(
        hit_blocks=hits, resident_blocks=resident, evicted_count=int(evicted), block_count=len(chains.blocks)
    )


def hit_curve(chains: BlockChains, capacities: Sequence[int]) -> Floats:
    """Hit fraction at each capacity, all from one pass."""
    least = np.sort(least_capacities(chains))
    hits = np.searchsorted(least, np.asarray(capacities, np.int64), side="right")
    found: Floats = hits / max(1, len(least))
    return found


def least_capacities(chains: BlockChains) -> Integers:
    """For each block asked for, the smallest cache in which it and all before it in its chain hit."""
    found: Integers = _distances(chains.offsets, chains.blocks, chains.distinct_count)
    return found


def saved_tokens(hits: PrefixHits, input_tokens: Integers, *, block_size_tokens: int) -> Integers:
    """Prompt tokens that need no prefill: whole resident blocks, and never the last token, which is sampled from."""
    found: Integers = np.minimum(hits.hit_blocks * block_size_tokens, input_tokens - 1)
    return found


@compiled
def _to_front(newer: Any, older: Any, block: int) -> None:
    """Make a block the most recently used. The last row of the links is the list's anchor."""
    anchor = len(newer) - 1
    older[newer[block]] = older[block]
    newer[older[block]] = newer[block]
    first = older[anchor]
    older[block] = first
    newer[first] = block
    newer[block] = anchor
    older[anchor] = block


@compiled
def _replay(offsets: Any, blocks: Any, distinct: int, capacity: int) -> Any:
    """Leading hits and residents by request; evictions."""
    newer, older = np.arange(distinct + 1), np.arange(distinct + 1)  # a block by itself links to itself
    resident = np.zeros(distinct + 1, np.bool_)
    count = len(offsets) - 1
    hits = np.zeros(count, np.int64)
    residents = np.zeros(count, np.int64)
    held = evicted = 0
    for request in range(count):
        begin, end = offsets[request], offsets[request + 1]
        place = begin
        while place < end and resident[blocks[place]]:
            place += 1
        hits[request] = place - begin
        end = min(end, begin + capacity)  # what does not fit beside its own predecessors is not kept
        for back in range(min(place, end) - 1, begin - 1, -1):  # so that the rest evicts others first
            _to_front(newer, older, blocks[back])
        for back in range(end - 1, begin - 1, -1):
            block = blocks[back]
            if not resident[block]:
                if held == capacity:
                    last = newer[distinct]
                    newer[distinct] = newer[last]
                    older[newer[last]] = distinct
                    newer[last] = older[last] = last
                    resident[last] = False
                    held -= 1
                    evicted += 1
                resident[block] = True
                held += 1
            _to_front(newer, older, block)
        residents[request] = held
    return hits, residents, evicted


@compiled
def _distances(offsets: Any, blocks: Any, distinct: int) -> Any:
    """Least capacities; a Fenwick tree over touches counts the distinct blocks touched since."""
    size = len(blocks)
    tree = np.zeros(size + 1, np.int64)
    touched = np.full(distinct, -1, np.int64)
    least = np.empty(size, np.int64)
    held = now = 0
    for request in range(len(offsets) - 1):
        begin, end = offsets[request], offsets[request + 1]
        reach = 0
        for place in range(begin, end):
            last = touched[blocks[place]]
            if last < 0 or reach == _NEVER:
                reach = _NEVER
            else:
                before, at = 0, last + 1  # blocks last touched up to then, this one included
                while at > 0:
                    before += tree[at]
                    at -= at & -at
                reach = max(reach, held - before + 1)
            least[place] = reach
        for place in range(end - 1, begin - 1, -1):
            block = blocks[place]
            if touched[block] >= 0:
                _add(tree, touched[block], -1)
                held -= 1
            touched[block] = now
            _add(tree, now, 1)
            held += 1
            now += 1
    return least


@compiled
def _add(tree: Any, place: int, change: int) -> None:
    at = place + 1
    while at < len(tree):
        tree[at] += change
        at += at & -at
