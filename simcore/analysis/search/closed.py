"""The closed-form half of a search: every candidate, the best, the frontier, or what is in the way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from simcore.analysis.search.candidates import Candidates, candidates
from simcore.analysis.search.choices import (
    Limits,
    Relaxation,
    best,
    by_chip,
    feasible,
    frontier,
    nearest,
    relaxations,
    thinned,
)
from simcore.analysis.search.lanes import Work
from simcore.analysis.search.space import sites
from simcore.analysis.search.spec import Search
from simcore.catalog import Catalog, default_catalog
from simcore.errors import InputError
from simcore.memory.engines import engine_constants
from simcore.plan import Traces
from simcore.plan.requests import requests_of
from simcore.plan.resolve import resolve_model
from simcore.scenario import Scenario
from simcore.serving.speculation import DraftModel

TIGHTENED: Final = (
    0.7,
    0.5,
    0.3,
)  # shares of the latency limits, for an SLO is of nearly all and not of the mean
FURTHER: Final = 8  # times `max_chips`, looked at where nothing is feasible
LARGEST_CUT: Final = 64  # chips of one replica
IDLE_LOAD: Final = 0.1
SHOWN: Final = 60  # points of the frontier


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What closed forms say; places are those of `candidates`."""

    scenario: Scenario
    search: Search
    candidates: Candidates
    limits: Limits
    feasible: NDArray[np.bool_]
    best: int | None
    frontier: NDArray[np.int64]
    by_chip: Mapping[str, int | None]
    relaxations: tuple[Relaxation, ...]  # the nearest first; none where something is feasible
    nearest: tuple[int, Mapping[str, float]] | None  # where no single limit is in the way

    @property
    def verified(self) -> list[int]:
        """The best first, then those under tightened limits, then an even choice of the frontier.

        Where nothing is feasible, what each relaxation would bring.
        """
        if self.best is None:
            return list(dict.fromkeys(one.place for one in self.relaxations))[: self.search.verified]
        places = [self.best, *(place for place in self._tightened() if place is not None)]
        room = max(0, self.search.verified - len(dict.fromkeys(places)))
        places += [int(place) for place in thinned(self.frontier, room)] if room else []
        return list(dict.fromkeys(places))[: self.search.verified]

    def _tightened(self) -> list[int | None]:
        found = []
        for share in TIGHTENED:
            limits = {
                name: limit * (share if name.endswith("_s") else 1.0) for name, limit in self.limits.items()
            }
            found.append(best(self.candidates, feasible(self.candidates, limits), self.search.objective))
        return found


def closed_forms(
    document: Mapping[str, Any],
    search: Search,
    *,
    catalog: Catalog | None = None,
    traces: Traces | None = None,
) -> Found:
    """Every candidate of a search. Raises InputError where the scenario does not serve, or has what is not searched."""
    catalog = catalog or default_catalog()
    scenario = Scenario.parse(document)
    work = _work(scenario, catalog, traces)
    limits = _limits(scenario, search)
    places = list(sites(scenario, search, catalog))
    found = candidates(places, search, work, max_chips=search.max_chips)
    kept = feasible(found, limits)
    if not kept.any() and _more_chips_may_help(found, search):
        found = candidates(places, search, work, max_chips=search.max_chips * FURTHER)
        kept = feasible(found, limits)
    chosen = best(found, kept, search.objective)
    moved = () if chosen is not None else tuple(relaxations(found, limits, search.objective))
    return Found(
        scenario=scenario,
        search=search,
        candidates=found,
        limits=limits,
        feasible=kept,
        best=chosen,
        frontier=thinned(frontier(found, kept), SHOWN),
        by_chip=by_chip(found, kept, search.objective, search.chips),
        relaxations=moved,
        nearest=None if chosen is not None or moved else nearest(found, limits),
    )


def _more_chips_may_help(found: Candidates, search: Search) -> bool:
    """Whether the chips may be what binds: not where the largest cuts were tried, and replicas that hardly work."""
    if search.max_chips < LARGEST_CUT or not len(found):
        return True
    return float(found.columns.load_ratio.min()) > IDLE_LOAD


def _limits(scenario: Scenario, search: Search) -> dict[str, float]:
    slo = scenario.workload.slo
    found = {
        "ttft_s": search.ttft_s or slo.ttft_s,
        "tpot_s": search.tpot_s or slo.tpot_s,
        "load_ratio": search.max_load_ratio,
        "chip_count": float(search.max_chips),
    }
    if scenario.workload.arrivals.kind == "closed_loop" and search.rate == "held":
        del found["load_ratio"]  # users who wait for their answers keep every replica full
    return found


def _work(scenario: Scenario, catalog: Catalog, traces: Traces | None) -> Work:
    _refuse(scenario)
    spec, arrivals = scenario.serving, scenario.workload.arrivals
    architecture, _ = resolve_model(scenario.model, catalog)
    trace = traces(arrivals) if traces is not None and arrivals.kind == "trace" else None
    draft = None
    if isinstance(spec.speculative, DraftModel):
        draft = catalog.model(spec.speculative.model, path="serving.speculative.model")
    return Work(
        architecture=architecture,
        engine=engine_constants(spec.engine),
        requests=requests_of(scenario, architecture.max_position, seed=scenario.run.seed, trace=trace),
        draft=draft,
        catalog=catalog,
    )


def _refuse(scenario: Scenario) -> None:
    if scenario.workload.kind != "serving":
        raise InputError.at(
            "workload.kind",
            "search.no_serving",
            "got {got}; a search is among configurations that serve, so set workload.kind to serving",
            got=scenario.workload.kind,
        )
    if scenario.serving.kv.allocator != "paged":
        raise InputError.at(
            "serving.kv.allocator",
            "search.pages",
            "got {got}; a search is among engines that hold KV in pages, so use paged",
            got=scenario.serving.kv.allocator,
        )
