"""How the program answers facts on failures: causes, rates, fleets, repair, and the circuits of a pod."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from simcore.reliability import FAILURE_RATES, host_availability_term, mtbf_term
from simcore.reliability.circuits import assign, cube_job
from simcore.reliability.components import (
    FIT_HOURS,
    LLAMA_CAUSES,
    LLAMA_HOURS,
    LLAMA_PLANNED,
    fleet_mtbf_h,
)

Inputs = Mapping[str, Any]
SECONDS_PER_DAY: Final = 86_400
DAYS_PER_YEAR: Final = 365
EFFECTIVE_FRACTION: Final = 0.9


def _failure_rate(inputs: Inputs) -> float:
    return FAILURE_RATES[inputs["failures"]].per_thousand_node_days_ratio


def _mtbf_hours(inputs: Inputs) -> float:
    servers = inputs["chip_count"] // 8
    return mtbf_term(server_count=servers, failures=inputs["failures"]).value / 3600


def _failure_causes(inputs: Inputs) -> float:
    """Llama-3's table: its sum, what it says of time, and shares by counts."""
    counts = sum(cause.count for cause in LLAMA_CAUSES)
    every = counts + LLAMA_PLANNED
    answers = {
        "sum": counts,
        "causes": len(LLAMA_CAUSES),
        "unexpected_h": LLAMA_HOURS / counts,
        "all_h": LLAMA_HOURS / every,
        "faulty": LLAMA_CAUSES[0].count / counts,
        "gpu": sum(cause.count for cause in LLAMA_CAUSES if cause.is_gpu) / counts,
        "allowed_minutes": (1 - EFFECTIVE_FRACTION) * LLAMA_HOURS * 60 / every,
    }
    return float(answers[inputs["ask"]])


def _uptime(inputs: Inputs) -> float:
    """Days of a run that never stops, or their share of the days that it took."""
    days = inputs["flop"] / (inputs["flop_per_s"] * inputs["chips"]) / SECONDS_PER_DAY
    return float(days if inputs["ask"] == "days" else days / inputs["days"])


def _fleet_mtbf(inputs: Inputs) -> float:
    fit = inputs.get("fit") or FIT_HOURS / inputs["component_h"]
    hours = fleet_mtbf_h(fit, inputs["count"])
    return hours * 60 if inputs["ask"] == "minutes" else hours


def _link_years(inputs: Inputs) -> float:
    return float(inputs["between_s"] * inputs["links"] / SECONDS_PER_DAY / DAYS_PER_YEAR)


def _host_availability(inputs: Inputs) -> float:
    return host_availability_term(
        given_fraction=1.0, mttr_s=3600.0 * inputs["mttr_h"], failures=inputs["failures"]
    ).value


def _ocs_ports(inputs: Inputs) -> float:
    """Ports that one job on all cubes lights on every switch."""
    job = cube_job(chips=inputs["chip_count"])
    circuits = assign([job], np.ones(job.cube_count, np.bool_))
    return float(max(circuits.connections(dimension).size for dimension in range(3)))


FAILURE_CHECKS: Final[Mapping[str, Callable[[Inputs], float]]] = {
    "failure_causes": _failure_causes,
    "failure_rate": _failure_rate,
    "fleet_mtbf": _fleet_mtbf,
    "host_availability": _host_availability,
    "link_years": _link_years,
    "mtbf_hours": _mtbf_hours,
    "ocs_ports": _ocs_ports,
    "uptime": _uptime,
}
