"""The bottleneck budget: what doubling each resource would bring, how much of it is used, and what binds next.

Rows are those of `doubling.py` (serving) and `training.py`; this piece puts them together, says which pays, how far the
gains of the rows are from the gain of all together, and, where the price book has prices, which unit of gain is
cheapest. About 25 re-plans of a pool.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from simcore import glossary
from simcore.analysis.doubling import Doubling, Load, double, load_of, together, without_limit
from simcore.analysis.findings import Findings, announce
from simcore.analysis.resources import NOTICEABLE_RATIO, used_resources
from simcore.analysis.training import (
    TrainingDoubling,
    double_training,
    training_closing,
    training_load_of,
    training_resources,
    training_together,
    training_without_limit,
)
from simcore.analysis.wiring import wiring_messages
from simcore.errors import Message
from simcore.plan import Plan, ServingPlan, TrainingPlan
from simcore.simulate import OnEvent, Result
from simcore.why import Term, constant, total


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetRow:
    """One resource: its doubling, what is left to gain, how much of it is used, and what 1 % of gain costs."""

    doubling: Doubling | TrainingDoubling
    limit: Term
    load: Load
    saturates: str  # the column of the rate at which it does
    twice_usd_per_year: Term | None  # what doubling it costs; None: it has no price

    @property
    def price(self) -> Term | None:
        """USD per year for each per cent that doubling brings; None where it brings nothing or has no price."""
        if self.twice_usd_per_year is None or self.doubling.gain.value < NOTICEABLE_RATIO:
            return None
        points = (self.doubling.gain - constant(1.0)) * constant(100.0, "percent")
        name = f"analysis.gain_price.{self.doubling.resource}.percent_usd_per_year"
        return (self.twice_usd_per_year / points).named(name, "usd_per_year")

    @property
    def terms(self) -> dict[str, Term]:
        found = [self.doubling.gain, self.limit, self.load.used, self.load.saturation, self.price]
        return {term.name: term for term in found if term is not None}

    def as_dict(self) -> dict[str, Any]:
        used, saturation, price = self.load.used.value, self.load.saturation, self.price
        return self.doubling.as_dict() | {
            "limit_ratio": self.limit.value,
            "used_fraction": used,
            "headroom_fraction": 1.0 - used,
            self.saturates: None if saturation is None else saturation.value,
            "percent_usd_per_year": None if price is None else price.value,
        }


def budget(plan: Plan, result: Result, on_event: OnEvent | None = None) -> Findings:
    """Double each resource in turn; each doubling is announced as it completes."""
    if plan.training is not None:
        return _of_training(plan, plan.training, on_event)
    if plan.serving is None:
        messages = tuple(wiring_messages(plan))
        announce(on_event, messages)
        return Findings(messages=messages)
    return _of_serving(plan, plan.serving, result, on_event)


def _of_serving(plan: Plan, serving: ServingPlan, result: Result, on_event: OnEvent | None) -> Findings:
    rows = []
    for resource in used_resources(serving):
        row = BudgetRow(
            doubling=double(serving, resource),
            limit=without_limit(serving, resource),
            load=load_of(serving, resource),
            saturates="saturating_request_per_s",
            twice_usd_per_year=plan.cost.twice_usd_per_year.get(resource),
        )
        rows.append(row)
        _tell(on_event, row)
    whole = together(serving, used_resources(serving))
    closing = _closing(result, _best(rows))
    return _found(rows, whole, closing, on_event)


def _of_training(plan: Plan, training: TrainingPlan, on_event: OnEvent | None) -> Findings:
    rows = []
    for resource in training_resources(training):
        row = BudgetRow(
            doubling=double_training(training, resource),
            limit=training_without_limit(training, resource),
            load=training_load_of(training, resource),
            saturates="saturating_token_per_s",
            twice_usd_per_year=plan.cost.twice_usd_per_year.get(resource),
        )
        rows.append(row)
        _tell(on_event, row)
    best = _best(rows)
    assert isinstance(best, TrainingDoubling), "rows of a training run"
    return _found(rows, training_together(training), [training_closing(training, best)], on_event)


def _found(
    rows: Sequence[BudgetRow], whole: Term, closing: Sequence[Message], on_event: OnEvent | None
) -> Findings:
    """The rows as metrics, table, trees and sentences: closing ones, those that pay, one for all that do not."""
    singles = _sum_of_gains(rows)
    last = (*closing, *_not_the_whole(singles, whole), *cheapest(row.as_dict() for row in rows))
    announce(on_event, last)
    trees: Mapping[str, Term] = {name: term for row in rows for name, term in row.terms.items()}
    gains = {row.doubling.gain.name: row.doubling.gain.value for row in rows}
    sums = {term.name: term for term in (singles, whole)}
    return Findings(
        metrics=gains
        | {name: term.value for name, term in sums.items()}
        | {"analysis.bottleneck": _best(rows).resource},
        tables={"doublings": [row.as_dict() for row in rows]},
        why={**trees, **sums},
        messages=(*last, *(row.doubling.message for row in rows)),
    )


def _best(rows: Sequence[BudgetRow]) -> Doubling | TrainingDoubling:
    return max(rows, key=lambda row: row.doubling.gain.value).doubling


def _sum_of_gains(rows: Sequence[BudgetRow]) -> Term:
    """One and what each doubling alone adds to it."""
    added = [row.doubling.gain - constant(1.0) for row in rows]
    return total(constant(1.0), *added).named("analysis.doublings.sum_ratio", "ratio")


def _not_the_whole(singles: Term, whole: Term) -> list[Message]:
    if max(singles.value, whole.value) < NOTICEABLE_RATIO:
        return []
    return [
        Message(
            code="finding.not_the_whole",
            template="gains don't add up: single doublings bring {sum} in sum, all of them at once {whole}",
            params={"sum": f"{singles.value - 1:+.0%}", "whole": f"{whole.value - 1:+.0%}"},
        )
    ]


def cheapest(rows: Iterable[Mapping[str, Any]]) -> list[Message]:
    """The row of the table whose per cent of gain costs least."""
    priced = [row for row in rows if row.get("percent_usd_per_year")]
    if not priced:
        return []
    best = min(priced, key=lambda row: float(row["percent_usd_per_year"]))
    return [
        Message(
            code="finding.cheapest_gain",
            template="the cheapest unit of gain is {resource}: ${price:,.0f} a year for each per cent",
            params={
                "resource": glossary.resource_label(best["resource"]),
                "price": best["percent_usd_per_year"],
            },
            path=best["resource"],
        )
    ]


def _tell(on_event: OnEvent | None, row: BudgetRow) -> None:
    """A doubling, with the row that it adds to the table."""
    if on_event is not None:
        message = row.doubling.message
        on_event("finding", message.as_dict() | {"text": message.text, "row": row.as_dict()})


def _closing(result: Result, best: Doubling | TrainingDoubling) -> list[Message]:
    rows = [
        row for row in result.tables.get("where_time_goes", ()) if row["resource"] not in ("queue", "failure")
    ]
    whole = sum(row["fraction"] for row in rows)
    if not whole:
        return []
    top = max(rows, key=lambda row: row["fraction"])
    return [
        Message(
            code="finding.bound",
            template="{share} of the working time is {top}; at full load, doubling {resource} adds most capacity, "
            "{gain}",
            params={
                "share": f"{top['fraction'] / whole:.0%}",
                "top": glossary.resource_label(top["resource"]),
                "resource": glossary.resource_label(best.resource),
                "gain": f"{best.gain.value - 1:+.0%}",
            },
        )
    ]
