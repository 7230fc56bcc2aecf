"""Measured steps of served dense models: what each row means, and what the step model says of it.

Two kinds of rows. *Closed loops* (`concurrency`, `isl`, `osl`, `ttft_ms`, `tpot_ms`), driven as `loop_rules.py`
says: with n seated sequences and mean lengths, each of the other n − 1 prompts is prefilled once while one decodes,

    TPOT = decode step(n, input + output/2) + (n − 1)/output × (marginal time of a prompt + host work of its iteration)

which fits are made of; comparisons simulate the loop (`serving_loops.py`), the first token's time included.
*Iterations* (`phase`, `batch`, `prompt_tokens`, `ctx_tokens_avg`, `measured_ms`): one step of an eager engine
of 2023. Left out, with the reason: rows whose format or concurrency is not recorded or whose batch the memory
cannot hold, experts and latent attention (speculative decoding is mixed in unmarked), power-capped chips,
plans other than plain tensor parallelism. Half of the rows are held out, by a hash of their sizes.
"""

from __future__ import annotations

import csv
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

import numpy as np

from simcore.catalog import Catalog
from simcore.catalog.parameters import kv_bytes_per_token, parameter_count
from simcore.catalog.types import BYTES_PER_ELEMENT, Calibration, Chip, LlmArchitecture
from simcore.compute.fit_rows import names_chip, open_rows
from simcore.compute.step_table import StepTimeTable, build_step_table
from simcore.fabric.collectives import collective_times_s, interconnect
from simcore.parallelism import Parallelism
from simcore.validation.loop_rules import AS_WRITTEN, LOOP_RULES, LoopRules

