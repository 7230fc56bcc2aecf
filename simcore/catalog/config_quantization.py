"""The number format of a checkpoint's weights, from `quantization_config` or `hf_quant_config.json`.

Two formats come out: that of the experts (or of everything, in a dense model) and that of the other linear
layers where a mixture of experts keeps them wider. LM head, embeddings, norms and routers are at 16 bit
anyway. A cache that the checkpoint calibrated for fp8 is fp8, as engines' `auto` takes it. Limits: a dense
model with some modules left at 16 bit is counted as quantised, and says so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from simcore.catalog.config_reader import Config
from simcore.errors import Message

_FLOAT_DTYPES: Final = {"bfloat16": "bf16", "float16": "fp16", "half": "fp16", "float32": "bf16"}
_MOST_MODULES: Final = 20_000
_PROJECTIONS: Final = r"(q|k|v|o|qkv|q_a|q_b|kv_a|kv_b|in|out|o_a|o_b)_proj"
# modules by the patterns that ignore lists print: `…self_attn*`, `re:.*self_attn.*`, `…self_attn.q_proj`
_WIDE_MODULES: Final = {
    "attention": re.compile(rf"(attn|mixer)(\*|\.\*|$|\.{_PROJECTIONS})"),
    "shared experts": re.compile(r"shared_experts?(\*|\.|$)"),
    "dense MLPs": re.compile(r"mlp\*|mlp(\\)?\.(down_proj|\()|mlp\.\*"),
}


def weights_dtypes(
    config: Config,
    text: Config,
    quant_config: Config | None,
    path: str,
    messages: list[Message],
    *,
    moe: bool,
) -> tuple[str, str]:
    """(weights_dtype, linear_weights_dtype); the second is "" where one format holds for all."""
    stated = text.get("dtype") or text.get("torch_dtype") or config.get("dtype") or config.get("torch_dtype")
    plain = _FLOAT_DTYPES.get(str(stated), "bf16")
    found = _merged(config, text, quant_config)
    if not found:
        return plain, ""
    expert = _expert_format(found, config, text)
    dtype = expert or _format(found)
    if dtype is None:
        messages.append(
            Message(
                code="config.quantization_unknown",
                template="quantisation {method!r} is not understood; weights are taken as {dtype}",
                params={"method": str(found.get("quant_method"))[:60], "dtype": plain},
                path=f"{path}.quantization_config",
            )
        )
        return plain, ""
    kept = _kept_wide(found)
    if moe:
        linear = _linear_format(found, dtype, expert, kept)
        return dtype, "" if linear == dtype else linear
    if kept:
        messages.append(
            Message(
                code="config.quantization_partial",
                template="this checkpoint leaves {modules} at 16 bit; all weights are counted as {dtype}",
                params={"modules": ", ".join(kept), "dtype": dtype},
                path=f"{path}.quantization_config",
            )
        )
    return dtype, ""


def kv_dtype(
    config: Config, text: Config, quant_config: Config | None, path: str, messages: list[Message]
) -> str:
    """Format of the KV cache that a checkpoint states; "" where it states none or 16 bit."""
    found = _merged(config, text, quant_config)
    stated = found.get("kv_cache_quant_algo") or found.get("kv_cache_scheme")
    if not stated:
        return ""
    if isinstance(stated, Mapping):
        is_fp8 = stated.get("num_bits") == 8 and stated.get("type") == "float"
    else:
        is_fp8 = "FP8" in str(stated).upper()
    if not is_fp8:
        messages.append(
            Message(
                code="config.kv_unknown",
                template="a KV cache in {stated} is not modelled; it is taken as 16 bit",
                params={"stated": str(stated)[:60]},
                path=f"{path}.quantization_config",
            )
        )
    return "fp8" if is_fp8 else ""


def _merged(config: Config, text: Config, quant_config: Config | None) -> dict[str, Any]:
    inside = config.get("quantization_config") or text.get("quantization_config")
    beside = (quant_config or {}).get("quantization")
    parts = [part for part in (beside, inside) if isinstance(part, Mapping)]
    return {key: value for part in parts for key, value in part.items()}


def _format(found: Config) -> str | None:
    method = str(found.get("quant_method", "")).lower()
    algorithm = str(found.get("quant_algo", "")).upper()
    layout = str(found.get("format", "")).lower()
    bits = found.get("bits") or found.get("w_bit")
    if algorithm == "MIXED_PRECISION":
        return _most_common(found)
    if "NVFP4" in algorithm or "nvfp4" in layout:
        return "nvfp4"
    if method == "mxfp4" or "mxfp4" in layout or "MXFP4" in algorithm:
        return "mxfp4"
    if method == "fp8":
        return "fp8_block" if found.get("weight_block_size") else "fp8"
    if "FP8" in algorithm or layout == "float-quantized" or method in ("fbgemm_fp8", "finegrained_fp8"):
        return "fp8"
    if method in ("awq", "gptq", "auto-round", "gptq_marlin", "awq_marlin") and bits in (4, 8):
        return "int4" if bits == 4 else "int8"
    if method == "bitsandbytes":
        return "int4" if found.get("load_in_4bit") else "int8"
    return _by_groups(found, layout)


def _by_groups(found: Config, layout: str) -> str | None:
    """compressed-tensors and torchao print bits and type in their groups."""
    groups = found.get("config_groups")
    for group in list(groups.values())[:8] if isinstance(groups, Mapping) else []:
        weights = group.get("weights") if isinstance(group, Mapping) else None
        if not isinstance(weights, Mapping):
            continue
        bits, kind = weights.get("num_bits"), weights.get("type")
        if kind == "float":
            return {4: "nvfp4", 8: "fp8"}.get(bits) if isinstance(bits, int) else None
        return {4: "int4", 8: "int8"}.get(bits) if isinstance(bits, int) else None
    return {"pack-quantized": "int4", "int-quantized": "int8"}.get(layout)


def _modules(found: Config) -> list[tuple[str, str]]:
    """(module, format) of a mixed checkpoint."""
    layers = found.get("quantized_layers")
    if not isinstance(layers, Mapping):
        return []
    listed = []
    for name, entry in list(layers.items())[:_MOST_MODULES]:
        algorithm = str(entry.get("quant_algo", "")).upper() if isinstance(entry, Mapping) else ""
        if "FP4" in algorithm:
            listed.append((str(name), "nvfp4" if "NV" in algorithm else "mxfp4"))
        elif "FP8" in algorithm:
            listed.append((str(name), "fp8"))
    return listed


def _most_common(found: Config) -> str | None:
    """MLPs are the larger part of a model: their format stands for a mixed checkpoint."""
    mlps = [dtype for name, dtype in _modules(found) if "mlp" in name or "ffn" in name or "expert" in name]
    listed = mlps or [dtype for _, dtype in _modules(found)]
    return max(sorted(set(listed)), key=listed.count) if listed else None


def _expert_format(found: Config, config: Config, text: Config) -> str | None:
    """Where experts have a format of their own."""
    moe = str(found.get("moe_quant_algo", "")).upper()
    if "NVFP4" in moe:
        return "nvfp4"
    stated = found.get("expert_dtype") or text.get("expert_dtype") or config.get("expert_dtype")
    if stated == "fp4":
        return "mxfp4"
    routed = [dtype for name, dtype in _modules(found) if ".experts" in name]
    return max(sorted(set(routed)), key=routed.count) if routed else None


def _linear_format(found: Config, dtype: str, expert: str | None, kept: list[str]) -> str:
    """Format of attention and dense layers of a mixture of experts."""
    if str(found.get("quant_algo", "")).upper() == "MIXED_PRECISION":
        attention = [d for name, d in _modules(found) if "attn" in name or "mixer" in name]
        if attention:
            return max(sorted(set(attention)), key=attention.count)
        return "fp8_block" if found.get("weight_block_size") else "bf16"
    if dtype == "mxfp4" and expert and str(found.get("quant_method")) == "fp8":
        return "fp8_block" if found.get("weight_block_size") else "fp8"
    return "bf16" if "attention" in kept or dtype == "mxfp4" else dtype


def _kept_wide(found: Config) -> list[str]:
    """Kinds of weights that stay at 16 bit and matter for size."""
    listed = found.get("ignore") or found.get("modules_to_not_convert") or found.get("exclude_modules") or []
    names = [item for item in listed if isinstance(item, str)] if isinstance(listed, list) else []
    return [
        label for label, module in _WIDE_MODULES.items() if any(map(module.search, names[:_MOST_MODULES]))
    ]
