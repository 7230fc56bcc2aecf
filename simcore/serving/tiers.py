"""The tiers behind the KV pool of a lane: preempted sequences swapped out, and prefixes that the pool evicted.

Each lane has its share of every tier, nearest first. A transfer takes `latency + tokens * s_per_token` and
stands before the step of the iteration that needs it: nothing overlaps with computing. What one iteration
writes to a tier goes in one transfer; what it reads comes in one per sequence and change of tier.

*Swap*: a preempted sequence goes whole to the first tier with room, comes back when it is admitted again, and
computes the one token that it lacks. Nothing waits for prefixes: they make room. *Prefixes*: a tier that
writes back takes what leaves the tiers before it, unless it has it; one that writes through takes what was
computed of a prompt, when it is computed. Each gives up what was used longest ago. An entry that is read stays where it
is. Of a prompt's chain as much is brought back as saves most time against computing it again, in steps that
run anyway (`memory/offload.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from simcore.compiled import compiled_in_place
from simcore.compute.step_table import StepTimeTable
from simcore.memory.kv_pool import blocks_for
from simcore.serving import state
from simcore.serving.records import Integers, TierUse
from simcore.serving.shelf import shelve, unshelve

UNLIMITED_BLOCKS: Final = 1 << 50


@dataclass(frozen=True, slots=True, kw_only=True)
class KvTier:
    """A lane's share of one tier."""

    name: str
    capacity_blocks: int
    s_per_token: float
    latency_s: float
    write_through: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class KvTiers:
    """Tiers, nearest first, and what they are for."""

    tiers: tuple[KvTier, ...]
    swap: bool = False  # preempted sequences
    stow: bool = False  # evicted prefixes

    @property
    def count(self) -> int:
        return len(self.tiers)


def tier_records(pools: Sequence[KvTiers | None], lane_counts: Sequence[int], entry_count: int) -> Any:
    """Empty tiers of every lane, pool by pool and lane by lane, and one more that nobody looks at."""
    bases = tier_bases(pools, lane_counts)
    found = state.records(state.TIER, bases[-1] + 1)
    first_lane, lane_total = 0, sum(lane_counts)
    for tiers, lane_count, base in zip(pools, lane_counts, bases, strict=False):
        behind = () if tiers is None else tiers.tiers
        count = len(behind)
        for level, tier in enumerate(behind):
            mine = found[base + level : base + lane_count * count : count]
            mine["latency_s"] = tier.latency_s
            mine["s_per_token"] = tier.s_per_token
            mine["capacity_blocks"] = min(tier.capacity_blocks, UNLIMITED_BLOCKS)
            mine["through"] = int(tier.write_through)
            mine["newest"] = mine["oldest"] = -1
            lanes = np.arange(first_lane, first_lane + lane_count)
            mine["cell_base"] = (lanes + (1 + level) * lane_total) * entry_count
        first_lane += lane_count
    return found


def tier_bases(pools: Sequence[KvTiers | None], lane_counts: Sequence[int]) -> list[int]:
    """Where the tiers of each pool begin, and where all end."""
    sizes = [
        0 if tiers is None else tiers.count * lanes for tiers, lanes in zip(pools, lane_counts, strict=True)
    ]
    return [sum(sizes[:place]) for place in range(len(sizes) + 1)]


def tier_use(rows: Any, names: tuple[str, ...], *, stowing: bool) -> tuple[TierUse, ...]:
    """Sums over lanes, tier by tier."""
    mine = {name: rows[level :: len(names)] for level, name in enumerate(names)}
    return tuple(
        TierUse(
            name=name,
            read_token_sum=int(tier.read_tokens.sum()),
            written_token_sum=int(tier.written_tokens.sum()),
            hit_token_sum=int(tier.hit_tokens.sum()) if stowing else None,
            used_max_fraction=float(tier.most_blocks.max() / max(1, tier.capacity_blocks[0])),
        )
        for name, tier in mine.items()
    )


