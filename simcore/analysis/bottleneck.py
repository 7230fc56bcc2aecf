"""The bottleneck budget: what doubling each resource would bring, and what would bind next.

Each doubling is a re-plan on a changed chip, so latencies and the KV budget move with it. `gain_ratio` is
capacity(×2) ÷ capacity, capacity being the saturated request rate of the same mix; beside it stand the
ratios of the decode and prefill step at the same batch. The gains do not add up: whoever was second
takes over, and the row says who.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from simcore import glossary
from simcore.analysis.findings import Findings, announce
from simcore.analysis.resources import FIGURES, NOTICEABLE_RATIO, scaled_chip
from simcore.analysis.training import double_training, training_closing, training_resources
from simcore.catalog.types import Server
from simcore.compute.steps import decode_shares
from simcore.errors import Message
from simcore.plan import Plan, PoolPlan, ServingPlan, TrainingPlan
from simcore.plan.disaggregated import rebuilt
from simcore.simulate import OnEvent, Result
from simcore.why import Term, leaf


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubling:
    """One resource doubled. Step ratios are below 1 where the step got faster."""

    resource: str
    gain_ratio: float
    decode_step_ratio: float
    prefill_step_ratio: float
    next_bottleneck: str

    def as_dict(self) -> dict[str, Any]:
        return {
            "resource": self.resource,
            "gain_ratio": self.gain_ratio,
            "tpot_ratio": self.decode_step_ratio,
            "ttft_ratio": self.prefill_step_ratio,
            "next_bottleneck": self.next_bottleneck,
        }


def budget(plan: Plan, result: Result, on_event: OnEvent | None = None) -> Findings:
    """Double each resource in turn; each doubling is announced as it completes."""
    if plan.training is not None:
        return _of_training(plan.training, on_event)
    if plan.serving is None:
        messages = tuple(_fabric_messages(plan))
        announce(on_event, messages)
        return Findings(messages=messages)
    return _of_serving(plan, plan.serving, result, on_event)


def _of_serving(plan: Plan, serving: ServingPlan, result: Result, on_event: OnEvent | None) -> Findings:
    doublings = []
    for resource in _resources(serving):
        doubling = double(serving, resource)
        doublings.append(doubling)
        _tell(on_event, _message(doubling), doubling.as_dict())
    best = max(doublings, key=lambda one: one.gain_ratio)
    gains = {f"analysis.doubling.{d.resource}.gain_ratio": d.gain_ratio for d in doublings}
    closing = tuple(_closing(plan, result, best))
    announce(on_event, closing)
    return Findings(
        metrics={**gains, "analysis.bottleneck": best.resource},
        tables={"doublings": [doubling.as_dict() for doubling in doublings]},
        why={name: _why(serving, name, gain) for name, gain in gains.items()},
        messages=(*closing, *map(_message, doublings)),
    )


def _of_training(training: TrainingPlan, on_event: OnEvent | None) -> Findings:
    doublings = []
    for resource in training_resources(training):
        doubling = double_training(training, resource)
        doublings.append(doubling)
        _tell(on_event, doubling.message, doubling.as_dict())
    best = max(doublings, key=lambda one: one.gain.value)
    closing = training_closing(training, best)
    announce(on_event, (closing,))
    why = {doubling.gain.name: doubling.gain for doubling in doublings}
    return Findings(
        metrics={name: gain.value for name, gain in why.items()} | {"analysis.bottleneck": best.resource},
        tables={"doublings": [doubling.as_dict() for doubling in doublings]},
        why=why,
        messages=(closing, *(doubling.message for doubling in doublings)),
    )


def _tell(on_event: OnEvent | None, message: Message, row: dict[str, Any]) -> None:
    """A doubling, with the row that it adds to the table."""
    if on_event is not None:
        on_event("finding", message.as_dict() | {"text": message.text, "row": row})


def _resources(serving: ServingPlan) -> tuple[str, ...]:
    """The figures of a chip, of links only where chips talk; and its NICs, where a step or KV waits for them."""
    pools = serving.pools
    alone = all(pool.parallelism.tp_ranks == 1 and pool.exchange_tier is None for pool in pools)
    found = tuple(name for name in FIGURES if not (alone and name == "scaleup"))
    crosses = serving.prefill is not None or any(pool.step_table.scaleout_s is not None for pool in pools)
    return (*found, "scaleout") if crosses else found


def double(serving: ServingPlan, resource: str, *, factor: float = 2.0) -> Doubling:
    """The same pools with one resource `factor` times as large, on every chip."""
    if resource == "scaleout":
        after = rebuilt(serving, server=partial(_with_faster_nics, factor=factor))
    else:
        after = rebuilt(serving, chip=partial(scaled_chip, resource=resource, factor=factor))
    return Doubling(
        resource=resource,
        gain_ratio=_ratio(after.capacity.value, serving.capacity.value),
        decode_step_ratio=_decode_s(after.pool, serving.pool) / _decode_s(serving.pool, serving.pool),
        prefill_step_ratio=_ratio(_prefill_s(after), _prefill_s(serving)),
        next_bottleneck=after.pool.bound,
    )


def _with_faster_nics(server: Server, *, factor: float) -> Server:
    return replace(server, nic_bytes_per_s=server.nic_bytes_per_s * factor)


def _prefill_s(serving: ServingPlan) -> float:
    return serving.pools[0].terms["compute.prefill_step_s"].value


def _decode_s(pool: PoolPlan, at: PoolPlan) -> float:
    """The decode step of one pool at the batch and context of another."""
    point = at.operating_point
    batch = min(max(1, round(point.batch)), pool.scheduler.max_num_seqs)
    return decode_shares(pool.step_table, batch=batch, context_tokens=point.context_tokens).step_s


def _ratio(after: float, before: float) -> float:
    return after / before if before else 1.0


def _why(serving: ServingPlan, name: str, value: float) -> Term:
    capacity = serving.capacity.value
    now = leaf(capacity, "capacity_request_per_s", kind="derived", source="closed form, as planned")
    then = leaf(
        value * capacity,
        "capacity_when_doubled_request_per_s",
        kind="derived",
        source="closed form, re-planned",
    )
    return (then / now).named(name, "ratio")


def _message(doubling: Doubling) -> Message:
    resource, after = (
        glossary.resource_label(doubling.resource),
        glossary.resource_label(doubling.next_bottleneck),
    )
    params = {
        "resource": resource,
        "gain": _percent(doubling.gain_ratio - 1),
        "step": _percent(1 / doubling.decode_step_ratio - 1),
        "next": after,
    }
    if max(doubling.gain_ratio, 1 / doubling.decode_step_ratio) < NOTICEABLE_RATIO:
        template = "doubling {resource} brings nothing here; the decode step waits for {next}"
        return Message(code="doubling.nothing", template=template, params=params, path=doubling.resource)
    return Message(
        code="doubling.gain",
        template="doubling {resource} lifts capacity by {gain} and decode speed by {step}; {next} binds next",
        params=params,
        path=doubling.resource,
    )


def _percent(share: float) -> str:
    """Whole per cent, without a sign on zero."""
    return f"{round(share * 100) or 0}%"


def _closing(plan: Plan, result: Result, best: Doubling) -> list[Message]:
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
                "gain": f"{best.gain_ratio - 1:+.0%}",
            },
        )
    ]


def _fabric_messages(plan: Plan) -> list[Message]:
    fabric = plan.fabric
    if fabric.island_count > 1:
        return [
            Message(
                code="finding.islands",
                template="{switches:,} switches join {chips:,} chips in {islands} islands of {size:,}",
                params={
                    "switches": fabric.switch_count,
                    "chips": fabric.chip_count,
                    "islands": fabric.island_count,
                    "size": fabric.island_size,
                },
                path="topology",
            )
        ]
    if fabric.ocs_count:
        return [
            Message(
                code="finding.ocs",
                template="{ocs} optical switches and {transceivers:,} transceivers join {chips:,} chips in cubes "
                "that can be re-wired",
                params={
                    "ocs": fabric.ocs_count,
                    "transceivers": fabric.transceiver_count,
                    "chips": fabric.chip_count,
                },
                path="topology",
            )
        ]
    return [
        Message(
            code="finding.fabric",
            template="{switches:,} switches and {transceivers:,} transceivers join {chips:,} chips in one fabric",
            params={
                "switches": fabric.switch_count,
                "transceivers": fabric.transceiver_count,
                "chips": fabric.chip_count,
            },
            path="topology",
        )
    ]
