"""Where a design ends: it is grown, and given a second kind of chip, until something breaks.

Each case is a re-plan of the scenario with other numbers. *Growing* by a factor multiplies the chips of every pool, the
load (rates of arrivals, users of a closed loop, tokens of a batch) and what was fixed as a count of replicas or
data parallel ranks; everything else stays as it was written. *Another kind of chip* adds as many of it as the main pool
has. What breaks is what holds of the re-plan and not of the plan as it stands: it cannot be built, islands, a busiest
link that is asked for more than it carries, more load than capacity, an objective missed, less capacity per chip,
another tier of switches, a part without a price. What else the re-plan says for the first time stands beside it.
Limits: closed forms, nothing is simulated; a recorded trace keeps its load; the links of fabrics of more than
`MOST_CHIPS_ROUTED` chips are not counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from simcore.catalog import Catalog
from simcore.catalog.types import Chip
from simcore.errors import Message, Phrases, TrimtabError
from simcore.plan import Plan
from simcore.plan.fabric_load import fabric_load
from simcore.scenario import Scenario, apply_overrides
from simcore.why import Term, leaf

FACTORS: Final = (2, 4, 8)
MOST_CHIPS_ROUTED: Final = 4096
LEAST_PER_CHIP: Final = 0.95  # of the capacity of a chip now, below which growth is said to cost
Replan = Callable[[Mapping[str, Any]], Plan]  # with the rights of whoever asks
_RATES: Final = ("request_per_s", "start_request_per_s", "end_request_per_s")
_CAPACITY: Final = ("serving.capacity_request_per_s", "training.token_per_s")
_OBJECTIVES: Final = ("ttft_s", "tpot_s")
_LOAD: Final = "fabric.max_link_load_fraction"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What is tried: its name, and the overrides that make it."""

    name: Message
    overrides: Mapping[str, Any]
    factor: int | None = None  # of a case that grows


@dataclass(frozen=True, slots=True, kw_only=True)
class Boundary:
    """What became of a case: its figures, what broke, the worst first, and what else is said of it."""

    case: Case
    terms: Mapping[str, Term]
    breaks: tuple[Message, ...] = ()
    notes: tuple[Message, ...] = ()
    is_possible: bool = True

    def as_dict(self) -> dict[str, Any]:
        return {
            "case": self.case.name.as_dict(),
            "overrides": dict(self.case.overrides),
            "factor": self.case.factor,
            "metrics": {name: term.value for name, term in self.terms.items()},
            "breaks": [message.as_dict() for message in self.breaks],
            "notes": [message.as_dict() for message in self.notes],
            "is_possible": self.is_possible,
        }


def boundaries(before: Plan, catalog: Catalog, replan: Replan, *, other_chip: str = "") -> list[Boundary]:
    """The design as it stands, then every case. Raises InputError where the catalog has no such chip."""
    document = before.scenario.model_dump(mode="json")
    found = [Boundary(case=_as_it_stands(), terms=_figures(before, before))]
    for case in cases(before.scenario, catalog, other_chip):
        try:
            edited, _ = apply_overrides(document, case.overrides)
            after = replan(edited)
        except TrimtabError as error:
            found.append(Boundary(case=case, terms={}, breaks=error.messages, is_possible=False))
            continue
        terms = _figures(after, before)
        breaks = tuple(_breaks(before, after, found[0].terms, terms))
        found.append(Boundary(case=case, terms=terms, breaks=breaks, notes=tuple(_notes(before, after))))
    return found


def first_break(found: Sequence[Boundary]) -> Message:
    """In one sentence, where growth ends."""
    grown = [one for one in found if one.case.factor is not None]
    for one in grown:
        if one.breaks:
            return Message(
                code="boundary.first",
                template="growing, it first breaks at ×{factor}: {what}",
                params={"factor": one.case.factor, "what": Phrases(one.breaks[:1])},
            )
    return Message(
        code="boundary.none",
        template="nothing breaks up to ×{factor}",
        params={"factor": max(one.case.factor or 1 for one in grown)},
    )


