"""KV behind HBM, in closed form: what each tier of the server holds, and when to bring a prompt back from it.

Per chip: every rank brings back its own share of a prompt's KV at the same time. Computing again is one
prefill of the lane, affine in tokens beyond half the token budget (`memory/offload.py` has the forms): the
expressions of `compute/steps.py`, which a test holds against the step table. Limits: a prompt above the
budget pays the fixed part of one step only; nothing overlaps.

Every number of both tables has its tree (they would hold the prefill's tree thirty times over: all but the time to
compute again have its three figures as leaves), under the id that the row's keys make: `memory.swap_s.host_dram`,
`memory.swap_to_recompute_ratio.512x4` (tokens and GB/s).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from simcore.compute.steps import prefill_growth, prefill_host
from simcore.memory.offload import RecomputeCost, break_even_tokens, recompute_s, swap_s, swap_to_recompute
from simcore.memory.tiers import Tier, tier_of, tiers
from simcore.plan.exchange import expert_exchange, step_exchange
from simcore.plan.kv_tiers import kv_bytes_per_token_per_chip, offload_tiers
from simcore.plan.serving import lane_network, step_communication, through_stages
from simcore.plan.types import PoolPlan, ServingPlan
from simcore.why import Term, constant, leaf, maximum

MAP_BYTES_PER_S: Final = (1e9, 4e9, 16e9, 64e9, 256e9)
_MAP_TOKENS: Final = (512, 2_048, 8_192, 32_768, 131_072)


def recompute_cost(serving: ServingPlan) -> RecomputeCost:
    """A prefill of one lane, drawn through a step of the whole token budget and one of half of it."""
    pool, inputs = serving.pool, serving.inputs
    most = pool.scheduler.max_num_batched_tokens
    half, network = max(1, most // 2), lane_network(inputs, pool.chip)
    exchange = expert_exchange(inputs, pool.chip, network)

    def grown(tokens: int) -> Term:
        reduced_s = step_communication(inputs, network, tokens)
        exchanged_s = step_exchange(inputs, exchange, tokens)
        grows = prefill_growth(pool.step_model, tokens, reduced_s, exchanged_s)
        return through_stages(grows, pool.parallelism)

    whole, between = grown(most), constant(float(max(1, most - half)))
    slope = ((whole - grown(half)) / between).named("prefill_s_per_token")
    ahead = whole - _figure(slope) * constant(float(most))
    host_s = through_stages(prefill_host(pool.step_model), pool.parallelism)
    pair_s = through_stages(pool.step_model.attention.prefill_s_per_pair, pool.parallelism)
    return RecomputeCost(
        fixed_s=(maximum(0.0, ahead) + host_s).named("prefill_fixed_s"),
        s_per_token=slope,
        s_per_token_context=pair_s.named("prefill_s_per_token_context"),
    )


def _behind_hbm(serving: ServingPlan) -> tuple[Tier, ...]:
    """The catalog's tiers, with the scenario's own figures; those that only the scenario knows are last."""
    chip, server = serving.pool.chip, serving.inputs.server
    found: dict[str, Tier] = {tier.name: tier for tier in tiers(chip, server) if tier.name != "hbm"}
    found |= {tier.name: tier for tier in offload_tiers(serving.inputs.spec.kv, chip, server)}
    return tuple(found.values())


def offload_terms(serving: ServingPlan) -> dict[str, Term]:
    """The trees of both tables."""
    pool = serving.pool
    if not pool.kv.token_capacity.value > 0:
        return {}
    cost, kv = recompute_cost(serving), kv_bytes_per_token_per_chip(pool.kv)
    prompt = _mean_prompt(serving)
    found = {"memory.recompute_s": recompute_s(cost, prompt)}
    figures = _figures(cost)
    kv_figure = leaf(kv.value, kv.name, kind="derived", source="KV per chip ÷ tokens that it holds")
    for tier in _behind_hbm(serving):
        found |= _tier_terms(tier, figures, kv, kv_figure, prompt)
    for tokens in _map_lengths(pool):
        again = recompute_s(figures, tokens)
        for rate in MAP_BYTES_PER_S:
            found[ratio_id(tokens, rate)] = swap_to_recompute(again, _link(rate), tokens, kv_figure)
    return {name: term if term.op == "leaf" else term.named(name) for name, term in found.items()}


def _figures(cost: RecomputeCost) -> RecomputeCost:
    """The cost without its trees: of all these numbers, the time to compute again alone unfolds them."""
    return RecomputeCost(
        fixed_s=_figure(cost.fixed_s),
        s_per_token=_figure(cost.s_per_token),
        s_per_token_context=_figure(cost.s_per_token_context),
    )


def _figure(term: Term) -> Term:
    return leaf(
        term.value, term.name, kind="derived", source="unfolded in the time to compute a prompt again"
    )


def _tier_terms(tier: Tier, cost: RecomputeCost, kv: Term, kv_figure: Term, prompt: float) -> dict[str, Term]:
    found = {
        f"memory.tier_bytes_per_s.{tier.name}": tier.bytes_per_s,
        f"memory.swap_s.{tier.name}": swap_s(tier, prompt, kv),
    }
    if math.isfinite(tier.capacity_bytes.value):
        found[f"memory.tier_capacity_tokens.{tier.name}"] = tier.capacity_bytes / kv_figure
    meets = break_even_tokens(cost, tier, kv_figure)
    if meets is not None:
        found[f"memory.break_even_tokens.{tier.name}"] = meets
    return found


def offload_tables(serving: ServingPlan, terms: Mapping[str, Term]) -> dict[str, Any]:
    """`kv_tiers`: each tier behind HBM at the mean prompt. `swap_or_recompute`: swap ÷ recompute time."""
    if not terms:
        return {}
    pool, prompt = serving.pool, _mean_prompt(serving)

    def value(name: str) -> float | None:
        return terms[name].value if name in terms else None

    rows = [
        {
            "tier": tier.name,
            "bytes_per_s": tier.bytes_per_s.value,
            "latency_s": tier.latency_s,
            "capacity_tokens": value(f"memory.tier_capacity_tokens.{tier.name}"),
            "prompt_tokens": prompt,
            "swap_s": value(f"memory.swap_s.{tier.name}"),
            "recompute_s": value("memory.recompute_s"),
            "break_even_tokens": value(f"memory.break_even_tokens.{tier.name}"),
        }
        for tier in _behind_hbm(serving)
    ]
    ratios = [
        {
            "prompt_tokens": tokens,
            "bytes_per_s": rate,
            "swap_to_recompute_ratio": value(ratio_id(tokens, rate)),
            "term": ratio_id(tokens, rate),
        }
        for tokens in _map_lengths(pool)
        for rate in MAP_BYTES_PER_S
    ]
    return {"kv_tiers": rows, "swap_or_recompute": ratios}


def ratio_id(tokens: int, bytes_per_s: float) -> str:
    """`bytes_per_s` in whole GB/s."""
    return f"memory.swap_to_recompute_ratio.{tokens}x{bytes_per_s / 1e9:g}"


def _mean_prompt(serving: ServingPlan) -> float:
    return max(1.0, float(serving.inputs.requests.input_tokens.mean()))


def _map_lengths(pool: PoolPlan) -> list[int]:
    longest = pool.kv.max_model_len
    return [tokens for tokens in _MAP_TOKENS if tokens <= longest] or [longest]


def _link(bytes_per_s: float) -> Tier:
    """A link of the map: nothing but its bandwidth."""
    rate = leaf(bytes_per_s, "link_bytes_per_s", kind="assumption", source="column of the map")
    return tier_of("remote", capacity_bytes=constant(math.inf), bytes_per_s=rate, latency_s=0.0)
