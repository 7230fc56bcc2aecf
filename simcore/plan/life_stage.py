"""What a cluster's life adds to a result: means over its replications, and comparisons on the failures of the first.

Each replication is a life of its own seed, which follows from the scenario's as for serving. With two or more, the
headline numbers stand with a 95 % interval by Student's t. The picture over time and the events are the first life's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from simcore.glossary import statistic
from simcore.plan.types import Plan
from simcore.reliability.cluster_life import Life
from simcore.reliability.life_inputs import (
    LifeInputs,
    event_columns,
    life_metrics,
    life_series,
    time_rows,
)
from simcore.serving.intervals import LEVEL_FRACTION, mean_interval, mean_metrics, shared_numbers
from simcore.streams import stream
from simcore.why import Term, simulated


@dataclass(frozen=True, slots=True, kw_only=True)
class Lived:
    """Parts of a Result."""

    metrics: Mapping[str, float | int | str]
    bands: Mapping[str, Mapping[str, Any]]
    series: Mapping[str, Mapping[str, Any]]
    tables: Mapping[str, Any]
    why: Mapping[str, Term]


def lived(plan: Plan) -> Lived | None:
    """Run the lives of a plan; None where it has none."""
    inputs = plan.life
    if inputs is None:
        return None
    lives = [inputs.life(seed) for seed in _seeds(plan)]
    first = lives[0]
    runs = [life_metrics(life, is_queued=inputs.is_queued, rewires=inputs.rewires) for life in lives]
    metrics = mean_metrics(runs)
    return Lived(
        metrics=metrics,
        bands=_bands(runs),
        series={
            "life": life_series(first, inputs.chips_per_unit),
            "life_events": event_columns(inputs, first),
        },
        tables=_tables(inputs, lives, plan.seed),
        why={
            name: simulated(
                float(value), name, statistic=statistic(name) or "mean", count=len(lives), seed=plan.seed
            )
            for name, value in metrics.items()
            if not isinstance(value, str)
        },
    )


def _seeds(plan: Plan) -> list[int]:
    further = range(1, plan.scenario.run.replications)
    return [
        plan.seed,
        *(int(stream(plan.seed, "replication", place).integers(2**63)) for place in further),
    ]


def _tables(inputs: LifeInputs, lives: Sequence[Life], seed: int) -> dict[str, Any]:
    found = {
        "life_time": time_rows(lives),
        "life_spares": inputs.spare_rows(seed),
        "life_scopes": inputs.scope_rows(seed),
        "life_allocations": inputs.allocation_rows(seed),
    }
    return {name: rows for name, rows in found.items() if rows}


def _bands(runs: Sequence[Mapping[str, float | int | str]]) -> dict[str, dict[str, Any]]:
    if len(runs) < 2:
        return {}
    intervals = {
        name: mean_interval(np.array([float(run[name]) for run in runs])) for name in shared_numbers(runs)
    }
    return {
        name: {"low": one.low, "high": one.high, "level": LEVEL_FRACTION, "basis": "replications"}
        for name, one in intervals.items()
    }
