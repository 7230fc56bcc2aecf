"""`trimtab bench sweep`: a thousand scenarios of 10,000 requests each, on one process and on two.

Llama-3.1-8B on one H100, arrival rates from a tenth to the whole of capacity, 1,024 → 256 tokens lognormal: every cell
has arrivals and physics of its own, nothing is reused but the catalog. Speedup: seconds on one process ÷ seconds on two
that start for it, their start included. Growth: seconds per scenario of the thousand ÷ those of its first hundred, both
on one process; 1 where a long sweep slows nothing down.
"""

from __future__ import annotations

import time
from typing import Any, Final

from simcore.analysis.cells import Cell, evaluate, evaluate_in_processes
from simcore.bench.serving import peak_rss_bytes

CELLS: Final = 1_000
FIRST: Final = 100
REQUESTS: Final = 10_000
JOBS: Final = 2
TARGET_S: Final = 40.0
_HIGHEST_REQUEST_PER_S: Final = 20.0


def run_sweep() -> dict[str, float]:
    """Seconds of the sweep on one process and on two, and what that means per scenario."""
    cells = [
        Cell(index=place, overrides={"workload.arrivals.request_per_s": _rate(place)})
        for place in range(CELLS)
    ]
    list(evaluate(_document(), cells[:2]))  # compiles, or reads what is compiled
    begin = time.perf_counter()
    first_s = 0.0
    for result in evaluate(_document(), cells):
        if result.index == FIRST - 1:
            first_s = time.perf_counter() - begin
    alone_s = time.perf_counter() - begin
    begin = time.perf_counter()
    found = sum(1 for _ in evaluate_in_processes(_document(), cells, jobs=JOBS))
    together_s = time.perf_counter() - begin
    assert found == CELLS, "every cell has one result"
    return {
        "scenarios": CELLS,
        "requests_each": REQUESTS,
        "seconds_on_1": alone_s,
        "seconds_on_2": together_s,
        "target_seconds": TARGET_S,
        "speedup_ratio": alone_s / together_s,
        "seconds_per_scenario": alone_s / CELLS,
        "growth_ratio": (alone_s / CELLS) / (first_s / FIRST),
        "peak_rss_bytes": peak_rss_bytes(),
    }


def _rate(place: int) -> float:
    """Scattered over the range, so that the first hundred are as busy as the rest."""
    golden = 0.6180339887498949
    return _HIGHEST_REQUEST_PER_S * (0.1 + 0.9 * (place * golden % 1.0))


def _document() -> dict[str, Any]:
    return {
        "name": "sweep benchmark",
        "hardware": {"chip": "nvidia-h100-sxm", "chip_count": 1},
        "model": {"name": "llama-3.1-8b"},
        "workload": {
            "lengths": {
                "kind": "lognormal",
                "input_mean_tokens": 1024,
                "input_cv": 1.0,
                "output_mean_tokens": 256,
                "output_cv": 1.0,
            },
            "request_count": REQUESTS,
        },
        "serving": {"parallelism": {"tp": 1}, "replica_count": 1},
    }
