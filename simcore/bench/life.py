"""`trimtab bench life`: a year of 4,096 chips, warm, with its failures drawn anew.

64 cubes of 16 hosts that fail at the rate of RSC-1 and are repaired as 99.5 % availability says; always full of
slices of 1,024 chips that optical switches join. The best of three years counts, each of its own seed.
"""

from __future__ import annotations

import time
from typing import Final

from simcore.bench.serving import peak_rss_bytes
from simcore.plan import plan
from simcore.scenario import Scenario

DAYS: Final = 365
ROUNDS: Final = 3
TARGET_S: Final = 2.0


def run_life() -> dict[str, float]:
    """Seconds for the year, and what came of it."""
    planned = plan(
        Scenario.parse(
            {
                "name": "life",
                "hardware": {"chip": "tpu-v4", "chip_count": 4096},
                "workload": {"kind": "none"},
                "reliability": {
                    "slice_chips": 1024,
                    "life": {"kind": "always_full", "duration_s": f"{DAYS} d"},
                },
            }
        )
    ).life
    assert planned is not None, "the scenario asks for a life"
    planned.life(0)
    taken_s, lives = [], []
    for seed in range(1, ROUNDS + 1):
        begin = time.perf_counter()
        lives.append(planned.life(seed))
        taken_s.append(time.perf_counter() - begin)
    best_s = min(taken_s)
    return {
        "days": DAYS,
        "seconds": best_s,
        "target_seconds": TARGET_S,
        "events_per_s": lives[-1].event_count / best_s,
        "failure_count": sum(life.failure_count for life in lives) / ROUNDS,
        "goodput_fraction": sum(life.goodput_fraction for life in lives) / ROUNDS,
        "peak_rss_bytes": peak_rss_bytes(),
    }
