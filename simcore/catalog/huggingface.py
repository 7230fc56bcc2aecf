"""From a Hugging Face `config.json` to an architecture, for the families whose layers are all attention.

Each family is one small function (`families.py`) over a `Reader`, which remembers every key it was asked
for: what is left over and not known to be without effect on shape is named in a warning, and a missing
field is an InputError at `model.config.<field>`. A nested `text_config` is the language model; its vision
tower is counted from `vision_config` as a plain ViT (4h² + 2h·width per layer) and runs for no text token.
Limits: families with linear attention, state-space layers or sparse-attention indexers are refused by name;
speculative (MTP) heads are not counted; what a quantised checkpoint leaves at 16 bit is named, not modelled.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from simcore.catalog.config_reader import MOST_LAYERS, Config, Reader
from simcore.catalog.families import FAMILIES, REFUSED, Shape
from simcore.catalog.types import LlmArchitecture, Source
from simcore.errors import InputError, Message

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
_FLOAT_DTYPES: Final = {"bfloat16": "bf16", "float16": "fp16", "half": "fp16", "float32": "bf16"}


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
    shape = FAMILIES[family](reader)
    _check_layers(shape, text_path)
    messages: list[Message] = []
    shape["weights_dtype"] = _weights_dtype(config, text, quant_config, path, messages)
    shape["extra_parameter_count"] = _vision_parameters(config, path, messages)
    reader.read.add("quantization_config")
    messages += _notes(reader, text_path)
    source = Source(title=f"config.json of {name}", kind="user")
    return LlmArchitecture(slug=name.lower()[:200], name=name, source=source, **shape), messages


def supported_families() -> list[str]:
    return sorted(FAMILIES)


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
    if family not in FAMILIES:
        why = f" ({REFUSED[family]})" if family in REFUSED else ""
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
    return next((family for family in FAMILIES if family.replace("_", "") == words.replace("_", "")), words)


def _check_layers(shape: Shape, path: str) -> None:
    if shape["layers"] > MOST_LAYERS:
        raise InputError.at(
            f"{path}.num_hidden_layers",
            "config.wrong",
            "got {got:,} layers; at most {allowed:,} are allowed",
            got=shape["layers"],
            allowed=MOST_LAYERS,
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
