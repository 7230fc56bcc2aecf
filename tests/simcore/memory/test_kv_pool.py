"""Counting blocks by phase gives what counting them sequence by sequence gives."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from simcore.memory.kv_pool import blocks_for, phase_after, run_blocks, shift_of, steps_within

BLOCKS = st.sampled_from([1, 2, 5, 16, 24, 64])
HELD = st.lists(st.integers(1, 300), min_size=1, max_size=30)


def phases_of(held: list[int], block: int, step: int) -> np.ndarray:
    """Sequences by the phase at which their next tokens open a block; they hold `held` tokens after `step`."""
    phases = np.zeros(block, np.int64)
    for tokens in held:
        phases[phase_after(step + 1 - tokens, block, shift_of(block))] += 1
    return phases


@given(tokens=st.integers(0, 10_000), block=BLOCKS)
def test_blocks_hold_their_tokens_and_no_block_is_empty(tokens: int, block: int) -> None:
    blocks = blocks_for(tokens, block, shift_of(block))
    assert blocks * block >= tokens > (blocks - 1) * block or (tokens == 0 and blocks == 0)


@given(held=HELD, block=BLOCKS, step=st.integers(0, 1000), steps=st.integers(0, 200))
def test_a_run_allocates_what_its_sequences_need(held: list[int], block: int, step: int, steps: int) -> None:
    shift = shift_of(block)
    needed = sum(blocks_for(t + steps, block, shift) - blocks_for(t, block, shift) for t in held)
    assert run_blocks(phases_of(held, block, step), 0, block, shift, step, len(held), steps) == needed


@given(
    held=HELD, block=BLOCKS, step=st.integers(0, 1000), steps=st.integers(1, 200), free=st.integers(0, 200)
)
def test_a_run_stops_before_the_step_that_lacks_a_block(
    held: list[int], block: int, step: int, steps: int, free: int
) -> None:
    shift, phases = shift_of(block), phases_of(held, block, step)
    served = steps_within(phases, 0, block, shift, step, len(held), steps, free)
    assert 0 <= served <= steps
    assert run_blocks(phases, 0, block, shift, step, len(held), served) <= free
    if served < steps:
        assert run_blocks(phases, 0, block, shift, step, len(held), served + 1) > free
