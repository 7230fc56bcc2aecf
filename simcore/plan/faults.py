"""What one fault takes along and how hard it is to find, for the plan's fabric and servers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from simcore.catalog.types import Server
from simcore.fabric import Fabric
from simcore.plan.slices import unit_chips
from simcore.reliability import ReliabilitySpec
from simcore.reliability.blast_radius import blast_radius_term, exposure_rows, exposures, server_scale
from simcore.reliability.components import LLAMA_CAUSES
from simcore.reliability.failures import rate_term
from simcore.reliability.suspects import probe_count, suspect_rows, suspect_terms, suspects
from simcore.why import Term


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultPlan:
    """Terms by metric id, and the rows behind them."""

    terms: Mapping[str, Term]
    tables: Mapping[str, Any]


def plan_faults(spec: ReliabilitySpec, server: Server, fabric: Fabric) -> FaultPlan:
    scale = server_scale(rate_term(spec.failures, spec.failures_per_thousand_node_days_ratio))
    per_server = min(server.chips_per_server, fabric.chip_count)
    unit = min(unit_chips(server), fabric.chip_count)
    exposed = exposures(fabric, chips_per_server=per_server, unit_chips=unit, scale=scale)
    terms: dict[str, Term] = {"reliability.blast_radius_chip_count": blast_radius_term(exposed)}
    tables: dict[str, Any] = {
        "blast_radius": exposure_rows(exposed),
        "failure_causes": [
            {"name": cause.name, "count": cause.count, "part": cause.part} for cause in LLAMA_CAUSES
        ],
    }
    if fabric.hop_histogram:
        found = suspects(fabric, scale, chips_per_server=per_server)
        terms |= suspect_terms(found)
        expected = terms["reliability.expected_suspect_count"].value
        tables |= {"suspects": suspect_rows(found), "probes": [{"probe_count": probe_count(expected)}]}
    return FaultPlan(terms=terms, tables=tables)
