"""Saturation throughput of one replica in closed form, from the step table and the mean request of a mix.

Mean field: with `n` sequences decoding in every iteration and a mean answer of `D` iterations, those in which the
tokens after its first come (`E[output - 1]` of them; fewer with speculation), a share `c = n / D` of a request ends
per iteration, and as many prompts, `c · E[input]` tokens, must be prefilled beside it (chunked prefill) or in
iterations of their own (continuous: requests end like a Poisson stream, so a share `1 - exp(-c)` of decodes is
followed by an iteration with `c / (1 - exp(-c))` prompts, as far as the token budget takes them). Throughput is `c`
divided by the time of that iteration; capacity is its maximum over the `n` that seats, token budget and KV blocks
allow. Contexts enter by their mean over decode steps, `Σ Σ_j (input + j) / Σ (output - 1)`. Limits: no preemption,
no fluctuation of the batch, so it errs on the high side where KV is tight; equal answers end together and prefill
cheaper than reckoned. Static batches have a closed form of their own, in `static_capacity.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simcore.compute.step_table import StepTimeTable
from simcore.serving.records import Floats, Integers
from simcore.serving.schedulers import SchedulerParameters
from simcore.serving.static_capacity import most_held, static_curve
from simcore.serving.step_means import (
    Mix,
    at_count,
    decode_attention_s,
    decode_s,
    mix_of,
    prefill_attention_s,
    prompts_s,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Steady states of one replica by mean decode batch: requests per second that keep it there."""

    mix: Mix
    batch: Floats
    request_per_s: Floats

    @property
    def capacity_request_per_s(self) -> float:
        return float(self.request_per_s.max())

    def batch_at(self, request_per_s: float) -> float:
        """The smallest batch that serves a rate; the batch of the maximum where none does."""
        best = int(self.request_per_s.argmax())
        rising = np.maximum.accumulate(self.request_per_s[: best + 1])
        return float(np.interp(request_per_s, np.append(0.0, rising), np.append(0.0, self.batch[: best + 1])))

    def rate_at(self, batch: float) -> float:
        """Requests per second that this batch lets through; below a batch of one, in proportion."""
        return float(np.interp(batch, np.append(0.0, self.batch), np.append(0.0, self.request_per_s)))

    def batch_of_users(self, users: float, think_s: float) -> float:
        """The batch that so many users keep, who think so long before each request: users = batch + rate · think."""
        if think_s == 0.0:
            return min(users, float(self.batch.max()))
        busy = self.batch + self.request_per_s * think_s
        return float(
            np.interp(users, np.append(0.0, np.maximum.accumulate(busy)), np.append(0.0, self.batch))
        )


def throughput_curve(
    table: StepTimeTable,
    *,
    scheduler: SchedulerParameters,
    block_count: int,
    block_size_tokens: int,
    input_tokens: Integers,
    output_tokens: Integers,
    reserved_blocks: Integers | None = None,
    cached_fraction: float = 0.0,
    prompts_come_computed: bool = False,
) -> Curve:
    """Steady states of one replica over the batches that seats, token budget and KV blocks allow.

    Where prompts come computed, with their KV, every iteration only decodes.
    """
    mix = mix_of(
        input_tokens,
        output_tokens,
        window=table.window_tokens,
        block_size=block_size_tokens,
        cached_fraction=cached_fraction,
        gained_tokens=table.gained_tokens,
    )
    return curve_of_mix(
        table,
        mix,
        scheduler=scheduler,
        block_count=block_count,
        block_size_tokens=block_size_tokens,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        reserved_blocks=reserved_blocks,
        prompts_come_computed=prompts_come_computed,
    )


def curve_of_mix(
    table: StepTimeTable,
    mix: Mix,
    *,
    scheduler: SchedulerParameters,
    block_count: int,
    block_size_tokens: int,
    input_tokens: Integers,
    output_tokens: Integers,
    reserved_blocks: Integers | None = None,
    prompts_come_computed: bool = False,
) -> Curve:
    """The same where the mean request is known, as it is of the many tables that one mix is tried on."""
    if mix.decode_steps == 0:
        prompts, rate = _prefill_only(table, scheduler, mix)
        return Curve(mix=mix, batch=np.array([prompts]), request_per_s=np.array([rate]))
    seats = float(scheduler.max_num_seqs)
    if scheduler.kind == "static_batch":
        if reserved_blocks is None:
            held = most_held(
                input_tokens, output_tokens, block_count=block_count, block_size_tokens=block_size_tokens
            )
        else:
            held = _sequences_promised(reserved_blocks, np.full_like(output_tokens, 2), block_count)
        sizes, rates = static_curve(table, mix, scheduler, most=min(seats, held), output_tokens=output_tokens)
        return Curve(mix=mix, batch=sizes, request_per_s=rates)
    if reserved_blocks is None:
        most = min(seats, max(1.0, block_count / mix.held_blocks))
    else:
        most = seats = min(seats, _sequences_promised(reserved_blocks, output_tokens, block_count))
    batch = np.unique(np.append(np.arange(1.0, most + 1), most))
    if prompts_come_computed:
        ended = batch / mix.iterations
        seconds = decode_s(table, mix, batch)
    elif scheduler.kind == "continuous":
        ended = batch / mix.iterations  # requests per iteration
        together = _prompts_together(scheduler, mix, ended)
        seconds = decode_s(table, mix, batch) + ended / together * prompts_s(table, mix, together)
    else:
        budget = float(scheduler.max_num_batched_tokens)
        # Prompts take what decodes leave of the budget; at most this many sequences can be kept decoding.
        most_fed = budget * mix.iterations / (mix.input_tokens + table.verified_tokens * mix.iterations)
        # A prompt holds a seat for an iteration at least, and for one by capped chunk, before it decodes.
        chunks = max(1.0, mix.input_tokens / scheduler.longest_chunk_tokens)
        most_seated = seats * mix.iterations / (chunks + mix.iterations)
        batch = np.unique(np.minimum(batch, max(min(most_fed, most_seated), 1e-9)))
        ended = batch / mix.iterations
        seconds = _mixed_s(table, mix, batch, scheduler)
    return Curve(mix=mix, batch=batch, request_per_s=ended / seconds)


