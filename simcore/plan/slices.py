"""Reliability of the plan: slice goodput, interruptions and checkpoints of one slice, replicas up.

What can be exchanged is a cube of 64 chips in a pod of tori, and a server behind switches. A slice larger
than the fleet has no goodput; that is a warning where the user asked for such a slice, and
silence where the default of 1,024 chips meets a smaller fleet.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from simcore.catalog.types import Server
from simcore.errors import Message
from simcore.reliability import (
    ReliabilitySpec,
    SliceSystem,
    any_box_goodput,
    any_box_series,
    checkpoint_interval_term,
    goodput_term,
    has_any_box,
    host_availability_term,
    mtbf_term,
    slice_goodput_grid,
    slice_goodput_series,
    slice_goodput_terms,
    spares_series,
)
from simcore.reliability.failures import servers_of, small_job_warning
from simcore.reliability.slices import DRAWS
from simcore.why import Term, simulated

CHIPS_PER_CUBE = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class SlicePlan:
    """Terms by metric id, curves and tables, what a reader should know, and the pod whose boxes are drawn."""

    terms: Mapping[str, Term]
    series: Mapping[str, Any]
    tables: Mapping[str, Any]
    warnings: tuple[Message, ...]
    boxes_of: SliceSystem | None = None  # a grid of cubes, where contiguous boxes mean something
    slice_chips: int = 0


def plan_slices(spec: ReliabilitySpec, server: Server, *, chip_count: int) -> SlicePlan:
    host = host_availability(spec)
    unit = unit_chips(server)
    system = SliceSystem(
        chip_count=chip_count,
        chips_per_cube=unit,
        chips_per_host=min(server.chips_per_server, unit),
        host_availability_fraction=host.value,
        spare_cube_count=spec.spares,
    )
    whole = system.cube_count * system.chips_per_cube
    if spec.slice_chips > whole:
        return SlicePlan(terms={}, series={}, tables={}, warnings=_too_large(spec, whole))
    mtbf = _mtbf(spec, server, chip_count=spec.slice_chips)
    interval = checkpoint_interval_term(
        spec.checkpoint_interval_s, write_s=spec.checkpoint_write_s, mtbf=mtbf
    )
    goodput = goodput_term(
        interval=interval, write_s=spec.checkpoint_write_s, restart_s=spec.restart_s, mtbf=mtbf
    )
    small = small_job_warning(chip_count=spec.slice_chips)
    return SlicePlan(
        terms=slice_goodput_terms(system, spec.slice_chips, host)
        | {
            "reliability.mtbf_s": mtbf,
            "reliability.checkpoint_interval_s": interval,
            "reliability.goodput_fraction": goodput,
        },
        series={
            "slice_goodput": dict(slice_goodput_series(system)),
            "slice_spares": dict(spares_series(system, spec.slice_chips)),
        },
        tables={"slice_goodput_grid": slice_goodput_grid(system, spec.slice_chips)},
        warnings=(small,) if small else (),
        boxes_of=system if _has_boxes(system, server, spec.slice_chips) else None,
        slice_chips=spec.slice_chips,
    )


def unit_chips(server: Server) -> int:
    """Chips that are exchanged together."""
    return CHIPS_PER_CUBE if server.scaleup_kind == "ici" else server.chips_per_server


def _has_boxes(system: SliceSystem, server: Server, slice_chips: int) -> bool:
    return server.scaleup_kind == "ici" and has_any_box(system, slice_chips)


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnSlices:
    """What Monte Carlo adds to the closed forms of slices."""

    terms: Mapping[str, Term]
    series: Mapping[str, Any]
    tables: Mapping[str, Any]


def drawn_slices(slices: SlicePlan, *, seed: int) -> DrawnSlices:
    """Static slices in any contiguous box; nothing where no grid of cubes is given out."""
    system = slices.boxes_of
    if system is None:
        return DrawnSlices(terms={}, series={}, tables={})
    found = any_box_goodput(system, slices.slice_chips, draws=DRAWS, seed=seed)
    name = "reliability.static_any_box_goodput_fraction.mean"
    return DrawnSlices(
        terms={name: simulated(found.mean_fraction, name, statistic="mean", count=found.draws, seed=seed)},
        series={"any_box_goodput": dict(any_box_series(system, seed=seed))},
        tables={"any_box_slice": [asdict(found)]},
    )


def job_goodput(spec: ReliabilitySpec, server: Server, *, chip_count: int) -> Term:
    """Share of time that one job of this size keeps after failures, restarts and checkpoints."""
    return goodput_term(
        interval=job_interval(spec, server, chip_count=chip_count),
        write_s=spec.checkpoint_write_s,
        restart_s=spec.restart_s,
        mtbf=_mtbf(spec, server, chip_count=chip_count),
    )


def job_interval(spec: ReliabilitySpec, server: Server, *, chip_count: int) -> Term:
    """Time from one checkpoint of a job of this size to the next."""
    mtbf = _mtbf(spec, server, chip_count=chip_count)
    return checkpoint_interval_term(spec.checkpoint_interval_s, write_s=spec.checkpoint_write_s, mtbf=mtbf)


def _mtbf(spec: ReliabilitySpec, server: Server, *, chip_count: int) -> Term:
    return mtbf_term(
        server_count=servers_of(chip_count, server.chips_per_server),
        failures=spec.failures,
        own_ratio=spec.failures_per_thousand_node_days_ratio,
    )


def host_availability(spec: ReliabilitySpec) -> Term:
    """As the scenario gives it, or of its failure rate and its time to repair."""
    return host_availability_term(
        given_fraction=spec.host_availability_fraction,
        mttr_s=spec.mttr_s,
        failures=spec.failures,
        own_ratio=spec.failures_per_thousand_node_days_ratio,
    )


def _too_large(spec: ReliabilitySpec, whole: int) -> tuple[Message, ...]:
    if "slice_chips" not in spec.model_fields_set:
        return ()
    return (
        Message(
            code="reliability.slice_too_large",
            template="a slice of {slice_chips:,} chips is larger than the {whole:,} chips in whole units; its goodput "
            "is not computed",
            params={"slice_chips": spec.slice_chips, "whole": whole},
            path="reliability.slice_chips",
        ),
    )


def replica_hosts(replica_chip_count: int, server: Server) -> int:
    return max(1, math.ceil(replica_chip_count / max(1, server.chips_per_server)))
