"""What a training stack does beside the arithmetic: its attention kernels, passes over memory, launches.

The chip's calibration knows isolated serving kernels. A stack says how its training kernels stand to those:
`gemm_ratio` by chip generation and format (what large products sustain under load), how attention is run,
how many bytes per token its norms and activations move over those of fused kernels, and which share of the
NIC its collectives reach. The constants were fitted on the rows that each stack's source names; all other
rows of the same files are held out (tests/simcore/training/). Limits: one constant set per stack and year;
no straggler model, so runs on thousands of chips that lose time to the slowest one read too fast.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

StackName = Literal["megatron-core", "megatron-core-26.04", "megatron-lm-2022", "fsdp-2023"]
Graphs = Literal["none", "partial", "full"]

# Grouped products of experts over one dense product at the same rate, and how often the experts' rows move through
# memory beside those products (permuted, quantised, activated): narrow formats are quantised as well.
EXPERT_GEMM_RATIO: Final = 0.82
PLAIN_EXPERT_PASSES: Final[Mapping[str, float]] = {"bf16": 6.2, "fp8": 8.5, "fp8_block": 8.5, "nvfp4": 8.5}
BIASED_EXPERT_RATIO: Final = 2.4  # passes of experts with biases and a clamp, which were not fused
# Dispatchers that send a token once to each rank take this share of a plain all-to-all's time per byte: they
# permute on the way.
DEDUPLICATED_RATIO: Final = 0.33
# Kernels of expert dispatch that hide behind another micro-batch's, as a share of those.
EXPERT_WINDOW_FRACTION: Final = 0.47
# What the host takes to launch one expert layer, forward and backward: its kernels wait for the routing's counts.
HOST_S_PER_EXPERT_LAYER: Final[Mapping[Graphs, float]] = {"none": 9.9e-3, "partial": 6.2e-3, "full": 0.0}
EXPERTS_SOURCE: Final = "fit of every second of Megatron-Bridge's 111 MoE rows, 2025-11 to 2026-08"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingStack:
    """Constants of one training stack."""

    name: str
    attention: Literal["flash", "naive"]
    has_dropout: bool  # keeps masks, as GPT-style models of 2022 did
    # rate of products by format (bf16, fp8 …) and time of "attention", over the calibrated kernels';
    # "<chip>:<key>" where a chip has its own; absent: 1
    ratios: Mapping[str, float] = field(default_factory=dict)
    attention_backward_ratio: float = 2.5  # flash: five products instead of two
    elementwise_ratio: float = 1.0  # bytes of norms and activations over those of fused kernels
    scaleout_fraction: float = 1.0  # share of a collective's expected network rate
    gradient_bytes: float = 2.0  # per parameter, on the wire
    held_gradient_bytes: float = 4.0  # per parameter, in memory
    interleaved_send_exposed_fraction: float = 0.5
    step_overhead_s: float = 0.05
    # expert layers, see experts.py
    expert_gemm_ratio: float = EXPERT_GEMM_RATIO
    expert_passes: Mapping[str, float] = field(default_factory=lambda: dict(PLAIN_EXPERT_PASSES))
    source: str = ""

    def passes_over_rows(self, dtype: str) -> float:
        """How often an expert layer's rows pass through memory, forward."""
        return self.expert_passes.get(dtype, self.expert_passes["bf16"])

    def ratio(self, chip_slug: str, key: str) -> float:
        """How training kernels stand to the chip's calibrated ones."""
        return self.ratios.get(f"{chip_slug}:{key}", self.ratios.get(key, 1.0))


# What sustained bf16 products of training reach on Hopper over isolated ones: fitted on MPT runs, used for both.
_HOPPER_BF16: Final = 0.77
# AMD's own LoRA results of MLPerf training 5.0, over the class default of a chip that was not measured.
_MI300X_FP8: Final = 0.55
_MI325X_FP8: Final = 0.80
# B200 and B300 are the dies of GB200 and GB300, whose rows were fitted; none of theirs were.
_MEGATRON_RATIOS: Final[Mapping[str, float]] = {
    "nvidia-h100-sxm:bf16": _HOPPER_BF16,
    "nvidia-h200-sxm:bf16": _HOPPER_BF16,
    "nvidia-h100-sxm:fp8": 0.88,
    "amd-mi300x:fp8": _MI300X_FP8,
    "amd-mi325x:fp8": _MI325X_FP8,
    **{
        f"nvidia-{chip}:{dtype}": ratio
        for chips, ratios in (
            (("gb200", "b200-sxm"), {"fp8": 1.13, "fp8_block": 0.87, "nvfp4": 1.12}),
            (("gb300", "b300-sxm"), {"fp8": 1.24, "fp8_block": 0.93, "nvfp4": 1.33}),
        )
        for chip in chips
        for dtype, ratio in ratios.items()
    },
}
_MEGATRON_SOURCE: Final = (
    "fit of Megatron-Bridge's Llama-3.1-405B rows, 2025-09 to 2026-08 (bf16: of MPT runs on H100; experts: of every "
    "second of its MoE rows)"
)

STACKS: Final[Mapping[StackName, TrainingStack]] = {
    "megatron-core": TrainingStack(
        name="Megatron-Core (NeMo, Megatron-Bridge) from 26.06",
        attention="flash",
        has_dropout=False,
        ratios=_MEGATRON_RATIOS,
        # block-scaled experts run as one kernel with their activation and quantisation
        expert_passes={**PLAIN_EXPERT_PASSES, "fp8_block": 2.8, "nvfp4": 2.8},
        source=_MEGATRON_SOURCE,
    ),
    "megatron-core-26.04": TrainingStack(
        name="Megatron-Core (NeMo, Megatron-Bridge) to 26.04",
        attention="flash",
        has_dropout=False,
        ratios=_MEGATRON_RATIOS,
        source=_MEGATRON_SOURCE,
    ),
    "megatron-lm-2022": TrainingStack(
        name="Megatron-LM of 2022",
        attention="naive",
        has_dropout=True,
        ratios={"bf16": 1.057},
        attention_backward_ratio=2.0,
        scaleout_fraction=0.433,
        gradient_bytes=4.0,
        source="fit of every second of vTrain's 55 runs on A100, 2026-11",
    ),
    "fsdp-2023": TrainingStack(
        name="PyTorch FSDP of 2023 (llm-foundry)",
        attention="flash",
        has_dropout=False,
        ratios={
            "nvidia-a100-40gb-sxm:bf16": 1.08,
            "nvidia-h100-sxm:bf16": _HOPPER_BF16,
            "attention": 1.5,  # Triton kernels of their time; on Hopper they ran no faster than on Ampere
            "nvidia-h100-sxm:attention": 3.1,
        },
        elementwise_ratio=1.9,
        source="fit of every fourth of llm-foundry's 174 MPT runs, 2026-11",
    ),
}
