"""A chip, a calibration and model shapes made by hand, so that these laws do not lean on catalog files."""

from __future__ import annotations

from dataclasses import replace

from simcore.catalog.kernels import DecodeKernel, ExpertKernel, GemmKernel, Kernels, PrefillKernel
from simcore.catalog.types import (
    Calibration,
    Chip,
    ContextGroup,
    Efficiency,
    LlmArchitecture,
    Matrix,
    Source,
    StepOverhead,
)

SOURCE = Source(title="made by hand for a test", kind="measured")


def efficiency(compute: float, memory: float, launch_us: float) -> Efficiency:
    return Efficiency(
        compute_fraction=compute,
        memory_fraction=memory,
        launch_s=launch_us * 1e-6,
        mape_fraction=0.06,
        p90_fraction=0.13,
        source=SOURCE,
    )


def make_chip(**changes: object) -> Chip:
    figures: dict[str, object] = {
        "slug": "chip",
        "name": "chip",
        "vendor": "maker",
        "year": 2022,
        "bf16_flop_per_s": 989e12,
        "fp8_flop_per_s": 1979e12,
        "hbm_bytes": 80e9,
        "hbm_visible_bytes": 79.19 * 2**30,
        "hbm_bytes_per_s": 3.35e12,
        "l2_bytes": 50e6,
        "sram_bytes_per_core": 228e3,
        "core_count": 132,
        "scaleup_bytes_per_s": 450e9,
        "tdp_w": 700.0,
        "default_server": "server",
    }
    return Chip(**(figures | changes))  # type: ignore[arg-type]


def make_architecture(**changes: object) -> LlmArchitecture:
    shape: dict[str, object] = {
        "slug": "llama-3.1-8b",
        "name": "Llama-3.1-8B",
        "layers": 32,
        "hidden": 4096,
        "heads": 32,
        "kv_heads": 8,
        "head_dim": 128,
        "intermediate": 14336,
        "vocab": 128256,
        "max_position": 131072,
    }
    return LlmArchitecture(**(shape | changes))  # type: ignore[arg-type]


LATENT = {
    "heads": 128,
    "kv_heads": 128,
    "kv_lora_rank": 512,
    "q_lora_rank": 1536,
    "qk_rope_head_dim": 64,
    "qk_nope_head_dim": 128,
    "v_head_dim": 128,
}
INDEXER = (
    Matrix(name="index_query", fan_in=1536, fan_out=64 * 128, layer_count=32, split="none"),
    Matrix(name="index_key", fan_in=4096, fan_out=128, layer_count=32, split="none"),
)
SHAPES = {
    "dense": {},
    "moe": {"experts": 128, "experts_per_token": 8, "moe_intermediate": 768},
    "shared": {
        "experts": 64,
        "experts_per_token": 6,
        "moe_intermediate": 1408,
        "shared_intermediate": 2816,
        "dense_layers": 1,
    },
    "latent": LATENT,
    "sparse": {
        **LATENT,
        "index_heads": 64,
        "index_head_dim": 128,
        "matrices": INDEXER,
        "context_groups": (
            ContextGroup(
                layer_count=32,
                cached_layer_count=32,
                topk_entries=2048,
                index_layer_count=32,
                index_cached_layer_count=32,
            ),
        ),
    },
    "compressed": {
        "kv_heads": 1,
        "head_dim": 512,
        "q_lora_rank": 1024,
        "output_groups": 8,
        "output_lora_rank": 1024,
        "kv_stored_once": True,
        "window_layers": 2,
        "window_tokens": 128,
        "index_heads": 64,
        "index_head_dim": 128,
        "context_groups": (
            ContextGroup(
                layer_count=15,
                cached_layer_count=15,
                ratio=4,
                topk_entries=512,
                index_layer_count=15,
                index_cached_layer_count=15,
                index_ratio=4,
            ),
            ContextGroup(layer_count=15, cached_layer_count=15, ratio=128),
        ),
    },
    "recurrent": {
        "attention_free_layers": 24,
        "recurrent_layers": 24,
        "recurrence": "gated_delta_net",
        "state_bytes_per_layer": 2**21,
        "recurrence_flop_per_token": 8 * 2**19,
        "matrices": (
            Matrix(name="delta_in", fan_in=4096, fan_out=12288, layer_count=24, group="recurrent"),
            Matrix(
                name="delta_out", fan_in=4096, fan_out=4096, layer_count=24, split="fan_in", group="recurrent"
            ),
        ),
    },
    "one_block_per_layer": {
        "attention_free_layers": 28,
        "mlp_free_layers": 18,
        "recurrent_layers": 14,
        "recurrence": "mamba2",
        "state_bytes_per_layer": 2**21,
        "recurrence_flop_per_token": 6 * 2**19,
        "gated_mlp": False,
        "norms_per_layer": 1,
        "matrices": (Matrix(name="mamba_in", fan_in=4096, fan_out=16384, layer_count=14, group="recurrent"),),
    },
    "window": {"window_layers": 16, "window_tokens": 1024},
    "two_shapes": {
        "window_layers": 24,
        "window_tokens": 1024,
        "window_kv_heads": 16,
        "window_head_dim": 128,
        "kv_heads": 4,
        "head_dim": 256,
        "value_from_key": True,
    },
    "plain_mlp": {"gated_mlp": False, "kv_heads": 32},
}


