"""From a Hugging Face `config.json` to an architecture.

The language model is the config itself, or what it nests (`text_config`, `llm_config`, `thinker_config`).
`families.py` reads it: shared parts for all that configs print, a table for what families leave unsaid.
Every key that was asked for is remembered: what is left over and not known to be without effect on shape is
named in a warning, a missing field is an InputError at `model.config.<field>`, and a family that is not in
the table is read by its fields, with a warning. Towers, quantisation and prediction layers: see their
modules. Limits: attention-free models, encoders, and models that run one block's weights at several depths
are refused by name; layers of one kind are counted, their order is not kept.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from simcore.catalog.config_quantization import kv_dtype, weights_dtypes
from simcore.catalog.config_reader import Config, Reader, Shape
from simcore.catalog.config_vision import tower_parameters
from simcore.catalog.families import ALIASES, FAMILIES, REFUSED, Family, read_shape
from simcore.catalog.parameters import mtp_parameter_count
from simcore.catalog.types import LlmArchitecture, Source
from simcore.errors import InputError, Message

# Keys that say nothing about shape: tokens, training, sampling, numerics of rotary embeddings and routing.
_WITHOUT_EFFECT: Final = re.compile(
    r"^(_.*|.*token_ids?|.*token_index|.*token|.*dropout.*|.*drop|.*pdrop|.*_eps|.*epsilon.*|.*rope.*|rotary.*"
    r"|.*rotary.*|.*initializer.*|init_.*|.*_init|.*hidden_act.*|.*activation.*|transformers_version|use_cache"
    r"|use_bfloat16|torchscript|pretraining_tp|auto_map|architectures|model_type|torch_dtype|dtype|router_.*"
    r"|output_.*|.*aux_loss.*|z_loss.*|.*_loss_coef.*|seq_aux|norm_topk_prob|norm_head|n_group|topk_group"
    r"|topk_method|scoring_func|score_function|moe_router_.*|moe_apply_.*|moe_gate.*|moe_use_.*|moe_renorm.*"
    r"|routed_scaling_factor|ep_size|ep_.*|.*softcap.*|query_pre_attn_scalar|.*_multipliers?|logits_scaling"
    r"|logit_scale|.*_scale|.*swiglu_limit.*|initial_context_length|experts_per_token|original_max_position_.*"
    r"|max_window_layers|image_.*|video_.*|vision_.*|audio_.*|speech_.*|mm_.*|bo[ia]_.*|eo[ia]_.*|img_.*|projector_.*"
    r"|ignore_index|media_.*|use_unified_vision_chunk|id2label|label2id|is_decoder|is_encoder_decoder|num_labels"
    r"|num_beam.*|num_return_sequences|length_penalty|repetition_penalty|max_length|min_length|temperature|top_[kp]"
    r"|do_sample|early_stopping|.*no_repeat_ngram_size|typical_p|bad_words_ids|begin_suppress_tokens|finetuning_task"
    r"|suppress_tokens|pruned_heads|prefix|problem_type|return_dict.*|tokenizer_class|task_specific_params"
    r"|tf_legacy_loss|tie_encoder_decoder|cross_attention_hidden_size|add_cross_attention|diversity_penalty"
    r"|exponential_decay_length_penalty|forced_.*|remove_invalid_values|chunk_size_feed_forward|attn_temperature.*"
    r"|floor_scale|for_llm_compressor|qk_norm_type|use_routing_bias|alibi|use_alibi|use_parallel_residual"
    r"|head_dim_.*|layer_norm_.*|do_layer_norm_before|enable_bias|layerdrop|sep_token_id|base_model_.*_plan"
    r"|resid_.*|embd_.*|emb_.*|attn_.*dropout|use_bidirectional_attention|qk_head_dim|qk_scale_factor|clip_qkv"
    r"|use_sliding_window|sliding_window|sliding_window_pattern|time_step_.*|num_logits_to_keep|residual_in_fp32"
    r"|rescale_.*|use_mamba_kernels|mamba_.*bias|mamba_ssm.*|use_conv_bias|chunk_size|expand|conv_kernel|is_causal"
    r"|scale_attn.*|scale_attention.*|reorder_and_upcast_attn|summary_.*|.*_fusion|slow_but_exact|skip_bias_add"
    r"|no_rope_layer.*|nope_layer_interval|layer_rope_theta|moe_shared_expert_overlap|hash_moe|num_hash_layers"
    r"|compress_rope_theta|candidate_.*|dspark_.*|index_share_.*|indexer_rope_interleave|index_kpool.*|index_topk_.*"
    r"|index_skip.*|mla_use_nope|linear_lower_bound|gate_lower_bound|use_qk_norm|use_gated_attention|use_.*kernel.*"
    r"|embeddings?_.*scale.*|final_.*scal.*|mup_.*|scale_emb|scale_depth|dim_model_base|depth_attention|quantization.*"
    r"|attention_sink.*|attention_chunk_size|sink_.*|attn_type|attn_impl.*|flash_attn.*|is_moe|moe_loss.*|moe_aux.*"
    r"|interleaved_sliding_window|max_expected_seq_len|model_max_length|tensor_parallel.*|pipeline_.*|fp32_.*"
    r"|multi_query.*|normalize_attention_scores|layernorm_.*alpha|layernorm_.*beta|full_attn_.*|linear_attn_.*"
    r"|postnorm|apply_residual_.*|attention_softmax_in_fp32|bias_dropout_fusion|kv_channels|prefix_projection"
    r"|pre_seq_len|interleave_.*|use_post_norm|use_pre_norm|use_interleaved.*|mlp_ratio"
    r"|language|pad_.*|talker_config|code2wav_config|token2wav_config|enable_.*|language_model_.*|.*_seq_length"
    r"|vit_.*|unfreeze_.*|use_thumbnail|dynamic_image_size|downsample_ratio|ps_version|select_layer|template"
    r"|apply_.*|gradient_checkpointing|position_embedding.*|use_pos.*|layer_switch|order_of.*|cache_implementation"
    r"|no_bias|norm_type|norm_softmax|norm_expert_weight|normalization_function|verbose|learned_pos_emb|tokenizer_.*"
    r"|calc_.*|mamba_inner.*|mask_init_id|num_media_embeds|pool_type|skip_cls_token|text_(start|end)_id|use_vit"
    r"|class_num|group_limited.*|moe_random.*|moe_norm_min|moe_(eval_|train_|min_)?capacity.*|moe_token_dropping|fuse_.*"
    r"|compression_ratio|multi_gate|need_fp32_gate|use_moe|max_attn_value|block_.*|theta|use_grouped_topk|bf16|fp16|fp32"
    r"|num_expert_group|onnx_safe|softmax_in_fp32|use_cache_.*|shared_moe_mode|inference_runner|validate_.*"
    r"|max_batch_size|pre_allocate_kv_cache|use_residual|mlp_type|swa_rope.*|hybrid_block_size|attention_value_scale"
    r"|attention_projection_layout|gqa|mtp_.*|force_image_size|ff_factor|attention_types|num_image_tokens|lm_head_bias|swiglu_alpha|use_gemma_norm|global_attn_every_n_layers|expert_layer_.*|use_rope_layers|swiglu_limits.*|blocksparse_.*|moe_layer_offset|moe_every_n_layer|share_expert_dims|attn_config|logits_soft_cap|min_dynamic_patch|max_dynamic_patch|pixel_shuffle_.*|out_hidden_size|scale_fmt|expert_dtype)$"
)
_NESTED: Final = ("text_config", "llm_config", "language_config", "thinker_config")
_CLASS_SUFFIXES: Final = re.compile(r"(LMHeadModel|For\w+|Model)$")
# params.json of Mistral's own format, which names no family
_MISTRAL_NAMES: Final = {"n_kv_heads": "num_key_value_heads", "hidden_dim": "intermediate_size"}


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
    outer, text, text_path = _text_part(config, path)
    messages: list[Message] = []
    family = _family(outer, text, path, messages)
    reader = Reader(text, text_path)
    shape = read_shape(reader, family, differences=_prints_differences(outer, text_path, path))
    _check_counts(shape, text_path)
    moe = bool(shape.get("experts"))
    dtypes = weights_dtypes(outer, text, quant_config, path, messages, moe=moe)
    shape["weights_dtype"], shape["linear_weights_dtype"] = dtypes
    shape["kv_dtype"] = kv_dtype(outer, text, quant_config, path, messages)
    towers = tower_parameters(outer, shape["hidden"], path, messages)
    shape["extra_parameter_count"] = towers + shape.get("extra_parameter_count", 0)
    source = Source(title=f"config.json of {name}", kind="user")
    arch = LlmArchitecture(slug=name.lower()[:200], name=name, source=source, **shape)
    return arch, messages + _notes(reader, arch, text_path)


def supported_families() -> list[str]:
    return sorted(FAMILIES)


def _text_part(config: Config, path: str) -> tuple[Config, Config, str]:
    """(config around the language model, the language model's own, its path)."""
    for key in _NESTED:
        inner = config.get(key)
        if isinstance(inner, Mapping):
            kept = {"tie_word_embeddings": config["tie_word_embeddings"]} if _is_tied_outside(config) else {}
            around, text, where = _text_part(inner, f"{path}.{key}")
            towers = around if any(isinstance(value, Mapping) for value in around.values()) else {}
            return {**towers, **config}, {**kept, **text}, where
    return config, config, path


def _prints_differences(outer: Config, text_path: str, path: str) -> bool:
    """LLaVA's files nest of their language model only what differs from the defaults of its class."""
    kind = outer.get("model_type")
    return text_path != path and isinstance(kind, str) and "llava" in kind


def _is_tied_outside(config: Config) -> bool:
    return config.get("tie_word_embeddings") is not None


def _family(config: Config, text: Config, path: str, messages: list[Message]) -> Family:
    stated = text.get("model_type") or config.get("model_type") or _family_of_class(config)
    if not stated and {"dim", "n_layers", "n_heads"} <= text.keys():
        return Family(names=_MISTRAL_NAMES)
    if not isinstance(stated, str) or not stated:
        raise InputError.at(
            f"{path}.model_type",
            "config.missing",
            "this config.json names neither model_type nor architectures; paste the whole file",
        )
    candidates = (stated, str(config.get("model_type") or ""), _family_of_class(config) or "")
    for candidate in candidates:
        known = _known(candidate)
        if known in FAMILIES:
            return FAMILIES[known]
        if known in REFUSED:
            raise InputError.at(
                f"{path}.model_type",
                "config.unsupported",
                "the family {got!r} has {why} modelled; supported: {families}. A catalog model of about the "
                "same shape may stand in: set model.name",
                got=stated[:60],
                why=REFUSED[known],
                families=", ".join(supported_families()),
            )
    messages.append(
        Message(
            code="config.family_unknown",
            template="the family {got!r} is not known here; it is read by its fields as a decoder like Llama, so "
            "biases, norms and anything that only its code says are missing",
            params={"got": stated[:60]},
            path=f"{path}.model_type",
        )
    )
    return Family()


def _known(stated: str) -> str:
    family = stated.lower().removesuffix("_text").removesuffix("_vl_text")
    return ALIASES.get(family, family)


def _family_of_class(config: Config) -> str | None:
    """`LlamaForCausalLM` -> "llama", where a config has no model_type that is known."""
    classes = config.get("architectures")
    if not isinstance(classes, list) or not classes or not isinstance(classes[0], str):
        return None
    stem = _CLASS_SUFFIXES.sub("", classes[0][:200])
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", stem).lower()
    plain = words.replace("_", "")
    return next((family for family in (*FAMILIES, *REFUSED) if family.replace("_", "") == plain), words)


def _check_counts(shape: Shape, path: str) -> None:
    """Counts of layers that a wrong file could push below zero."""
    layers, free = shape["layers"], shape.get("attention_free_layers", 0)
    if shape.get("window_layers", 0) + free > layers or shape.get("dense_layers", 0) > layers:
        raise InputError.at(
            f"{path}.num_hidden_layers",
            "config.wrong",
            "more layers are listed than the model has: {got}",
            got=layers,
        )
    if free == layers:
        raise InputError.at(
            f"{path}.layer_types",
            "config.unsupported",
            "no layer has attention: there is no KV cache to plan for",
        )


def _notes(reader: Reader, arch: LlmArchitecture, path: str) -> list[Message]:
    notes: list[Message] = []
    if arch.mtp_layers:
        notes.append(
            Message(
                code="config.mtp_uncounted",
                template="{count} multi-token-prediction layer(s), {billions:.1f} billion parameters, are not "
                "counted: engines load them for speculation only",
                params={"count": arch.mtp_layers, "billions": mtp_parameter_count(arch) / 1e9},
                path=f"{path}.num_nextn_predict_layers",
            )
        )
    notes += [Message(code="config.approximated", template=text, path=path) for text in reader.remarks]
    if reader.defaulted:
        filled = ", ".join(f"{key} = {_printed(value)}" for key, value in reader.defaulted.items())
        notes.append(
            Message(
                code="config.defaults",
                template="not in the file, taken from the family's defaults: {filled}",
                params={"filled": filled},
                path=path,
            )
        )
    rest = [
        key
        for key, value in reader.config.items()
        if value is not None and key not in reader.read and not _WITHOUT_EFFECT.match(str(key))
    ]
    if rest:
        notes.append(
            Message(
                code="config.not_understood",
                template="not understood and left out: {keys}",
                params={"keys": ", ".join(sorted(map(str, rest)))[:400]},
                path=path,
            )
        )
    return notes


def _printed(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
