"""Measured loops with prefill and decode apart, replayed: which rows can be planned, and what the engine says of each.

InferenceX drove them as it drives all its loops (`loop_rules.py`). `P2x(tp1,dp8,ep8)/D1x(tp8,dp1,ep8)` is two prefill
replicas of eight attention ranks and one decode replica of eight tensor ranks. What the recipes set beside that is not
recorded: the token budget of prefill is taken as the engine's in other loops, seats and the link as planned by
default, routing of experts as even, KV as fp8. Left out, with the reason: rows whose replica counts or concurrency
are not recorded, models and chips that the catalog lacks, weights that do not fit as the row says they were cut.

Sizes are therefore no target; `order.py` holds the *order* of the rows to one. Speculative decoding is marked nowhere,
but the fastest row of DeepSeek with replica counts takes 5.8 ms per token, and rows without them go down to 2.7.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from simcore.catalog import Catalog
from simcore.errors import InfeasibleError
from simcore.plan import plan
from simcore.plan.serving import lane_pool
from simcore.plan.types import ServingPlan
from simcore.scenario import Scenario
from simcore.serving.engine import Engine
from simcore.validation.loop_rules import AS_WRITTEN, LOOP_RULES, TOKEN_BUDGETS, LoopRules
from simcore.validation.serving_loops import LoopTimes, loop_requests, loop_times

_CUT: Final = re.compile(r"P(\d+)x\(tp(\d+),dp(\d+),ep(\d+)\)/D(\d+)x\(tp(\d+),dp(\d+),ep(\d+)\)")
_MODELS: Final[Mapping[str, str]] = {
    "deepseek-ai/DeepSeek-V3": "deepseek-v3",  # R1's rows are the same runs, without replica counts
    "moonshotai/Kimi-K2.5": "kimi-k2",  # its text model's shape is K2's
    "nvidia/Qwen3-32B-NVFP4": "qwen3-32b",
}
_CHIPS: Final[Mapping[str, str]] = {
    "b200_sxm": "nvidia-b200-sxm",
    "gb200": "nvidia-gb200",
    "gb300": "nvidia-gb300",
    "h100_sxm": "nvidia-h100-sxm",
    "h200_sxm": "nvidia-h200-sxm",
}
_ENGINES: Final[Mapping[str, str]] = {
    "trtllm": "TensorRT-LLM 1.2",
    "sglang": "SGLang 0.5",
    "vllm": "vLLM 0.18",
}
_FORMATS: Final[Mapping[str, str]] = {"fp4": "nvfp4", "fp8": "fp8"}
_ROOM_TOKENS: Final = 200  # of a request, beyond its lengths


@dataclass(frozen=True, slots=True, kw_only=True)
class ApartRow:
    """Means of one measured loop, and what served it."""

    model: str
    chip: str
    weights_dtype: str
    engine: str
    cut: tuple[int, ...]  # replicas, tp, dp, ep of prefill, then of decode
    input_tokens: int
    output_tokens: int
    concurrency: int
    ttft_s: float
    tpot_s: float
    rules: LoopRules = AS_WRITTEN

    @property
    def task(self) -> tuple[str, int, int]:
        return self.model, self.input_tokens, self.output_tokens

    @property
    def configuration(self) -> tuple[object, ...]:
        """All but how many users it served."""
        return *self.task, self.chip, self.weights_dtype, self.engine, self.cut


@dataclass(frozen=True, slots=True, kw_only=True)
class ApartRows:
    rows: tuple[ApartRow, ...]
    rejected: Mapping[str, int]  # reason -> rows


class _RejectedError(Exception):
    """Why a row is left out."""


def read_apart(path: Path) -> ApartRows:
    """The rows of a file that say enough to be planned."""
    found: list[ApartRow] = []
    rejected: Counter[str] = Counter()
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            try:
                found.append(_read(row))
            except _RejectedError as reason:
                rejected[str(reason)] += 1
    return ApartRows(rows=tuple(found), rejected=rejected)


def replayed(rows: Iterable[ApartRow], catalog: Catalog) -> dict[ApartRow, LoopTimes]:
    """Simulated times of each row that fits."""
    plans: dict[tuple[object, ...], ServingPlan | None] = {}
    found = {}
    for row in rows:
        if row.configuration not in plans:
            plans[row.configuration] = _planned(row, catalog)
        planned = plans[row.configuration]
        if planned is not None:
            found[row] = _loop(row, planned)
    return found


def _read(row: Mapping[str, str]) -> ApartRow:
    cut = _CUT.fullmatch(row["parallelism"])
    if cut is None:
        raise _RejectedError("replica counts not recorded")
    if not row["concurrency"]:
        raise _RejectedError("concurrency not recorded")
    model, chip = _MODELS.get(row["model"]), _CHIPS.get(row["gpu"])
    if model is None or chip is None:
        raise _RejectedError("a model or chip that the catalog lacks")
    return ApartRow(
        model=model,
        chip=chip,
        weights_dtype=_FORMATS[row["dtype"]],
        engine=_ENGINES[row["framework"].split()[0]],
        cut=tuple(map(int, cut.groups())),
        input_tokens=int(float(row["isl"])),
        output_tokens=int(float(row["osl"])),
        concurrency=int(float(row["concurrency"])),
        ttft_s=float(row["ttft_ms"]) * 1e-3,
        tpot_s=float(row["tpot_ms"]) * 1e-3,
        rules=LOOP_RULES.get(row["kind"], AS_WRITTEN),
    )


def _planned(row: ApartRow, catalog: Catalog) -> ServingPlan | None:
    """None: it does not fit."""
    prefill, decode = _side(row.cut[:4]), _side(row.cut[4:])
    budget = {"max_num_batched_tokens": TOKEN_BUDGETS[row.engine.split()[0]]}
    scenario = Scenario.parse(
        {
            "name": "closed loop",
            "hardware": {
                "chip": row.chip,
                "chip_count": _chip_count(row.cut[:4]) + _chip_count(row.cut[4:]),
            },
            "model": {"name": row.model},
            "workload": {"arrivals": {"kind": "closed_loop", "concurrency": 1}, "request_count": 1},
            "serving": {
                "engine": row.engine,
                "weights_dtype": row.weights_dtype,
                "kv": {"dtype": "fp8"},
                "max_model_len": row.input_tokens + row.output_tokens + _ROOM_TOKENS,
                "scheduler": {"kind": "disaggregated", "prefill": prefill | budget, "decode": decode},
            },
        }
    )
    try:
        return plan(scenario, catalog).serving
    except InfeasibleError:
        return None


def _side(cut: tuple[int, ...]) -> dict[str, Any]:
    replicas, tp, dp, ep = cut
    return {"replica_count": replicas, "parallelism": {"tp": tp, "dp": dp, "ep": ep}}


def _chip_count(cut: tuple[int, ...]) -> int:
    replicas, tp, dp, _ = cut
    return replicas * tp * dp


def _loop(row: ApartRow, planned: ServingPlan) -> LoopTimes:
    assert planned.prefill is not None, "the scenario serves apart"
    requests = loop_requests(
        concurrency=row.concurrency,
        input_tokens=row.input_tokens,
        output_tokens=row.output_tokens,
        rules=row.rules,
    )
    engine = Engine(
        [lane_pool(pool) for pool in planned.pools],
        block_size_tokens=planned.pool.kv.block_size_tokens,
        router=planned.inputs.spec.router,
        requests=requests,
        link=planned.prefill.link.link,
    )
    return loop_times(engine, requests, front_end_s=planned.front_end_s)