def _sequences_promised(reserved_blocks: Integers, output_tokens: Integers, block_count: int) -> float:
    """Sequences that a pool can promise memory to, those that it can never hold left out."""
    kept = reserved_blocks <= block_count
    steps = output_tokens[kept].astype(np.float64)
    if not kept.any():
        return 1.0
    return max(1.0, float(np.floor(block_count / np.average(reserved_blocks[kept], weights=steps))))


def capacity_request_per_s(
    table: StepTimeTable,
    *,
    scheduler: SchedulerParameters,
    block_count: int,
    block_size_tokens: int,
    input_tokens: Integers,
    output_tokens: Integers,
    reserved_blocks: Integers | None = None,
) -> float:
    """Requests per second of one replica at saturation."""
    return throughput_curve(
        table,
        scheduler=scheduler,
        block_count=block_count,
        block_size_tokens=block_size_tokens,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        reserved_blocks=reserved_blocks,
    ).capacity_request_per_s


def _mixed_s(table: StepTimeTable, mix: Mix, batch: Floats, scheduler: SchedulerParameters) -> Floats:
    """Mean iteration when a share of them carries prompt tokens, as full a chunk as arrives."""
    ended = batch / mix.iterations
    decodes = table.verified_tokens * batch
    fed = ended * mix.input_tokens  # prompt tokens per iteration
    longest = min(mix.input_tokens, float(scheduler.longest_chunk_tokens))
    chunk = np.maximum(np.minimum(longest, scheduler.max_num_batched_tokens - decodes), fed)
    share = np.minimum(1.0, fed / chunk)
    with_prompt = at_count(table.linear_s + table.comm_s, decodes + chunk) + table.prefill_attention_s
    without = at_count(table.linear_s + table.comm_s, decodes)
    return (
        share * with_prompt
        + (1 - share) * without
        + table.overhead_s
        + at_count(table.head_s, batch + ended)
        + decode_attention_s(table, mix, batch)
        + ended * prefill_attention_s(table, mix)
        + table.overhead_s_per_sequence * (batch + ended)
    )


def prompt_iterations_s(
    table: StepTimeTable, scheduler: SchedulerParameters, mix: Mix, batch: Floats
) -> tuple[Floats, Floats]:
    """What a mean prompt takes beside `batch` decodes (alone, where they do not mix), and its share of that."""
    if scheduler.kind == "continuous":
        ended = np.maximum(batch, 1e-9) / max(mix.iterations, 1.0)
        together = _prompts_together(scheduler, mix, ended)
        seconds = prompts_s(table, mix, together)
        return seconds, seconds / together
    decodes = table.verified_tokens * batch
    left = np.maximum(
        1.0, np.minimum(scheduler.max_num_batched_tokens - decodes, scheduler.longest_chunk_tokens)
    )
    chunks = np.maximum(1.0, mix.input_tokens / left)
    decodes_s = np.where(batch > 0, decode_attention_s(table, mix, batch), 0.0)
    each_s = (
        at_count(table.linear_s + table.comm_s, decodes + np.minimum(mix.input_tokens, left))
        + table.overhead_s
        + at_count(table.head_s, batch + 1)
        + decodes_s
        + table.prefill_attention_s
        + table.overhead_s_per_sequence * (batch + 1)
    )
    seconds = chunks * each_s + prefill_attention_s(table, mix)
    return seconds, seconds


def _prompts_together(scheduler: SchedulerParameters, mix: Mix, ended: Floats) -> Floats:
    """Prompts of a prefill-only iteration: those that came since the last one, one at least."""
    most = max(1.0, np.floor(scheduler.max_num_batched_tokens / mix.input_tokens))
    together: Floats = np.minimum(ended / -np.expm1(-ended), most)
    return together


def _prefill_only(table: StepTimeTable, scheduler: SchedulerParameters, mix: Mix) -> tuple[float, float]:
    """Every answer is one token: iterations are full of prompts. Prompts per iteration, requests per second."""
    budget = float(scheduler.max_num_batched_tokens)
    prompts = min(max(budget / mix.input_tokens, 1e-9), float(scheduler.max_num_seqs))
    if scheduler.kind != "chunked_prefill":
        prompts = max(1.0, np.floor(prompts))
    seconds = float(prompts_s(table, mix, np.array([prompts]))[0])
    return float(prompts), float(prompts / seconds)