def cases(scenario: Scenario, catalog: Catalog, other_chip: str = "") -> Iterator[Case]:
    """Growth, then another kind of chip, which is refused where the work is training."""
    for factor in FACTORS:
        name = Message(code="boundary.grow", template="{factor} times as large", params={"factor": factor})
        yield Case(name=name, overrides=grown(scenario, factor), factor=factor)
    chip = (
        catalog.chip(other_chip) if other_chip else next_chip(catalog, catalog.chip(scenario.hardware.chip))
    )
    pools = [pool.model_dump(mode="json") for pool in scenario.hardware.pools]
    added = {"name": "added", "chip": chip.slug, "chip_count": scenario.hardware.chip_count}
    yield Case(
        name=Message(
            code="boundary.pool",
            template="{count:,} {chip} beside",
            params={"count": scenario.hardware.chip_count, "chip": chip.name},
        ),
        overrides={"hardware.pools": [*pools, added]},
    )


def next_chip(catalog: Catalog, chip: Chip) -> Chip:
    """Of measured chips with links of the same kind, the one with the next larger memory; else the largest other."""
    measured = [
        one
        for one in catalog.chips.values()
        if one.slug != chip.slug
        and not catalog.calibration_for(one).is_class_default
        and bool(one.scaleup_bytes_per_s) == bool(chip.scaleup_bytes_per_s)
    ]
    larger = [one for one in measured if one.hbm_bytes > chip.hbm_bytes]
    if larger:
        return min(larger, key=lambda one: (one.hbm_bytes, one.slug))
    return max(measured, key=lambda one: (one.hbm_bytes, one.slug))


def _as_it_stands() -> Case:
    return Case(name=Message(code="boundary.now", template="as it stands"), overrides={})


def grown(scenario: Scenario, factor: int) -> dict[str, Any]:
    """Chips, load, and counts that were fixed."""
    found: dict[str, Any] = {"hardware.chip_count": scenario.hardware.chip_count * factor}
    if scenario.hardware.pools:
        found["hardware.pools"] = [
            pool.model_dump(mode="json") | {"chip_count": pool.chip_count * factor}
            for pool in scenario.hardware.pools
        ]
    if scenario.workload.kind == "serving":
        return found | _grown_serving(scenario, factor)
    if scenario.workload.kind == "training":
        found["training.global_batch_tokens"] = scenario.training.global_batch_tokens * factor
        if isinstance(scenario.training.parallelism.dp, int):
            found["training.parallelism.dp"] = scenario.training.parallelism.dp * factor
    return found


def _grown_serving(scenario: Scenario, factor: int) -> dict[str, Any]:
    arrivals, scheduler = scenario.workload.arrivals, scenario.serving.scheduler
    found = {
        f"workload.arrivals.{name}": getattr(arrivals, name) * factor
        for name in (*_RATES, "concurrency")
        if getattr(arrivals, name, None) is not None
    }
    counts = {"serving": scenario.serving} | {
        f"serving.scheduler.{role}": getattr(scheduler, role)
        for role in ("prefill", "decode")
        if hasattr(scheduler, role)
    }
    for path, section in counts.items():
        if isinstance(section.replica_count, int):
            found[f"{path}.replica_count"] = section.replica_count * factor
    return found


def _figures(after: Plan, before: Plan) -> dict[str, Term]:
    """What a row shows: size, capacity, capacity per chip over that of now, and the network with its busiest link."""
    chips = leaf(after.fabric.chip_count, "chip_count", path="hardware.chip_count", dimension="count")
    found = {"hardware.chip_count": chips}
    for name in _CAPACITY:
        if name in after.terms:
            found[name] = after.terms[name]
            now = before.terms[name] / leaf(before.fabric.chip_count, "chip_count", dimension="count")
            found["analysis.boundary.per_chip_ratio"] = (after.terms[name] / chips / now).named(
                "analysis.boundary.per_chip_ratio", "ratio"
            )
    wanted = (
        "fabric.tiers",
        "fabric.island_count",
        "fabric.switch_count",
        "fabric.fabric_capex_usd",
        "cost.capex_usd",
        "cost.priced_fraction",
        *(f"serving.estimate.{name}" for name in _OBJECTIVES),
    )
    found |= {name: after.terms[name] for name in wanted if name in after.terms}
    load = fabric_load(after) if after.fabric.chip_count <= MOST_CHIPS_ROUTED else None
    return found | ({_LOAD: load.terms[_LOAD]} if load else {})


