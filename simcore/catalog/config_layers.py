"""The parts of a config that nearly all decoders share: sizes, biases, latent attention, kinds of layers.

`common` reads widths under any of their names. `layer_kinds` turns every way of listing layers
(`layer_types`, `hybrid_override_pattern`, `attn_layer_period`, …) into one list of kinds, of which
`layers` makes counts. What a family leaves unsaid stands in the table of `families.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from simcore.catalog.config_reader import MOST_LAYERS, Part, Reader, Shape
from simcore.errors import InputError

LAYERS: Final = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
_HIDDEN: Final = ("hidden_size", "n_embd", "d_model", "dim", "model_dim")
_INTERMEDIATE: Final = (
    "intermediate_size", "ffn_dim", "n_inner", "ffn_hidden_size", "block_ff_dim", "ff_intermediate_size",
)  # fmt: skip
_POSITIONS: Final = (
    "max_position_embeddings",
    "n_positions",
    "seq_length",
    "max_seq_len",
    "max_sequence_length",
    "n_ctx",
)

_MOST_SCALING: Final = 10_000

# names of layer types in `layer_types` and its like → kind; a kind is what `layers` counts
KINDS: Final = {
    "full_attention": "full",
    "attention": "full",
    "global_attention": "full",
    "deepseek_sparse_attention": "full",
    "minimax_m3_sparse": "full",
    "sliding_attention": "window",
    "sliding_window": "window",
    "chunked_attention": "window",
    "local_attention": "window",
    "global": "full",
    "local": "window",
    "linear_attention": "recurrent",
    "kimi_delta_attention": "recurrent",
    "mamba": "recurrent",
    "mamba2": "recurrent",
    "conv": "recurrent",
    "recurrent": "recurrent",
    "hybrid": "both",
    "mlp": "mlp",
    "moe": "moe",
}
_PATTERN: Final = {"M": "recurrent", "*": "full", "-": "mlp", "E": "moe"}  # Nemotron-H


def common(r: Reader, _: Shape) -> Shape:
    hidden = r.number(*_HIDDEN)
    heads = r.number("num_attention_heads", "n_head", "n_heads", "num_heads")
    kv_heads = r.number("num_key_value_heads", "num_kv_heads", "n_head_kv", "kv_n_heads", default=heads)
    if heads % kv_heads:
        raise InputError.at(
            f"{r.path}.num_key_value_heads",
            "config.wrong",
            "{kv_heads} KV heads do not divide {heads} attention heads",
            kv_heads=kv_heads,
            heads=heads,
        )
    head_dim = r.count("head_dim", "kv_channels", "attention_head_dim") or hidden // heads
    if not head_dim:
        raise r.wrong("hidden_size", hidden, f"it is shared out over {heads} attention heads")
    layers = r.number(*LAYERS)
    r.read |= {*LAYERS, *_HIDDEN, *_POSITIONS}  # some files print a size under two names
    if layers > MOST_LAYERS:
        raise InputError.at(
            f"{r.path}.{LAYERS[0]}",
            "config.wrong",
            "got {got:,} layers; at most {allowed:,} are allowed",
            got=layers,
            allowed=MOST_LAYERS,
        )
    return {
        "layers": layers,
        "hidden": hidden,
        "heads": heads,
        "kv_heads": kv_heads,
        "head_dim": head_dim,
        "v_head_dim": r.count("v_head_dim"),
        "q_lora_rank": r.count("q_lora_rank"),
        "intermediate": _intermediate(r, hidden),
        "vocab": r.number("vocab_size", "padded_vocab_size"),
        "max_position": _positions(r),
    }


def _positions(r: Reader) -> int:
    """The length a model is served at: what is printed, or what its rotary scaling stretches it to."""
    printed = r.number(*_POSITIONS, default=4096)
    scaling = r.inner("rope_scaling") or r.inner("rope_parameters")
    factor = scaling.config.get("factor") if scaling else None
    if scaling is None or not isinstance(factor, int | float) or not 1 <= factor <= _MOST_SCALING:
        return printed
    kind = scaling.config.get("rope_type") or scaling.config.get("type")
    if kind == "yarn":
        return max(printed, int(factor * scaling.number("original_max_position_embeddings", default=printed)))
    is_stretched_already = "gemma3" in str(r.config.get("model_type"))
    return int(factor * printed) if kind in ("linear", "dynamic") and not is_stretched_already else printed


def _intermediate(r: Reader, hidden: int) -> int:
    """MLP width; some files print it per layer, and a pure mixture of experts has none."""
    for key in _INTERMEDIATE:
        if isinstance(r.config.get(key), list):
            widths = r.numbers(key)
            if len(set(widths)) > 1:
                r.remarks.append("layers of different MLP widths are counted at their mean width")
            return round(sum(widths) / max(1, len(widths)))
    if r.has(*_INTERMEDIATE):
        return r.number(*_INTERMEDIATE)
    if r.has("moe_intermediate_size", "shared_intermediate_size"):
        return r.number("moe_intermediate_size", "shared_intermediate_size")
    if r.has("block_configs"):
        return 1  # each block prints its own: see family_rules.searched_blocks
    return r.number(*_INTERMEDIATE[:1], default=r.count("mlp_ratio") * hidden or None)


def biases(r: Reader, _: Shape) -> Shape:
    everywhere = r.flag("use_bias", "bias", "add_bias_linear")
    attention = r.flag("attention_bias", default=everywhere)
    return {
        "attention_bias": r.flag("qkv_bias", "use_qkv_bias", "add_qkv_bias", default=attention),
        "output_bias": attention,
        "mlp_bias": r.flag("mlp_bias", default=everywhere),
        "qk_norm": r.flag("use_qk_norm", "qk_layernorm", "qk_norm"),
    }


def latent(r: Reader, shape: Shape) -> Shape:
    """Multi-head latent attention, wherever its rank is printed."""
    rank = r.count("kv_lora_rank")
    if not rank:
        return {}
    nope = r.number("qk_nope_head_dim")
    return {
        "head_dim": nope,
        "kv_lora_rank": rank,
        "q_lora_rank": r.count("q_lora_rank"),
        "qk_rope_head_dim": r.count("qk_rope_head_dim"),
        "qk_nope_head_dim": nope,
        "v_head_dim": r.number("v_head_dim"),
    }


def layer_kinds(r: Reader, layers: int) -> list[str]:
    """Kind of each layer where the file lists them in any way; empty where it does not."""
    for key in ("layer_types", "layers_block_type", "attention_layers"):
        if r.items(key):
            kinds = [_kind(r, key, item) for item in r.items(key)]
            beyond = r.count("num_nextn_predict_layers")  # Step 3.5 lists its prediction layers as well
            return _checked(r, key, kinds[:layers] if len(kinds) == layers + beyond else kinds, layers)
    for key in ("block_types", "_block_types"):  # RecurrentGemma: a pattern that is repeated
        pattern = [_kind(r, key, item) for item in r.items(key)]
        if pattern:
            return [pattern[layer % len(pattern)] for layer in range(layers)]
    marks = r.text("hybrid_override_pattern")
    if marks:
        unknown = sorted(set(marks) - set(_PATTERN))
        if unknown:
            raise r.wrong("hybrid_override_pattern", "".join(unknown), "M, E, * and - are known layers")
        return _checked(r, "hybrid_override_pattern", [_PATTERN[mark] for mark in marks], layers)
    return _listed(r, layers) or _periodic(r, layers)


def _kind(r: Reader, key: str, item: object) -> str:
    if str(item) not in KINDS:
        known = ", ".join(sorted(KINDS))
        raise r.unsupported(key, f"layers of type {str(item)[:60]} are not modelled; allowed: {known}")
    return KINDS[str(item)]


def _checked(r: Reader, key: str, kinds: Sequence[str], layers: int) -> list[str]:
    if len(kinds) != layers:
        raise InputError.at(
            f"{r.path}.{key}",
            "config.wrong",
            "{got} layer types for {layers} layers",
            got=len(kinds),
            layers=layers,
        )
    return list(kinds)


def _listed(r: Reader, layers: int) -> list[str]:
    """Files that list indices or marks of one kind."""
    if r.items("attn_type_list"):  # MiniMax: 1 is softmax attention, 0 lightning
        kinds = ["full" if kind else "recurrent" for kind in r.numbers("attn_type_list")]
        return _checked(r, "attn_type_list", kinds, layers)
    if r.items("hybrid_layer_pattern"):  # MiMo: 1 is sliding, 0 full
        kinds = ["window" if kind else "full" for kind in r.numbers("hybrid_layer_pattern")]
        return _checked(r, "hybrid_layer_pattern", kinds, layers)
    linear = r.inner("linear_attn_config")
    if linear is not None:  # Kimi: indices from 1
        full = set(linear.numbers("full_attn_layers"))
        return ["full" if layer + 1 in full else "recurrent" for layer in range(layers)]
    for key in ("attn_layer_indices", "full_attn_idxs"):
        if r.items(key):
            full = set(r.numbers(key))
            return ["full" if layer in full else "recurrent" for layer in range(layers)]
    return []


def _periodic(r: Reader, layers: int) -> list[str]:
    """Files that say every how many layers one is full."""
    if r.has("attn_layer_period"):
        period, offset = r.number("attn_layer_period"), r.count("attn_layer_offset")
        return ["full" if layer % period == offset else "recurrent" for layer in range(layers)]
    for key in ("full_attention_interval", "layer_group_size"):
        if r.has(key):
            period = r.number(key)
            return ["full" if (layer + 1) % period == 0 else "recurrent" for layer in range(layers)]
    return []


def layers(r: Reader, shape: Shape) -> Shape:
    """Counts by kind. Without a list: every layer is full, unless the family's rule says otherwise."""
    kinds = layer_kinds(r, shape["layers"])
    if not kinds:
        return {}
    window = r.count("sliding_window", "sliding_window_size", "window_size", "attention_chunk_size")
    narrow = kinds.count("window") if window else 0
    counts: Shape = {
        "window_layers": narrow,
        "window_tokens": window if narrow else 0,
        "recurrent_layers": kinds.count("recurrent") + kinds.count("both"),
        "attention_free_layers": sum(kind in ("recurrent", "mlp", "moe") for kind in kinds),
    }
    if "mlp" in kinds or "moe" in kinds:  # one block per layer: attention, state, MLP or experts
        moe = kinds.count("moe")
        counts["mlp_free_layers"] = sum(kind not in ("mlp", "moe") for kind in kinds)
        counts |= {"dense_layers": kinds.count("mlp"), "norms_per_layer": 1}
        if not moe:
            counts["experts"] = 0
    return counts


