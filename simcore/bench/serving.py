"""`trimtab bench serving`: the engine with every metric on, against the bare loop, in one run.

The work: Llama-3.1-8B in bf16 on one H100, chunked prefill, 100,000 requests of 512 → 128 tokens, Poisson at
8 per second, 128 seats, a budget of 512 tokens. Timed is everything from the drawn requests to the metrics:
laying out the state, the kernel with its series in slices, records, totals and statistics. Engine and bare
loop take turns; the best of five of each counts, since other work on the machine only ever adds time.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from simcore.bench.bare_loop import BareStep, bare_loop
from simcore.plan import Plan, ServingPlan, plan
from simcore.plan.serving import lane_block_count, lane_pool
from simcore.scenario import Scenario
from simcore.serving.engine import Engine
from simcore.serving.metrics import PoolUse, ServingMetrics, serving_metrics
from simcore.serving.records import Totals

REQUESTS: Final = 100_000
ROUNDS: Final = 5
_WARM_REQUESTS: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    totals: Totals
    metrics: ServingMetrics


def scenario(request_count: int, *, replicas: int = 1, router: str = "round_robin") -> Scenario:
    """The benchmark's work as a scenario document; each replica has one chip and its own 8 requests per second."""
    return Scenario.parse(
        {
            "name": "serving benchmark",
            "hardware": {"chip": "nvidia-h100-sxm", "chip_count": replicas},
            "model": {"name": "llama-3.1-8b"},
            "workload": {
                "arrivals": {"kind": "poisson", "request_per_s": 8 * replicas},
                "lengths": {"kind": "constant", "input_tokens": 512, "output_tokens": 128},
                "request_count": request_count,
            },
            "serving": {
                "parallelism": {"tp": 1},
                "replica_count": replicas,
                "scheduler": {"kind": "chunked_prefill", "max_num_seqs": 128, "max_num_batched_tokens": 512},
                "router": {"kind": router},
            },
        }
    )


def run_serving() -> dict[str, float]:
    """Rates, seconds, memory and the ratio to the bare loop."""
    engine_run(plan(scenario(_WARM_REQUESTS)))
    planned = plan(scenario(REQUESTS))
    bare_run(planned)
    return beside_the_bare_loop(planned, request_count=REQUESTS, rounds=ROUNDS)


def beside_the_bare_loop(
    planned: Plan, *, request_count: int, rounds: int, bare: Plan | None = None
) -> dict[str, float]:
    """Best of some rounds, engine and bare loop in turn; the bare loop may serve as another plan says."""
    engine_s: list[float] = []
    bare_s: list[float] = []
    for _ in range(rounds):
        bare_s.append(timed(lambda: bare_run(bare or planned)))
        engine_s.append(timed(lambda: engine_run(planned)))
    iterations, seconds = engine_run(planned).totals.iteration_count, min(engine_s)
    return {
        "requests": request_count,
        "iterations": iterations,
        "requests_per_s": request_count / seconds,
        "iterations_per_s": iterations / seconds,
        "seconds": seconds,
        "bare_loop_seconds": min(bare_s),
        "ratio_to_bare_loop": seconds / min(bare_s),
        "peak_rss_bytes": peak_rss_bytes(),
    }


def peak_rss_bytes() -> int:
    """The most memory that this process has held (Linux counts in KiB, macOS in bytes)."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def timed(work: Callable[[], object]) -> float:
    """Seconds that some work takes."""
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def _serving(planned: Plan) -> ServingPlan:
    assert planned.serving is not None, "the benchmark's scenario serves"
    return planned.serving


def engine_run(planned: Plan) -> Outcome:
    """From the drawn requests to the metrics."""
    serving = _serving(planned)
    engine = Engine(
        [lane_pool(pool) for pool in serving.pools],
        block_size_tokens=serving.pool.kv.block_size_tokens,
        router=serving.inputs.spec.router,
        requests=serving.inputs.requests,
        link=serving.prefill.link.link if serving.prefill is not None else None,
    )
    for _ in engine.slices():
        pass
    return Outcome(totals=engine.totals(), metrics=_metrics(planned, engine))


def _metrics(planned: Plan, engine: Engine) -> ServingMetrics:
    slo, serving = planned.scenario.workload.slo, _serving(planned)
    uses = [
        PoolUse(
            totals=totals,
            table=pool.step_table,
            chips_per_lane=1,
            peak_flop_per_s=pool.chip.bf16_flop_per_s,
            hbm_bytes_per_s=pool.chip.hbm_bytes_per_s,
        )
        for pool, totals in zip(serving.pools, engine.pool_totals(), strict=True)
    ]
    return serving_metrics(
        engine.records(),
        uses,
        slo_ttft_s=slo.ttft_s,
        slo_tpot_s=slo.tpot_s,
        capacity_request_per_s=serving.capacity.value,
        closed_loop=False,
        chip_count=planned.fabric.chip_count,
    )


def bare_run(planned: Plan) -> None:
    """The bare loop on each replica's share of the requests, dealt out in turn."""
    serving = _serving(planned)
    requests, pool = serving.inputs.requests, serving.pool
    for lane in range(pool.lane_count):
        dealt = slice(lane, None, pool.lane_count)
        bare_loop(
            np.ascontiguousarray(requests.arrival_s[dealt]),
            np.ascontiguousarray(requests.input_tokens[dealt]),
            np.ascontiguousarray(requests.output_tokens[dealt]),
            pool.scheduler.max_num_batched_tokens,
            pool.scheduler.max_num_seqs,
            lane_block_count(pool.kv, pool.parallelism),
            pool.kv.block_size_tokens,
            BareStep().as_array(),
        )