def _breaks(before: Plan, after: Plan, was: Mapping[str, Term], now: Mapping[str, Term]) -> Iterator[Message]:
    """What holds after and not before, the worst first."""
    if after.fabric.island_count > before.fabric.island_count:
        yield Message(
            code="boundary.islands",
            template="the fabric falls into {islands} islands of {size:,} chips",
            params={"islands": after.fabric.island_count, "size": after.fabric.island_size},
            path="topology",
        )
    if _value(now, _LOAD) > 1 >= _value(was, _LOAD):
        yield Message(
            code="boundary.link",
            template="the busiest link is asked for {ratio:.1f} times what it carries",
            params={"ratio": _value(now, _LOAD)},
            path="topology",
        )
    yield from _missed(before, after, was, now)
    yield from _costs(was, now)


def _notes(before: Plan, after: Plan) -> Iterator[Message]:
    """What is said of the re-plan for the first time, but for inputs that lost their effect."""
    known = {warning.code for warning in before.warnings} | {"input.no_effect"}
    yield from (warning for warning in after.warnings if warning.code not in known)


def _missed(before: Plan, after: Plan, was: Mapping[str, Term], now: Mapping[str, Term]) -> Iterator[Message]:
    """Load beyond capacity, and objectives that queueing expects to be missed."""
    loads = [_offered_ratio(one) for one in (before, after)]
    if loads[1] >= 1 > loads[0]:
        yield Message(
            code="boundary.overloaded",
            template="it is offered {ratio:.2f} times what it carries",
            params={"ratio": loads[1]},
            path="workload.arrivals",
        )
    slo = after.scenario.workload.slo
    for name in _OBJECTIVES:
        wanted, metric = getattr(slo, name), f"serving.estimate.{name}"
        if wanted is not None and _value(was, metric) <= wanted < _value(now, metric):
            yield Message(
                code=f"boundary.{name.removesuffix('_s')}",
                template="{what} is expected at {got}, beyond the {wanted} that were promised",
                params={
                    "what": name.removesuffix("_s").upper(),
                    "got": now[metric].text,
                    "wanted": f"{wanted:g} s",
                },
                path=f"workload.slo.{name}",
            )


def _offered_ratio(planned: Plan) -> float:
    serving = planned.serving
    if serving is None:
        return 0.0
    offered = [pool.operating_point.offered_request_per_s or 0.0 for pool in serving.pools]
    return (offered[0] if serving.prefill else sum(offered)) / serving.capacity.value


def _costs(was: Mapping[str, Term], now: Mapping[str, Term]) -> Iterator[Message]:
    """Less from each chip, another tier to pay, or parts that no book prices."""
    per_chip = now.get("analysis.boundary.per_chip_ratio")
    if per_chip is not None and per_chip.value < LEAST_PER_CHIP:
        yield Message(
            code="boundary.per_chip",
            template="a chip brings {share:.0%} of what it brings now",
            params={"share": per_chip.value},
            path="hardware.chip_count",
        )
    if _value(now, "fabric.tiers") > _value(was, "fabric.tiers") > 0:
        yield Message(
            code="boundary.tier",
            template="it needs {tiers:.0f} tiers of switches, not {before:.0f}",
            params={"tiers": _value(now, "fabric.tiers"), "before": _value(was, "fabric.tiers")},
            path="topology",
        )
    if _value(now, "cost.priced_fraction") < _value(was, "cost.priced_fraction") - 1e-9:
        yield Message(
            code="boundary.unpriced",
            template="{share:.0%} of its parts have a price, now {before:.0%}",
            params={
                "share": _value(now, "cost.priced_fraction"),
                "before": _value(was, "cost.priced_fraction"),
            },
            path="economics.price_book",
        )


def _value(terms: Mapping[str, Term], name: str) -> float:
    return terms[name].value if name in terms else 0.0
