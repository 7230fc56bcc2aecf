"""The cluster's life of a scenario, resolved: units and their parts, rates, times, checkpoint intervals.

A unit is a cube of 64 chips on a pod of tori, where no slice is smaller, else a server. What fails: servers at their
published rate, links and optical switches of tori, leaf switches of switched fabrics, chips where a rate is given.
Without `reliability.mttr_s` repairs take what the availability of hosts says at the rate at which servers fail:
A = MTBF / (MTBF + MTTR).
Checkpoint intervals are Daly's for each size of job, at the rate at which its own units fail.
Limits: of switches only the first tier takes servers with it; all parts have one time to repair.
"""

from __future__ import annotations

import math
from typing import Final, Literal

from simcore.catalog.types import Server
from simcore.errors import InfeasibleError, InputError
from simcore.fabric import Fabric
from simcore.reliability import ReliabilitySpec, daly_interval_s, mtbf_term
from simcore.reliability.failures import SECONDS_PER_DAY
from simcore.reliability.life_draws import Part
from simcore.reliability.life_inputs import LifeInputs
from simcore.reliability.life_spec import (
    LINK_MTBF_S,
    OCS_MTBF_S,
    SWITCH_MTBF_S,
    FullLife,
    QueueLife,
    Rate,
)
from simcore.reliability.life_state import Policy

CHIPS_PER_CUBE: Final = 64
MOST_FAILURES: Final = 500_000
MOST_JOBS: Final = 200_000
_PATH: Final = "reliability.life"
_RAILS: Final = ("rail_optimized", "rail_only")


def plan_life(
    spec: ReliabilitySpec, server: Server, fabric: Fabric, *, kind: str, chip_count: int
) -> LifeInputs | None:
    """None where no life is asked for. `kind` is that of the topology."""
    life = spec.life
    if life is None:
        return None
    sizes = life.slice_chips if isinstance(life, QueueLife) else (spec.slice_chips,)
    is_torus = server.scaleup_kind == "ici"
    unit: Literal["cube", "server"] = "cube" if is_torus and min(sizes) >= CHIPS_PER_CUBE else "server"
    chips = CHIPS_PER_CUBE if unit == "cube" else server.chips_per_server
    count = chip_count // chips
    _refuse_what_does_not_fit(sizes, spec.spares, count, chips, path=_size_path(life))
    allocation = _allocation(life, kind, is_torus=is_torus, unit=unit)
    job_units = tuple(math.ceil(size / chips) for size in sizes)
    parts = _parts(spec, life, server, fabric, kind=kind, unit_count=count, chips_per_unit=chips)
    _refuse_what_takes_too_long(life, parts)
    return LifeInputs(
        unit=unit,
        unit_count=count,
        chips_per_unit=chips,
        parts=parts,
        policy=_policy(spec, life, allocation, life.restart_scope, life.recover_from),
        scopes={
            "job": _policy(spec, life, allocation, "job", "checkpoint"),
            "host": _policy(spec, life, allocation, "host", "checkpoint"),
            "peer": _policy(spec, life, allocation, "host", "peer"),
        },
        allocations={
            "static": _policy(spec, life, "static", life.restart_scope, life.recover_from),
            "ocs": _policy(spec, life, "ocs", life.restart_scope, life.recover_from),
        }
        if unit == "cube"
        else {},
        rewires=allocation == "ocs",
        spec=life,
        job_units=job_units,
        intervals_s=tuple(_interval_s(spec, parts, units, count) for units in job_units),
    )


def _size_path(life: FullLife | QueueLife) -> str:
    return f"{_PATH}.slice_chips" if isinstance(life, QueueLife) else "reliability.slice_chips"


def _allocation(
    life: FullLife | QueueLife, kind: str, *, is_torus: bool, unit: str
) -> Literal["ocs", "static", "servers"]:
    """Inside a cube nothing is re-wired: slices of servers have fixed places there."""
    if is_torus and unit == "server":
        return "static"
    if life.allocation != "auto":
        return life.allocation
    return "ocs" if kind == "ocs_pod" else "static" if is_torus else "servers"


def _policy(
    spec: ReliabilitySpec, life: FullLife | QueueLife, allocation: str, scope: str, recover_from: str
) -> Policy:
    wiring_s = spec.bring_up_s if allocation == "ocs" else 0.0
    restart_s = spec.restart_s if scope == "job" else life.host_restart_s
    return Policy(
        duration_s=life.duration_s,
        write_s=spec.checkpoint_write_s,
        start_s=spec.restart_s + wiring_s,
        swap_s=restart_s + life.swap_s + wiring_s,
        slowdown_ratio=life.link_slowdown_ratio,
        spare_count=spec.spares,
        crew_count=life.crew_count or 0,
        is_aligned=allocation == "static",
        keeps_state=recover_from == "peer",
    )


