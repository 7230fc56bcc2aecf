"""Saturation of a static batch in closed form: it lasts as long as its longest answer.

A batch of `n` starts together; of it, `n · S_j` still decode in step `j`, with `S_j = P(output > j)` of the mix, and
the step happens at all with probability `1 - (1 - S_j)^n`, so the mean of the longest answer is `Σ_j 1 - (1 - S_j)^n`:

    seconds of a batch = prompts within the token budget + Σ_j (1 - (1 - S_j)^n) · step(survivors_j)

with the mean of the survivors given that there are any. Throughput is `n` over that, and the mean decode batch
`n · E[steps] / E[longest]`. Exact where step times are linear in the batch (attention is); where they are not, the
spread of the survivors is left out. Limits: equal mixes of long and short prompts pack into an iteration as their mean
does, and no preemption: `n` is what KV blocks hold at the step at which the mean batch holds most. Saturated
simulations lie within 3 %, within 10 % where memory preempts (tests/simcore/serving/test_static_capacity.py).
"""

from __future__ import annotations

import numpy as np

from simcore.compute.step_table import StepTimeTable
from simcore.serving.records import Floats, Integers
from simcore.serving.schedulers import SchedulerParameters
from simcore.serving.speculation import mean_iterations
from simcore.serving.step_means import Mix, decode_s, prompts_s

_EVERY_SIZE = 8
_SIZES = 32


def static_curve(
    table: StepTimeTable, mix: Mix, scheduler: SchedulerParameters, *, most: float, output_tokens: Integers
) -> tuple[Floats, Floats]:
    """Mean decode batches, and the requests per second that keep them, over batches of 1 to `most`."""
    ends, counts = np.unique(output_tokens - 1, return_counts=True)
    alive = (counts[::-1].cumsum()[::-1] / len(output_tokens))[ends > 0]  # S up to each distinct length
    iterations = mean_iterations(np.append(0.0, ends[ends > 0]), table.gained_tokens)
    steps = np.diff(iterations)
    sizes = _sizes(most)[:, np.newaxis]
    happens = -np.expm1(sizes * np.log1p(-np.minimum(alive, 1.0 - 1e-15)))
    survivors = sizes * alive / happens
    longest = happens @ steps
    seconds = (happens * decode_s(table, mix, survivors)) @ steps
    size = sizes[:, 0]
    return size * mix.iterations / longest, size / (seconds + _prompts_s(table, mix, scheduler, size))


def most_held(
    input_tokens: Integers, output_tokens: Integers, *, block_count: int, block_size_tokens: int
) -> float:
    """Sequences of a batch whose mean never needs more KV blocks than there are."""
    order = np.argsort(output_tokens)[::-1]
    shown, answered = input_tokens[order].astype(np.float64), output_tokens[order].astype(np.float64)
    alive = np.arange(1, len(order) + 1)  # at the last step of each, itself and all longer ones
    held = (np.cumsum(shown) + alive * (answered - 1)) / block_size_tokens + 0.5 * alive
    return max(1.0, block_count * len(order) / float(held.max()))


def _sizes(most: float) -> Floats:
    few = np.arange(1.0, min(most, _EVERY_SIZE) + 1)
    return np.unique(np.append(few, np.floor(np.geomspace(1.0, max(1.0, most), _SIZES))))


def _prompts_s(table: StepTimeTable, mix: Mix, scheduler: SchedulerParameters, sizes: Floats) -> Floats:
    """Prefill of a whole batch: iterations of as many whole prompts as the budget takes, then the rest."""
    together = max(1.0, np.floor(scheduler.max_num_batched_tokens / mix.input_tokens))
    full, rest = np.divmod(sizes, together)
    each_s = float(prompts_s(table, mix, np.array([together]))[0])
    return full * each_s + np.where(rest > 0, prompts_s(table, mix, rest), 0.0)
