"""`trimtab bench plan`: a scenario document to its plan with all closed forms, warm.

Llama-3.1-70B on 64 H100 in sixteen replicas: budget, step-time tables, operating point, fabric, collectives,
reliability and cost. Each round changes the arrival rate a little, so nothing is reused but the catalog. The
median of twenty counts.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any, Final

from simcore.bench.serving import peak_rss_bytes
from simcore.plan import plan
from simcore.scenario import Scenario

ROUNDS: Final = 20
TARGET_S: Final = 0.015


def run_plan() -> dict[str, float]:
    """Median seconds from document to plan, of a serving and of a training scenario."""
    measured = {
        "seconds": _median_s(_serving),
        "training_seconds": _median_s(_training),
        "target_seconds": TARGET_S,
    }
    return {**measured, "peak_rss_bytes": peak_rss_bytes()}


def _median_s(document: Callable[[int], dict[str, Any]]) -> float:
    plan(Scenario.parse(document(0)))
    taken_s = []
    for turn in range(ROUNDS):
        begin = time.perf_counter()
        plan(Scenario.parse(document(turn)))
        taken_s.append(time.perf_counter() - begin)
    return statistics.median(taken_s)


def _serving(turn: int) -> dict[str, Any]:
    return {
        "name": "plan benchmark",
        "hardware": {"chip": "nvidia-h100-sxm", "chip_count": 64},
        "model": {"name": "llama-3.1-70b"},
        "workload": {"arrivals": {"kind": "poisson", "request_per_s": 8 + 0.01 * turn}},
        "serving": {"parallelism": {"tp": 4}, "replica_count": 16},
    }


def _training(turn: int) -> dict[str, Any]:
    return {
        "name": "plan benchmark, training",
        "hardware": {"chip": "nvidia-h100-sxm", "chip_count": 64},
        "model": {"name": "llama-3.1-70b"},
        "workload": {"kind": "training"},
        "training": {
            "parallelism": {"tp": 8, "pp": 4, "dp": 2},
            "global_batch_tokens": 1_048_576 + 8192 * 2 * turn,
        },
    }
