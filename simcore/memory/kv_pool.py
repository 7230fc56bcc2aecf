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


@compiled_in_place
def blocks_for(tokens: int, block_size: int) -> int:
    """Blocks that hold `tokens` tokens.

    >>> int(blocks_for(33, 16)), int(blocks_for(32, 16)), int(blocks_for(0, 16))
    (3, 2, 0)
    """
    return (tokens + block_size - 1) // block_size


@compiled_in_place
def phase_of(step: int, tokens: int, block_size: int) -> int:
    """Phase (decode step modulo block) at which a sequence that starts decoding with `tokens` needs a block.

    Its j-th decode step, at `step + j`, writes position `tokens + j - 1`; that opens a block when the
    position is a multiple of the block size.
    """
    return (step + 1 - tokens) % block_size


@compiled_in_place
def run_blocks(phases: Any, base: int, block_size: int, step: int, sequences: int, steps: int) -> int:
    """Blocks that decode steps `step + 1 … step + steps` allocate for `sequences` sequences."""
    whole = steps // block_size
    needed = whole * sequences
    phase = step % block_size
    for _ in range(steps - whole * block_size):
        phase += 1
        if phase == block_size:
            phase = 0
        needed += phases[base + phase]
    return needed


@compiled_in_place
def steps_within(
    phases: Any, base: int, block_size: int, step: int, sequences: int, steps: int, free: int
) -> int:
    """The most decode steps, up to `steps`, that `free` blocks can serve."""
    if sequences * (steps // block_size + 1) <= free:
        return steps
    # Whole cycles allocate `sequences` blocks each, then at most one more cycle fits in part.
    served = min(steps, (free // sequences) * block_size)
    left = (
        free
        - (served // block_size) * sequences
        - (run_blocks(phases, base, block_size, step, sequences, served % block_size))
    )
    while served < steps:
        need = phases[base + (step + served + 1) % block_size]
        if need > left:
            break
        left -= need
        served += 1
    return served
