"""What a run would say of its cost, from the closed forms alone: for studies that plan thousands of times.

A plan knows its capacity but not what passes through it. Here requests come at the offered rate, up to the capacity
(a closed loop: at the capacity), tokens are the means of the drawn requests, and chips are busy while at least one of
the mean batch `n` of a lane is in it, `1 - exp(-n)` as with an unlimited number of servers. Limits: what queueing
costs in rejected or preempted work is left out, and so is time lost to failures, so near saturation a simulated
cost is higher.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from simcore.cost import CostModel
from simcore.plan import Plan, ServingPlan
from simcore.plan.serving_traffic import served_request_per_s
from simcore.plan.training import training_terms
from simcore.why import Term, leaf


def closed_form_terms(plan: Plan, cost: CostModel | None = None) -> dict[str, Term]:
    """The plan's metrics with cost and energy per token beside them; `cost` stands in for the plan's own."""
    money = cost or plan.cost
    if plan.training is not None:
        return {**plan.terms, **money.terms(), **training_terms(plan.training, money)}
    if plan.serving is None:
        return {**plan.terms, **money.terms()}
    busy = _busy(plan.serving)
    return {**plan.terms, **money.terms(busy), **money.token_terms(**_rates(plan.serving), utilisation=busy)}


def closed_form_metrics(plan: Plan, cost: CostModel | None = None) -> Mapping[str, float]:
    """Their values by id."""
    return {name: term.value for name, term in closed_form_terms(plan, cost).items()}


def _busy(serving: ServingPlan) -> Term:
    """Of the pool that decodes: chips work while their batch is not empty."""
    batch = serving.pool.operating_point.batch
    return leaf(-math.expm1(-batch), "utilisation_fraction", kind="derived", source="1 − exp(−mean batch)")


def _rates(serving: ServingPlan) -> dict[str, Term]:
    requests = serving.inputs.requests
    served = leaf(
        served_request_per_s(serving),
        "served_request_per_s",
        kind="derived",
        source="what is offered, up to the capacity",
    )
    found = {}
    for side, tokens in (("input", requests.input_tokens), ("output", requests.output_tokens)):
        mean = leaf(float(np.mean(tokens)), f"mean_{side}_tokens", kind="derived", source="drawn requests")
        found[f"{side}_token_per_s"] = (served * mean).named(f"{side}_token_per_s")
    return found
