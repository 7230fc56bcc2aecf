"""Speculative decoding in a plan: the draft that was named, the steps that verify, and when they pay.

    iteration = a step that verifies 1 + k tokens of every sequence + k passes of the draft
    speed-up  = tokens per iteration × plain step / iteration,    at the batch of the operating point

Break-even is the acceptance rate at which the speed-up is 1. With it a plan says whether drafts help at the batch
that the load keeps, and at the one that saturates: verifying is nearly free where a step waits for memory, and
costs its tokens where it computes.
Limits: heads hold no memory of their own here (one layer); a draft model's KV has the format of the target's.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from simcore.catalog.types import LlmArchitecture
from simcore.compute.drafting import DraftShares
from simcore.errors import InputError, Message
from simcore.plan.types import PoolInputs, PoolPlan, SpeculationPlan
from simcore.serving.schedulers import SchedulerParameters
from simcore.serving.speculation import DraftModel, Ngram, Speculative, tokens_per_iteration
from simcore.why import Term, constant, leaf, power, total

PATH: Final = "serving.speculative"
_NAME: Final = "serving.speculative"


def check_speculation(inputs: PoolInputs, scheduler: SchedulerParameters) -> None:
    """Raises InputError where drafts and the rest of the serving section do not go together."""
    spec = inputs.spec.speculative
    if spec is None:
        return
    if inputs.parallelism.pp > 1:
        raise InputError.at(
            PATH,
            "speculative.pipeline",
            "drafts over {got} pipeline stages are not modelled; set serving.parallelism.pp to 1 or remove them",
            got=inputs.parallelism.pp,
        )
    needed = scheduler.max_num_seqs * (1 + spec.num_speculative_tokens)
    if needed > scheduler.max_num_batched_tokens:
        raise InputError.at(
            f"{PATH}.num_speculative_tokens",
            "speculative.budget",
            "{seats:,} sequences verify {each} tokens each, {needed:,} in all, and max_num_batched_tokens is {got:,}; "
            "raise it, lower max_num_seqs to {allowed:,} or draft fewer tokens",
            seats=scheduler.max_num_seqs,
            each=1 + spec.num_speculative_tokens,
            needed=needed,
            got=scheduler.max_num_batched_tokens,
            allowed=max(1, scheduler.max_num_batched_tokens // (1 + spec.num_speculative_tokens)),
        )
    if inputs.draft is not None:
        _check_vocabulary(inputs.draft, inputs.architecture)


def _check_vocabulary(draft: LlmArchitecture, target: LlmArchitecture) -> None:
    if draft.vocab != target.vocab:
        raise InputError.at(
            f"{PATH}.model",
            "speculative.vocabulary",
            "{draft} has {got:,} tokens in its vocabulary and {target} {allowed:,}: its drafts cannot be verified; "
            "choose a draft of the same family",
            draft=draft.name,
            got=draft.vocab,
            target=target.name,
            allowed=target.vocab,
        )


def drafting_inputs(inputs: PoolInputs) -> PoolInputs:
    """The pool's inputs with the draft in the place of the target; the target itself where a head drafts."""
    if inputs.draft is None:
        return inputs
    return replace(inputs, architecture=inputs.draft, weights_dtype=inputs.draft.weights_dtype, draft=None)


def shares_of(spec: Speculative, architecture: LlmArchitecture) -> DraftShares | None:
    """What a pass takes of a step: of the draft model's, or of the target's where a head drafts."""
    if isinstance(spec, Ngram):
        return None
    if isinstance(spec, DraftModel):
        return DraftShares(layer_ratio=1.0, head_ratio=1.0, host_ratio=0.0)
    if spec.draft_cost_fraction == "auto":
        return DraftShares(layer_ratio=1.0 / architecture.layers, head_ratio=1.0, host_ratio=0.0)
    cost = spec.draft_cost_fraction
    return DraftShares(layer_ratio=cost, head_ratio=cost, host_ratio=cost)


