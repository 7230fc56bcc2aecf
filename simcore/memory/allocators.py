"""KV allocators side by side: one stream of sequences through one pool, and where its memory goes.

Every sequence holds its prompt when it is admitted and gains one token per step until its answer ends.
Four allocators promise it memory:

    paged              blocks as it grows                                    any free block will do
    contiguous_max     max_model_len tokens                                  equal slots
    contiguous_pow2    prompt + the answer's length rounded up to 2**k       a buddy allocator's runs
    contiguous_oracle  prompt + answer, to the token                         a buddy allocator's runs

Slots are *useful* (hold a token), *reserved* (promised to the same sequence's later tokens), *internal*
waste (promised, or the rest of a block, and never used), *external* waste (lost to the rounding of runs, or
free while the first in line does not fit) or *idle* (free, and nobody waits): the five sum to the pool, as in
SOSP'23 (PagedAttention) figure 2. First come, first served; a paged pool that runs out preempts the latest,
which recomputes. Limits: a step is the unit of time; prompts are not chunked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from simcore.compiled import compiled
from simcore.errors import InputError
from simcore.memory.buddy import cut_to, give, levels_for, order_for, take

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
AllocatorKind = Literal["paged", "contiguous_max", "contiguous_pow2", "contiguous_oracle"]
ALLOCATORS: Final[tuple[AllocatorKind, ...]] = (
    "paged",
    "contiguous_max",
    "contiguous_pow2",
    "contiguous_oracle",
)
READS_TRUE_LENGTH: Final[frozenset[AllocatorKind]] = frozenset({"contiguous_pow2", "contiguous_oracle"})
USES: Final = ("useful", "reserved", "internal", "external", "idle")
_CODES: Final[dict[AllocatorKind, int]] = {kind: code for code, kind in enumerate(ALLOCATORS)}
MAX_TREE_NODES: Final = 2**27
_PAGED: Final = 0
_MAX: Final = 1
_SAMPLES: Final = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """What each request is promised in a pool of blocks: taken when it is admitted, held until it is done."""

    tokens: Integers
    blocks: Integers  # more than the pool has where no pool of this kind can hold the request
    in_runs: bool  # blocks must be one run of a buddy allocator; else any will do


def reservation(
    kind: AllocatorKind,
    input_tokens: Integers,
    output_tokens: Integers,
    *,
    max_model_len: int,
    block_size_tokens: int,
    block_count: int,
    pool_count: int,
) -> Reservation | None:
    """The promises of an allocator; None where blocks are taken as sequences grow."""
    if kind == "paged":
        return None
    in_runs = kind != "contiguous_max"
    if in_runs and pool_count << levels_for(block_count) > MAX_TREE_NODES:
        raise InputError.at(
            "serving.kv.allocator",
            "allocator.too_many_pools",
            "got {got}; its {pools:,} pools of {blocks:,} blocks are more than are followed, so use paged or "
            "contiguous_max, or fewer replicas",
            got=kind,
            pools=pool_count,
            blocks=block_count,
        )
    tokens = reserved_tokens(kind, input_tokens, output_tokens, max_model_len=max_model_len)
    blocks = -(-tokens // block_size_tokens)
    if in_runs:
        blocks = np.int64(1) << np.ceil(np.log2(blocks.astype(np.float64))).astype(np.int64)
    largest = 1 << (block_count.bit_length() - 1) if in_runs else block_count
    fits = (blocks <= largest) & (input_tokens + output_tokens - 1 <= tokens)
    return Reservation(tokens=tokens, blocks=np.where(fits, blocks, block_count + 1), in_runs=in_runs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Occupancy:
    """Mean shares of the pool by use (they sum to 1), and the same over time."""

    kind: AllocatorKind
    useful_fraction: float
    reserved_fraction: float
    internal_fraction: float
    external_fraction: float
    idle_fraction: float
    mean_sequences: float
    preemption_count: int
    refused_count: int  # longer than the pool, or than its largest run
    step_count: int
    series: dict[str, Floats]  # step, and tokens by use

    @property
    def waste_fraction(self) -> float:
        """Of what is not idle, the share that holds no token."""
        return 1.0 - self.useful_fraction / (1.0 - self.idle_fraction) if self.idle_fraction < 1 else 0.0


def reserved_tokens(
    kind: AllocatorKind, input_tokens: Integers, output_tokens: Integers, *, max_model_len: int
) -> Integers:
    """Tokens that a sequence is promised at admission. The last token's keys and values are never stored.

    >>> reserved_tokens("contiguous_pow2", np.array([100]), np.array([25]), max_model_len=2048).tolist()
    [132]
    """
    final = input_tokens + output_tokens - 1
    if kind == "contiguous_max":
        return np.full(len(input_tokens), max_model_len, np.int64)
    if kind == "contiguous_pow2":
        over = np.int64(1) << np.ceil(np.log2(output_tokens.astype(np.float64))).astype(np.int64)
        promised: Integers = np.maximum(final, np.minimum(input_tokens + over, max_model_len))
        return promised
    return final if kind == "contiguous_oracle" else input_tokens


def occupancy(
    kind: AllocatorKind,
    input_tokens: Integers,
    output_tokens: Integers,
    *,
    capacity_tokens: int,
    max_model_len: int,
    block_size_tokens: int = 16,
    arrival_step: Integers | None = None,
    max_num_seqs: int = 2**31,
    drain: bool = True,
) -> Occupancy:
    """Run sequences through a pool. Without `drain` the run ends when the last of them is admitted.

    `block_size_tokens` is the page of `paged` and the smallest run of the buddy allocators' pools.
    """
    asked = reserved_tokens(kind, input_tokens, output_tokens, max_model_len=max_model_len)
    arrivals = np.zeros(len(asked), np.int64) if arrival_step is None else np.sort(arrival_step)
    unit = max_model_len if kind == "contiguous_max" else block_size_tokens
    units = capacity_tokens // unit
    levels = max(0, (max(units, 1) - 1).bit_length())
    longest = int((input_tokens + output_tokens).max(initial=1))
    stride = max(1, int(output_tokens.sum() // max(1, capacity_tokens // longest) // _SAMPLES))
    sums, counts, samples = _run(
        _CODES[kind],
        units,
        unit,
        levels,
        capacity_tokens,
        arrivals,
        np.ascontiguousarray(input_tokens, np.int64),
        np.ascontiguousarray(output_tokens, np.int64),
        asked,
        max_num_seqs,
        drain,
        stride,
    )
    whole = float(sums.sum()) or 1.0
    shares = dict(zip((f"{use}_fraction" for use in USES), (sums / whole).tolist(), strict=True))
    steps = int(counts[0])
    return Occupancy(
        kind=kind,
        mean_sequences=float(counts[3]) / steps if steps else 0.0,
        preemption_count=int(counts[1]),
        refused_count=int(counts[2]),
        step_count=steps,
        series={name: samples[:, place].copy() for place, name in enumerate(("step", *USES))},
        **shares,
    )


@compiled
def _run(
    kind: int,
    units: int,
    unit: int,
    levels: int,
    capacity: int,
    arrivals: Any,
    inputs: Any,
    outputs: Any,
    asked: Any,
    max_sequences: int,
    drain: bool,
    stride: int,
) -> Any:
    """Sums of tokens by use over steps; steps, preemptions, refusals, Σ running; samples."""
    count = len(inputs)
    buddy = kind > _MAX
    tree = np.zeros(2 << levels if buddy else 2, np.int32)
    if buddy:
        cut_to(tree, 0, levels, units)
    seat = np.zeros(max(1, min(count, units, max_sequences)), np.int64)  # requests, in order of admission
    generated = np.zeros(count, np.int64)
    taken = np.zeros(count, np.int64)
    place = np.full(count, -1, np.int64)
    begun = np.zeros(count, np.int64)  # tokens generated before this admission
    stack = np.zeros(count, np.int64)
    sums = np.zeros(5)
    counts = np.zeros(4, np.int64)
    samples = np.zeros((1024, 6))
    running = stacked = following = done = kept = 0
    free = units
    step = 0
    while done < count and (drain or following < count):
        if running == 0 and stacked == 0 and arrivals[following] > step:
            idle = arrivals[following] - step
            sums[4] += float(capacity) * idle
            counts[0] += idle
            step = arrivals[following]
        while (stacked > 0 or (following < count and arrivals[following] <= step)) and running < len(seat):
            request = stack[stacked - 1] if stacked > 0 else following
            tokens = inputs[request] + generated[request] if kind == _PAGED else asked[request]
            need = (tokens + unit - 1) // unit
            if buddy:
                need = 1 << order_for(need)
            final = (max(tokens, inputs[request] + outputs[request] - 1) + unit - 1) // unit
            if final > units or (buddy and need > 1 << _largest(units)):
                following += 1
                done += 1
                counts[2] += 1
                continue
            if need > free:
                break
            if buddy:
                place[request] = take(tree, 0, levels, order_for(need))
                if place[request] < 0:
                    break
            if stacked > 0:
                stacked -= 1
            else:
                following += 1
            begun[request] = generated[request]
            taken[request] = need
            free -= need
            seat[running] = request
            running += 1
        waits = running < max_sequences and (
            stacked > 0 or (following < count and arrivals[following] <= step)
        )
        if kind == _PAGED:
            at = 0
            while at < running:
                request = seat[at]
                if inputs[request] + generated[request] > taken[request] * unit:
                    while free == 0 and running > at:
                        running -= 1
                        last = seat[running]
                        free += taken[last]
                        taken[last] = 0
                        stack[stacked] = last
                        stacked += 1
                        counts[1] += 1
                        waits = True
                    if running > at:
                        taken[request] += 1
                        free -= 1
                at += 1
        useful = promised = reach = occupied = 0
        for at in range(running):
            request = seat[at]
            held = inputs[request] + generated[request]
            useful += held
            occupied += taken[request] * unit
            reach += inputs[request] + outputs[request] - 1 - held
            promised += asked[request]
        row = np.zeros(5)
        row[0] = useful
        if kind == _PAGED:
            row[2] = occupied - useful
        else:
            row[1] = reach
            row[2] = promised - useful - reach
            row[3] = occupied - promised
        row[3 if waits else 4] += capacity - occupied
        sums += row
        counts[0] += 1
        counts[3] += running
        if step % stride == 0:
            if kept == len(samples):  # keep every second one
                samples[: kept // 2] = samples[::2].copy()
                kept //= 2
                stride *= 2
            if step % stride == 0:
                samples[kept, 0] = step
                samples[kept, 1:] = row
                kept += 1
        stay = 0
        for at in range(running):
            request = seat[at]
            generated[request] += 1
            if generated[request] < outputs[request]:
                seat[stay] = request
                stay += 1
                continue
            done += 1
            free += taken[request]
            if buddy:
                give(tree, 0, levels, place[request], order_for(taken[request]))
        running = stay
        step += 1
    return sums, counts, samples[:kept]


@compiled
def _largest(units: int) -> int:
    """Order of the largest run of a pool with nothing taken."""
    order = 0
    while (2 << order) <= units:
        order += 1
    return order
