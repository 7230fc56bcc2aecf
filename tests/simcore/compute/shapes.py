"""A chip, a calibration and model shapes made by hand, so that these laws do not lean on catalog files."""

from __future__ import annotations

from simcore.catalog.types import Calibration, Chip, Efficiency, LlmArchitecture, Source, StepOverhead

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
    "latent": {
        "heads": 128,
        "kv_heads": 128,
        "kv_lora_rank": 512,
        "q_lora_rank": 1536,
        "qk_rope_head_dim": 64,
        "qk_nope_head_dim": 128,
        "v_head_dim": 128,
    },
    "window": {"window_layers": 16, "window_tokens": 1024},
    "plain_mlp": {"gated_mlp": False, "kv_heads": 32},
}


def make_calibration() -> Calibration:
    return Calibration(
        slug="chip",
        name="chip",
        gemm={"bf16": efficiency(0.784, 0.819, 3.9), "fp8": efficiency(0.54, 0.804, 13.4)},
        attention_prefill={"bf16": efficiency(0.554, 0.31, 12.8)},
        attention_decode={"bf16": efficiency(0.5, 0.956, 21.9), "fp8": efficiency(0.5, 0.903, 26.5)},
        collectives={},
        step_overhead=StepOverhead(
            per_iteration_s=0.25e-3, per_layer_s=22e-6, per_sequence_s=4e-6, mape_fraction=0.1, source=SOURCE
        ),
    )
