"""Model families whose layers are all attention: one function each, from a config's keys to a shape.

A function asks its `Reader` for the keys that its family prints and returns the fields of `LlmArchitecture`
that they set. A new family is one function and one line of `FAMILIES`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from simcore.catalog.config_reader import Reader
from simcore.errors import InputError

Shape = dict[str, Any]
_ATTENTION_TYPES: Final = {"full_attention", "sliding_attention", "chunked_attention"}


def _common(r: Reader) -> Shape:
    hidden = r.number("hidden_size", "n_embd", "d_model")
    heads = r.number("num_attention_heads", "n_head")
    kv_heads = r.number("num_key_value_heads", default=heads)
    if heads % kv_heads:
        raise InputError.at(
            f"{r.path}.num_key_value_heads",
            "config.wrong",
            "{kv_heads} KV heads do not divide {heads} attention heads",
            kv_heads=kv_heads,
            heads=heads,
        )
    return {
        "layers": r.number("num_hidden_layers", "n_layer"),
        "hidden": hidden,
        "heads": heads,
        "kv_heads": kv_heads,
        "head_dim": r.number("head_dim", default=hidden // heads),
        "intermediate": r.number("intermediate_size", "ffn_dim", "n_inner"),
        "vocab": r.number("vocab_size"),
        "tied_embeddings": r.flag("tie_word_embeddings"),
        "max_position": r.number("max_position_embeddings", "n_positions", default=4096),
    }


def _llama(r: Reader) -> Shape:
    bias = r.flag("attention_bias")
    biases = {"attention_bias": bias, "output_bias": bias, "mlp_bias": r.flag("mlp_bias")}
    return _common(r) | biases


def _mistral(r: Reader) -> Shape:
    shape = _common(r)
    window = r.count("sliding_window")
    return shape | ({"window_layers": shape["layers"], "window_tokens": window} if window else {})


def _phi3(r: Reader) -> Shape:
    shape = _common(r)
    window = r.count("sliding_window")
    # Phi-3 prints a window as wide as its context: every layer is then a full one
    narrow = 0 < window < shape["max_position"]
    return shape | ({"window_layers": shape["layers"], "window_tokens": window} if narrow else {})


def _qwen2(r: Reader) -> Shape:
    return _common(r) | {"attention_bias": True} | _qwen_window(r)


def _qwen_window(r: Reader) -> Shape:
    """Qwen prints a window that `use_sliding_window` leaves off; where on, layers from max_window_layers."""
    window = r.count("sliding_window")
    if not r.flag("use_sliding_window") or not window:
        return {}
    layers = r.number("num_hidden_layers")
    return {"window_layers": max(0, layers - r.count("max_window_layers")), "window_tokens": window}


def _qwen2_moe(r: Reader) -> Shape:
    shared = {"shared_intermediate": r.count("shared_expert_intermediate_size")}
    return _qwen2(r) | _sparse_layers(r) | shared


def _qwen3(r: Reader) -> Shape:
    bias = r.flag("attention_bias")
    return _common(r) | {"attention_bias": bias, "output_bias": bias, "qk_norm": True} | _qwen_window(r)


def _qwen3_moe(r: Reader) -> Shape:
    bias = {"attention_bias": r.flag("qkv_bias") or r.flag("attention_bias")}
    shared = {"shared_intermediate": r.count("shared_expert_intermediate_size")}
    return _qwen3(r) | bias | _sparse_layers(r) | shared


def _sparse_layers(r: Reader) -> Shape:
    """Experts on every `decoder_sparse_step`-th layer, none on `mlp_only_layers`."""
    layers, step = r.number("num_hidden_layers"), r.number("decoder_sparse_step", default=1)
    dense_only = set(r.items("mlp_only_layers"))
    dense = sum(1 for layer in range(layers) if layer in dense_only or (layer + 1) % step)
    return {
        "experts": r.number("num_experts", "num_local_experts"),
        "experts_per_token": r.number("num_experts_per_tok"),
        "moe_intermediate": r.number("moe_intermediate_size"),
        "dense_layers": dense,
    }


def _mixtral(r: Reader) -> Shape:
    shape = _mistral(r)
    return shape | {
        "experts": r.number("num_local_experts"),
        "experts_per_token": r.number("num_experts_per_tok"),
        "moe_intermediate": shape["intermediate"],
    }


def _minimax_m2(r: Reader) -> Shape:
    r.read |= {"use_mtp", "num_mtp_modules", "mtp_transformer_layers", "sliding_window"}
    shared = {"shared_intermediate": r.count("shared_intermediate_size"), "qk_norm": True}
    return _mixtral_like(r) | shared


def _mixtral_like(r: Reader) -> Shape:
    shape = _common(r)
    return shape | {
        "experts": r.number("num_local_experts"),
        "experts_per_token": r.number("num_experts_per_tok"),
        "moe_intermediate": shape["intermediate"],
    }


def _gpt_oss(r: Reader) -> Shape:
    biases = {"attention_bias": True, "output_bias": r.flag("attention_bias", True), "mlp_bias": True}
    return _mixtral_like(r) | biases | _windows(r, every=2)


def _windows(r: Reader, *, every: int) -> Shape:
    """Window layers from `layer_types`; where that is absent every `every`-th layer is full."""
    layers, window = r.number("num_hidden_layers"), r.count("sliding_window")
    types = r.items("layer_types")
    unknown = sorted({str(item) for item in types} - _ATTENTION_TYPES)
    if unknown:
        raise InputError.at(
            f"{r.path}.layer_types",
            "config.unsupported",
            "layers of type {got} are not modelled; allowed: {allowed}",
            got=", ".join(unknown)[:80],
            allowed=", ".join(sorted(_ATTENTION_TYPES)),
        )
    if types and len(types) != layers:
        raise InputError.at(
            f"{r.path}.layer_types",
            "config.wrong",
            "{got} layer types for {layers} layers",
            got=len(types),
            layers=layers,
        )
    full = types.count("full_attention") if types else layers // every
    return {"window_layers": layers - full, "window_tokens": window} if window else {}


def _gemma(r: Reader) -> Shape:
    return _common(r) | {"tied_embeddings": r.flag("tie_word_embeddings", True)}


def _gemma2(r: Reader) -> Shape:
    return _gemma(r) | {"norms_per_layer": 4} | _windows(r, every=2)


def _gemma3(r: Reader) -> Shape:
    """Published Gemma 3 files leave out what equals the config class's defaults."""
    filled = {
        "vocab_size": 262_208,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "head_dim": 256,
        "max_position_embeddings": 131_072,
        "sliding_window": 4096,
    }
    for key, value in filled.items():
        if not r.has(key):
            r.defaulted[key] = value
    completed = Reader({**filled, **{k: v for k, v in r.config.items() if v is not None}}, r.path)
    every = completed.number("sliding_window_pattern", "_sliding_window_pattern", default=6)
    shape = _gemma(completed) | {"norms_per_layer": 4, "qk_norm": True} | _windows(completed, every=every)
    r.read |= completed.read
    return shape


