"""The shock test: what a timeline of shocks does to the goodput, and which ability to re-arrange bought how much.

The requests are served without the shocks, and with them under each subset of the abilities that are turned on (2³
runs at most; subsets that come to the same outages are run once). Each is held against the run without shocks request
by request (`reliability/recovery.py`); what an ability bought is its Shapley value of the lost share, so what the three
bought adds up to what all of them save. Main metrics are those of the abilities that the scenario turns on.

Limits: the first seed alone; abilities that the scenario turns off are not tried.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, Final, Literal

import numpy as np

from simcore import glossary
from simcore.errors import Message
from simcore.plan import Plan, ServingPlan
from simcore.plan.shocks import outages_of, without_shocks
from simcore.reliability import Recovery, Slices, recovery, shapley
from simcore.serving.interruptions import Outages
from simcore.serving.latencies import met
from simcore.simulate import promise_of, records_under
from simcore.why import Term, simulated

Ability = Literal["physical", "data", "task"]
ABILITIES: Final[tuple[Ability, ...]] = ("physical", "data", "task")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShockFindings:
    """What the test adds to a result."""

    metrics: Mapping[str, float] = field(default_factory=dict)
    tables: Mapping[str, Any] = field(default_factory=dict)
    series: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    why: Mapping[str, Term] = field(default_factory=dict)
    messages: tuple[Message, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tried:
    """One set of abilities, and what it came to."""

    abilities: frozenset[str]
    outcome: Recovery
    met_count: np.ndarray[Any, np.dtype[np.float64]]  # of each slice


def shock_test(plan: Plan, serving: ServingPlan) -> ShockFindings:
    """The shock test of a plan; nothing where its timeline is empty."""
    spec = plan.scenario.reliability
    if not spec.shocks:
        return ShockFindings()
    calm = without_shocks(plan, serving)
    steady = records_under(plan, calm, None)
    met_without = met(steady, promise_of(plan, calm))
    slices = None
    tried: list[_Tried] = []
    ran: dict[Outages | None, Any] = {}
    for some in _subsets(spec.abilities.model_dump()):
        able = spec.abilities.model_copy(update={name: name in some for name in ABILITIES})
        outages = outages_of(plan, serving, able)
        if outages not in ran:
            ran[outages] = records_under(plan, serving, outages)
        records = ran[outages]
        if slices is None:
            arrived_s = np.where(np.isnan(records.arrival_s), steady.arrival_s, records.arrival_s)
            slices = Slices.of(arrived_s)
        met_with = met(records, promise_of(plan, serving))
        first_s = min(one.at_s for one in spec.shocks)
        tried.append(
            _Tried(
                abilities=some,
                outcome=recovery(slices, met_without, met_with, first_shock_s=first_s),
                met_count=slices.counts(met_with),
            )
        )
    assert slices is not None, "the empty set is always tried"
    return _findings(plan, tried, slices, slices.counts(met_without), len(steady.status))


def _subsets(turned_on: Mapping[str, Any]) -> Iterator[frozenset[str]]:
    """All subsets of the abilities that are turned on, from none to all."""
    names = [name for name in ABILITIES if turned_on[name]]
    for size in range(len(names) + 1):
        for some in combinations(names, size):
            yield frozenset(some)


def _findings(
    plan: Plan, tried: list[_Tried], slices: Slices, steady: Any, request_count: int
) -> ShockFindings:
    with_all, with_none = tried[-1], tried[0]
    lost = {one.abilities: one.outcome.lost_fraction for one in tried}
    names = [name for name in ABILITIES if name in with_all.abilities]
    bought: dict[Ability, float] = shapley(names, lambda some: lost[frozenset()] - lost[some])
    metrics = {
        "reliability.shock.dip_fraction": with_all.outcome.dip_fraction,
        "reliability.shock.recovery_s": with_all.outcome.recovery_s,
        "reliability.shock.lost_goodput_fraction": with_all.outcome.lost_fraction,
    }
    width_s = np.diff(slices.edges_s)
    series = {"time_s": (slices.edges_s[:-1] + width_s / 2).tolist(), "steady": (steady / width_s).tolist()}
    for one in tried:
        series["+".join(_ordered(one.abilities)) or "none"] = (one.met_count / width_s).tolist()
    return ShockFindings(
        metrics=metrics,
        tables={
            "shock_abilities": [
                {name: name in one.abilities for name in ABILITIES}
                | {
                    "dip_fraction": one.outcome.dip_fraction,
                    "recovery_s": one.outcome.recovery_s,
                    "lost_goodput_fraction": one.outcome.lost_fraction,
                }
                for one in tried
            ],
            "shock_bought": [
                {"ability": name, "lost_goodput_fraction": share} for name, share in bought.items()
            ],
        },
        series={"shock_goodput": series},
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
    saved = with_none.lost_fraction - with_all.lost_fraction
    if not bought or saved <= 0:
        return
    best: Ability = max(bought, key=lambda name: bought[name])
    yield Message(
        code="finding.shock_ability",
        template="of what the shocks would cost without any ability, {saved} is saved; {ability} buys most, {most}",
        params={
            "saved": f"{saved / with_none.lost_fraction:.0%}",
            "ability": glossary.label(f"reliability.abilities.{best}"),
            "most": f"{bought[best] / with_none.lost_fraction:.0%}",
        },
        path="reliability.abilities",
    )


def _ordered(some: frozenset[str]) -> list[str]:
    return [name for name in ABILITIES if name in some]
