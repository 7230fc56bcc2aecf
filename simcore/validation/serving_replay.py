"""Real vLLM runs replayed: same arrivals, same lengths, in our engine with their KV blocks and then with ours.

Two runs of LLMServingSim's `bench` (300 ShareGPT requests at 10/s each, lengths pinned, prompts given as tokens in
the same process, so without a front end): Llama-3.1-8B on one RTX 4090, whose KV cache is full all the time, and
Qwen3-30B-A3B on two RTX PRO 6000 as two data-parallel engines that share the experts. Neither card had served steps
in any fit; products and attention of vLLM were measured on both. Requests and series are read from the files.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np

from simcore.catalog import Catalog
from simcore.catalog.types import Calibration, Chip, LlmArchitecture
from simcore.compute.operator_time import operator_paces, operator_time
from simcore.compute.ops import layer_operators
from simcore.compute.step_table import StepTimeTable, build_step_table
from simcore.fabric.collectives import Operation, collective_times_s, interconnect
from simcore.memory.budget import kv_budget
from simcore.memory.engines import engine_constants
from simcore.parallelism import Parallelism
from simcore.serving.engine import Engine
from simcore.serving.pools import LanePool
from simcore.serving.records import Floats
from simcore.serving.routers.round_robin import RoundRobin
from simcore.serving.schedulers import SchedulerParameters
from simcore.workload.requests import Requests

REQUESTS_FILE: Final = "requests_vllm_groundtruth.csv"
SERIES_FILE: Final = "timeseries_vllm_groundtruth.csv"
_ALONE: Final = Parallelism(tp=1)
EXCHANGES: Final[tuple[Operation, ...]] = ("all_gather", "reduce_scatter")


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """How one run was served; `block_count` is of one engine, as vLLM reported it."""

    gpu: str  # in the files
    chip: str
    model: str
    engine: str
    engine_count: int
    block_count: int
    max_num_seqs: int
    max_num_batched_tokens: int
    max_model_len: int
    gpu_memory_utilization: float


RUNS: Final[Mapping[str, Run]] = {
    "llama-3.1-8b on rtx-4090": Run(
        gpu="RTX4090",
        chip="nvidia-rtx-4090",
        model="llama-3.1-8b",
        engine="vLLM 0.19",
        engine_count=1,
        block_count=2588,
        max_num_seqs=256,
        max_num_batched_tokens=2048,
        max_model_len=32_768,
        gpu_memory_utilization=0.9,
    ),
    "qwen3-30b-a3b on 2 rtx-pro-6000": Run(
        gpu="RTXPRO6000",
        chip="nvidia-rtx-pro-6000",
        model="qwen3-30b-a3b",
        engine="vLLM 0.26",
        engine_count=2,
        block_count=37_819,
        max_num_seqs=128,
        max_num_batched_tokens=2048,
        max_model_len=262_144,
        gpu_memory_utilization=0.92,
    ),
}


# Relative errors of means and 90th percentiles; what misses them by run, with our own KV blocks or not, and metric.
TARGETS: Final[Mapping[str, float]] = {
    "tpot_s.mean": 0.05,
    "tpot_s.p90": 0.20,
    "ttft_s.mean": 0.15,
    "ttft_s.p90": 0.20,
}
_OWN_CACHE: Final = (
    "the budget expects 2,794 blocks where vLLM had 2,588: 0.4 GiB of 24 are not explained, 8 % of the cache and the "
    "batch that it bounds"
)
_KNEE: Final = (
    "steps of 256 sequences are 9 % too fast (the exchange of tokens over PCIe was not measured), and only requests "
    "that find all 256 seats taken wait: a queue of few seconds, which the step's error moves by more"
)
KNOWN_DEVIATIONS: Final[Mapping[tuple[str, bool, str], str]] = {
    ("llama-3.1-8b on rtx-4090", True, "tpot_s.mean"): _OWN_CACHE,
    ("llama-3.1-8b on rtx-4090", True, "tpot_s.p90"): _OWN_CACHE,
} | {
    ("qwen3-30b-a3b on 2 rtx-pro-6000", own, metric): _KNEE
    for own in (False, True)
    for metric in ("tpot_s.mean", "ttft_s.mean", "ttft_s.p90")
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """Aligned by request, and the queue over time."""

    requests: Requests
    ttft_s: Floats
    tpot_s: Floats
    time_s: Floats
    running: Floats
    waiting: Floats
    block_count: int  # of one engine


def measured(run: Run, folder: Path) -> Served:
    """What the real engine did."""
    requests = _rows(folder / REQUESTS_FILE, run.gpu)
    series = _rows(folder / SERIES_FILE, run.gpu)

    def column(rows: list[dict[str, str]], name: str) -> Floats:
        return np.array([float(row[name]) for row in rows])

    return Served(
        requests=Requests(
            arrival_s=column(requests, "arrival_s"),
            input_tokens=column(requests, "input_tokens").astype(np.int64),
            output_tokens=column(requests, "output_tokens").astype(np.int64),
        ),
        ttft_s=column(requests, "ttft_ms") * 1e-3,
        tpot_s=column(requests, "tpot_ms") * 1e-3,
        time_s=column(series, "t"),
        running=column(series, "running"),
        waiting=column(series, "waiting"),
        block_count=run.block_count,
    )


def _rows(path: Path, gpu: str) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return [row for row in csv.DictReader(file) if row["gpu"] == gpu]


def replayed(run: Run, requests: Requests, catalog: Catalog, *, own_blocks: bool) -> Served:
    """What our engine does with the same requests; `own_blocks`: with the KV cache that the budget expects.

    Engines that share experts step together, so they are one lane with the seats, tokens and blocks of all."""
    chip, arch = catalog.chip(run.chip), catalog.model(run.model)
    budget = kv_budget(
        arch,
        chip,
        _ALONE,
        engine=engine_constants(run.engine),
        weights_dtype="bf16",
        kv_dtype="bf16",
        gpu_memory_utilization=run.gpu_memory_utilization,
        max_num_seqs=run.max_num_seqs,
        max_num_batched_tokens=run.max_num_batched_tokens,
        max_model_len=run.max_model_len,
    )
    blocks = budget.sequence_block_count if own_blocks else run.block_count
    lane = LanePool(
        table=_step_table(run, arch, chip, catalog),
        scheduler=SchedulerParameters(
            kind="chunked_prefill",
            max_num_seqs=run.max_num_seqs * run.engine_count,
            max_num_batched_tokens=run.max_num_batched_tokens * run.engine_count,
        ),
        block_count=blocks * run.engine_count,
        lane_count=1,
    )
    engine = Engine(
        [lane], block_size_tokens=budget.block_size_tokens, router=RoundRobin(), requests=requests
    )
    pieces = [piece.columns for piece in engine.slices(target_count=40)]
    records = engine.records()
    spread_s = records.finish_s - records.first_token_s
    time_s, running, waiting = (
        np.concatenate([piece[name] for piece in pieces]) for name in ("time_s", "running", "waiting")
    )
    return Served(
        requests=requests,
        ttft_s=records.ttft_s,
        tpot_s=spread_s / np.maximum(1, requests.output_tokens - 1),
        time_s=time_s,
        running=running,
        waiting=waiting,
        block_count=blocks,
    )


def _step_table(run: Run, arch: LlmArchitecture, chip: Chip, catalog: Catalog) -> StepTimeTable:
    """Steps of the engines together, by the tokens of all.

    They gather all tokens before an expert layer and scatter its sums after it; each chip has its share of the
    experts, and of the decoding sequences. A prompt is one engine's, and the others wait for it, so that products and
    attention of prompts are charged whole (those of decodes too: weights, not tokens, make their time)."""
    calibration, engines = catalog.calibration_for(chip), run.engine_count
    most = run.max_num_batched_tokens * engines
    tokens = np.arange(most + 1, dtype=np.float64)
    table = build_step_table(
        arch,
        chip,
        calibration,
        _ALONE,
        weights_dtype="bf16",
        kv_dtype="bf16",
        max_tokens=most,
        max_sequences=run.max_num_seqs * engines,
        communication_s=np.zeros_like(tokens),
        engine=run.engine,
    )
    if engines == 1:
        return table
    network = interconnect(chip, catalog.server(chip.default_server), calibration)
    payload = tokens * arch.hidden * 2
    exchange_s = np.zeros_like(tokens)
    for operation in EXCHANGES:
        exchange_s += arch.moe_layers * collective_times_s(operation, payload, engines, network)
    more_s = _experts_s(arch, chip, calibration, Parallelism(tp=engines, ep=engines), tokens)
    more_s -= _experts_s(arch, chip, calibration, _ALONE, tokens)
    return replace(
        table,
        linear_s=table.linear_s + more_s,
        comm_s=table.comm_s + exchange_s,
        decode_attention_s_per_token=table.decode_attention_s_per_token / engines,
        decode_attention_s_per_sequence=table.decode_attention_s_per_sequence / engines,
        overhead_s_per_sequence=table.overhead_s_per_sequence / engines,
    )


def _experts_s(
    arch: LlmArchitecture, chip: Chip, calibration: Calibration, parallelism: Parallelism, tokens: Floats
) -> Floats:
    """Expert layers of one chip for `tokens` of all chips that share them."""
    operators = layer_operators(arch, chip, parallelism, weights_dtype="bf16", kv_dtype="bf16")
    experts = [one for one in operators if one.operator_class == "moe"]
    paces = operator_paces(experts, chip, calibration)
    found = np.zeros_like(tokens)
    for one in experts:
        found += one.count.value * operator_time(one, tokens, paces[one.operator_class, one.dtype]).whole_s
    return found
