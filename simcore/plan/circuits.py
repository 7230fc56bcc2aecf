"""Optical circuits of the plan's jobs, and what one failed cube moves; nothing where no optical switch stands.

Without `reliability.jobs` as many slices of `reliability.slice_chips` as fit beside the cubes held back (one at
least, so that a failed cube can be replaced), eight at most.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from simcore.catalog.types import OpticalSwitch
from simcore.fabric import Fabric
from simcore.reliability import ReliabilitySpec
from simcore.reliability.circuits import (
    Circuits,
    CubeJob,
    assign,
    cube_job,
    moved_circuits,
    reconfiguration_term,
    replaced,
)
from simcore.why import Term

CUBE_CHIPS: Final = 64
MOST_DRAWN: Final = 8
_AXES: Final = ("x", "y", "z")


@dataclass(frozen=True, slots=True, kw_only=True)
class CircuitPlan:
    """Terms by metric id, and the tables that the circuit map is drawn from."""

    terms: Mapping[str, Term]
    tables: Mapping[str, Any]


def plan_circuits(spec: ReliabilitySpec, fabric: Fabric, switch: OpticalSwitch) -> CircuitPlan:
    if not fabric.ocs_count:
        return CircuitPlan(terms={}, tables={})
    cubes = fabric.endpoint_count // CUBE_CHIPS
    jobs = _jobs(spec, cubes)
    if not jobs:
        return CircuitPlan(terms={}, tables={})
    before = assign(jobs, np.ones(cubes, np.bool_))
    failed, spare = int(np.flatnonzero(before.job_of == 0)[0]), before.first_free()
    after = before if spare is None else replaced(before, failed, spare)
    tables = {"circuits": _rows(before, after), "circuit_jobs": _job_rows(jobs)}
    if spare is None:
        return CircuitPlan(terms={}, tables=tables)
    swap = {
        "failed_cube": failed,
        "spare_cube": spare,
        "moved_circuit_count": moved_circuits(before, after),
        "circuit_count": before.circuit_count,
    }
    time = reconfiguration_term(
        switching_s=switch.reconfiguration_s, switching_source=switch.name, bring_up_s=spec.bring_up_s
    )
    return CircuitPlan(
        terms={"reliability.reconfiguration_s": time}, tables={**tables, "circuit_swap": [swap]}
    )


def _jobs(spec: ReliabilitySpec, cubes: int) -> list[CubeJob]:
    if spec.jobs:
        return [
            cube_job(chips=job.chips, shape=job.shape, is_twisted=job.twisted)
            for job in spec.jobs
            for _ in range(job.count)
        ]
    one = cube_job(chips=spec.slice_chips)
    if one.cube_count > cubes:
        return []
    beside = (cubes - max(1, spec.spares)) // one.cube_count
    return [one] * max(1, min(MOST_DRAWN, beside))


def _rows(before: Circuits, after: Circuits) -> list[dict[str, int]]:
    """A row per cube: its job and where its + faces lead, before a cube fails and after; −1 is none."""
    return [
        {"cube": cube, **_ends(before, cube, ""), **_ends(after, cube, "after_")}
        for cube in range(before.cube_count)
    ]


def _ends(circuits: Circuits, cube: int, prefix: str) -> dict[str, int]:
    ends = {f"{prefix}{axis}": int(circuits.next_cube[d, cube]) for d, axis in enumerate(_AXES)}
    return {f"{prefix}job": int(circuits.job_of[cube]), **ends}


def _job_rows(jobs: list[CubeJob]) -> list[dict[str, Any]]:
    return [
        {
            "job": index,
            "cubes": list(job.shape),
            "chip_count": job.cube_count * CUBE_CHIPS,
            "is_twisted": job.is_twisted,
        }
        for index, job in enumerate(jobs)
    ]
