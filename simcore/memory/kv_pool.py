"""The paged KV pool as counts: how many blocks a sequence holds, and when its next token needs a new one.

A sequence with `t` tokens holds `ceil(t / block)` blocks. All decoding sequences of a replica grow by one
token per decode iteration, so a sequence needs a new block every `block` iterations, always at the same
phase `step mod block`. Counting sequences by phase gives the blocks that an iteration (or a run of
iterations) allocates in O(1), without touching a single sequence. Blocks are owned by one sequence each:
there is no sharing here, so used + free = total is the whole law.
"""

from __future__ import annotations

from typing import Any

from simcore.compiled import compiled_in_place


def shift_of(block_size: int) -> int:
    """log2 of a block size that is a power of two, else -1: divisions then become shifts.

    >>> shift_of(16), shift_of(1), shift_of(12)
    (4, 0, -1)
    """
    return block_size.bit_length() - 1 if block_size & (block_size - 1) == 0 else -1


@compiled_in_place
def blocks_for(tokens: int, block_size: int, shift: int) -> int:
    """Blocks that hold `tokens` tokens.

    >>> int(blocks_for(33, 16, 4)), int(blocks_for(32, 16, 4)), int(blocks_for(13, 12, -1))
    (3, 2, 2)
    """
    if shift >= 0:
        return (tokens + block_size - 1) >> shift
    return (tokens + block_size - 1) // block_size


@compiled_in_place
def phase_after(step: int, block_size: int, shift: int) -> int:
    """`step` modulo the block size, for negative steps too."""
    if shift >= 0:
        return step & (block_size - 1)
    return step % block_size


@compiled_in_place
def run_blocks(
    phases: Any, base: int, block_size: int, shift: int, step: int, sequences: int, steps: int
) -> int:
    """Blocks that decode steps `step + 1 … step + steps` allocate for `sequences` sequences."""
    needed = 0
    if steps >= block_size:
        whole = steps >> shift if shift >= 0 else steps // block_size
        needed = whole * sequences
        steps -= whole * block_size
    phase = phase_after(step, block_size, shift)
    for _ in range(steps):
        phase += 1
        if phase == block_size:
            phase = 0
        needed += phases[base + phase]
    return needed


@compiled_in_place
def steps_within(
    phases: Any, base: int, block_size: int, shift: int, step: int, sequences: int, steps: int, free: int
) -> int:
    """The most decode steps, up to `steps`, that `free` blocks can serve."""
    if sequences * blocks_for(steps, block_size, shift) <= free:
        return steps
    # Whole cycles allocate `sequences` blocks each; at most one more cycle fits, in part.
    served = (free // sequences) * block_size
    left = free - run_blocks(phases, base, block_size, shift, step, sequences, served)
    while served < steps:
        need = phases[base + phase_after(step + served + 1, block_size, shift)]
        if need > left:
            break
        left -= need
        served += 1
    return served
