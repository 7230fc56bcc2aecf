"""From a Hugging Face `config.json` to an architecture, for the families whose layers are all attention.

Each family is one small function over a `Reader`, which remembers every key it was asked for: what is left
over and not known to be without effect on shape is named in a warning, and a missing field is an InputError
at `model.config.<field>`. A nested `text_config` is the language model; its vision tower is counted from
`vision_config` as a plain ViT (4h² + 2h·width per layer) and runs for no text token.
Limits: families with linear attention, state-space layers or sparse-attention indexers are refused by name;
speculative (MTP) heads are not counted; what a quantised checkpoint leaves at 16 bit is named, not modelled.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from simcore.catalog.types import LlmArchitecture, Source
from simcore.errors import InputError, Message

Config = Mapping[str, Any]
Shape = dict[str, Any]
_LARGEST: Final = 10**9
_MOST_LAYERS: Final = 10_000
# Keys that say nothing about shape: tokens, training, sampling, numerics of rotary embeddings and routing.
_WITHOUT_EFFECT: Final = re.compile(
    r"^(_.*|.*token_id|.*token_index|.*dropout.*|.*pdrop|.*_eps|epsilon|rope_.*|rotary_dim|partial_rotary_factor"
    r"|.*initializer.*|init_std|hidden_act.*|activation_function|transformers_version|use_cache|use_bfloat16"
    r"|torchscript|pretraining_tp|auto_map|architectures|model_type|torch_dtype|dtype|router_.*|output_.*|aux_loss.*"
    r"|seq_aux|norm_topk_prob|n_group|topk_group|topk_method|scoring_func|routed_scaling_factor|ep_size|.*softcapping"
    r"|query_pre_attn_scalar|.*_multiplier|logits_scaling|swiglu_limit|initial_context_length|experts_per_token"
    r"|original_max_position_embeddings|max_window_layers|image_.*|video_.*|vision_.*|audio_config|mm_.*|bo[ia]_.*"
    r"|eo[ia]_.*|ignore_index|media_.*|use_unified_vision_chunk|id2label|label2id|is_decoder|is_encoder_decoder"
    r"|num_beam.*|num_return_sequences|length_penalty|repetition_penalty|max_length|min_length|temperature|top_[kp]"
    r"|do_sample|early_stopping|.*no_repeat_ngram_size|typical_p|bad_words_ids|begin_suppress_tokens|finetuning_task"
    r"|suppress_tokens|pruned_heads|prefix|problem_type|return_dict.*|tokenizer_class|task_specific_params"
    r"|tf_legacy_loss|tie_encoder_decoder|cross_attention_hidden_size|add_cross_attention|diversity_penalty"
    r"|exponential_decay_length_penalty|forced_.*|remove_invalid_values|chunk_size_feed_forward|attn_temperature.*"
    r"|floor_scale|for_llm_compressor|attn_scale|use_qk_norm|qk_norm_type|use_routing_bias"
    r"|head_dim_.*|layer_norm_elementwise_affine|do_layer_norm_before|enable_bias|layerdrop|sep_token_id"
    r"|resid_.*|embd_.*|attn_type_list|moe_router_dtype|use_bidirectional_attention)$"
)
# Families that exist and are refused, with what the core does not model yet.
_REFUSED: Final[Mapping[str, str]] = {
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
_ATTENTION_TYPES: Final = {"full_attention", "sliding_attention", "chunked_attention"}
_FLOAT_DTYPES: Final = {"bfloat16": "bf16", "float16": "fp16", "half": "fp16", "float32": "bf16"}


class Reader:
    """A config that remembers which keys were read and speaks in paths."""

    def __init__(self, config: Config, path: str) -> None:
        self.config = config
        self.path = path
        self.read: set[str] = set()
        self.defaulted: dict[str, int] = {}

    def has(self, key: str) -> bool:
        return self.config.get(key) is not None

    def raw(self, key: str) -> Any:
        self.read.add(key)
        return self.config.get(key)

    def number(self, *keys: str, default: int | None = None, family_default: int | None = None) -> int:
        """The first of `keys` that is there. A family default is what its config class fills in: it is named."""
        for key in keys:
            if self.raw(key) is not None:
                return self._checked(key, self.config[key], minimum=1)
        if family_default is not None:
            self.defaulted[keys[0]] = family_default
            return family_default
        if default is not None:
            return default
        raise InputError.at(
            f"{self.path}.{keys[0]}",
            "config.missing",
            "this config.json has no {field}, which this family needs; add it or paste the whole file",
            field=" or ".join(keys),
        )

    def count(self, key: str) -> int:
        """A number that may be absent or 0."""
        value = self.raw(key)
        return 0 if value is None else self._checked(key, value, minimum=0)

    def flag(self, key: str, default: bool = False) -> bool:
        value = self.raw(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise InputError.at(
                f"{self.path}.{key}",
                "config.wrong",
                "got {got}; true or false is needed",
                got=repr(value)[:60],
            )
        return value

    def items(self, key: str) -> list[Any]:
        value = self.raw(key)
        if value is None:
            return []
        if not isinstance(value, list) or len(value) > _MOST_LAYERS:
            raise InputError.at(
                f"{self.path}.{key}", "config.wrong", "got {got}; a list is needed", got=repr(value)[:60]
            )
        return value

    def _checked(self, key: str, value: object, *, minimum: int) -> int:
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not minimum <= value <= _LARGEST:
            raise InputError.at(
                f"{self.path}.{key}",
                "config.wrong",
                "got {got}; a whole number from {low} to {high:,} is needed",
                got=repr(value)[:60],
                low=minimum,
                high=_LARGEST,
            )
        return value


def architecture_from_config(
    config: Config,
    *,
    name: str,
    quant_config: Config | None = None,
    path: str = "model.config",
) -> tuple[LlmArchitecture, list[Message]]:
    """The architecture that a config.json describes, and what was not understood or left out of it.

    `quant_config` is the `hf_quant_config.json` that some checkpoints carry beside it.
    """
    if not isinstance(config, Mapping):
        raise InputError.at(path, "config.wrong", "a config.json is an object with keys and values")
    text, text_path = _text_part(config, path)
    family = _family(config, text, path)
    reader = Reader(text, text_path)
    shape = _FAMILIES[family](reader)
    _check_layers(shape, text_path)
    messages: list[Message] = []
    shape["weights_dtype"] = _weights_dtype(config, text, quant_config, path, messages)
    shape["extra_parameter_count"] = _vision_parameters(config, path, messages)
    reader.read.add("quantization_config")
    messages += _notes(reader, text_path)
    source = Source(title=f"config.json of {name}", kind="user")
    return LlmArchitecture(slug=name.lower()[:200], name=name, source=source, **shape), messages


def supported_families() -> list[str]:
    return sorted(_FAMILIES)


def _text_part(config: Config, path: str) -> tuple[Config, str]:
    text = config.get("text_config")
    if not isinstance(text, Mapping):
        return config, path
    outer = {key: config[key] for key in ("tie_word_embeddings",) if key in config}
    return {**outer, **text}, f"{path}.text_config"


def _family(config: Config, text: Config, path: str) -> str:
    stated = text.get("model_type") or config.get("model_type") or _family_of_class(config)
    if not isinstance(stated, str):
        raise InputError.at(
            f"{path}.model_type",
            "config.missing",
            "this config.json names neither model_type nor architectures; paste the whole file",
        )
    family = stated.removesuffix("_text")
    if family not in _FAMILIES:
        why = f" ({_REFUSED[family]})" if family in _REFUSED else ""
        raise InputError.at(
            f"{path}.model_type",
            "config.unsupported",
            "the family {got!r}{why} is not modelled; supported: {families}. A catalog model of the same shape "
            "may stand in: set model.name",
            got=stated[:60],
            why=why,
            families=", ".join(supported_families()),
        )
    return family


def _family_of_class(config: Config) -> str | None:
    """`LlamaForCausalLM` -> "llama", where a config has no model_type."""
    classes = config.get("architectures")
    if not isinstance(classes, list) or not classes or not isinstance(classes[0], str):
        return None
    stem = classes[0].removesuffix("ForCausalLM").removesuffix("ForConditionalGeneration")
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", stem).lower()
    return next((family for family in _FAMILIES if family.replace("_", "") == words.replace("_", "")), words)


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


_FAMILIES: Final[Mapping[str, Callable[[Reader], Shape]]] = {
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


def _check_layers(shape: Shape, path: str) -> None:
    if shape["layers"] > _MOST_LAYERS:
        raise InputError.at(
            f"{path}.num_hidden_layers",
            "config.wrong",
            "got {got:,} layers; at most {allowed:,} are allowed",
            got=shape["layers"],
            allowed=_MOST_LAYERS,
        )
    if shape.get("experts_per_token", 0) > shape.get("experts", 0):
        raise InputError.at(
            f"{path}.num_experts_per_tok",
            "config.wrong",
            "{chosen} experts per token of {experts} experts",
            chosen=shape["experts_per_token"],
            experts=shape["experts"],
        )


def _weights_dtype(
    config: Config, text: Config, quant_config: Config | None, path: str, messages: list[Message]
) -> str:
    stated = text.get("dtype") or text.get("torch_dtype") or config.get("dtype") or config.get("torch_dtype")
    plain = _FLOAT_DTYPES.get(str(stated), "bf16")
    quantised = config.get("quantization_config") or text.get("quantization_config") or {}
    beside = (quant_config or {}).get("quantization") or {}
    found = {**beside, **quantised} if isinstance(quantised, Mapping) and isinstance(beside, Mapping) else {}
    if not found:
        return plain
    dtype = _quantised_dtype(found)
    where = f"{path}.quantization_config"
    if dtype is None:
        messages.append(
            Message(
                code="config.quantization_unknown",
                template="quantisation {method!r} is not understood; weights are taken as {dtype}",
                params={"method": str(found.get("quant_method"))[:60], "dtype": plain},
                path=where,
            )
        )
        return plain
    kept = _kept_wide(found)
    if kept and dtype != "mxfp4":
        messages.append(
            Message(
                code="config.quantization_partial",
                template="this checkpoint leaves {modules} at 16 bit; all weights are counted as {dtype}",
                params={"modules": ", ".join(kept), "dtype": dtype},
                path=where,
            )
        )
    return dtype


def _quantised_dtype(found: Config) -> str | None:
    method = str(found.get("quant_method", "")).lower()
    algorithm = str(found.get("quant_algo", "")).upper()
    layout = str(found.get("format", "")).lower()
    bits = found.get("bits") or found.get("w_bit")
    if method == "fp8":
        return "fp8_block" if found.get("weight_block_size") else "fp8"
    if method == "mxfp4" or "mxfp4" in layout:
        return "mxfp4"
    if "NVFP4" in algorithm or "nvfp4" in layout:
        return "nvfp4"
    if "FP8" in algorithm or layout == "float-quantized":
        return "fp8"
    if method in ("awq", "gptq", "auto-round") and bits in (4, 8):
        return "int4" if bits == 4 else "int8"
    if method == "bitsandbytes":
        return "int4" if found.get("load_in_4bit") else "int8"
    if layout == "pack-quantized":
        return "int4"
    return "int8" if layout == "int-quantized" else None


def _kept_wide(found: Config) -> list[str]:
    """Kinds of weights that stay at 16 bit and matter for size; LM head, norms and routers always do."""
    listed = found.get("ignore") or found.get("modules_to_not_convert") or found.get("exclude_modules") or []
    text = " ".join(str(item) for item in listed if isinstance(item, str))
    kinds = {"self_attn": "attention", "shared_expert": "shared experts", "down_proj": "dense MLPs"}
    return [label for word, label in kinds.items() if word in text]


def _vision_parameters(config: Config, path: str, messages: list[Message]) -> int:
    """A vision tower as a plain ViT: 4h² + 2h·width per layer and its patch embedding; 0 when there is none."""
    vision = config.get("vision_config")
    if not isinstance(vision, Mapping):
        return 0
    r = Reader(vision, f"{path}.vision_config")
    try:
        hidden = r.number("hidden_size", "vt_hidden_size")
        layers = r.number("num_hidden_layers", "depth", "vt_num_hidden_layers")
        width = r.number("intermediate_size", "vt_intermediate_size")
    except InputError:
        messages.append(
            Message(
                code="config.vision_uncounted",
                template="the vision tower's shape is not understood; its weights are not counted",
                path=r.path,
            )
        )
        return 0
    patch = 3 * r.number("patch_size", default=14) ** 2 * hidden
    messages.append(
        Message(
            code="config.vision_estimated",
            template="the vision tower is counted as a plain ViT and does no work for text tokens",
            path=r.path,
        )
    )
    return layers * (4 * hidden**2 + 2 * hidden * width) + patch


def _notes(reader: Reader, path: str) -> list[Message]:
    notes: list[Message] = []
    heads = reader.config.get("num_nextn_predict_layers") or reader.config.get("num_mtp_modules")
    reader.read |= {"num_nextn_predict_layers", "num_mtp_modules"}
    if heads:
        notes.append(
            Message(
                code="config.mtp_uncounted",
                template="the multi-token-prediction head is not counted: engines load it for speculation only",
                path=f"{path}.num_nextn_predict_layers",
            )
        )
    if reader.defaulted:
        filled = ", ".join(f"{key} = {value:,}" for key, value in reader.defaulted.items())
        notes.append(
            Message(
                code="config.defaults",
                template="not in the file, taken from the family's defaults: {filled}",
                params={"filled": filled},
                path=path,
            )
        )
    rest = [k for k in reader.config if k not in reader.read and not _WITHOUT_EFFECT.match(str(k))]
    if rest:
        notes.append(
            Message(
                code="config.not_understood",
                template="not understood and left out: {keys}",
                params={"keys": ", ".join(sorted(rest))[:400]},
                path=path,
            )
        )
    return notes