RECORD = {
    "fitted_rows": 100,
    "held_out_rows": 30,
    "fitted_mape_fraction": 0.05,
    "held_out_mape_fraction": 0.06,
    "held_out_median_fraction": 0.04,
    "source": SOURCE,
}
GEMM_KERNEL = GemmKernel(
    tile_rows=64,
    tile_columns=128,
    overlap_exponent=4,
    compute_fraction=0.8,
    memory_fraction=0.8,
    launch_s=4e-6,
    wave_fraction=0.5,
    prologue_count=100.0,
    resident_fraction=0.5,
    resident_speedup_ratio=2.0,
    **RECORD,
)
EXPERT_KERNEL = ExpertKernel(
    tile_rows=64,
    overlap_exponent=2,
    compute_fraction=0.4,
    memory_fraction=0.8,
    launch_s=3e-5,
    padding_fraction=0.5,
    passes_ratio=2.0,
    per_expert_s=1e-8,
    resident_speedup_ratio=2.0,
    **RECORD,
)
PREFILL_KERNEL = PrefillKernel(
    overlap_exponent=8,
    compute_fraction=0.6,
    memory_fraction=0.3,
    launch_s=1e-5,
    longest_ratio=1.0,
    per_block_s=1e-6,
    ramp_tokens=50.0,
    **RECORD,
)
DECODE_KERNEL = DecodeKernel(
    overlap_exponent=8,
    compute_fraction=0.3,
    memory_fraction=0.9,
    launch_s=1e-5,
    split_tokens=128.0,
    most_split_count=32.0,
    reduction_s=5e-6,
    reduction_tokens=500.0,
    per_head_s=1e-9,
    resident_fraction=0.5,
    resident_speedup_ratio=2.0,
    **RECORD,
)
KERNELS = Kernels(
    gemm={"bf16": GEMM_KERNEL, "fp8": replace(GEMM_KERNEL, launch_s=13e-6, compute_fraction=0.6)},
    experts={"bf16": EXPERT_KERNEL, "fp8": EXPERT_KERNEL},
    attention_prefill={"bf16": PREFILL_KERNEL},
    attention_decode={"bf16": DECODE_KERNEL, "fp8": DECODE_KERNEL},
)


OVERHEAD = StepOverhead(
    per_iteration_s=0.25e-3, per_layer_s=22e-6, per_sequence_s=4e-6, mape_fraction=0.1, source=SOURCE
)


def make_calibration(*, kernels: bool = False) -> Calibration:
    return Calibration(
        slug="chip",
        name="chip",
        gemm={"bf16": efficiency(0.784, 0.819, 3.9), "fp8": efficiency(0.54, 0.804, 13.4)},
        attention_prefill={"bf16": efficiency(0.554, 0.31, 12.8)},
        attention_decode={"bf16": efficiency(0.5, 0.956, 21.9), "fp8": efficiency(0.5, 0.903, 26.5)},
        collectives={},
        kernels=KERNELS if kernels else Kernels(),
        step_overhead=OVERHEAD,
        engine_overheads={
            "eager 1.0": replace(
                OVERHEAD, eager_per_layer_s=400e-6, per_prefill_layer_s=3e-4, per_request_s=20e-3
            ),
            "eager 2.0": OVERHEAD,
        },
    )
