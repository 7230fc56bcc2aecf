"""What the figures recommend: the metrics that decide, how each scenario stands in them, and that in words.

A change counts where it is above the noise: 2 % (`NOTICEABLE`), or the last digit for money and power, which are sums.
Against the baseline a scenario is `broken` (it breaks a promise or a guard rail that the baseline keeps), `better`
(something improves, nothing gets worse), `a trade` (both), `worse` or `alike`. Only `better` is recommended by the
figures alone; a trade is for people to decide, and is said as one. Where the author chose, the sentence says whether
the figures carry it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from simcore import glossary
from simcore.analysis.compare import GUARD_RAILS, verdict
from simcore.analysis.headline import NOTICEABLE
from simcore.errors import Message, Phrases
from simcore.report.frozen import Column, Report

EXACT: Final = 0.0005
SHOWN: Final = 4  # changes that a sentence names
DECIDING: Final[dict[str, tuple[str, ...]]] = {
    "serving": (
        "cost.usd_per_million_output_tokens",
        "serving.output_token_per_s_per_chip",
        "serving.capacity_request_per_s",
        "serving.slo_attainment_fraction",
        "serving.ttft_s.p95",
        "serving.itl_s.p99",
        "serving.e2e_s.p95",
        "cost.tco_usd_per_year",
        "cost.power_w",
    ),
    "training": (
        "training.token_per_s",
        "training.step_s",
        "training.days",
        "training.mfu_fraction",
        "cost.tco_usd_per_year",
        "cost.power_w",
        "reliability.goodput_fraction",
    ),
    "none": (
        "fabric.fabric_capex_usd",
        "cost.tco_usd_per_year",
        "fabric.fabric_power_w",
        "fabric.island_count",
        "fabric.collective.all_reduce_s",
        "fabric.collective.all_to_all_s",
        "reliability.goodput_fraction",
        "reliability.slice_goodput_fraction.mean",
        "analysis.fault_visibility",
    ),
}
Standing = Literal["better", "trade", "alike", "worse", "broken", "unlike"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One deciding metric, in proportion to the baseline."""

    metric: str
    change_ratio: float
    better: bool

    @property
    def message(self) -> Message:
        return Message(
            code="report.change",
            template="{what} {change}",
            params={"what": glossary.label(self.metric), "change": percent(self.change_ratio)},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Stand:
    """How one scenario stands against the baseline."""

    column: Column
    baseline: Column
    gains: tuple[Change, ...]
    losses: tuple[Change, ...]
    breaks: tuple[Message, ...]
    comparable: bool = True

    @property
    def standing(self) -> Standing:
        if not self.comparable:
            return "unlike"
        if self.breaks:
            return "broken"
        if self.gains:
            return "trade" if self.losses else "better"
        return "worse" if self.losses else "alike"

    @property
    def weight(self) -> tuple[int, float]:
        """For ranking: better before trade before alike, then the larger gain in the first metric that decides."""
        order = {"better": 4, "trade": 3, "alike": 2, "worse": 1, "broken": 0, "unlike": 0}
        return order[self.standing], abs(self.gains[0].change_ratio) if self.gains else 0.0


def percent(ratio: float) -> str:
    """0.194 -> "+19%"; one decimal below ten per cent, and from ten times on the factor."""
    if ratio >= 9:
        return f"×{ratio + 1:,.0f}"
    return f"{ratio:+.{1 if abs(ratio) < 0.1 else 0}%}".replace("-", "−")


def kind_of_work(column: Column) -> str:
    return str(column.document.get("workload", {}).get("kind") or "serving")


def deciding(report: Report) -> tuple[str, ...]:
    """The metrics that decide and that the baseline has."""
    listed = DECIDING.get(kind_of_work(report.baseline), ())
    return tuple(name for name in listed if report.baseline.number(name) is not None)


def stands(report: Report) -> list[Stand]:
    """Every scenario but the baseline."""
    comparable = len({kind_of_work(column) for column in report.columns}) == 1
    return [_stand(report, column, comparable) for column in report.columns[1:]]


def _stand(report: Report, column: Column, comparable: bool) -> Stand:
    changes = tuple(_changes(report, column)) if comparable else ()
    return Stand(
        column=column,
        baseline=report.baseline,
        gains=tuple(change for change in changes if change.better),
        losses=tuple(change for change in changes if not change.better),
        breaks=tuple(_breaks(report.baseline, column)),
        comparable=comparable,
    )


def _changes(report: Report, column: Column) -> Iterator[Change]:
    for metric in deciding(report):
        before, after = report.baseline.number(metric), column.number(metric)
        if not before or after is None:
            continue
        ratio = after / before - 1
        if abs(ratio) <= noise_of(metric):
            continue
        judged = verdict(metric, before, after)
        if judged in ("better", "worse"):
            yield Change(metric=metric, change_ratio=ratio, better=judged == "better")


def noise_of(metric: str) -> float:
    """Below which share a change says nothing."""
    summed = metric.startswith(("cost.", "fabric.fabric_")) and "per_million" not in metric
    return EXACT if summed else NOTICEABLE


def _breaks(baseline: Column, column: Column) -> Iterator[Message]:
    """What the baseline keeps and this scenario does not."""
    if _misses(column) and not _misses(baseline):
        yield Message(
            code="report.misses",
            template="it misses its SLO, with {share} of the requests in time where {promised} are promised",
            params={
                "share": f"{column.number('serving.slo_attainment_fraction') or 0:.1%}",
                "promised": f"{promised(column):.0%}",
            },
        )
    if column.metrics.get("serving.regime") == "overloaded" != baseline.metrics.get("serving.regime"):
        yield Message(
            code="report.overloaded",
            template="it is overloaded: more arrives than it can ever serve",
            params={},
        )
    islands, before = column.number("fabric.island_count"), baseline.number("fabric.island_count")
    if islands and before and islands > before:
        yield Message(
            code="report.islands",
            template="its fabric falls into {count:,.0f} islands that cannot reach each other",
            params={"count": islands},
        )


def promised(column: Column) -> float:
    """The share of requests that must be in time."""
    slo = column.document.get("workload", {}).get("slo") or {}
    return float(slo.get("attainment_fraction", 0.95))


def _misses(column: Column) -> bool:
    """A promise was typed and is not met; where none was typed the schema's own is no promise of anybody's."""
    share = column.number("serving.slo_attainment_fraction")
    return (
        bool(column.document.get("workload", {}).get("slo"))
        and share is not None
        and share < promised(column)
    )


def recommendation(report: Report) -> list[Message]:
    """The verdict first, then what it rests on."""
    found = stands(report)
    best = max(found, key=lambda one: one.weight)
    if report.choice is None:
        verdict_of = _said(best)
    elif report.choice == 0:
        verdict_of = _kept(best)
    else:
        best = found[report.choice - 1]
        verdict_of = _chosen(best)
    return [verdict_of, *_others(found, best), *conditions(report, best)]


def _names(one: Stand, **more: Any) -> dict[str, Any]:
    return {"name": one.column.name, "baseline": one.baseline.name, **more}


def _listed(changes: Sequence[Change]) -> Phrases:
    return Phrases(tuple(change.message for change in changes[:SHOWN]))


def _said(one: Stand) -> Message:
    """What the figures say of the scenario that does best."""
    if one.standing == "better":
        return Message(
            code="report.better",
            template="Choose {name}: {gains}. Nothing that decides gets worse.",
            params=_names(one, gains=_listed(one.gains)),
        )
    if one.standing == "trade":
        return Message(
            code="report.trade",
            template="{name} is a trade against {baseline}. Better: {gains}. Worse: {losses}. The figures alone do not "
            "decide it; weigh the one against the other.",
            params=_names(one, gains=_listed(one.gains), losses=_listed(one.losses)),
        )
    if one.standing == "worse":
        return Message(
            code="report.worse",
            template="Keep {baseline}: {name} is better in nothing that decides, and worse in {losses}.",
            params=_names(one, losses=_listed(one.losses)),
        )
    if one.standing == "broken":
        return _broken(one)
    if one.standing == "unlike":
        return Message(
            code="report.unlike",
            template="{baseline} and {name} do different work: their figures stand side by side, and none is "
            "recommended.",
            params=_names(one),
        )
    return Message(
        code="report.alike",
        template="No difference beyond the noise: {name} and {baseline} agree in every figure that decides.",
        params=_names(one),
    )


def _broken(one: Stand) -> Message:
    reasons = Phrases(one.breaks)
    if one.gains:
        return Message(
            code="report.broken_gain",
            template="Keep {baseline}. {name} brings {gains}, but {reasons}.",
            params=_names(one, gains=_listed(one.gains), reasons=reasons),
        )
    return Message(
        code="report.broken",
        template="Keep {baseline}. Of {name}: {reasons}.",
        params=_names(one, reasons=reasons),
    )


def _chosen(one: Stand) -> Message:
    """The author's choice, and whether the figures carry it."""
    if one.standing == "better":
        return _said(one)
    if one.standing == "trade":
        return Message(
            code="report.chosen_trade",
            template="Choose {name}: {gains}. The price of it, accepted by the author: {losses}.",
            params=_names(one, gains=_listed(one.gains), losses=_listed(one.losses)),
        )
    return Message(
        code="report.not_carried",
        template="The author prefers {name}, and these figures do not carry that. {verdict}",
        params=_names(one, verdict=Phrases((_said(one),))),
    )


def _kept(best: Stand) -> Message:
    """The author keeps the baseline."""
    if best.standing == "better":
        return Message(
            code="report.kept_though",
            template="The author keeps {baseline}, though the figures speak for {name}: {gains}, and nothing that "
            "decides gets worse.",
            params=_names(best, gains=_listed(best.gains)),
        )
    if best.standing == "trade":
        return Message(
            code="report.kept_trade",
            template="Keep {baseline}: {name} would worsen {losses}. What is given up by keeping it: {gains}.",
            params=_names(best, gains=_listed(best.gains), losses=_listed(best.losses)),
        )
    return _said(best)


def _others(found: Sequence[Stand], best: Stand) -> Iterator[Message]:
    """The scenarios that the verdict does not name, where they do break something or come close."""
    for one in found:
        if one is best:
            continue
        yield _said(one)


def conditions(report: Report, best: Stand) -> Iterator[Message]:
    """What the verdict rests on, said beside it."""
    rails = [
        Message.from_dict(row)
        for column in (best.column, best.baseline)
        for row in column.warnings
        if row["code"] in GUARD_RAILS
    ]
    for rail in rails:
        yield Message(
            code="report.condition", template="It holds only as long as: {condition}.",
            params={"condition": Phrases((rail,))},
        )  # fmt: skip
    if _misses(best.column) and _misses(best.baseline):
        yield Message(
            code="report.both_miss",
            template="Neither meets its SLO: {share} of the requests are in time with {name}, {before} with "
            "{baseline}; {promised} are promised.",
            params=_names(
                best,
                share=f"{best.column.number('serving.slo_attainment_fraction') or 0:.1%}",
                before=f"{best.baseline.number('serving.slo_attainment_fraction') or 0:.1%}",
                promised=f"{promised(best.column):.0%}",
            ),
        )
    yield from _hypothetical(best.column)
    yield from _unpriced(best.column)


def _hypothetical(column: Column) -> Iterator[Message]:
    changed = (column.document.get("hardware") or {}).get("chip_overrides") or {}
    if changed:
        yield Message(
            code="report.hypothetical",
            template="{name} sets figures of its chip otherwise ({changed}) and is priced like the chip as it ships: "
            "the gain bounds what the change may cost.",
            params={
                "name": column.name,
                "changed": Phrases(tuple(_figure(name) for name in changed)),
            },
        )


def _figure(name: str) -> Message:
    label = glossary.label(f"hardware.chip_overrides.{name}")
    return Message(code="report.figure", template="{what}", params={"what": label})


def _unpriced(column: Column) -> Iterator[Message]:
    share = column.number("cost.priced_fraction")
    if share is not None and share < 0.9995:
        yield Message(
            code="report.unpriced",
            template="Money is partial: {share} of the parts of {name} have a price.",
            params={"share": f"{share:.0%}", "name": column.name},
        )