def _deepseek_v3(r: Reader) -> Shape:
    layers = r.number("num_hidden_layers")
    if r.number("moe_layer_freq", default=1) != 1:
        raise InputError.at(
            f"{r.path}.moe_layer_freq", "config.unsupported", "only experts on every layer (1) are modelled"
        )
    expert = r.number("moe_intermediate_size")
    nope = r.number("qk_nope_head_dim")
    return _common(r) | {
        "head_dim": nope,
        "attention_bias": r.flag("attention_bias"),
        "kv_lora_rank": r.number("kv_lora_rank"),
        "q_lora_rank": r.count("q_lora_rank"),
        "qk_rope_head_dim": r.number("qk_rope_head_dim"),
        "qk_nope_head_dim": nope,
        "v_head_dim": r.number("v_head_dim"),
        "experts": r.number("n_routed_experts"),
        "experts_per_token": r.number("num_experts_per_tok"),
        "moe_intermediate": expert,
        "shared_intermediate": r.count("n_shared_experts") * expert,
        "dense_layers": min(r.count("first_k_dense_replace"), layers),
    }


def _opt(r: Reader) -> Shape:
    shape = _common(r)
    if r.number("word_embed_proj_dim", default=shape["hidden"]) != shape["hidden"]:
        raise InputError.at(
            f"{r.path}.word_embed_proj_dim", "config.unsupported", "projected embeddings are not modelled"
        )
    return shape | {
        "tied_embeddings": r.flag("tie_word_embeddings", True),
        "gated_mlp": False,
        "attention_bias": True,
        "output_bias": True,
        "mlp_bias": True,
        "norm_bias": True,
        "learned_positions": shape["max_position"] + 2,
    }


def _llama4(r: Reader) -> Shape:
    """Experts on every `interleave_moe_layer_step`-th layer; chunked attention where rotary is on."""
    shape = _common(r)
    layers, expert = shape["layers"], shape["intermediate"]
    step = r.number("interleave_moe_layer_step", default=1)
    moe_layers = len(r.items("moe_layers")) or layers // step
    uses_rotary = r.items("no_rope_layers") or [int((layer + 1) % 4 != 0) for layer in range(layers)]
    window = r.count("attention_chunk_size")
    r.read |= {"layer_types", "no_rope_layer_interval", "attention_bias"}
    return shape | {
        "intermediate": r.number("intermediate_size_mlp", default=expert),
        "experts": r.number("num_local_experts"),
        "experts_per_token": r.number("num_experts_per_tok"),
        "moe_intermediate": expert,
        "shared_intermediate": expert,
        "dense_layers": layers - moe_layers,
        "window_layers": sum(map(bool, uses_rotary)) if window else 0,
        "window_tokens": window,
    }


FAMILIES: Final[Mapping[str, Callable[[Reader], Shape]]] = {
    "llama": _llama,
    "granite": _llama,
    "mistral": _mistral,
    "ministral": _mistral,
    "mixtral": _mixtral,
    "phi3": _phi3,
    "qwen2": _qwen2,
    "qwen2_moe": _qwen2_moe,
    "qwen3": _qwen3,
    "qwen3_vl": _qwen3,
    "qwen3_moe": _qwen3_moe,
    "qwen3_vl_moe": _qwen3_moe,
    "gpt_oss": _gpt_oss,
    "deepseek_v3": _deepseek_v3,
    "kimi_k2": _deepseek_v3,
    "gemma": _gemma,
    "gemma2": _gemma2,
    "gemma3": _gemma3,
    "llama4": _llama4,
    "minimax_m2": _minimax_m2,
    "opt": _opt,
}

# Families that exist and are refused, with what the core does not model yet.
REFUSED: Final[Mapping[str, str]] = {
    "qwen3_5": "linear attention layers",
    "qwen3_5_moe": "linear attention layers",
    "qwen3_next": "linear attention layers",
    "nemotron_h": "Mamba layers",
    "nemotron-nas": "layers of different widths",
    "deepseek_v32": "a sparse-attention indexer",
    "deepseek_v4": "compressed sparse attention",
    "glm_moe_dsa": "a sparse-attention indexer",
    "gemma4": "layers with different head sizes",
}