def prefill_s_per_token(table: StepTimeTable) -> float:
    """What one more token of a prompt adds to a step that is at least half full."""
    most = len(table.linear_s) - 1
    half = max(1, most // 2)
    whole_s = table.linear_s[[half, most]] + table.comm_s[[half, most]]
    return float(whole_s[1] - whole_s[0]) / max(1, most - half)


def quicker_blocks(tiers: KvTiers | None, table: StepTimeTable, input_tokens: Integers) -> int:
    """Blocks for prefixes in the tiers from which a mean prompt is brought back sooner than it is computed."""
    if tiers is None or not tiers.stow or not len(input_tokens):
        return 0
    mean = float(input_tokens.mean())
    again_s = mean * prefill_s_per_token(table) + mean**2 / 2 * table.prefill_attention_s_per_token_context
    quicker = (tier for tier in tiers.tiers if tier.latency_s + mean * tier.s_per_token <= again_s)
    return min(UNLIMITED_BLOCKS, sum(tier.capacity_blocks for tier in quicker))


@compiled_in_place
def swap_out(lane: Any, setup: Any, prefix: Any, held: int) -> int:
    """Send the KV of a preempted sequence to the first tier with room for it; -1: no tier has."""
    blocks = blocks_for(held, setup.block_size, setup.block_shift)
    for level in range(setup.tiers):
        tier = prefix.tiers[lane.tier_base + level]
        if tier.swapped_blocks + blocks <= tier.capacity_blocks:
            tier.swapped_blocks += blocks
            tier.outgoing += held
            if setup.stowing == 1:
                settle(lane, setup, prefix)
            tier.most_blocks = max(tier.most_blocks, tier.swapped_blocks + tier.cached_blocks)
            return level
    return -1


@compiled_in_place
def swap_in(lane: Any, setup: Any, prefix: Any, level: int, held: int) -> None:
    """A swapped sequence runs again: its place in the tier is free."""
    blocks = blocks_for(held, setup.block_size, setup.block_shift)
    prefix.tiers[lane.tier_base + level].swapped_blocks -= blocks


@compiled_in_place
def bring_back(lane: Any, setup: Any, prefix: Any) -> None:
    """The sequence that was just admitted waits for what tiers have of it."""
    lane.moved_s += lane.fetch_s
    for level in range(setup.tiers):
        tier = prefix.tiers[lane.tier_base + level]
        tier.read_tokens += tier.incoming


@compiled_in_place
def flush(lane: Any, setup: Any, prefix: Any) -> float:
    """Seconds that it takes to write what is to be written."""
    seconds = 0.0
    for level in range(setup.tiers):
        tier = prefix.tiers[lane.tier_base + level]
        if tier.outgoing > 0:
            seconds += tier.latency_s + tier.outgoing * tier.s_per_token
            tier.written_tokens += tier.outgoing
            tier.outgoing = 0
    return seconds


@compiled_in_place
def level_of(lane: Any, setup: Any, prefix: Any, entry: int) -> int:
    """The nearest tier that has an entry; -1: none."""
    for level in range(setup.tiers):
        if prefix.cells[prefix.tiers[lane.tier_base + level].cell_base + entry].holders > 0:
            return level
    return -1


@compiled_in_place
def enter(tier: Any, setup: Any, prefix: Any, entry: int) -> None:
    """Put an entry into a tier that lacks it, whether there is room or not."""
    prefix.cells[tier.cell_base + entry].holders = 1
    shelve(tier, prefix, entry)
    tier.outgoing += prefix.blocks[entry] * setup.block_size


@compiled_in_place
def hand_down(lane: Any, setup: Any, prefix: Any, level: int, entry: int) -> None:
    """What left the place before `level` goes to the first tier from there on that has it or takes it."""
    for below in range(level, setup.tiers):
        tier = prefix.tiers[lane.tier_base + below]
        if prefix.cells[tier.cell_base + entry].holders > 0:
            unshelve(tier, prefix, entry)
            shelve(tier, prefix, entry)
            return
        if tier.through == 0 and tier.swapped_blocks + prefix.blocks[entry] <= tier.capacity_blocks:
            enter(tier, setup, prefix, entry)
            return


@compiled_in_place
def settle(lane: Any, setup: Any, prefix: Any) -> None:
    """Every tier that holds too much gives up what was used longest ago, tier by tier downwards."""
    for level in range(setup.tiers):
        tier = prefix.tiers[lane.tier_base + level]
        while tier.cached_blocks > 0 and tier.swapped_blocks + tier.cached_blocks > tier.capacity_blocks:
            entry = tier.oldest
            unshelve(tier, prefix, entry)
            prefix.cells[tier.cell_base + entry].holders = 0
            hand_down(lane, setup, prefix, level + 1, entry)
        tier.most_blocks = max(tier.most_blocks, tier.swapped_blocks + tier.cached_blocks)


@compiled_in_place
def stow(lane: Any, setup: Any, prefix: Any, entry: int) -> None:
    """The pool has evicted an entry."""
    hand_down(lane, setup, prefix, 0, entry)
    settle(lane, setup, prefix)


@compiled_in_place
def write_through(lane: Any, seats: Any, room: Any, setup: Any, prefix: Any) -> None:
    """What this iteration computes of prompts, and no tier has, goes to the tiers that write through."""
    place = lane.ring_first
    for _ in range(lane.chunks):
        seat = seats[room[lane.seat_base + place].ring]
        place = place + 1 if place + 1 < lane.ring_size else 0
        blocks = seat.shared_blocks
        for at in range(prefix.offsets[seat.request] + seat.shared, prefix.ends[seat.request]):
            entry = prefix.entries[at]
            blocks += prefix.blocks[entry]
            if blocks * setup.block_size > seat.done:
                break
            here = prefix.cells[lane.cell_base + entry].holders > 0
            if here or level_of(lane, setup, prefix, entry) >= 0:
                continue
            for level in range(setup.tiers):
                tier = prefix.tiers[lane.tier_base + level]
                if tier.through == 1 and tier.swapped_blocks + prefix.blocks[entry] <= tier.capacity_blocks:
                    enter(tier, setup, prefix, entry)
            settle(lane, setup, prefix)


@compiled_in_place
def find_behind(lane: Any, setup: Any, prefix: Any, request: int, target: int, found: int) -> int:
    """Tokens that need no computing where `found` are in the pool: as many more as save most time.

    Sets `lane.fetch_s` and how much would come from each tier.
    """
    first, end = prefix.offsets[request] + lane.found, prefix.ends[request]
    blocks = 0
    for at in range(first - lane.found, first):
        blocks += prefix.blocks[prefix.entries[at]]
    reached, before, seconds, most_s = found, -1, 0.0, 0.0
    best, best_end = found, first
    for at in range(first, end):
        entry = prefix.entries[at]
        blocks += prefix.blocks[entry]
        tokens = min(blocks * setup.block_size, target - 1)
        if blocks_for(tokens, setup.block_size, setup.block_shift) < blocks:
            break
        if prefix.cells[lane.cell_base + entry].holders > 0:
            level = -1  # a later part of the chain that is in the pool
        else:
            level = level_of(lane, setup, prefix, entry)
            if level < 0:
                break
            tier = prefix.tiers[lane.tier_base + level]
            seconds += (tokens - reached) * tier.s_per_token + (tier.latency_s if level != before else 0.0)
        before = level
        reached = tokens
        work = 0.5 * (float(reached) * reached - float(found) * found)
        saved_s = (reached - found) * setup.again_s_per_token + work * setup.again_s_per_work - seconds
        if saved_s >= most_s:
            best, best_end, most_s = reached, at + 1, saved_s
            lane.fetch_s = seconds
    mark(lane, setup, prefix, request, target, first, best_end, found)
    return best


@compiled_in_place
def mark(
    lane: Any, setup: Any, prefix: Any, request: int, target: int, first: int, end: int, found: int
) -> None:
    """How many tokens of the chain's entries `first` to `end` each tier would send."""
    blocks = 0
    for at in range(prefix.offsets[request], end):
        entry = prefix.entries[at]
        blocks += prefix.blocks[entry]
        if at < first:
            continue
        tokens = min(blocks * setup.block_size, target - 1)
        level = level_of(lane, setup, prefix, entry)
        if level >= 0 and prefix.cells[lane.cell_base + entry].holders == 0:
            prefix.tiers[lane.tier_base + level].incoming += tokens - found
        found = tokens


@compiled_in_place
def touch(lane: Any, setup: Any, prefix: Any, request: int, found: int) -> None:
    """What was found of a chain was used now, in every tier that has it; heads last, so that they stay longest."""
    begin, end = prefix.offsets[request], prefix.ends[request]
    blocks, at = 0, begin
    while at < end and blocks * setup.block_size < found:
        blocks += prefix.blocks[prefix.entries[at]]
        at += 1
    for place in range(at - 1, begin - 1, -1):
        entry = prefix.entries[place]
        for level in range(setup.tiers):
            tier = prefix.tiers[lane.tier_base + level]
            if prefix.cells[tier.cell_base + entry].holders > 0:
                unshelve(tier, prefix, entry)
                shelve(tier, prefix, entry)
