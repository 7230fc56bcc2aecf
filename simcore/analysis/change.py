"""The change tax: what moving to the owner's own alternatives may cost, by how likely he holds each to be.

The owner gives the cost of an alternative, or the overrides that make it; then it is planned, and its cost is
*stranded gear* (priced lines of today's bill that it has no use for, less what is written off on average),
*re-cabling* (hours per cable that is new), *downtime* (the cluster's yearly cost over the hours that re-cabling takes a
crew) and *re-qualification* (hours of labour). Hours, crew and the half written off are assumptions in the tree.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from simcore.cost.model import full_load
from simcore.cost.opex import HOURS_PER_YEAR
from simcore.cost.spec import Alternative
from simcore.errors import Message, TrimtabError
from simcore.plan import Plan, plan
from simcore.scenario import Scenario, apply_overrides
from simcore.why import Term, constant, leaf, total

CABLE_HOURS = 0.25
CREW = 8.0
REQUALIFICATION_HOURS = 80.0
HELD_FRACTION = 0.5
IDLE_WORK = {"workload.kind": "none"}  # the gear is asked for, not what it does


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeTax:
    """Expected cost per year of each alternative, and what is to be said of them."""

    parts: Mapping[str, Term]
    messages: tuple[Message, ...] = ()


def change_tax(planned: Plan) -> ChangeTax:
    alternatives = planned.cost.economics.alternatives
    if not alternatives:
        none = leaf(0.0, "none", kind="input", path="economics.alternatives", dimension="usd_per_year")
        message = Message(
            code="tax.no_alternatives",
            template="no alternative is declared, so the change tax is zero: say what this cluster may have to become, "
            "and how likely that is, in economics.alternatives",
            path="economics.alternatives",
        )
        return ChangeTax(parts={"none": none}, messages=(message,))
    parts: dict[str, Term] = {}
    messages: list[Message] = []
    for index, one in enumerate(alternatives):
        path = f"economics.alternatives[{index}]"
        try:
            cost = _cost(planned, one, path)
        except TrimtabError as error:
            messages.append(
                Message(
                    code="tax.alternative_cannot_be",
                    template="the alternative {name} cannot be planned and counts as free: {reason}",
                    params={"name": one.name, "reason": str(error.message)},
                    path=path,
                )
            )
            continue
        likely = leaf(one.probability_fraction, "probability_fraction", path=f"{path}.probability_fraction")
        parts[one.name] = (likely * cost).named("change_usd_per_year", "usd_per_year")
    return ChangeTax(parts=parts or {"none": constant(0.0, "none")}, messages=tuple(messages))


def _cost(planned: Plan, one: Alternative, path: str) -> Term:
    if one.cost_usd is not None:
        return leaf(one.cost_usd, "cost_usd", path=f"{path}.cost_usd")
    document = planned.scenario.model_dump(mode="json", exclude_unset=True)
    document, _ = apply_overrides(document, {**one.overrides, **IDLE_WORK})
    return moving_cost(planned, plan(Scenario.parse(document)))


def moving_cost(before: Plan, after: Plan) -> Term:
    """What it costs to make one cluster into another, its new gear not counted."""
    economics = before.cost.economics
    wage = leaf(economics.labour_usd_per_hour, "labour_usd_per_hour", path="economics.labour_usd_per_hour")
    kept = {row.item: row.count.value for row in after.cost.bill}
    stranded = [
        leaf(
            max(0.0, 1.0 - kept.get(row.item, 0.0) / row.count.value) * amount.value,
            f"stranded_{row.label}_usd",
            kind="derived",
            source="lines of the bill that the alternative has no use for",
            dimension="usd",
        )
        for row in before.cost.bill
        if (amount := row.total("mid")) is not None
    ]
    held = _assumed(HELD_FRACTION, "held_fraction", "on average half of its life is left")
    gear = (total(constant(0.0), *stranded) * held).named("stranded_usd", "usd")
    cables = leaf(
        _new_cables(before, after), "new_cable_count", kind="derived", source="cables of the alternative"
    )
    hours = cables * _assumed(CABLE_HOURS, "hours_per_cable", "pulling, cleaning and testing one cable")
    cabling = (hours * wage).named("recabling_usd", "usd")
    crew = _assumed(CREW, "crew_count", "people who re-cable at a time")
    hourly = before.cost.tco(full_load()) / constant(HOURS_PER_YEAR, "hours per year")
    downtime = (hours / crew * hourly).named("downtime_usd", "usd")
    tested = _assumed(REQUALIFICATION_HOURS, "requalification_hours", "acceptance tests of a changed system")
    return total(gear, cabling, downtime, (tested * wage).named("requalification_usd", "usd")).named(
        "change_cost_usd", "usd"
    )


def _new_cables(before: Plan, after: Plan) -> float:
    """Cables to be laid: all of another kind of fabric, else those that come on top."""
    links = [float(one.metrics.get("fabric.link_count", 0.0)) for one in (before, after)]
    same = before.fabric.kind == after.fabric.kind
    return max(0.0, links[1] - links[0]) if same else links[1]


def _assumed(value: float, name: str, source: str) -> Term:
    return leaf(value, name, kind="assumption", source=source, dimension="")
