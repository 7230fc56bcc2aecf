"""Measured closed loops replayed in the serving engine: mean time to first token and per output token.

One pool per engine, model, formats, ranks and longest request, planned as any scenario is (its own KV budget); the
loop is driven as the benchmark did (`loop_rules.py`), lengths drawn from a seed of its own. The mean is over all
requests, as the benchmarks have it, and holds the front end's time. A prompt that TensorRT-LLM let wait for company
waits for as many mean decode steps.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from simcore.catalog import Catalog
from simcore.catalog.types import Chip
from simcore.plan import plan
from simcore.plan.types import ServingPlan
from simcore.scenario import Scenario
from simcore.serving.engine import Engine
from simcore.serving.pools import LanePool
from simcore.validation.loop_rules import BATCH_WAIT_ITERATIONS, TOKEN_BUDGETS, LoopRules
from simcore.validation.step_rows import StepRow
from simcore.workload.requests import Requests

_SEATS: Final = 128
_ROOM_TOKENS: Final = 200  # of a request, beyond its lengths


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopTimes:
    """Means over the requests of one loop."""

    ttft_s: float
    tpot_s: float


def served(rows: Iterable[StepRow], chip: Chip, catalog: Catalog) -> dict[StepRow, float]:
    """The simulated counterpart of each `ttft` and `tpot` row."""
    loops: dict[StepRow, LoopTimes] = {}
    pools: dict[tuple[object, ...], ServingPlan] = {}
    found = {}
    for row in rows:
        setting = replace(row, phase="tpot", measured_s=0.0)
        if setting not in loops:
            lane = (row.engine, row.lane, _longest_tokens(row))
            if lane not in pools:
                pools[lane] = _planned(row, chip, catalog)
            loops[setting] = closed_loop(setting, pools[lane])
        times = loops[setting]
        found[row] = times.ttft_s if row.phase == "ttft" else times.tpot_s
    return found


def closed_loop(row: StepRow, planned: ServingPlan) -> LoopTimes:
    """Drive one loop to its end."""
    pool = planned.pool
    requests = loop_requests(
        concurrency=row.batch_count,
        input_tokens=row.input_tokens,
        output_tokens=row.output_tokens,
        rules=row.rules,
    )
    lane = LanePool(
        table=pool.step_table,
        scheduler=replace(pool.scheduler, max_num_seqs=row.seated_count),
        block_count=pool.kv.sequence_block_count,
        lane_count=1,
    )
    engine = Engine(
        [lane],
        block_size_tokens=pool.kv.block_size_tokens,
        router=planned.inputs.spec.router,
        requests=requests,
    )
    times = loop_times(engine, requests, front_end_s=pool.step_table.front_end_s)
    waits = BATCH_WAIT_ITERATIONS if _waits_for_company(row) else 0
    return replace(times, ttft_s=times.ttft_s + waits * times.tpot_s)


def loop_times(engine: Engine, requests: Requests, *, front_end_s: float) -> LoopTimes:
    """Run to the end, and take means over all requests."""
    engine.run()
    records = engine.records()
    spread_s = records.finish_s - records.first_token_s
    return LoopTimes(
        ttft_s=float(records.ttft_s.mean()) + front_end_s,
        tpot_s=float((spread_s / (requests.output_tokens - 1)).mean()),
    )


def loop_requests(
    *, concurrency: int, input_tokens: float, output_tokens: float, rules: LoopRules
) -> Requests:
    """All that the users of a loop ask, with lengths drawn from a seed of their own."""
    count = rules.requests_per_user_count * concurrency
    draws = np.random.default_rng(0)

    def lengths(nominal: float, fractions: tuple[float, float]) -> NDArray[np.int64]:
        low, high = (int(nominal * share) for share in fractions)
        return draws.integers(low, high + 1, count, dtype=np.int64)

    return Requests(
        arrival_s=np.zeros(count),
        input_tokens=lengths(input_tokens, rules.input_fractions),
        output_tokens=lengths(output_tokens, rules.output_fractions),
        concurrency=concurrency,
    )


def _waits_for_company(row: StepRow) -> bool:
    equal = row.input_tokens == row.output_tokens == 1024
    return row.rules.has_batch_wait and row.engine.startswith("TensorRT-LLM") and equal and row.tp < 8


def _longest_tokens(row: StepRow) -> int:
    longest = row.output_tokens * row.rules.output_fractions[1] + row.input_tokens
    return int(longest) + _ROOM_TOKENS


def _planned(row: StepRow, chip: Chip, catalog: Catalog) -> ServingPlan:
    scenario = Scenario.model_validate(
        {
            "name": "closed loop",
            "hardware": {"chip": chip.slug, "chip_count": row.tp},
            "model": {"name": row.model},
            "workload": {"arrivals": {"kind": "closed_loop", "concurrency": 1}, "request_count": 1},
            "serving": {
                "engine": row.engine,
                "parallelism": {"tp": row.tp},
                "weights_dtype": row.weights_dtype,
                "kv": {"dtype": row.kv_dtype},
                "max_model_len": _longest_tokens(row),
                "scheduler": {
                    "kind": "chunked_prefill",
                    "max_num_seqs": _SEATS,
                    "max_num_batched_tokens": TOKEN_BUDGETS[row.engine.split()[0]],
                },
            },
        }
    )
    serving = plan(scenario, catalog).serving
    assert serving is not None, "the scenario serves"
    return serving
