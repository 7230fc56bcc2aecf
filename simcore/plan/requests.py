"""The requests of a scenario, and the plan again with those of other seeds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from simcore.plan.disaggregated import rebuilt
from simcore.plan.types import Plan, ServingPlan
from simcore.reliability import LOAD_KINDS, lengthened, warped
from simcore.scenario import Scenario
from simcore.scenario.schema import Workload
from simcore.serving import routers
from simcore.streams import stream
from simcore.workload.requests import Requests, draw_requests
from simcore.workload.sessions import Sessions
from simcore.workload.traces import TraceTable


def requests_of(
    scenario: Scenario, max_position: int, *, seed: int, trace: TraceTable | None = None
) -> Requests:
    """What a scenario draws under a seed, cut to the length that the model is served with."""
    workload = scenario.workload
    return draw_requests(
        workload.arrivals,
        workload.lengths,
        request_count=workload.request_count,
        seed=seed,
        trace=trace,
        max_model_len=_longest(scenario, max_position),
        classes=workload.classes,
        sessions=workload.sessions,
    )


def under_shocks(requests: Requests, scenario: Scenario, max_position: int) -> Requests:
    """The requests as they arrive under bursts of load and of longer prompts; the same object without any."""
    shocks = scenario.reliability.shocks
    if not any(isinstance(one, LOAD_KINDS) for one in shocks):
        return requests
    arrival_s = warped(requests.arrival_s, shocks)
    most = np.maximum(requests.input_tokens, _longest(scenario, max_position) - requests.output_tokens)
    inputs = lengthened(requests.input_tokens, arrival_s, shocks)
    return replace(requests, arrival_s=arrival_s, input_tokens=np.minimum(inputs, most))


def _longest(scenario: Scenario, max_position: int) -> int:
    """Tokens that a prompt and its answer may have together."""
    wanted = scenario.serving.max_model_len
    return wanted if isinstance(wanted, int) else max_position


def is_drawn(scenario: Scenario) -> bool:
    """Whether anything that is served depends on the seed."""
    spec = scenario.serving
    scheduler = spec.scheduler
    errs = getattr(scheduler, "prediction_cv", 0.0) > 0
    guessed = errs and getattr(scheduler, "queue", "fcfs") == "shortest_predicted"
    fails = any(not isinstance(one, LOAD_KINDS) for one in scenario.reliability.shocks)
    return are_drawn(scenario.workload) or routers.is_drawn(spec.router) or guessed or fails


def are_drawn(workload: Workload) -> bool:
    """Whether the requests depend on the seed: equal ones in a closed loop do not.

    Nor do the rows of a trace; which class each is of does, and is left at the first draw.
    """
    if workload.arrivals.kind == "trace":
        return False
    lengths = [workload.lengths, *(one.lengths for one in workload.classes if one.lengths is not None)]
    alike = all(one.kind == "constant" for one in lengths) and len(workload.classes) <= 1
    return workload.arrivals.kind != "closed_loop" or not alike or _turns_are_drawn(workload.sessions)


def _turns_are_drawn(sessions: Sessions | None) -> bool:
    if sessions is None or sessions.turns_mean == 1.0:
        return False
    return sessions.turns_law == "geometric" or sessions.think_time_mean_s * sessions.think_time_cv > 0


def replications(plan: Plan) -> Iterator[Plan]:
    """The plan under its further seeds, which follow from its own: `run.replications - 1` of them.

    What no seed changes has none.
    """
    scenario, serving = plan.scenario, plan.serving
    if serving is None or not is_drawn(scenario):
        return
    for place in range(1, scenario.run.replications):
        seed = int(stream(plan.seed, "replication", place).integers(2**63))
        yield replace(plan, seed=seed, serving=_redrawn(scenario, serving, seed))


def _redrawn(scenario: Scenario, serving: ServingPlan, seed: int) -> ServingPlan:
    if not are_drawn(scenario.workload):
        return serving
    requests = requests_of(scenario, serving.inputs.architecture.max_position, seed=seed)
    served = under_shocks(requests, scenario, serving.inputs.architecture.max_position)
    return replace(rebuilt(serving, requests=served), undisturbed=None if served is requests else requests)
