"""Time per output token of served dense models against measurements (`data/endtoend_latency_agg.csv`).

A row is a closed loop of C requests of equal lengths. While one request decodes, each of the other C − 1
prompts is prefilled once per `osl` iterations, so

    TPOT = decode step(C, isl + osl/2) + (C − 1)/osl × marginal time of one prompt in a mixed batch

Rows at concurrency above 64 are left out: whether the KV cache held them all is not recorded. H100 rows of
fp8 weights do not say the KV format; 16 bit is what their slope over context shows.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from simcore.catalog import default_catalog
from simcore.compute.step_table import StepTimeTable, build_step_table
from simcore.fabric.collectives import collective_times_s, interconnect
from simcore.parallelism import Parallelism

CATALOG = default_catalog()
MAX_TOKENS = 4096
# model in the file, chip, dtype in the file, engine -> our model, chip, weights, KV, largest mean error
SETS = [
    (
        "meta-llama/Llama-3.1-70B",
        "h100_sxm",
        "fp8",
        "vllm",
        "llama-3.1-70b",
        "nvidia-h100-sxm",
        "fp8",
        "bf16",
    ),
    (
        "meta-llama/Llama-3.1-8B-Instruct",
        "h100_sxm",
        "",
        "trtllm",
        "llama-3.1-8b",
        "nvidia-h100-sxm",
        "bf16",
        "bf16",
    ),
    ("meta-llama/Llama-3.1-70B", "b200_sxm", "fp8", "vllm", "llama-3.1-70b", "nvidia-b200-sxm", "fp8", "fp8"),
    (
        "meta-llama/Llama-3.1-70B",
        "b200_sxm",
        "fp4",
        "vllm",
        "llama-3.1-70b",
        "nvidia-b200-sxm",
        "nvfp4",
        "fp8",
    ),
]


def table(model: str, chip: str, tp: int, weights: str, kv: str) -> StepTimeTable:
    arch, card = CATALOG.model(model), CATALOG.chip(chip)
    calibration = CATALOG.calibration_for(card)
    network = interconnect(card, CATALOG.server(card.default_server), calibration)
    payload = np.arange(MAX_TOKENS + 1, dtype=np.float64) * arch.hidden * 2
    once = collective_times_s("all_reduce", payload, tp, network) if tp > 1 else np.zeros_like(payload)
    return build_step_table(
        arch,
        card,
        calibration,
        Parallelism(tp=tp),
        weights_dtype=weights,
        kv_dtype=kv,
        max_tokens=MAX_TOKENS,
        max_sequences=256,
        communication_s=2 * arch.layers * once,
    )


def tpot_s(made: StepTimeTable, concurrency: int, isl: int, osl: int) -> float:
    context = isl + osl / 2
    step = made.linear_s[concurrency] + made.head_s[concurrency] + made.comm_s[concurrency] + made.overhead_s
    attention = context * made.decode_attention_s_per_token + made.decode_attention_s_per_sequence
    step += concurrency * (attention + made.overhead_s_per_sequence)
    marginal = np.diff((made.linear_s + made.comm_s)[[1024, 2048]])[0] / 1024
    prompt = isl * marginal + isl * isl / 2 * made.prefill_attention_s_per_token_context
    return float(step + (concurrency - 1) / osl * prompt)


@pytest.mark.parametrize("case", SETS, ids=lambda case: "-".join(case[4:7]))
def test_dense_tpot_is_within_ten_percent(case: tuple[str, ...], shared: Path) -> None:
    name, gpu, dtype, engine, model, chip, weights, kv = case
    tables: dict[int, StepTimeTable] = {}
    errors = []
    with (shared / "data" / "endtoend_latency_agg.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            same = (row["model"], row["gpu"], row["dtype"]) == (name, gpu, dtype)
            if not same or not row["framework"].startswith(engine) or not row["tp"]:
                continue
            tp, concurrency = int(float(row["tp"])), int(float(row["concurrency"]))
            if row["parallelism"] != f"tp{tp}" or concurrency > 64:
                continue
            made = tables.setdefault(tp, table(model, chip, tp, weights, kv))
            got = tpot_s(made, concurrency, int(float(row["isl"])), int(float(row["osl"])))
            errors.append(abs(got * 1e3 / float(row["tpot_ms"]) - 1))
    assert len(errors) >= 40
    assert np.mean(errors) <= 0.10
