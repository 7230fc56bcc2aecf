"""Inputs that change nothing here, said aloud: an edit without an effect must not look like a finding.

An input is named when it differs from its default and nothing reads it: either no engine models it, or the
scenario has no place for it (oversubscription of a single tier). Limits: a figure that is read but does not
bind, such as the fp8 peak of a bf16 model, is left to the comparison of results.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final

from simcore.errors import Message
from simcore.fabric import Fabric
from simcore.plan.chip_pools import idle_pools
from simcore.plan.life_unused import unused_in_life
from simcore.plan.requests import is_drawn
from simcore.scenario import Scenario
from simcore.workload.arrivals import ArrivalPreset
from simcore.workload.sessions import Sessions


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """A path that no engine reads, and what is therefore not computed."""

    path: str
    template: str


_ALWAYS: Final = (
    Unread(
        path="workload.slo.attainment_fraction",
        template="has no effect: no goal is sought, attainment is reported as it comes out",
    ),
)
_APART: Final = (
    Unread(
        path="serving.replica_count",
        template="has no effect: serving.scheduler.prefill and .decode have replica counts of their own",
    ),
)
_SCALED: Final = (
    Unread(
        path="serving.replica_count",
        template="has no effect: serving.autoscaling has a fewest and a most of its own",
    ),
)
_SPARES: Final = "reliability.spares"
_OF_A_SLICE: Final = (
    _SPARES,
    *(f"reliability.{key}" for key in ("checkpoint_interval_s", "checkpoint_write_s", "restart_s")),
)
_DEFAULTS: Final = Scenario(name="defaults")


def unused_inputs(scenario: Scenario, fabric: Fabric) -> list[Message]:
    """One message per input that was set and is not read."""
    serving = scenario.serving
    counted = _APART if serving.scheduler.kind == "disaggregated" else _SCALED if serving.autoscaling else ()
    always = [
        Message(code="input.no_effect", template=unread.template, path=unread.path)
        for unread in (*_ALWAYS, *counted)
        if _was_set(scenario, unread.path)
    ]
    return [
        *always,
        *_other_work(scenario),
        *_behind_classes(scenario),
        *_even_rate(scenario),
        *_of_sessions(scenario.workload.sessions),
        *_nothing_random(scenario),
        *_line_order(scenario),
        *_expert_groups(scenario),
        *_slice_inputs(scenario),
        *_shocks(scenario),
        *_single_tier(scenario, fabric),
        *_no_circuits(scenario, fabric),
        *unused_in_life(scenario.reliability.life, fabric),
        *_given_availability(scenario),
        *_own_rate(scenario),
        *idle_pools(scenario),
    ]


def _other_work(scenario: Scenario) -> Iterator[Message]:
    """The section of a kind of work that this scenario does not run."""
    kind = scenario.workload.kind
    for section in ("serving", "training"):
        if kind in ("serving", "training") and section != kind and _was_set(scenario, section):
            yield Message(
                code="input.no_effect",
                template="has no effect: workload.kind is {kind}",
                params={"kind": kind},
                path=section,
            )


def _behind_classes(scenario: Scenario) -> Iterator[Message]:
    """What the workload says for all requests, where every class says its own."""
    classes = scenario.workload.classes
    for key in ("lengths", "slo"):
        path = f"workload.{key}"
        if classes and all(getattr(one, key) is not None for one in classes) and _was_set(scenario, path):
            yield Message(
                code="input.no_effect",
                template="has no effect: each of the {count} classes has its own",
                params={"count": len(classes)},
                path=path,
            )


def _even_rate(scenario: Scenario) -> Iterator[Message]:
    """The period of a rate that does not move."""
    arrivals = scenario.workload.arrivals
    if not isinstance(arrivals, ArrivalPreset) or arrivals.period_s == "auto":
        return
    if len(arrivals.fit.relative_rates) == 1:
        yield Message(
            code="input.no_effect",
            template="has no effect: the rate of {trace} does not move",
            params={"trace": arrivals.name},
            path="workload.arrivals.period_s",
        )


def _of_sessions(sessions: Sessions | None) -> Iterator[Message]:
    """What is said of later turns where there are none, and of the spread of no time."""
    if sessions is None:
        return
    alone = sessions.turns_mean == 1.0
    for key in ("turns_law", "think_time_mean_s", "think_time_cv"):
        if not _differs(sessions, key):
            continue
        if alone:
            yield Message(
                code="input.no_effect",
                template="has no effect: sessions have one turn each; set workload.sessions.turns_mean",
                path=f"workload.sessions.{key}",
            )
        elif key == "think_time_cv" and sessions.think_time_mean_s == 0.0:
            yield Message(
                code="input.no_effect",
                template="has no effect: nobody thinks; set workload.sessions.think_time_mean_s",
                path=f"workload.sessions.{key}",
            )


def _differs(sessions: Sessions, key: str) -> bool:
    return bool(getattr(sessions, key) != Sessions.model_fields[key].default)


def _nothing_random(scenario: Scenario) -> Iterator[Message]:
    """Replications of what no seed changes."""
    workload = scenario.workload
    if scenario.run.replications == 1 or scenario.reliability.life is not None:
        return
    if workload.kind != "serving":
        yield Message(
            code="input.no_effect",
            template="has no effect: workload.kind is {kind}",
            params={"kind": workload.kind},
            path="run.replications",
        )
    elif not is_drawn(scenario):
        yield Message(
            code="input.no_effect",
            template="has no effect: no seed changes what is served",
            path="run.replications",
        )


def _line_order(scenario: Scenario) -> Iterator[Message]:
    """What only another order of the waiting line would read."""
    scheduler, classes = scenario.serving.scheduler, scenario.workload.classes
    queue = getattr(scheduler, "queue", "fcfs")
    if queue != "shortest_predicted" and getattr(scheduler, "prediction_cv", 0.0):
        yield Message(
            code="input.no_effect",
            template="has no effect: lengths are predicted only where serving.scheduler.queue is shortest_predicted",
            path="serving.scheduler.prediction_cv",
        )
    if queue == "priority" and len({one.priority for one in classes}) < 2:
        yield Message(
            code="input.no_effect",
            template="has no effect: all requests have one priority; give workload.classes different ones",
            path="serving.scheduler.queue",
        )
    if queue != "priority" and len({one.priority for one in classes}) > 1:
        yield Message(
            code="input.no_effect",
            template="priorities have no effect: set serving.scheduler.queue to priority",
            path="workload.classes",
        )
    if queue == "fair" and len(classes) < 2:
        yield Message(
            code="input.no_effect",
            template="has no effect: a fair line shares among classes; give workload.classes two or more",
            path="serving.scheduler.queue",
        )
    if queue != "fair" and any(one.weight != 1.0 for one in classes):
        yield Message(
            code="input.no_effect",
            template="weights have no effect: set serving.scheduler.queue to fair",
            path="workload.classes",
        )


def _expert_groups(scenario: Scenario) -> Iterator[Message]:
    """Where experts lie, where neither traffic nor their load depends on it."""
    cut = scenario.serving.parallelism
    if cut.ep > 1 and cut.dp == 1 and cut.expert_imbalance_ratio == 1:
        yield Message(
            code="input.no_effect",
            template="has no effect: experts, whole or sliced, are spread over all ranks of a replica with the same "
            "memory and traffic; it has one with dp or expert_imbalance_ratio above 1",
            path="serving.parallelism.ep",
        )
    if cut.ep == 1 and cut.expert_imbalance_ratio != 1:
        yield Message(
            code="input.no_effect",
            template="has no effect: every expert is sliced over all chips, so all carry the same; set "
            "serving.parallelism.ep",
            path="serving.parallelism.expert_imbalance_ratio",
        )


def _was_set(scenario: Scenario, path: str) -> bool:
    return bool(_value(scenario, path) != _value(_DEFAULTS, path))


def _value(scenario: Scenario, path: str) -> Any:
    return reduce(getattr, path.split("."), scenario)


def _slice_inputs(scenario: Scenario) -> Iterator[Message]:
    """What describes a slice that the fleet cannot hold; a slice that was asked for is warned of elsewhere."""
    spec, chips = scenario.reliability, scenario.hardware.chip_count
    if spec.slice_chips <= chips or "slice_chips" in spec.model_fields_set:
        return
    read = set()
    if scenario.workload.kind == "training":  # the job saves and restarts, whatever the slice
        read |= set(_OF_A_SLICE) - {_SPARES}
    if spec.shocks and spec.abilities.physical:  # spares take the place of what fails
        read.add(_SPARES)
    for path in _OF_A_SLICE:
        if _was_set(scenario, path) and path not in read:
            yield Message(
                code="input.no_effect",
                template="has no effect: the slice of {slice_chips:,} chips is larger than the {chips:,} owned; set "
                "reliability.slice_chips",
                params={"slice_chips": spec.slice_chips, "chips": chips},
                path=path,
            )


def _shocks(scenario: Scenario) -> Iterator[Message]:
    """Shocks where nothing runs, and abilities where nothing happens."""
    spec, kind = scenario.reliability, scenario.workload.kind
    if spec.shocks and kind not in ("serving", "training"):
        yield Message(
            code="input.no_effect",
            template="has no effect: workload.kind is {kind}",
            params={"kind": kind},
            path="reliability.shocks",
        )
    if not spec.shocks and _was_set(scenario, "reliability.abilities"):
        yield Message(
            code="input.no_effect",
            template="has no effect: reliability.shocks is empty",
            path="reliability.abilities",
        )


def _given_availability(scenario: Scenario) -> Iterator[Message]:
    """Availability that is given where it follows from failures and repair."""
    path = "reliability.host_availability_fraction"
    if scenario.reliability.mttr_s != "auto" and _was_set(scenario, path):
        yield Message(
            code="input.no_effect",
            template="has no effect: availability follows from the failure rate and reliability.mttr_s",
            path=path,
        )


def _own_rate(scenario: Scenario) -> Iterator[Message]:
    """A published failure rate beside the user's own."""
    path = "reliability.failures"
    if scenario.reliability.failures_per_thousand_node_days_ratio != "auto" and _was_set(scenario, path):
        yield Message(
            code="input.no_effect",
            template="has no effect: reliability.failures_per_thousand_node_days_ratio takes its place",
            path=path,
        )


def _single_tier(scenario: Scenario, fabric: Fabric) -> Iterator[Message]:
    if len(fabric.tiers) == 1 and getattr(scenario.topology, "oversubscription_ratio", 1.0) != 1.0:
        yield Message(
            code="input.no_effect",
            template="has no effect: a single tier of switches has no uplinks",
            path="topology.oversubscription_ratio",
        )


def _no_circuits(scenario: Scenario, fabric: Fabric) -> Iterator[Message]:
    """What is said of optical circuits where no optical switch stands."""
    for key in ("jobs", "bring_up_s"):
        path = f"reliability.{key}"
        if not fabric.ocs_count and _was_set(scenario, path):
            yield Message(
                code="input.no_effect",
                template="has no effect: no optical switch joins cubes here; set topology.kind to ocs_pod",
                path=path,
            )