# Rules for families that print a window without listing its layers.


def window_everywhere(r: Reader, shape: Shape) -> Shape:
    """Every layer, where the window is narrower than the context."""
    window = r.count("sliding_window")
    if not 0 < window < shape["max_position"]:
        return {}
    return {"window_layers": shape["layers"], "window_tokens": window}


def window_if_used(r: Reader, shape: Shape) -> Shape:
    """Qwen prints a window that `use_sliding_window` leaves off; where on, layers from max_window_layers."""
    window = r.count("sliding_window")
    if not r.flag("use_sliding_window") or not window:
        return {}
    return {
        "window_layers": max(0, shape["layers"] - r.count("max_window_layers")),
        "window_tokens": window,
    }


def window_but_every(every: int) -> Part:
    """Every n-th layer is full: n from `sliding_window_pattern` (a number, or a pattern like LLLG)."""

    def part(r: Reader, shape: Shape) -> Shape:
        window = r.count("sliding_window")
        period = every
        for key in ("sliding_window_pattern", "_sliding_window_pattern", "global_attn_every_n_layers"):
            value = r.raw(key)
            if isinstance(value, str) and value:
                period = len(value)
            elif value is not None:
                period = r.number(key)
        full = shape["layers"] // period
        return {"window_layers": shape["layers"] - full, "window_tokens": window} if window else {}

    return part