Phase = Literal["tpot", "ttft", "decode", "prefill"]
MOST_SEQUENCES: Final = 64  # whether the KV cache held more is not recorded
MOST_TOKENS: Final = 16384
HOLD_OUT_ONE_IN: Final = 2
USABLE_FRACTION: Final = 0.92  # of memory, for weights and KV of the engine of 2023
EAGER_ENGINE: Final = "vLLM 0.2"
GRAPH_ENGINE: Final = "vLLM 0.19"
# (chip's name in the file, weights in the file) -> (weights, KV): the KV format is what the slope over
# context shows; the 8B rows of TensorRT-LLM 1.0 record no format and read as 16 bit.
_FORMATS: Final[Mapping[tuple[str, str], tuple[str, str]]] = {
    ("h100_sxm", "fp8"): ("fp8", "bf16"),
    ("h100_sxm", ""): ("bf16", "bf16"),
    ("b200_sxm", "fp8"): ("fp8", "fp8"),
    ("b200_sxm", "fp4"): ("nvfp4", "fp8"),
}
_MODELS: Final[Mapping[str, str]] = {
    "meta-llama/Llama-3.1-70B": "llama-3.1-70b",
    "meta-llama/Llama-3.1-8B-Instruct": "llama-3.1-8b",
    "llama2-70b": "llama-2-70b",
    "bloom-176b": "bloom-176b",
}
_ENGINES: Final[Mapping[str, str]] = {"vllm": "vLLM", "trtllm": "TensorRT-LLM"}
# vLLM's blog of 2026-04-22: decode step of Llama-3.1-8B in 16 bit at batch 1, milliseconds per context token and
# at none; always among the fitted rows, as the only measured models of another depth.
DECODE_LAWS: Final[Mapping[tuple[str, str], tuple[float, float]]] = {
    ("nvidia-h100-sxm", "bf16"): (4.37e-5, 6.44),
    ("nvidia-h100-sxm", "fp8"): (2.37e-5, 6.58),
    ("nvidia-b200-sxm", "bf16"): (1.80e-5, 3.93),
    ("nvidia-b200-sxm", "fp8"): (9.72e-6, 3.96),
}
LAW_CONTEXTS: Final = (1000.0, 4000.0, 8000.0)
BLOOM: Final = LlmArchitecture(
    slug="bloom-176b",
    name="BLOOM-176B",
    layers=70,
    hidden=14336,
    heads=112,
    kv_heads=112,
    head_dim=128,
    intermediate=4 * 14336,
    vocab=250880,
    tied_embeddings=True,
    gated_mlp=False,
    attention_bias=True,
    output_bias=True,
    mlp_bias=True,
    norm_bias=True,
    max_position=8192,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRow:
    """One measured time of a served model, and the setting that it was measured in."""

    phase: Phase
    engine: str
    model: str
    tp: int
    weights_dtype: str
    kv_dtype: str
    batch_count: int  # sequences decoding together, or prompts of one prefill
    input_tokens: float
    output_tokens: float
    context_tokens: float
    measured_s: float
    rules: LoopRules = AS_WRITTEN
    is_always_fitted: bool = False

    @property
    def is_held_out(self) -> bool:
        if self.is_always_fitted:
            return False
        sizes = (self.engine, self.tp, self.batch_count, self.input_tokens, self.output_tokens)
        text = "/".join(map(str, (*sizes, self.context_tokens, self.weights_dtype)))
        return zlib.crc32(text.encode()) % HOLD_OUT_ONE_IN == 0

    @property
    def seated_count(self) -> int:
        """Sequences of the loop that the engine holds at once."""
        return max(1, self.batch_count - self.rules.users_without_seat_count)

    @property
    def lane(self) -> tuple[str, int, str, str]:
        return self.model, self.tp, self.weights_dtype, self.kv_dtype


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRows:
    rows: tuple[StepRow, ...]
    rejected: Mapping[str, int] = field(default_factory=dict)  # reason -> rows


class _RejectedError(Exception):
    """Why a row is left out."""


def holds_steps(columns: Iterable[str]) -> bool:
    """Whether a file with these columns holds steps rather than kernels."""
    present = set(columns)
    return {"model", "gpu", "tp"} <= present and bool({"tpot_ms", "phase"} & present)


def read_steps(paths: Iterable[Path], chip: Chip, catalog: Catalog) -> StepRows:
    """The rows of dense models on this chip."""
    found: list[StepRow] = []
    rejected: Counter[str] = Counter()
    for path in paths:
        with open_rows(path) as file:
            for row in csv.DictReader(file):
                try:
                    found += _steps(row, chip, catalog)
                except _RejectedError as reason:
                    rejected[str(reason)] += 1
    if any(row.engine == GRAPH_ENGINE for row in found):
        found += decode_law_rows(chip)
    return StepRows(rows=tuple(found), rejected=rejected)


def decode_law_rows(chip: Chip) -> list[StepRow]:
    """Points on the published lines of this chip."""
    return [
        StepRow(
            phase="decode",
            engine=GRAPH_ENGINE,
            model="llama-3.1-8b",
            tp=1,
            weights_dtype="bf16",
            kv_dtype=kv_dtype,
            batch_count=1,
            input_tokens=context,
            output_tokens=0.0,
            context_tokens=context,
            measured_s=(slope * context + intercept) * 1e-3,
            is_always_fitted=True,
        )
        for (slug, kv_dtype), (slope, intercept) in DECODE_LAWS.items()
        if slug == chip.slug
        for context in LAW_CONTEXTS
    ]


def _steps(row: Mapping[str, str], chip: Chip, catalog: Catalog) -> list[StepRow]:
    gpu = row["gpu"]
    if "pcap" in gpu:
        raise _RejectedError("a power-capped chip")
    if not names_chip(gpu, chip):
        raise _RejectedError("of another chip")
    model = _MODELS.get(row["model"])
    if model is None:
        raise _RejectedError("not a dense model that was checked")
    if "phase" in row:
        return [_iteration(row, model, chip, catalog)]
    return _closed_loop(row, model)


def _iteration(row: Mapping[str, str], model: str, chip: Chip, catalog: Catalog) -> StepRow:
    batch, prompt, context = int(row["batch"]), float(row["prompt_tokens"]), float(row["ctx_tokens_avg"])
    decodes, tp = row["phase"] == "decode", int(row["tp"])
    arch = architecture(model, catalog)
    kv_bytes = batch * context * kv_bytes_per_token(arch, "bf16").value / min(tp, arch.kv_heads)
    weights = parameter_count(arch).value * BYTES_PER_ELEMENT["bf16"] / tp
    if weights + kv_bytes > USABLE_FRACTION * chip.hbm_bytes:
        raise _RejectedError("the memory cannot hold this batch, so the engine ran a smaller one")
    if not decodes and batch * prompt > MOST_TOKENS:
        raise _RejectedError("a prefill longer than the table")
    return StepRow(
        phase="decode" if decodes else "prefill",
        engine=EAGER_ENGINE,
        model=model,
        tp=tp,
        weights_dtype="bf16",
        kv_dtype="bf16",
        batch_count=batch,
        input_tokens=prompt,
        output_tokens=0.0,
        context_tokens=context,
        measured_s=float(row["measured_ms"]) * 1e-3,
    )


def _closed_loop(row: Mapping[str, str], model: str) -> list[StepRow]:
    if not row["tp"] or row["parallelism"] != f"tp{int(float(row['tp']))}":
        raise _RejectedError("not plain tensor parallelism")
    formats = _FORMATS.get((row["gpu"], row["dtype"]))
    family = _ENGINES.get(row["framework"].split()[0])
    if formats is None or family is None or not row["concurrency"]:
        raise _RejectedError("format, engine or concurrency not recorded")
    concurrency = int(float(row["concurrency"]))
    if concurrency > MOST_SEQUENCES:
        raise _RejectedError("more sequences than the KV cache is known to have held")
    isl, osl = float(row["isl"]), float(row["osl"])
    found: list[StepRow] = []
    phases: tuple[tuple[Phase, str], ...] = (("tpot", "tpot_ms"), ("ttft", "ttft_ms"))
    for phase, column in phases:
        if row[column] and float(row[column]) > 0:
            found.append(
                StepRow(
                    phase=phase,
                    engine=f"{family} 1.0" if family == "TensorRT-LLM" else GRAPH_ENGINE,
                    model=model,
                    tp=int(float(row["tp"])),
                    weights_dtype=formats[0],
                    kv_dtype=formats[1],
                    batch_count=concurrency,
                    input_tokens=isl,
                    output_tokens=osl,
                    context_tokens=isl + osl / 2,
                    measured_s=float(row[column]) * 1e-3,
                    rules=LOOP_RULES.get(row.get("kind", ""), AS_WRITTEN),
                )
            )
    return found


def architecture(model: str, catalog: Catalog) -> LlmArchitecture:
    return BLOOM if model == BLOOM.slug else catalog.model(model)


def step_tables(
    rows: Iterable[StepRow], chip: Chip, calibration: Calibration, catalog: Catalog
) -> dict[tuple[str, tuple[str, int, str, str]], StepTimeTable]:
    """One table per engine and lane that the rows need."""
    return {
        (row.engine, row.lane): _table(row, chip, calibration, catalog)
        for row in {(row.engine, row.lane): row for row in rows}.values()
    }


def _table(row: StepRow, chip: Chip, calibration: Calibration, catalog: Catalog) -> StepTimeTable:
    arch = architecture(row.model, catalog)
    network = interconnect(chip, catalog.server(chip.default_server), calibration)
    payload = np.arange(MOST_TOKENS + 1, dtype=np.float64) * arch.hidden * 2
    once = collective_times_s("all_reduce", payload, row.tp, network)
    return build_step_table(
        arch,
        chip,
        calibration,
        Parallelism(tp=row.tp),
        weights_dtype=row.weights_dtype,
        kv_dtype=row.kv_dtype,
        max_tokens=MOST_TOKENS,
        max_sequences=256,
        communication_s=2 * arch.layers * once,
        engine=row.engine,
    )


def predicted_s(row: StepRow, table: StepTimeTable) -> float:
    """What the table says of a step, and in closed form of a loop's time per output token."""
    if row.phase == "prefill":
        return _prefill_s(table, row.batch_count, row.input_tokens)
    if row.phase == "decode":
        return _decode_s(table, row.batch_count, row.context_tokens)
    shown = row.input_tokens * row.rules.mean_input_fraction
    marginal = float(np.diff((table.linear_s + table.comm_s)[[1024, 2048]])[0]) / 1024
    prompt = shown * marginal + shown**2 / 2 * table.prefill_attention_s_per_token_context
    step = _decode_s(table, row.seated_count, shown + mean_output_tokens(row) / 2)
    return step + prompts_per_step(row) * (prompt + table.prefill_attention_s)


def mean_output_tokens(row: StepRow) -> float:
    return row.output_tokens * row.rules.mean_output_fraction


def prompts_per_step(row: StepRow) -> float:
    """Prompts of others that are prefilled in a step of a closed loop's request, in the mean."""
    return (row.seated_count - 1) / mean_output_tokens(row) if row.phase == "tpot" else 0.0


def _decode_s(table: StepTimeTable, batch: int, context: float) -> float:
    fixed = table.linear_s[batch] + table.head_s[batch] + table.comm_s[batch] + table.overhead_s
    attention = context * table.decode_attention_s_per_token + table.decode_attention_s_per_sequence
    return float(fixed + batch * (attention + table.overhead_s_per_sequence))


def _prefill_s(table: StepTimeTable, prompts: int, tokens: float) -> float:
    """Prompts prefilled whole, in steps of at most the table's length."""
    at = int(min(prompts * tokens, MOST_TOKENS))
    linear = float(table.linear_s[at] + table.comm_s[at]) * prompts * tokens / at
    work = prompts * tokens**2 / 2
    attention = work * table.prefill_attention_s_per_token_context
    host = table.overhead_s + table.prefill_attention_s + prompts * table.overhead_s_per_sequence
    return linear + float(table.head_s[prompts]) + attention + host
