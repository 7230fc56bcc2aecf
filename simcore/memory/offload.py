"""KV behind HBM: when to bring it back and when to compute it again, and what tiers hold over a trace.

Bringing the KV of `n` prompt tokens back from a tier, against computing it again:

    swap_s      = latency + n · kv_bytes_per_token / bandwidth
    recompute_s = fixed + n · s_per_token + n² / 2 · s_per_token_context

Each side is a Why tree, and so is where they meet: the bandwidth above which a prompt of `n` tokens is better
brought back, and the length above which any longer one is. Attention makes recomputing grow with `n²`, so for
long enough prompts every tier wins.

The replay sends block chains through HBM and the tiers behind it, each the least recently used of its size.
*Write-through* copies a block to every tier when it is computed, and forgets it where it is evicted;
*write-back* writes it to the next tier when it is evicted, unless that holds it already. A tier without
capacity is as if it were not there. Limits: one transfer at a time, none hidden behind computing; bytes move
in whole blocks; as in `prefix_cache.py`, requests come one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from simcore.compiled import compiled
from simcore.memory.prefix_cache import BlockChains
from simcore.memory.tiers import Tier, latency_leaf
from simcore.why import Term, constant, leaf, maximum, sqrt

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
WritePolicy = Literal["write_through", "write_back"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecomputeCost:
    """Prefill of one replica: what a step costs whatever its length, per token, and per token and context."""

    fixed_s: Term
    s_per_token: Term
    s_per_token_context: Term

    def of_span_s(self, begin: Floats, end: Floats) -> Floats:
        """Prefilling tokens begin…end of prompts within steps that run anyway."""
        linear = (end - begin) * self.s_per_token.value
        return linear + (end**2 - begin**2) / 2 * self.s_per_token_context.value


def recompute_s(cost: RecomputeCost, tokens: float) -> Term:
    """Time to compute the KV of a prompt again."""
    prompt = _prompt(tokens)
    attention = cost.s_per_token_context * prompt * prompt / constant(2.0)
    return (cost.fixed_s + cost.s_per_token * prompt + attention).named("recompute_s")


def swap_s(tier: Tier, tokens: float, kv_bytes_per_token: Term) -> Term:
    """Time to bring the KV of a prompt back from a tier."""
    moved = (_prompt(tokens) * kv_bytes_per_token).named("moved_bytes")
    return (latency_leaf(tier) + moved / tier.bytes_per_s).named("swap_s")


def break_even_bytes_per_s(
    cost: RecomputeCost, tier: Tier, tokens: float, kv_bytes_per_token: Term
) -> Term | None:
    """Bandwidth at which both take as long; None where the tier's latency alone takes longer."""
    left = recompute_s(cost, tokens) - latency_leaf(tier)
    if left.value <= 0:
        return None
    return (_prompt(tokens) * kv_bytes_per_token / left).named("break_even_bytes_per_s")


def break_even_tokens(cost: RecomputeCost, tier: Tier, kv_bytes_per_token: Term) -> Term | None:
    """Length from which on every prompt is better brought back; None where no length is.

    The larger root of `c/2 n² + (b - kv/B) n + (fixed - latency) = 0`, or 0 where there is none.
    """
    slope = (cost.s_per_token - kv_bytes_per_token / tier.bytes_per_s).named("slope_s_per_token", "")
    ahead = (cost.fixed_s - latency_leaf(tier)).named("head_start_s")
    curvature = cost.s_per_token_context
    if curvature.value == 0:
        if slope.value <= 0:
            return None if slope.value < 0 or ahead.value < 0 else constant(0.0)
        return maximum(0.0, (0.0 - ahead) / slope).named("break_even_tokens")
    under = slope * slope - constant(2.0) * curvature * ahead
    if under.value < 0:
        return constant(0.0)  # recomputing is slower at every length
    return maximum(0.0, (sqrt(under) - slope) / curvature).named("break_even_tokens")


def swap_to_recompute(again_s: Term, tier: Tier, tokens: float, kv_bytes_per_token: Term) -> Term:
    """Time to bring a prompt back ÷ time to compute it again: below 1, bring it back."""
    return (swap_s(tier, tokens, kv_bytes_per_token) / again_s).named("swap_to_recompute_ratio")


def _prompt(tokens: float) -> Term:
    return leaf(tokens, "prompt_tokens", kind="derived", source="prompt to bring back")


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """What each level did over a trace; level 0 is HBM, the others are the tiers in their order."""

    hit_blocks: Integers  # by request and level: the prefix that needs no computing
    computed_blocks: Integers  # by request
    written_blocks: Integers  # by level, into it
    resident_blocks: Integers  # by level, at the end

    @property
    def read_blocks(self) -> Integers:
        """By level, brought back from it if nothing is computed again."""
        found: Integers = self.hit_blocks.sum(axis=0)
        return found

    @property
    def hit_fraction(self) -> float:
        hits = int(self.hit_blocks.sum())
        asked = hits + int(self.computed_blocks.sum())
        return hits / asked if asked else 0.0


