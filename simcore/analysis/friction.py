"""The system friction coefficient: what each further dollar of compute drags along.

The cluster is planned once more with one replica more (a cube in a pod of tori, a server where nothing runs).
*Friction* = added yearly cost of network (write-off), software (`economics.software_usd_per_chip_year`), operations
(labour that looks for faults) and energy with its floor, over the added yearly cost of compute (chips and servers,
written off). The secant from N to 2N stands beside it. A step in the fabric (another tier) shows as a jump between
the two.

Limits: prices do not fall with volume; staff beyond fault finding is what the owner puts into the software field.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from simcore.analysis.findings import Findings, announce
from simcore.analysis.taxes import search_labour
from simcore.cost.model import full_load
from simcore.cost.opex import HOURS_PER_YEAR
from simcore.errors import Message, TrimtabError
from simcore.plan import Plan, plan
from simcore.plan.slices import unit_chips
from simcore.scenario import Scenario, apply_overrides
from simcore.simulate import OnEvent, Result
from simcore.why import Term, leaf, total

DRAGS = ("network", "software", "operations", "energy")


@dataclass(frozen=True, slots=True, kw_only=True)
class Yearly:
    """What a cluster costs in a year at full load, by what it is spent on."""

    compute_usd_per_year: float
    network_usd_per_year: float
    software_usd_per_year: float
    operations_usd_per_year: float
    energy_usd_per_year: float


def dragged(planned: Plan, result: Result, on_event: OnEvent | None = None) -> Findings:
    """Friction at the margin and to twice the size; nothing where compute or network are unpriced."""
    before = yearly(planned)
    if before is None:
        return Findings()
    step = step_chips(planned)
    sizes = {"margin": planned.fabric.chip_count + step, "double": 2 * planned.fabric.chip_count}
    rows, terms = [], {}
    for name, chip_count in sizes.items():
        after = _at(planned, chip_count)
        if after is None:
            continue
        terms[name] = friction_term(before, after, added=chip_count - planned.fabric.chip_count)
        rows.append(
            {"from": planned.fabric.chip_count, "to": chip_count, "friction_ratio": terms[name].value}
            | {f"{drag}_usd_per_year": _added(before, after, drag) for drag in DRAGS}
            | {"compute_usd_per_year": _added(before, after, "compute")}
        )
    if "margin" not in terms:
        return Findings()
    margin = terms["margin"]
    messages = (_sentence(margin.value, terms.get("double", margin).value, step),)
    announce(on_event, messages)
    why = {"analysis.friction_ratio": margin}
    if "double" in terms:
        why["analysis.friction_to_double_ratio"] = terms["double"]
    return Findings(
        metrics={name: term.value for name, term in why.items()},
        tables={"friction": rows},
        why=why,
        messages=messages,
    )


def friction_term(before: Yearly, after: Yearly, *, added: int) -> Term:
    """Added drag over added compute; leaves are differences between two plans.

    Network 20 → 23, operations 1 → 1.2 and energy 9 → 9.8 for compute 100 → 110: 4 for 10, a friction of 0.4.
    """
    source = f"planned again with {added:,} chips more, less as planned"

    def more(name: str) -> Term:
        value = _added(before, after, name)
        return leaf(value, f"added_{name}_usd_per_year", kind="derived", source=source)

    drag = total(*(more(name) for name in DRAGS)).named("added_drag_usd_per_year")
    return (drag / more("compute")).named("friction_ratio", "ratio")


def _added(before: Yearly, after: Yearly, name: str) -> float:
    key = f"{name}_usd_per_year"
    return float(getattr(after, key) - getattr(before, key))


def step_chips(planned: Plan) -> int:
    """Chips of one more replica, in whole servers; a cube where cubes are exchanged, a server where nothing runs."""
    unit = unit_chips(planned.server)
    if planned.server.scaleup_kind == "ici":
        return unit
    replica = 1
    if planned.serving is not None:
        replica = sum(pool.parallelism.replica_chip_count for pool in planned.serving.pools)
    if planned.training is not None:
        cut = planned.training.inputs.parallelism
        replica = cut.tp_ranks * cut.pp * cut.cp
    per_server = max(1, planned.server.chips_per_server)
    return math.ceil(replica / per_server) * per_server


def yearly(planned: Plan) -> Yearly | None:
    """None where a part of compute has no price: the ratio would be of something else."""
    cost, economics = planned.cost, planned.cost.economics
    if cost.compute_capex is None or not all(row.priced for row in cost.bill if row.group == "compute"):
        return None
    network = cost.fabric_capex.value if cost.fabric_capex is not None else 0.0
    return Yearly(
        compute_usd_per_year=cost.compute_capex.value / economics.depreciation_years,
        network_usd_per_year=network / economics.depreciation_years,
        software_usd_per_year=economics.software_usd_per_chip_year * planned.fabric.chip_count,
        operations_usd_per_year=search_labour(planned).value,
        energy_usd_per_year=cost.opex(full_load()).value * HOURS_PER_YEAR,
    )


def _at(planned: Plan, chip_count: int) -> Yearly | None:
    """The same kind of cluster with so many chips; None where it cannot be built."""
    document = planned.scenario.model_dump(mode="json", exclude_unset=True)
    document, _ = apply_overrides(document, {"hardware.chip_count": chip_count, "workload": {"kind": "none"}})
    document = {key: part for key, part in document.items() if key not in ("serving", "training", "model")}
    try:
        return yearly(plan(Scenario.parse(document)))
    except TrimtabError:
        return None


def _sentence(friction: float, to_double: float, step: int) -> Message:
    """Both figures: the next chips may need a switch or a tier that many more would then share."""
    return Message(
        code="finding.friction",
        template="each further dollar of compute drags {cents:.0f} cents of network, software, operations and energy "
        "along, when {chips:,} chips are added; {double:.0f} cents on the way to twice the size",
        params={"cents": 100 * friction, "double": 100 * to_double, "chips": step},
    )
