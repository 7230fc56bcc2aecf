"""KV behind HBM, in closed form: what each tier of the server holds, and when to bring a prompt back from it.

Per chip: every rank brings back its own share of a prompt's KV at the same time. Computing again is one
prefill of the lane's step table, affine in tokens beyond half the token budget (`memory/offload.py` has the
forms). Limits: a prompt above the budget pays the fixed part of one step only; nothing overlaps.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from simcore.memory.offload import RecomputeCost, break_even_map, break_even_tokens, recompute_s, swap_s
from simcore.memory.tiers import tiers
from simcore.plan.types import PoolPlan, ServingPlan
from simcore.why import Term, leaf

MAP_BYTES_PER_S: Final = (1e9, 4e9, 16e9, 64e9, 256e9)
_MAP_TOKENS: Final = (512, 2_048, 8_192, 32_768, 131_072)


def kv_bytes_per_token_per_chip(pool: PoolPlan) -> Term:
    """KV of one token of context on the rank that has least room."""
    return (pool.kv.rank.kv_bytes / pool.kv.token_capacity).named("kv_bytes_per_token_per_chip")


def recompute_cost(pool: PoolPlan) -> RecomputeCost:
    """A prefill of the lane's step table."""
    table, most = pool.step_table, len(pool.step_table.linear_s) - 1
    half = max(1, most // 2)
    whole_s = table.linear_s + table.comm_s
    slope_s = float(whole_s[most] - whole_s[half]) / max(1, most - half)
    fixed_s = max(0.0, float(whole_s[most]) - slope_s * most) + table.overhead_s + table.prefill_attention_s

    def figure(value: float, name: str) -> Term:
        return leaf(value, name, kind="derived", source="the lane's step table")

    return RecomputeCost(
        fixed_s=figure(fixed_s, "prefill_fixed_s"),
        s_per_token=figure(slope_s, "prefill_s_per_token"),
        s_per_token_context=figure(
            table.prefill_attention_s_per_token_context, "prefill_s_per_token_context"
        ),
    )


def offload_tables(serving: ServingPlan) -> dict[str, Any]:
    """`kv_tiers`: each tier behind HBM at the mean prompt. `swap_or_recompute`: swap ÷ recompute time."""
    inputs, pool = serving.inputs, serving.pool
    if not pool.kv.token_capacity.value > 0:
        return {}
    cost, kv = recompute_cost(pool), kv_bytes_per_token_per_chip(pool)
    prompt = max(1.0, float(inputs.requests.input_tokens.mean()))
    again_s = recompute_s(cost, prompt).value
    rows = []
    for tier in tiers(pool.chip, inputs.server):
        if tier.name == "hbm":
            continue
        meets = break_even_tokens(cost, tier, kv)
        rows.append(
            {
                "tier": tier.name,
                "bytes_per_s": tier.bytes_per_s.value,
                "latency_s": tier.latency_s,
                "capacity_tokens": tier.capacity_bytes / kv.value
                if np.isfinite(tier.capacity_bytes)
                else None,
                "prompt_tokens": prompt,
                "swap_s": swap_s(tier, prompt, kv).value,
                "recompute_s": again_s,
                "break_even_tokens": None if meets is None else meets.value,
            }
        )
    lengths = [tokens for tokens in _MAP_TOKENS if tokens <= pool.kv.max_model_len] or [pool.kv.max_model_len]
    ratios = break_even_map(
        cost,
        kv.value,
        prompt_tokens=np.array(lengths, np.float64),
        bytes_per_s=np.array(MAP_BYTES_PER_S),
    )
    found = [
        {"prompt_tokens": tokens, "bytes_per_s": rate, "swap_to_recompute_ratio": float(ratio)}
        for tokens, line in zip(lengths, ratios, strict=True)
        for rate, ratio in zip(MAP_BYTES_PER_S, line, strict=True)
    ]
    return {"kv_tiers": rows, "swap_or_recompute": found}
