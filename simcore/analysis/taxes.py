"""The four taxes: what a cluster pays per year for waiting, connection, understanding and change.

*Waiting* = yearly cost of compute (chips, servers, their energy and floor; no network) × (1 − busy), by what was waited
for. *Connection* = yearly cost (write-off and energy) of switches, optics and cables whose links this workload loads
below `economics.connection_load_threshold_fraction`. *Understanding* = incidents per year × expected suspects × minutes
per suspect × (labour + chips that stand still meanwhile). *Change* = Σ probability × cost of the alternatives that the
owner declares (`change.py`). Each is a tree down to inputs, prices and simulated shares.

Limits: a training job stands still whole while a fault is sought, other work only as far as one fault reaches (its
blast radius); the time after a fault that `failure` counts as waiting is repair and lost work, not search. A link
counts as idle by its mean load, so one that carries a burst now and then is called idle too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, get_args

from simcore import glossary
from simcore.analysis.change import change_tax
from simcore.analysis.findings import Findings, announce
from simcore.cost.by_tier import TierLine
from simcore.cost.model import full_load
from simcore.cost.opex import HOURS_PER_YEAR
from simcore.errors import Message
from simcore.fabric.idle_links import idle_fraction
from simcore.plan import Plan
from simcore.reliability.failures import mtbf_term, servers_of
from simcore.simulate import OnEvent, Result
from simcore.why import Term, constant, leaf, total

Tax = Literal["waiting", "connection", "understanding", "change"]
TAXES: Final[tuple[Tax, ...]] = get_args(Tax)
_WAITS: Final = ("hbm", "scaleup", "scaleout", "host", "bubble", "overhead", "queue", "failure")


@dataclass(frozen=True, slots=True, kw_only=True)
class Taxes:
    """The taxes that could be found, what each is made of, and what stands in the way of the others."""

    terms: Mapping[Tax, Term]
    parts: Mapping[Tax, Mapping[str, Term]]
    tco: Term
    messages: tuple[Message, ...] = field(default=())

    @property
    def largest(self) -> Tax:
        return max(self.terms, key=lambda tax: self.terms[tax].value)

    def share(self, tax: Tax) -> float:
        return self.terms[tax].value / self.tco.value if self.tco.value else 0.0

    def rows(self) -> list[dict[str, Any]]:
        """The `taxes` table: a row for each part of each tax."""
        return [
            {
                "tax": tax,
                "part": name,
                "usd_per_year": part.value,
                "tco_fraction": part.value / self.tco.value if self.tco.value else 0.0,
            }
            for tax in self.terms
            for name, part in self.parts[tax].items()
            if part.value or len(self.parts[tax]) == 1
        ]


def taxed(plan: Plan, result: Result, on_event: OnEvent | None = None) -> Findings:
    """The taxes of a result, where something is priced."""
    taxes = taxes_of(plan, result)
    if taxes is None:
        return Findings()
    messages = (*_sentences(taxes), *taxes.messages)
    announce(on_event, messages)
    why = {f"analysis.tax.{tax}_usd_per_year": term for tax, term in taxes.terms.items()}
    return Findings(
        metrics={name: term.value for name, term in why.items()},
        tables={"taxes": taxes.rows()},
        why=why,
        messages=messages,
    )


def taxes_of(plan: Plan, result: Result) -> Taxes | None:
    """None where the price book has no price for anything: then no tax can be said in money."""
    if plan.cost.capex is None:
        return None
    used = _utilisation(result)
    found: dict[Tax, dict[str, Term]] = {}
    if waits := _waiting(plan, result, used):
        found["waiting"] = waits
    if idle := _connection(plan, result):
        found["connection"] = idle
    if search := _understanding(plan, used):
        found["understanding"] = search
    change = change_tax(plan)
    found["change"] = dict(change.parts)
    return Taxes(
        terms={
            tax: total(*parts.values()).named(f"{tax}_tax_usd_per_year", "usd_per_year")
            for tax, parts in found.items()
        },
        parts=found,
        tco=plan.cost.tco(used),
        messages=change.messages,
    )


def _utilisation(result: Result) -> Term:
    """Share of time in which kernels run, as the energy of the result has it; full load where nothing was run."""
    still = [result.why.get(f"analysis.waiting.{name}_fraction") for name in ("queue", "failure")]
    known = [term for term in still if term is not None]
    if "analysis.busy_fraction" not in result.metrics:
        return full_load()
    return (constant(1.0) - total(*known)).named("utilisation_fraction") if known else full_load()


def _waiting(plan: Plan, result: Result, used: Term) -> dict[str, Term]:
    waits = {name: result.why.get(f"analysis.waiting.{name}_fraction") for name in _WAITS}
    if "analysis.busy_fraction" not in result.metrics or plan.cost.compute_capex is None:
        return {}
    compute = plan.cost.compute_tco(used)
    return {
        name: (compute * share).named(f"waiting_{name}_usd_per_year", "usd_per_year")
        for name, share in waits.items()
        if share is not None
    }


def _connection(plan: Plan, result: Result) -> dict[str, Term]:
    """A part for each priced line of the network, under the fabric's own convention."""
    rows = result.tables.get("idle_links")
    if not rows:
        return {}
    own = plan.fabric.transceiver_convention
    parts: dict[str, Term] = {}
    for line in plan.cost.network_lines:
        share = idle_fraction(rows, line.tier, of_switches=line.item == "switch")
        if line.convention == own and share is not None and (cost := _yearly(plan, line)) is not None:
            idle = leaf(share, "idle_link_fraction", kind="derived", source="loads of the fabric's links")
            name = f"{line.tier} {line.item}"
            part = (cost * idle).named("connection_usd_per_year", "usd_per_year")
            parts[name] = part if name not in parts else parts[name] + part
    return parts