def replay(chains: BlockChains, capacities_blocks: Sequence[int], *, policy: WritePolicy) -> Traffic:
    """Send chains through HBM (the first capacity) and the tiers behind it."""
    sizes = np.minimum(np.asarray(capacities_blocks, np.int64), chains.distinct_count)
    hits, computed, written, resident = _replay(
        chains.offsets, chains.blocks, chains.distinct_count, sizes, policy == "write_through"
    )
    return Traffic(
        hit_blocks=hits, computed_blocks=computed, written_blocks=written, resident_blocks=resident
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """Which resident blocks were brought back and which computed again, by request and tier; and the time."""

    swapped_blocks: Integers
    recomputed_blocks: Integers
    restore_s: Floats  # by request: transfers, and what is computed again
    saved_s: Floats  # by request, against computing all of it


def restored(
    traffic: Traffic,
    tiers: Sequence[Tier],
    cost: RecomputeCost,
    *,
    kv_bytes_per_token: float,
    block_size_tokens: int,
) -> Restored:
    """Swap or recompute, whichever is quicker, tier by tier in the order of the prompt."""
    hits = traffic.hit_blocks
    ends = np.cumsum(hits.astype(np.float64), axis=1) * block_size_tokens
    again_s = cost.of_span_s(ends[:, :-1], ends[:, 1:])
    moved_bytes = hits[:, 1:] * (block_size_tokens * kv_bytes_per_token)
    rates = np.array([tier.bytes_per_s.value for tier in tiers])
    latencies = np.array([tier.latency_s for tier in tiers])
    swaps_s = np.where(hits[:, 1:] > 0, latencies + moved_bytes / rates, 0.0)
    swaps = swaps_s <= again_s
    best_s = np.where(swaps, swaps_s, again_s)
    return Restored(
        swapped_blocks=np.where(swaps, hits[:, 1:], 0),
        recomputed_blocks=np.where(swaps, 0, hits[:, 1:]),
        restore_s=best_s.sum(axis=1),
        saved_s=(again_s - best_s).sum(axis=1),
    )


@compiled
def _to_front(newer: Any, older: Any, level: int, block: int) -> None:
    """Make a block the most recently used of a level. The last column of the links is the anchor."""
    anchor = newer.shape[1] - 1
    older[level, newer[level, block]] = older[level, block]
    newer[level, older[level, block]] = newer[level, block]
    first = older[level, anchor]
    older[level, block] = first
    newer[level, first] = block
    newer[level, block] = anchor
    older[level, anchor] = block


@compiled
def _drop_last(newer: Any, older: Any, level: int) -> int:
    """Take the least recently used block out of a level."""
    anchor = newer.shape[1] - 1
    last: int = newer[level, anchor]
    newer[level, anchor] = newer[level, last]
    older[level, newer[level, last]] = anchor
    newer[level, last] = older[level, last] = last
    return last


@compiled
def _enter(
    newer: Any,
    older: Any,
    resident: Any,
    held: Any,
    written: Any,
    sizes: Any,
    level: int,
    block: int,
    back: bool,
) -> None:
    """Put a block into a level; in write-back what must leave goes to the next one, and so on."""
    levels = len(sizes)
    while True:
        while level < levels and sizes[level] == 0:
            level += 1
        if level == levels:
            return
        if resident[level, block]:
            _to_front(newer, older, level, block)
            return
        leaving = -1
        if held[level] == sizes[level]:
            leaving = _drop_last(newer, older, level)
            resident[level, leaving] = False
            held[level] -= 1
        resident[level, block] = True
        held[level] += 1
        written[level] += 1
        _to_front(newer, older, level, block)
        if leaving < 0 or not back:
            return
        block = leaving
        level += 1


@compiled
def _replay(offsets: Any, blocks: Any, distinct: int, sizes: Any, through: bool) -> Any:
    levels, count = len(sizes), len(offsets) - 1
    newer = np.empty((levels, distinct + 1), np.int64)
    older = np.empty((levels, distinct + 1), np.int64)
    for level in range(levels):
        newer[level] = older[level] = np.arange(distinct + 1)
    resident = np.zeros((levels, distinct + 1), np.bool_)
    held = np.zeros(levels, np.int64)
    written = np.zeros(levels, np.int64)
    hits = np.zeros((count, levels), np.int64)
    computed = np.zeros(count, np.int64)
    for request in range(count):
        begin, end = offsets[request], offsets[request + 1]
        place = begin
        while place < end:
            block, level = blocks[place], 0
            while level < levels and not resident[level, block]:
                level += 1
            if level == levels:
                break
            hits[request, level] += 1
            place += 1
        computed[request] = end - place
        kept = min(end, begin + sizes[0])  # what does not fit beside its own predecessors is not kept
        for back in range(min(place, kept) - 1, begin - 1, -1):
            for level in range(levels):
                if resident[level, blocks[back]]:
                    _to_front(newer, older, level, blocks[back])
        for back in range(kept - 1, begin - 1, -1):
            _enter(newer, older, resident, held, written, sizes, 0, blocks[back], not through)
        if through:
            for back in range(kept - 1, place - 1, -1):
                for level in range(1, levels):
                    if sizes[level] > 0:
                        _enter(newer, older, resident, held, written, sizes, level, blocks[back], False)
    return hits, computed, written, held
