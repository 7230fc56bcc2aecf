"""The mean request of a mix, and what iterations of such requests take by the step table.

The parts of which `capacity.py` and `static_capacity.py` build their steady states. Counts may be fractions: the
table is interpolated between whole ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simcore.compute.step_table import StepTimeTable
from simcore.serving.records import Floats, Integers
from simcore.serving.speculation import mean_iterations


@dataclass(frozen=True, slots=True, kw_only=True)
class Mix:
    """The mean request, and the means that step times need."""

    input_tokens: float  # to compute
    decode_steps: float  # tokens after the first
    iterations: float  # in which they come; with speculation fewer
    iterations_per_token: float  # mean over answers
    context_tokens: float  # mean over decode steps
    window_tokens: float  # mean of min(context, window)
    prefill_work: float  # Σ chunk (done + chunk / 2) = input² / 2
    prefill_window_work: float
    held_blocks: float  # mean over decode steps


def mix_of(
    input_tokens: Integers,
    output_tokens: Integers,
    *,
    window: int,
    block_size: int,
    cached_fraction: float = 0.0,
    gained_tokens: float = 1.0,
) -> Mix:
    """Means of a mix; the window's mean is exact for contexts that grow by one token per step.

    Of each prompt, the share `cached_fraction` is resident already: it is read, not computed.
    """
    shown = input_tokens.astype(np.float64)
    steps = output_tokens.astype(np.float64) - 1
    total_steps = steps.sum()
    if total_steps == 0:
        context = clipped = 0.0
    else:
        context = float((steps * shown + 0.5 * steps * (steps + 1)).sum() / total_steps)
        below = np.clip(window - shown, 0, steps)  # steps before the context reaches the window
        clipped = float(
            (below * shown + 0.5 * below * (below + 1) + (steps - below) * window).sum() / total_steps
        )
    cached = cached_fraction * shown
    iterations = mean_iterations(steps, gained_tokens)
    return Mix(
        input_tokens=float((shown - cached).mean()),
        decode_steps=float(steps.mean()),
        iterations=float(iterations.mean()),
        iterations_per_token=_mean_ratio(iterations, steps),
        context_tokens=context,
        window_tokens=clipped,
        prefill_work=float((0.5 * shown**2 - 0.5 * cached**2).mean()),
        prefill_window_work=float((_window_work(shown, window) - _window_work(cached, window)).mean()),
        held_blocks=context / block_size + 0.5,
    )


def _mean_ratio(iterations: Floats, steps: Floats) -> float:
    some = steps > 0
    return float((iterations[some] / steps[some]).mean()) if some.any() else 1.0


def _window_work(tokens: Floats, window: int) -> Floats:
    """Σ min(context, window) over the tokens of a prompt."""
    inside = np.minimum(tokens, window)
    work: Floats = 0.5 * inside**2 + (tokens - inside) * window
    return work


def decode_s(table: StepTimeTable, mix: Mix, batch: Floats) -> Floats:
    """One decode-only iteration."""
    return (
        at_count(table.linear_s + table.comm_s, table.verified_tokens * batch)
        + table.overhead_s
        + at_count(table.head_s, batch)
        + decode_attention_s(table, mix, batch)
        + table.overhead_s_per_sequence * batch
    )


def decode_attention_s(table: StepTimeTable, mix: Mix, batch: Floats) -> Floats:
    beyond = table.verified_tokens - 0.5 * (table.gained_tokens + 1.0)  # the drafts, of which some are kept
    per_sequence = (
        table.decode_attention_s_per_sequence
        + table.decode_attention_s_per_token * (mix.context_tokens + beyond)
        + table.decode_attention_s_per_window_token * mix.window_tokens
    )
    return table.decode_attention_s + per_sequence * batch


def prefill_attention_s(table: StepTimeTable, mix: Mix) -> float:
    """Attention of one whole prompt, however it is cut."""
    return (
        table.prefill_attention_s_per_token_context * mix.prefill_work
        + table.prefill_attention_s_per_window_token * mix.prefill_window_work
    )


def prompts_s(table: StepTimeTable, mix: Mix, prompts: Floats) -> Floats:
    """A prefill-only iteration of whole prompts."""
    return (
        at_count(table.linear_s + table.comm_s, prompts * mix.input_tokens)
        + table.overhead_s
        + table.overhead_s_per_sequence * prompts
        + table.prefill_attention_s
        + at_count(table.head_s, prompts)
        + prompts * prefill_attention_s(table, mix)
    )


def at_count(values: Floats, count: Floats) -> Floats:
    """Linear interpolation in a table by count; beyond its end in proportion, as the kernel does."""
    last = len(values) - 1
    inside = np.interp(count, np.arange(last + 1), values)
    return np.where(count > last, values[last] * count / max(1, last), inside)