def _yearly(plan: Plan, line: TierLine) -> Term | None:
    """What one line of the network costs in a year, energy included; None: unpriced."""
    if line.unit_usd is None:
        return None
    economics = plan.cost.economics
    unit = leaf(line.unit_usd, "unit_usd", kind="catalog", source="price book of the fabric", dimension="usd")
    count = leaf(line.count, f"{line.item}_count", kind="derived", source="bill of the network")
    years = leaf(economics.depreciation_years, "depreciation_years", path="economics.depreciation_years")
    watts = leaf(line.power_w, "line_power_w", kind="derived", source="power of the fabric")
    price = leaf(
        economics.electricity_usd_per_kwh, "electricity_usd_per_kwh", path="economics.electricity_usd_per_kwh"
    )
    pue = leaf(economics.pue, "pue", path="economics.pue")
    energy = watts * pue / constant(1000, "W per kW") * price * constant(HOURS_PER_YEAR, "hours per year")
    return (unit * count / years + energy).named("line_usd_per_year", "usd_per_year")


def _understanding(plan: Plan, used: Term) -> dict[str, Term]:
    """People who look for faults, and chips that stand still until they are found."""
    if "reliability.expected_suspect_count" not in plan.terms:
        return {}
    parts = {"labour": search_labour(plan)}
    if plan.cost.compute_capex is not None:
        each = plan.cost.compute_tco(used) / constant(HOURS_PER_YEAR, "hours per year")
        still = _search_hours(plan) * each * _still_fraction(plan)
        parts["chips"] = still.named("search_chips_usd_per_year", "usd_per_year")
    return parts


def search_labour(plan: Plan) -> Term:
    """Yearly labour that looks for faults; nothing where no suspects are known."""
    economics = plan.cost.economics
    wage = leaf(economics.labour_usd_per_hour, "labour_usd_per_hour", path="economics.labour_usd_per_hour")
    return (_search_hours(plan) * wage).named("search_labour_usd_per_year", "usd_per_year")


def _search_hours(plan: Plan) -> Term:
    """Hours of search in a year: incidents × suspects × minutes of each."""
    suspects = plan.terms.get("reliability.expected_suspect_count", constant(0.0, "expected_suspect_count"))
    economics, spec = plan.cost.economics, plan.scenario.reliability
    mtbf = mtbf_term(
        server_count=servers_of(plan.fabric.chip_count, plan.server.chips_per_server),
        failures=spec.failures,
        own_ratio=spec.failures_per_thousand_node_days_ratio,
    )
    incidents = (constant(HOURS_PER_YEAR * 3600, "seconds per year") / mtbf).named(
        "incidents_per_year", "count"
    )
    minutes = leaf(economics.minutes_per_suspect, "minutes_per_suspect", path="economics.minutes_per_suspect")
    hours = (suspects * minutes / constant(60, "minutes per hour")).named("hours_per_search", "count")
    return (incidents * hours).named("search_hours_per_year", "count")


def _still_fraction(plan: Plan) -> Term:
    """Share of the chips that stand still while one fault is sought."""
    if plan.training is not None:
        return leaf(
            plan.training.allocated_fraction,
            "still_fraction",
            kind="derived",
            source="a training job stops whole: chips of the run ÷ chips owned",
        )
    chips = leaf(plan.fabric.chip_count, "chip_count", path="hardware.chip_count")
    return (plan.terms["reliability.blast_radius_chip_count"] / chips).named("still_fraction")


def _sentences(taxes: Taxes) -> Iterator[Message]:
    """The largest tax, and what most of it is for."""
    tax = taxes.largest
    amount = taxes.terms[tax].value
    if amount <= 0:
        return
    parts = taxes.parts[tax]
    part = max(parts, key=lambda name: parts[name].value)
    params: dict[str, Any] = {
        "tax": glossary.label(f"analysis.tax.{tax}_usd_per_year"),
        "usd_per_year": amount,
        "share": f"{taxes.share(tax):.0%}",
    }
    if tax == "waiting":
        yield Message(
            code="finding.tax_waiting",
            template="The largest tax is waiting: ${usd_per_year:,.0f} a year, {share} of the cost of ownership; "
            "{part} of it is for {cause}",
            params=params
            | {"part": f"{parts[part].value / amount:.0%}", "cause": glossary.resource_label(part)},
        )
        return
    yield Message(
        code="finding.tax",
        template="The largest tax is {tax}: ${usd_per_year:,.0f} a year, {share} of the cost of ownership",
        params=params,
    )
