"""The shock test: what a timeline of shocks does to the goodput, and which ability to re-arrange bought how much.

The requests are served without the shocks, and with them under each subset of the abilities that are turned on (2³
runs at most; subsets that come to the same outages are run once). Each is held against the run without shocks request
by request (`reliability/recovery.py`); what an ability bought is its Shapley value of the lost share, so what the three
bought adds up to what all of them save. Main metrics are those of the abilities that the scenario turns on.

Limits: the first seed alone; abilities that the scenario turns off are not tried.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from simcore.analysis.findings import Findings, announce
from simcore.analysis.shock_findings import (
    Ability,
    Tried,
    ability_message,
    bought_by,
    metrics_of,
    series_of,
    subsets,
    tables_of,
    with_only,
)
from simcore.analysis.training_shocks import training_shock_test
from simcore.errors import Message
from simcore.plan import Plan, ServingPlan
from simcore.plan.shocks import outages_of, without_shocks
from simcore.reliability import Recovery, Slices, recovery
from simcore.serving.interruptions import Outages
from simcore.serving.latencies import met
from simcore.simulate import OnEvent, Result, promise_of, records_under
from simcore.why import simulated


def shocked(plan: Plan, result: Result, on_event: OnEvent | None = None) -> Findings:
    """The shock test of what the plan does; nothing where it neither serves nor trains."""
    found = Findings()
    if plan.training is not None:
        found = training_shock_test(plan.training, plan.scenario.reliability, seed=plan.seed)
    elif plan.serving is not None:
        found = shock_test(plan, plan.serving)
    announce(on_event, found.messages)
    return found


def shock_test(plan: Plan, serving: ServingPlan) -> Findings:
    """The shock test of a plan; nothing where its timeline is empty."""
    spec = plan.scenario.reliability
    if not spec.shocks:
        return Findings()
    calm = without_shocks(plan, serving)
    steady = records_under(plan, calm, None)
    met_without = met(steady, promise_of(plan, calm))
    slices = None
    tried: list[Tried] = []
    ran: dict[Outages | None, Any] = {}
    for some in subsets(spec.abilities):
        outages = outages_of(plan, serving, with_only(spec.abilities, some))
        if outages not in ran:
            ran[outages] = records_under(plan, serving, outages)
        records = ran[outages]
        if slices is None:
            arrived_s = np.where(np.isnan(records.arrival_s), steady.arrival_s, records.arrival_s)
            slices = Slices.of(arrived_s)
        met_with = met(records, promise_of(plan, serving))
        first_s = min(one.at_s for one in spec.shocks)
        tried.append(
            Tried(
                abilities=some,
                outcome=recovery(slices, met_without, met_with, first_shock_s=first_s),
                goodput_per_s=slices.counts(met_with) / np.diff(slices.edges_s),
            )
        )
    assert slices is not None, "the empty set is always tried"
    return _findings(plan, tried, slices, slices.counts(met_without), len(steady.status))


def _findings(plan: Plan, tried: list[Tried], slices: Slices, steady: Any, request_count: int) -> Findings:
    with_all, with_none = tried[-1], tried[0]
    bought = bought_by(tried)
    metrics = metrics_of(with_all.outcome)
    width_s = np.diff(slices.edges_s)
    middle_s = slices.edges_s[:-1] + width_s / 2
    return Findings(
        metrics=metrics,
        tables=tables_of(tried, bought),
        series=series_of(tried, middle_s, steady / width_s),
        why={
            name: simulated(value, name, statistic="", count=request_count, seed=plan.seed)
            for name, value in metrics.items()
        },
        messages=tuple(_messages(with_all.outcome, with_none.outcome, bought)),
    )


def _messages(with_all: Recovery, with_none: Recovery, bought: Mapping[Ability, float]) -> Iterator[Message]:
    yield Message(
        code="finding.shock",
        template="the shocks cost {lost} of the requests that would have met the SLO; at worst {dip} of them are "
        "missed at once, and {recovery_s:,.0f} s after the first shock the goodput is back for good",
        params={
            "lost": f"{with_all.lost_fraction:.1%}",
            "dip": f"{with_all.dip_fraction:.0%}",
            "recovery_s": with_all.recovery_s,
        },
        path="reliability.shocks",
    )
    yield from ability_message(with_all, with_none, bought)