def _parts(
    spec: ReliabilitySpec,
    life: FullLife | QueueLife,
    server: Server,
    fabric: Fabric,
    *,
    kind: str,
    unit_count: int,
    chips_per_unit: int,
) -> tuple[Part, ...]:
    mtbf_s = mtbf_term(
        server_count=1, failures=spec.failures, own_ratio=spec.failures_per_thousand_node_days_ratio
    ).value
    mttr_s = _mttr_s(spec, mtbf_s)
    chips = unit_count * chips_per_unit
    is_torus = server.scaleup_kind == "ici"

    def part(name: str, count: int, each_s: float | None, *, span: int = 1, slows: bool = False) -> Part:
        return Part(
            name=name,
            count=count if each_s else 0,
            mtbf_s=each_s or math.inf,
            mttr_s=mttr_s,
            repair_cv=life.repair_cv,
            span=span,
            slows=slows,
        )

    leaves = fabric.tiers[0].switch_count if fabric.tiers and not is_torus else 0
    rails = fabric.hb_domain_size if kind in _RAILS else 1
    found = (
        part("server", max(1, chips // server.chips_per_server), mtbf_s),
        part("chip", chips, life.chip_mtbf_s),
        part(
            "link",
            sum(length > 1 for length in fabric.shape) * chips if is_torus else fabric.link_count,
            _rate(life.link_mtbf_s, LINK_MTBF_S if is_torus else None),
            slows=life.fault_tolerant_routing,
        ),
        part(
            "switch",
            leaves,
            _rate(life.switch_mtbf_s, SWITCH_MTBF_S),
            span=min(unit_count, math.ceil(unit_count * rails / max(1, leaves))),
            slows=life.fault_tolerant_routing and kind in _RAILS,
        ),
        part(
            "ocs",
            fabric.ocs_count,
            _rate(life.ocs_mtbf_s, OCS_MTBF_S),
            span=unit_count,
            slows=life.fault_tolerant_routing,
        ),
    )
    return tuple(one for one in found if one.count)


def _rate(said: Rate, published_s: float | None) -> float | None:
    return published_s if said == "auto" else said


def _mttr_s(spec: ReliabilitySpec, mtbf_s: float) -> float:
    if spec.mttr_s != "auto":
        return spec.mttr_s
    up = spec.host_availability_fraction
    if up == 0:
        raise InputError.at(
            "reliability.mttr_s",
            "life.never_up",
            "hosts that are never available are repaired in no finite time; set a time, or an availability above 0",
        )
    return mtbf_s * (1 - up) / up


def _interval_s(spec: ReliabilitySpec, parts: tuple[Part, ...], job_units: int, unit_count: int) -> float:
    """Daly's interval for a job of so many units side by side; a part stops it that takes any of them."""
    if spec.checkpoint_interval_s != "auto":
        return spec.checkpoint_interval_s
    failures_per_s = sum(
        one.count / one.mtbf_s * min(1.0, (job_units + one.span - 1) / unit_count)
        for one in parts
        if not one.slows
    )
    return daly_interval_s(spec.checkpoint_write_s, 1 / failures_per_s)


def _refuse_what_does_not_fit(
    sizes: tuple[int, ...], spares: int, unit_count: int, chips_per_unit: int, *, path: str
) -> None:
    need = math.ceil(max(sizes) / chips_per_unit)
    if need + spares > unit_count:
        raise InfeasibleError.at(
            path,
            "life.does_not_fit",
            "a job of {need:,} units and {spares:,} spares do not fit in {units:,} units of {chips} chips; use slices "
            "of at most {limit:,} chips",
            need=need,
            spares=spares,
            units=unit_count,
            chips=chips_per_unit,
            limit=max(0, unit_count - spares) * chips_per_unit,
        )


def _refuse_what_takes_too_long(life: FullLife | QueueLife, parts: tuple[Part, ...]) -> None:
    failures = sum(one.count / one.mtbf_s for one in parts) * life.duration_s
    jobs = life.duration_s / life.interarrival_s if isinstance(life, QueueLife) else 0
    ratio = max(failures / MOST_FAILURES, jobs / MOST_JOBS)
    if ratio > 1:
        raise InputError.at(
            f"{_PATH}.duration_s",
            "life.too_long",
            "{failures:,.0f} failures and {jobs:,.0f} jobs are to be expected; at most {most_failures:,} and "
            "{most_jobs:,} are simulated, so use at most {days:.3g} days",
            failures=failures,
            jobs=jobs,
            most_failures=MOST_FAILURES,
            most_jobs=MOST_JOBS,
            days=life.duration_s / ratio / SECONDS_PER_DAY,
        )
