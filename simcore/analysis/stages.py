"""Which tax dominates as a system grows, gets other chips, and ages: the four taxes of each stage, simulated anew.

Stages, each from the scenario as it stands: *growing* multiplies chips and load (as in `boundaries.py`), *mixing* puts
chips of another kind beside, for a share of all, under the same load, and *ageing* multiplies the rate at which servers
fail. Each stage is planned and simulated with at most `MOST_REQUESTS` requests, and taxed (`taxes.py`).
Limits: prices do not age; stages of more than `MOST_CHIPS` chips are left out; mixing and growing are not combined.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from simcore import glossary
from simcore.analysis.boundaries import Replan, grown, next_chip
from simcore.analysis.taxes import Taxes, taxes_of
from simcore.catalog import Catalog
from simcore.errors import Message, Phrases, TrimtabError
from simcore.plan import Plan
from simcore.reliability.failures import rate_term
from simcore.scenario import apply_overrides
from simcore.simulate import simulate

StageKind = Literal["grow", "mix", "age"]
KINDS: Final[tuple[StageKind, ...]] = ("grow", "mix", "age")
GROWTH: Final = (4, 16, 64)
SHARES: Final = (0.2, 0.5)
AGES: Final = (2, 4, 8)
MOST_CHIPS: Final = 2048
MOST_REQUESTS: Final = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A stage and its taxes, or why it cannot be."""

    kind: StageKind
    name: Message
    taxes: Taxes | None
    refused: Message | None = None

    def as_dict(self) -> dict[str, Any]:
        taxes = self.taxes
        amounts = {tax: term.value for tax, term in taxes.terms.items()} if taxes else {}
        return {
            "kind": self.kind,
            "name": self.name.as_dict(),
            "usd_per_year": amounts,
            "tco_usd_per_year": taxes.tco.value if taxes else None,
            "largest": taxes.largest if taxes and any(amounts.values()) else None,
            "refused": self.refused.as_dict() if self.refused else None,
        }


def stages(before: Plan, catalog: Catalog, replan: Replan, *, other_chip: str = "") -> list[Stage]:
    """The scenario as it stands, then every stage; empty where nothing has a price."""
    document, _ = apply_overrides(before.scenario.model_dump(mode="json"), _short(before))
    found = [_stage("grow", Message(code="stage.now", template="as it stands"), document, replan)]
    if found[0].taxes is None:
        return []
    for kind, name, overrides in _stages(before, catalog, other_chip):
        edited, _ = apply_overrides(document, overrides)
        found.append(_stage(kind, name, edited, replan))
    return found


def message_of(found: Sequence[Stage]) -> Message:
    """Which tax leads now, and where another one takes over."""
    first = found[0].taxes
    assert first is not None, "stages are empty without prices"
    led = [one for one in found if one.taxes is not None]
    other = next((one for one in led if one.taxes is not None and one.taxes.largest != first.largest), None)
    if other is None or other.taxes is None:
        return Message(
            code="stages.one",
            template="{tax} stays the largest as it grows, mixes and ages",
            params={"tax": _label(first)},
        )
    return Message(
        code="stages.turn",
        template="{tax} is the largest now, {other} once it is {stage}",
        params={"tax": _label(first), "other": _label(other.taxes), "stage": Phrases((other.name,))},
    )


def _label(taxes: Taxes) -> str:
    return glossary.label(f"analysis.tax.{taxes.largest}_usd_per_year")


def _short(before: Plan) -> dict[str, Any]:
    return {
        "workload.request_count": min(before.scenario.workload.request_count, MOST_REQUESTS),
        "run.replications": 1,
    }


def _stages(
    before: Plan, catalog: Catalog, other_chip: str
) -> Iterator[tuple[StageKind, Message, Mapping[str, Any]]]:
    scenario = before.scenario
    for factor in GROWTH:
        if before.fabric.chip_count * factor <= MOST_CHIPS:
            name = Message(code="stage.grow", template="{factor} times as large", params={"factor": factor})
            yield "grow", name, grown(scenario, factor)
    chip = (
        catalog.chip(other_chip) if other_chip else next_chip(catalog, catalog.chip(scenario.hardware.chip))
    )
    pools = [pool.model_dump(mode="json") for pool in scenario.hardware.pools]
    for share in SHARES if before.serving is not None else ():
        count = math.ceil(before.fabric.chip_count * share / (1.0 - share))
        name = Message(
            code="stage.mix",
            template="{share} {chip}",
            params={"share": f"{share:.0%}", "chip": chip.name},
        )
        added = {"name": "added", "chip": chip.slug, "chip_count": count}
        yield "mix", name, {"hardware.pools": [*pools, added]}
    spec = scenario.reliability
    rate = rate_term(spec.failures, spec.failures_per_thousand_node_days_ratio).value
    for factor in AGES:
        name = Message(
            code="stage.age", template="failing {factor} times as often", params={"factor": factor}
        )
        yield "age", name, {"reliability.failures_per_thousand_node_days_ratio": rate * factor}


def _stage(kind: StageKind, name: Message, document: Mapping[str, Any], replan: Replan) -> Stage:
    try:
        planned = replan(document)
    except TrimtabError as error:
        return Stage(kind=kind, name=name, taxes=None, refused=error.message)
    return Stage(kind=kind, name=name, taxes=taxes_of(planned, simulate(planned)))
