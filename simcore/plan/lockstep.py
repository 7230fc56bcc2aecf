"""What data parallel ranks that share experts wait for each other, at most: a closed form beside the simulation.

The engine steps every rank at its own pace, with experts that see as many tokens of each. Real ranks meet in every
layer, so a step lasts as long as that of the rank which holds a prompt. In a steady state a rank finishes
batch ÷ output sequences a step and begins as many prompts, each of so many chunks:

    p = min(1, chunks · batch / output),    q = 1 − (1 − p)^dp,    ratio = (decode + q · chunk) / (decode + p · chunk)

with the decode step and what a prompt's chunk adds to it from the step table. It is an upper end: prompts of one rank
are priced as if all had one, and engines that hold prompts back until ranks have some together (TensorRT-LLM's
attention DP balance) wait less. Held against TensorRT-LLM on 8 H200 (DeepSeek-R1, as many users as it takes): the
simulated throughput is 1.57 and 1.19 times what was measured, and this says 1.76 and 1.19.
"""

from __future__ import annotations

from math import ceil

from simcore.compute.roofline import power
from simcore.plan.types import PoolPlan
from simcore.why import Term, constant, leaf, minimum
from simcore.workload.requests import Requests


def lockstep_ratio(pool: PoolPlan, requests: Requests) -> Term | None:
    """How much longer a mean step of ranks in lockstep lasts; None where ranks share nothing, or all steps alike
    hold prompts or none."""
    if pool.exchange_tier is None or pool.role != "both":
        return None
    prompt, answer = float(requests.input_tokens.mean()), float(requests.output_tokens.mean())
    budget = pool.scheduler.max_num_batched_tokens
    batch = min(max(1, round(pool.operating_point.batch)), budget - 1)
    chunk_count = max(1, ceil(prompt / budget))
    sequences = leaf(batch, "batch", kind="derived", source="sequences decoding together", dimension="count")
    output = leaf(answer, "output_tokens", kind="derived", source="mean of the requests", dimension="tokens")
    chunks = leaf(
        chunk_count,
        "chunks_per_prompt",
        kind="derived",
        source="mean prompt ÷ token budget",
        dimension="count",
    )
    alone = minimum(1.0, chunks * sequences / output).named("share_of_steps_with_a_prompt", "fraction")
    others = constant(float(pool.parallelism.dp), "data_ranks")
    nobody = power(1 - alone, others)
    anybody = (1 - nobody).named("share_of_steps_with_a_prompt_anywhere", "fraction")
    decode_s = leaf(
        pool.terms["compute.decode_step_s"].value, "decode_step_s", kind="derived", source="its own tree"
    )
    added_s = leaf(
        _chunk_s(pool, batch, min(round(prompt / chunk_count), budget - batch)),
        "prompt_chunk_s",
        kind="derived",
        source="what a prompt's chunk adds to a decode step, by the step table",
    )
    return (decode_s + anybody * added_s) / (decode_s + alone * added_s)


def _chunk_s(pool: PoolPlan, batch: int, chunk: int) -> float:
    table, mean_context = pool.step_table, chunk / 2.0
    grown = table.linear_s[batch + chunk] - table.linear_s[batch]
    grown += table.comm_s[batch + chunk] - table.comm_s[batch]
    attention_s = chunk * (
        mean_context * table.prefill_attention_s_per_token_context
        + min(mean_context, table.window_tokens) * table.prefill_attention_s_per_window_token
    )
    return max(0.0, float(grown)) + attention_s + table.prefill_attention_s
