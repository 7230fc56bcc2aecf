"""Measured training runs as engine inputs: which row of which file, and how it was run.

Only what a source prints is taken from it; what it does not print (heads, micro-batches) is written here.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simcore.catalog import default_catalog
from simcore.training import TrainingInputs, training_step
from simcore.validation.training import gpt, run_inputs

MPT_SHAPES = {
    "MPT-125m": (12, 768, 12),
    "MPT-350m": (24, 1024, 16),
    "MPT-760m": (24, 1536, 12),
    "MPT-1b": (24, 2048, 16),
    "MPT-3b": (32, 2560, 20),
    "MPT-7b": (32, 4096, 32),
    "MPT-13b": (40, 5120, 40),
    "MPT-30b": (48, 7168, 56),
    "MPT-70b": (80, 8192, 64),
}
CHIPS = {
    "a100_40gb": "nvidia-a100-40gb-sxm",
    "a100_80gb": "nvidia-a100-80gb-sxm",
    "h100_80gb": "nvidia-h100-sxm",
    "h100": "nvidia-h100-sxm",
    "h200_sxm": "nvidia-h200-sxm",
    "b200": "nvidia-b200-sxm",
    "b300": "nvidia-b300-sxm",
    "gb200": "nvidia-gb200",
    "gb300": "nvidia-gb300",
}
BRIDGE_MODELS = {
    "LLAMA3_8B": "llama-3.1-8b",
    "LLAMA3_70B": "llama-3.1-70b",
    "LLAMA3.1_405B": "llama-3.1-405b",
    "Llama-3-8B": "llama-3.1-8b",
    "Llama-3-70B": "llama-3.1-70b",
    "Llama-3.1-405B": "llama-3.1-405b",
    "Qwen3_30B_a3B": "qwen3-30b-a3b",
    "Qwen3_235B_a22B": "qwen3-235b-a22b",
    "GPT OSS 120B": "gpt-oss-120b",
    "DeepSeekV3": "deepseek-v3",
}
BRIDGE_DTYPES = {
    "FP8": "fp8",
    "FP8-CS": "fp8",
    "fp8": "fp8",
    "MXFP8": "fp8_block",
    "NVFP4": "nvfp4",
    "BF16": "bf16",
}
MEGATRON = {  # layers, hidden, heads; stages, virtual stages, sequences; seconds with full and selective
    "22B": ((48, 6144, 64), (1, 1, 4, 4), (1.42, 1.10)),
    "175B": ((96, 12288, 96), (8, 3, 64, 1), (18.13, 13.75)),
    "530B": ((105, 20480, 128), (35, 3, 280, 1), (49.05, 37.83)),
    "1T": ((128, 25600, 160), (64, 1, 512, 1), (94.42, 71.49)),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRun:
    """A run with the step time that was seen."""

    name: str
    inputs: TrainingInputs
    step_s: float

    @property
    def predicted_s(self) -> float:
        return training_step(self.inputs).step_s.value

    @property
    def error(self) -> float:
        return self.predicted_s / self.step_s - 1.0


def megatron_runs() -> list[MeasuredRun]:
    """Korthikanti et al. 2022, table 5."""
    found = []
    for name, (shape, (pp, virtual, batch, micro), times) in MEGATRON.items():
        for recompute, seconds in zip(("full", "selective"), times, strict=True):
            inputs = run_inputs(
                gpt(*shape),
                "nvidia-a100-80gb-sxm",
                {"tp": 8, "pp": pp},
                batch=batch,
                length=2048,
                micro_batch_size=micro,
                virtual_stages=virtual,
                zero_stage=0,
                recompute=recompute,
                sequence_parallel=recompute == "selective",
                overlap={"dp": False},
                stack="megatron-lm-2022",
            )
            found.append(MeasuredRun(name=f"{name} {recompute}", inputs=inputs, step_s=seconds))
    return found


def vtrain_runs(data: Path) -> list[MeasuredRun]:
    """GPT-like models on 64 to 512 A100, all with full recomputation."""
    found = []
    for number, row in enumerate(_rows(data / "training_vtrain.csv")):
        values = list(row.values())
        batch, micro, hidden, heads, layers, length, tp, dp, pp = (int(float(v)) for v in values[2:11])
        inputs = run_inputs(
            gpt(layers, hidden, heads),
            "nvidia-a100-80gb-sxm",
            {"tp": tp, "pp": pp, "dp": dp},
            batch=batch,
            length=length,
            micro_batch_size=micro,
            zero_stage=0,
            recompute="full",
            sequence_parallel=False,
            overlap={"dp": False},
            stack="megatron-lm-2022",
        )
        found.append(MeasuredRun(name=f"vtrain {number}", inputs=inputs, step_s=float(values[11]) / 1e3))
    return found


def mlperf_runs(data: Path) -> list[MeasuredRun]:
    """Llama-3.1-405B of MLPerf training 5.0, FP8."""
    found = []
    for row in _rows(data / "training_mlperf_v5.0.csv"):
        if row["benchmark"] != "llama31_405b":
            continue
        chip = "nvidia-h200-sxm" if "H200" in row["gpu"] else "nvidia-h100-sxm"
        degrees = _degrees(row["parallelism"], int(row["count"]))
        inputs = run_inputs(
            default_catalog().model("llama-3.1-405b"),
            chip,
            degrees,
            batch=float(row["global_batch"]),
            length=int(float(row["seq"])),
            virtual_stages=_degree("VP", row["parallelism"]),
            recompute="none",
            overlap={"dp": True, "tp": True},
            dtype="fp8",
        )
        found.append(
            MeasuredRun(
                name=f"405B {row['count']} {chip}", inputs=inputs, step_s=float(row["train_step_s_median"])
            )
        )
    return found


def lora_runs(data: Path) -> list[MeasuredRun]:
    """Llama 2 70B with adapters of rank 16, MLPerf training 5.0, FP8, eight systems and more.

    Data parallel ranks follow from batch and accumulation. What is left is cut as NVIDIA's configurations are
    named (1x8x2xtp1pp1cp2, 8x8x1xtp4pp1cp2; tp2 cp2 between). Rows of H200 NVL are left out: no such chip.
    """
    chips = {"H200-SXM5": "nvidia-h200-sxm", "H100-SXM5": "nvidia-h100-sxm"}
    chips |= {"MI300X": "amd-mi300x", "MI325X": "amd-mi325x"}
    found = []
    for row in _rows(data / "training_mlperf_v5.0.csv"):
        chip = next((slug for name, slug in chips.items() if name in row["gpu"]), None)
        if row["benchmark"] != "llama2_70b_lora" or chip is None:
            continue
        batch, count = int(row["global_batch"]), int(row["count"])
        dp = batch // int(float(row["grad_accum"]))
        tp, cp = {1: (1, 1), 2: (1, 2), 4: (2, 2), 8: (4, 2)}[count // dp]
        inputs = run_inputs(
            default_catalog().model("llama-2-70b"),
            chip,
            {"tp": tp, "cp": cp, "dp": dp},
            batch=batch,
            length=8192,
            recompute="none",
            overlap={"dp": True, "tp": True},
            dtype="fp8",
            lora={"rank": 16},
        )
        seconds = batch / float(row["throughput_samples_s_median"])
        found.append(MeasuredRun(name=f"LoRA {row['org']} {chip}×{count}", inputs=inputs, step_s=seconds))
    return found


TPU_MODELS = {
    "Llama2-70B": ("llama-2-70b", 4096),
    "Llama3.1-405B": ("llama-3.1-405b", 8192),
    "Llama3.1-70B": ("llama-3.1-70b", 8192),
    "Llama3.1-8B": ("llama-3.1-8b", 8192),
    "Mistral-7B": ("mistral-7b", 8192),
    "Mixtral-8x22B": ("mixtral-8x22b", 4096),
    "Mixtral-8x7B": ("mixtral-8x7b", 4096),
    "Gemma3-12B": ("gemma-3-12b", 8192),
    "GPT3-175B": ("", 2048),
}


def tpu_runs(data: Path) -> list[MeasuredRun]:
    """MaxText on TPU v6e (tpu-recipes, Trillium): weights sharded over all chips, layers computed again.

    The rows print neither batch nor length: lengths are the recipes', a chip's batch is tokens of a step ÷ length.
    """
    found = []
    for row in _rows(data / "training.csv"):
        if "tpu-recipes" not in row["source"]:
            continue
        slug, length = TPU_MODELS[row["model"]]
        arch = default_catalog().model(slug) if slug else gpt(96, 12288, 96, vocab=50_304)
        count, seconds = int(float(row["count"])), float(row["step_s"])
        each = round(float(row["tokens_s_gpu"]) * seconds / length)
        inputs = run_inputs(
            arch,
            "tpu-v6e",
            {"tp": 1, "dp": count},
            batch=each * count,
            length=length,
            micro_batch_size=each,
            zero_stage=3,
            recompute="full",
            dtype="bf16" if row["precision"] == "bfloat16" else "fp8",
        )
        found.append(MeasuredRun(name=f"{row['model']} v6e×{count}", inputs=inputs, step_s=seconds))
    return found


def foundry_runs(data: Path) -> list[MeasuredRun]:
    """MPT models under FSDP (llm-foundry's tables), from 125 million to 70 billion parameters."""
    found = []
    for row in _rows(data / "training.csv"):
        if "llm-foundry" not in row["source"]:
            continue
        length, count = int(float(row["seq"])), int(float(row["count"]))
        layers, hidden, heads = MPT_SHAPES[row["model"]]
        inputs = run_inputs(
            gpt(layers, hidden, heads, vocab=50_368, positions=length),
            CHIPS[row["gpu"]],
            {"tp": 1, "pp": 1, "dp": count},
            batch=float(row["global_batch"]),
            length=length,
            micro_batch_size=int(float(row["micro_batch"])),
            zero_stage=3 if "FULL" in row["parallelism"] else 2,
            recompute="full" if row["act_ckpt"] == "True" else "none",
            dtype="fp8" if "fp8" in row["precision"] else "bf16",
            stack="fsdp-2023",
        )
        seconds = float(row["global_batch"]) * length / (count * float(row["tokens_s_gpu"]))
        name = f"{row['model']} {length} {count} {row['gpu']} {row['precision']}"
        found.append(MeasuredRun(name=name, inputs=inputs, step_s=seconds))
    return found


def bridge_runs(data: Path, *, moe: bool = False) -> list[MeasuredRun]:
    """Pre-training tables of Megatron-Bridge and Megatron-LM whose rows print degrees, batch and format."""
    found = []
    for row in _rows(data / "training.csv"):
        if not _is_bridge(row):
            continue
        arch = default_catalog().model(BRIDGE_MODELS[row["model"]])
        if arch.is_moe != moe:
            continue
        count = int(float(row["count"]))
        length, batch = int(float(row["seq"])), float(row["global_batch"])
        degrees = _degrees(row["parallelism"], count)
        inputs = run_inputs(
            arch,
            CHIPS[row["gpu"]],
            degrees,
            batch=batch,
            length=length,
            micro_batch_size=int(float(row["micro_batch"])),
            virtual_stages=_degree("VP", row["parallelism"]),
            zero_stage=3 if "FSDP" in row["parallelism"] else 1,
            recompute="none",
            dtype=BRIDGE_DTYPES[row["precision"]],
            **(recipe(row) if moe else {"overlap": {"dp": True, "tp": True}}),
        )
        seconds = batch * length / (count * float(row["tokens_s_gpu"]))
        name = f"{row['model']} {row['gpu']}×{count} {row['precision']} {row['parallelism']}"
        found.append(MeasuredRun(name=name, inputs=inputs, step_s=seconds))
    return found


def recipe(row: dict[str, str]) -> dict[str, Any]:
    """How a MoE row was run, as Megatron-Bridge's recipes of its release say (scripts/performance/configs).

    From 26.06 block-scaled Blackwell recipes fuse expert layers, capture whole iterations and overlap experts'
    exchange, but for B300's DeepSeek-V3 (as before) and GPT-OSS (no graph). Before, attention and router were
    captured where the recipe has a CUDA graph scope; rows without HybridEP or DeepEP exchange plainly.
    """
    model, gpu, stages = row["model"], row["gpu"], _degree("PP", row["parallelism"])
    small = row["micro_batch"] == "1.0"
    fused = release(row) >= 26.06 and gpu != "h100" and (model, gpu) != ("DeepSeekV3", "b300")
    oss, qwen_30b, qwen_235b = (model.startswith(name) for name in ("GPT", "Qwen3_30B", "Qwen3_235B"))
    first_b200 = qwen_30b and gpu == "b200" and small
    if fused:
        graphs = "none" if oss and gpu == "b300" else "full"
    elif (
        gpu == "h100"
        or (qwen_235b and gpu in ("b200", "b300"))
        or (oss and gpu in ("b200", "gb200"))
        or first_b200
        or (model, gpu, stages) == ("DeepSeekV3", "b200", 16)
    ):
        graphs = "none"
    else:
        graphs = "partial"
    plain = (
        (qwen_235b and gpu in ("b200", "b300", "h100"))
        or (oss and not fused)
        or first_b200
        or (qwen_30b and stages == 2)
    )
    hidden = (
        (fused and (oss or model == "DeepSeekV3"))
        or (model, gpu, stages) == ("DeepSeekV3", "b200", 8)
        or (gpu == "h100" and (qwen_235b or (qwen_30b and stages == 2)))
    )
    return {
        "stack": "megatron-core" if fused else "megatron-core-26.04",
        "cuda_graphs": graphs,
        "dispatcher": "all_to_all" if plain else "deduplicating",
        "overlap": {"dp": True, "tp": True, "ep": hidden},
        "multi_token_prediction": model == "DeepSeekV3",
    }


def release(row: dict[str, str]) -> float:
    """Container of a row, as year and month: 26.04 for 26.04 and 26.04.01."""
    found = re.search(r"\.md (\d\d\.\d\d)", row["source"])
    return float(found[1]) if found else 0.0


def ptd_runs(data: Path) -> list[MeasuredRun]:
    """Narayanan et al. 2021, table 1: weak scaling to 3,072 A100 (micro-batches by the paper's figures)."""
    heads = {
        2304: 24,
        3072: 32,
        4096: 32,
        6144: 48,
        8192: 64,
        10240: 80,
        12288: 96,
        16384: 128,
        20480: 128,
        25600: 160,
    }
    micro = {2304: 16, 3072: 16, 4096: 16, 6144: 8, 8192: 4, 10240: 2, 12288: 2}
    found = []
    for row in _rows(data / "training.csv"):
        if "2104.04473 Table 1" not in row["source"] + row["verified"]:
            continue
        tp, pp, dp, hidden, layers = (int(n) for n in re.findall(r"\d+", row["parallelism"]))
        batch, count = float(row["global_batch"]), int(float(row["count"]))
        flop = (
            96
            * batch
            * 2048
            * layers
            * hidden**2
            * (1 + 2048 / (6 * hidden) + 51_200 / (16 * layers * hidden))
        )
        inputs = run_inputs(
            gpt(layers, hidden, heads[hidden]),
            "nvidia-a100-80gb-sxm",
            {"tp": tp, "pp": pp, "dp": dp},
            batch=batch,
            length=2048,
            micro_batch_size=micro.get(hidden, 1),
            zero_stage=0,
            recompute="full",
            sequence_parallel=False,
            overlap={"dp": False},
            stack="megatron-lm-2022",
        )
        seconds = flop / (count * float(row["model_tflops_per_gpu"]) * 1e12)
        found.append(MeasuredRun(name=f"PTD-P {row['model']}", inputs=inputs, step_s=seconds))
    return found


def _is_bridge(row: dict[str, str]) -> bool:
    listed = "Megatron-Bridge" in row["source"] and "Pre-Training" in row["source"]
    listed = listed or "examples/llama" in row["source"]
    cut = re.fullmatch(r"((TP|PP|CP|VP|EP|FSDP)\d+|DP)( ((TP|PP|CP|VP|EP|FSDP)\d+))*", row["parallelism"])
    return bool(listed and cut and row["model"] in BRIDGE_MODELS and row["precision"] in BRIDGE_DTYPES)


def _degrees(text: str, count: int) -> dict[str, int]:
    tp, pp, cp, ep = (_degree(key, text) for key in ("TP", "PP", "CP", "EP"))
    return {"tp": tp, "pp": pp, "cp": cp, "ep": ep, "dp": count // (tp * pp * cp)}


def _degree(key: str, text: str) -> int:
    match = re.search(rf"\b{key}(\d+)", text)
    return int(match[1]) if match else 1


def _rows(path: Path) -> Iterator[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        yield from csv.DictReader(file)
