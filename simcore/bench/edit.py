"""`trimtab bench edit`: a typical what-if edit, from the scenario document to its result, warm.

Llama-3.1-8B on one H100, 1,024 → 256 tokens lognormal, offered load near 0.7 of capacity, 10,000 requests.
Each round changes the arrival rate a little, as a person would who drags a slider, so nothing is reused but
the catalog. Timed are the plan with its closed forms, the simulation after it, and the findings after that;
the median of twenty counts.
"""

from __future__ import annotations

import statistics
import time
from typing import Final

from simcore.analysis import analyse
from simcore.bench.serving import peak_rss_bytes
from simcore.plan import plan
from simcore.scenario import Scenario
from simcore.simulate import simulate

ROUNDS: Final = 20
REQUESTS: Final = 10_000
LOAD_RATIO: Final = 0.7


def run_edit() -> dict[str, float]:
    """Median seconds of plan, simulation and findings."""
    rate = _rate_at(LOAD_RATIO)
    planned_s: list[float] = []
    simulated_s: list[float] = []
    found_s: list[float] = []
    for turn in range(ROUNDS):
        begin = time.perf_counter()
        planned = plan(_scenario(rate * (1 + 0.001 * turn)))
        ready = time.perf_counter()
        result = simulate(planned)
        done = time.perf_counter()
        analyse(planned, result)
        found_s.append(time.perf_counter() - done)
        simulated_s.append(done - ready)
        planned_s.append(ready - begin)
    edit_s = [first + second for first, second in zip(planned_s, simulated_s, strict=True)]
    return {
        "requests": REQUESTS,
        "request_per_s": rate,
        "seconds": statistics.median(edit_s),
        "plan_seconds": statistics.median(planned_s),
        "simulation_seconds": statistics.median(simulated_s),
        "findings_seconds": statistics.median(found_s),
        "peak_rss_bytes": peak_rss_bytes(),
    }


def _rate_at(load_ratio: float) -> float:
    """The arrival rate at that share of capacity; running it warms the compiled code."""
    planned = plan(_scenario(1.0))
    analyse(planned, simulate(planned))
    assert planned.serving is not None, "the benchmark's scenario serves"
    return load_ratio * planned.serving.capacity.value


def _scenario(request_per_s: float) -> Scenario:
    return Scenario.parse(
        {
            "name": "edit benchmark",
            "hardware": {"chip": "nvidia-h100-sxm", "chip_count": 1},
            "model": {"name": "llama-3.1-8b"},
            "workload": {
                "arrivals": {"kind": "poisson", "request_per_s": request_per_s},
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
    )