def speculation_terms(
    plan: SpeculationPlan, *, plain: Term, verifying: Term, passes: tuple[Term, Term, Term] | None
) -> dict[str, Term]:
    """Tokens per iteration, the iteration, the time per token, the speed-up, and where it is 1."""
    drafts = leaf(plan.draft_tokens, "draft_tokens", path=f"{PATH}.num_speculative_tokens")
    gained = _tokens_per_iteration(plan, drafts)
    step = verifying.named("verification_s", "s")
    iteration = step if plan.shares is None or passes is None else total(step, _passes_s(plan.shares, passes))
    found = {
        "expected_tokens_per_step": gained,
        "iteration_s": iteration,
        "tpot_s": iteration / gained,
        "speedup_ratio": gained * plain / iteration,
    }
    even = break_even(iteration.value / plain.value, plan.draft_tokens)
    if even is not None:
        found["break_even_fraction"] = leaf(
            even,
            "break_even_fraction",
            kind="derived",
            source="where tokens per iteration are as many as the plain steps that an iteration takes",
        )
    return {f"{_NAME}.{name}": term.named(f"{_NAME}.{name}") for name, term in found.items()}


def _tokens_per_iteration(plan: SpeculationPlan, drafts: Term) -> Term:
    rate = leaf(plan.acceptance_rate, "acceptance_rate", path=f"{PATH}.acceptance_rate", dimension="")
    one = constant(1.0)
    if plan.acceptance_rate == 1.0:
        return drafts + one
    return (one - power(rate, drafts + one)) / (one - rate)


def _passes_s(shares: DraftShares, passes: tuple[Term, Term, Term]) -> Term:
    """A draft model's own passes as they are, a head's as shares of the target's; host work where it has a share."""
    names = ("layer_ratio", "head_ratio", "host_ratio")
    ratios = (shares.layer_ratio, shares.head_ratio, shares.host_ratio)
    parts = []
    for name, ratio, seconds in zip(names, ratios, passes, strict=True):
        if ratio == 1.0:
            parts.append(seconds)
        elif ratio:
            share = leaf(ratio, f"draft_{name}", kind="derived", source="of a pass, to a step of the target")
            parts.append(share * seconds)
    return total(*parts).named("drafting_s", "s")


def break_even(cost_ratio: float, draft_tokens: int) -> float | None:
    """The acceptance rate at which an iteration gives as many tokens as the plain steps it takes; None: none does.

    >>> break_even(1.75, 2), break_even(3.5, 2)
    (0.5, None)
    """
    if cost_ratio > draft_tokens + 1:
        return None
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (
            (middle, high) if tokens_per_iteration(middle, draft_tokens) < cost_ratio else (low, middle)
        )
    return high


def speculation_warnings(pool: PoolPlan) -> list[Message]:
    """Where drafts make decoding slower at the mean batch, or cost capacity."""
    plan = pool.speculation
    if plan is None:
        return []
    speedup = pool.terms[f"{_NAME}.speedup_ratio"].value
    if speedup < 1.0:
        return [_slower(pool, plan, speedup)]
    capacity = pool.operating_point.capacity_request_per_s
    if capacity < plan.capacity_request_per_s:
        return [
            Message(
                code="speculative.capacity",
                template="drafts speed decoding up {speedup:.2f} times at a batch of {batch:,.0f} and cost capacity: "
                "{with_drafts:.3g} requests per second instead of {without:.3g}, because full batches compute what "
                "they verify",
                params={
                    "speedup": speedup,
                    "batch": pool.operating_point.batch,
                    "with_drafts": capacity,
                    "without": plan.capacity_request_per_s,
                },
                path=PATH,
            )
        ]
    return []


def _slower(pool: PoolPlan, plan: SpeculationPlan, speedup: float) -> Message:
    even = pool.terms.get(f"{_NAME}.break_even_fraction")
    params = {
        "speedup": speedup,
        "batch": pool.operating_point.batch,
        "got": plan.acceptance_rate,
    }
    if even is None:
        return Message(
            code="speculative.slower",
            template="drafts make decoding slower here, {speedup:.2f} times its speed without them at a batch of "
            "{batch:,.0f}, and no acceptance rate would make up for what they cost; draft fewer tokens or none",
            params=params,
            path=PATH,
        )
    return Message(
        code="speculative.slower",
        template="drafts make decoding slower here, {speedup:.2f} times its speed without them at a batch of "
        "{batch:,.0f}: they pay above an acceptance rate of {break_even:.2f}, and it is {got:.2f}; draft fewer "
        "tokens or none",
        params=params | {"break_even": even.value},
        path=f"{PATH}.acceptance_rate",
    )
