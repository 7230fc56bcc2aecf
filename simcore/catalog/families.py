"""The table of decoder families: what their config files leave unsaid, or say differently.

Everything a config prints is read by the shared parts (`config_layers.py`, `config_experts.py`,
`config_mixers.py`, `config_sparse.py`), whatever the family. A row here adds the rest: biases and norms
that its code has, defaults of its config class, other names of keys, a rule for its window layers, and at
most one function where the family is truly different. A new family is one row; one that only prints what
it has needs none, and is read by its fields with a warning.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from simcore.catalog import (
    config_experts,
    config_layers,
    config_mixers,
    config_shared_blocks,
    config_sparse,
    family_rules,
)
from simcore.catalog.config_layers import window_but_every, window_everywhere, window_if_used
from simcore.catalog.config_reader import Part, Reader, Shape


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """One row: see the fields' comments."""

    fixed: Mapping[str, Any] = field(default_factory=dict)  # shape fields that every model of it has
    defaults: Mapping[str, Any] = field(default_factory=dict)  # config class values that files leave out
    nested: Mapping[str, Any] = field(default_factory=dict)  # the same, where a file nests only differences
    names: Mapping[str, str] = field(default_factory=dict)  # its keys → the usual ones
    tied: bool = False  # tie_word_embeddings where a file does not say
    windows: Part | None = None  # which layers are windows where the file lists none
    attention: Part | None = None  # replaces latent and indexed attention
    adjust: Part | None = None  # last word
    silent: frozenset[str] = frozenset()  # keys of its own without effect on shape


_PARTS: Final[tuple[Part, ...]] = (
    config_experts.experts,
    config_mixers.recurrence,
    config_sparse.indexer,
    config_sparse.latent_experts,
    config_sparse.residual_streams,
    config_sparse.engram,
    config_sparse.per_layer_inputs,
    config_sparse.shared_kv,
    family_rules.other_window_shape,
    family_rules.output_gate,
    family_rules.residual_attention,
    family_rules.prediction_layers,
)


def read_shape(r: Reader, family: Family, *, differences: bool = False) -> Shape:
    """All fields of an architecture that a config and its family's row give.

    `differences`: the config prints only what differs from its class."""
    r.rename(family.names)
    if differences:
        r.fill(family.nested)
    r.fill(family.defaults)
    r.read |= family.silent
    shape = config_layers.common(r, {})
    shape["tied_embeddings"] = r.flag("tie_word_embeddings", default=family.tied)
    shape |= config_layers.biases(r, shape)
    shape |= config_layers.latent(r, shape)
    shape |= config_layers.layers(r, shape)
    if "window_layers" not in shape and family.windows is not None:
        shape |= family.windows(r, shape)
    if family.attention is not None:
        shape |= family.attention(r, shape)
    for part in _PARTS:
        shape |= part(r, shape)
    shape |= family.fixed
    if family.adjust is not None:
        shape |= family.adjust(r, shape)
    return shape


_ALL_BIASES: Final = {"attention_bias": True, "output_bias": True, "mlp_bias": True, "norm_bias": True}
_PLAIN: Final = {"gated_mlp": False}
_QWEN2: Final = {"attention_bias": True, "output_bias": False}
_QK: Final = {"qk_norm": True}
_FOUR: Final = {"norms_per_layer": 4}
_ONE: Final = {"norms_per_layer": 1}
_GPT: Final = {**_ALL_BIASES, **_PLAIN}
_FOUR_TIMES: Final = {"mlp_ratio": 4}  # MLP width over hidden size
# LLaVA's files print of their language model what differs from its class
_LLAMA: Final = Family(
    nested={
        "hidden_size": 4096,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "intermediate_size": 11_008,
        "vocab_size": 32_000,
    }
)
_MISTRAL: Final = Family(
    windows=window_everywhere, nested={**_LLAMA.nested, "num_key_value_heads": 8, "intermediate_size": 14_336}
)
_QWEN2_VL: Final = Family(fixed=_QWEN2, windows=window_if_used)
_QWEN3: Final = Family(fixed=_QK, windows=window_if_used)
_DEEPSEEK: Final = Family()
_GATED_QWEN: Final = Family(
    fixed=_QK,
    defaults={"full_attention_interval": 4, "attn_output_gate": True},
    silent=frozenset({"mtp_use_dedicated_embeddings", "full_attention_interval"}),
)
_GEMMA3_DEFAULTS: Final = {
    "vocab_size": 262_208,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 256,
    "max_position_embeddings": 131_072,
    "sliding_window": 4096,
}
_MAMBA2_HYBRID: Final = Family(
    silent=frozenset({"mamba_rms_norm", "mamba_norm_before_gate", "mamba_use_mlp"})
)
_PHI3_SMALL: Final = frozenset(
    {"dense_attention_every_n_layers", "gegelu_limit", "ff_dim_multiplier", "gegelu_pad_to_256"}
)
_CHATGLM: Final = Family(
    names={"multi_query_group_num": "num_key_value_heads"},
    defaults={"add_qkv_bias": True},
    silent=frozenset({"original_rope", "post_layer_norm", "rmsnorm"}),
)

FAMILIES: Final[Mapping[str, Family]] = {
    # Llama and what is read exactly like it
    "llama": _LLAMA,
    "mllama": Family(adjust=family_rules.cross_attention),
    "llama4": Family(adjust=family_rules.llama4),
    "mistral": _MISTRAL,
    "ministral": _MISTRAL,
    "ministral3": _MISTRAL,
    "mistral3": _MISTRAL,
    "mistral4": _DEEPSEEK,
    "mixtral": _MISTRAL,
    "granite": _LLAMA,
    "granitemoe": _LLAMA,
    "granitemoeshared": _LLAMA,
    "granitemoehybrid": Family(silent=_MAMBA2_HYBRID.silent, adjust=family_rules.granite_hybrid),
    "bamba": _MAMBA2_HYBRID,
    "aquila": _LLAMA,
    "yi": _LLAMA,
    "internlm": Family(fixed={"mlp_bias": False}),
    "internlm2": Family(fixed={"mlp_bias": False}),
    "internlm3": Family(fixed={"mlp_bias": False}),
    "baichuan": _LLAMA,
    "xverse": _LLAMA,
    "orion": Family(fixed={"norm_bias": True}),
    "smollm3": Family(tied=True, windows=window_if_used),
    "seed_oss": Family(adjust=family_rules.seed_oss),
    "arcee": Family(fixed=_PLAIN),
    "apertus": Family(fixed={**_PLAIN, **_QK}),
    "minicpm": Family(tied=True),
    "minicpm3": Family(tied=True, defaults={"v_head_dim": 64}),
    "helium": _LLAMA,
    "solar": _LLAMA,
    "ernie4_5": Family(tied=True),
    "ernie4_5_moe": Family(tied=True),
    "ernie4_5_vl_moe": Family(tied=True),
    "hunyuan": Family(adjust=family_rules.hunyuan),
    "hunyuan_v1_dense": Family(adjust=family_rules.hunyuan, tied=True),
    "hunyuan_v1_moe": Family(adjust=family_rules.hunyuan, tied=True),
    "mimo": Family(fixed=_QWEN2),
    "mimo_v2_flash": Family(
        silent=frozenset({"add_full_attention_sink_bias", "add_swa_attention_sink_bias"})
    ),
    "exaone": _LLAMA,
    "exaone4": Family(fixed=_QK, windows=window_but_every(4)),
    "exaone_moe": Family(fixed=_QK, windows=window_but_every(4)),
    "muse_glimmer": Family(fixed=_FOUR, adjust=family_rules.wide_gate),
    "afmoe": Family(fixed={**_FOUR, **_QK}, adjust=family_rules.wide_gate, windows=window_but_every(4)),
    "lfm2": Family(fixed=_QK, tied=True, adjust=family_rules.lfm2),
    "lfm2_moe": Family(fixed=_QK, tied=True),
    "stablelm": Family(fixed={"norm_bias": True}),
    "stablelm_epoch": Family(fixed={"norm_bias": True}),
    "olmo": Family(fixed={"norms_per_layer": 0}),
    "olmo2": Family(fixed=_QK),
    "olmo3": Family(fixed=_QK, windows=window_but_every(4)),
    "olmoe": Family(fixed=_QK),
    "flex_olmo": Family(fixed=_QK),
    "cohere": Family(fixed=_ONE, tied=True),
    "cohere2": Family(fixed=_ONE, tied=True, windows=window_but_every(4)),
    "dbrx": Family(
        names={
            "attn_config.kv_n_heads": "num_key_value_heads",
            "ffn_config.ffn_hidden_size": "intermediate_size",
            "ffn_config.moe_num_experts": "num_experts",
            "ffn_config.moe_top_k": "num_experts_per_tok",
        }
    ),
    "arctic": Family(fixed={"norms_per_layer": 3}, adjust=family_rules.arctic),
    "grok-1": Family(fixed=_FOUR, tied=True, adjust=family_rules.grok),
    "bitnet": _LLAMA,
    "cwm": _LLAMA,
    "skywork_moe": _LLAMA,
    "solar_open": _LLAMA,
    # GPT and its descendants: plain MLP, biases
    "gpt2": Family(defaults=_FOUR_TIMES, fixed=_GPT, tied=True, adjust=family_rules.learned_positions),
    "gpt_bigcode": Family(defaults=_FOUR_TIMES, fixed=_GPT, tied=True, adjust=family_rules.multi_query),
    "gpt_neo": Family(
        defaults=_FOUR_TIMES,
        fixed={**_GPT, "attention_bias": False},
        tied=True,
        adjust=family_rules.learned_positions,
    ),
    "gptj": Family(defaults=_FOUR_TIMES, fixed={"mlp_bias": True, "norm_bias": True, **_PLAIN, **_ONE}),
    "codegen": Family(defaults=_FOUR_TIMES, fixed={"mlp_bias": True, "norm_bias": True, **_PLAIN, **_ONE}),
    "gpt_neox": Family(fixed=_GPT),
    "persimmon": Family(fixed={**_GPT, **_QK}),
    "xglm": Family(fixed=_GPT, tied=True, names={"attention_heads": "num_attention_heads"}),
    "bloom": Family(defaults=_FOUR_TIMES, fixed=_GPT, tied=True, names={"n_embed": "hidden_size"}),
    "opt": Family(fixed=_GPT, tied=True, adjust=family_rules.opt),
    "mpt": Family(
        defaults=_FOUR_TIMES,
        fixed=_PLAIN,
        tied=True,
        names={"attn_config.kv_n_heads": "num_key_value_heads", "expansion_ratio": "mlp_ratio"},
    ),
    "falcon": Family(defaults=_FOUR_TIMES, fixed=_PLAIN, tied=True, adjust=family_rules.falcon),
    "starcoder2": Family(
        fixed={"norm_bias": True, **_PLAIN}, defaults={"use_bias": True}, tied=True, windows=window_everywhere
    ),
    "phi": Family(fixed={**_GPT, **_ONE}),
    "phi3": _MISTRAL,
    "phi3small": Family(
        fixed={"attention_bias": True, "output_bias": True, "mlp_bias": True, "norm_bias": True},
        tied=True,
        silent=_PHI3_SMALL,
    ),
    "phi4mm": _MISTRAL,
    "phi4_multimodal": _MISTRAL,
    "phimoe": Family(fixed={"norm_bias": True, "mlp_bias": False}, windows=window_everywhere),
    "nemotron": Family(fixed={"norm_bias": True, **_PLAIN}),
    "nemotron_h": Family(fixed=_PLAIN, silent=_MAMBA2_HYBRID.silent),
    "nemotron-nas": Family(attention=family_rules.heads_per_layer),
    "chatglm": _CHATGLM,
    "glm": Family(fixed={"output_bias": False}, defaults={"attention_bias": True}),
    "glm4": Family(fixed={"output_bias": False, **_FOUR}),
    "glm4v": Family(fixed={"output_bias": False, **_FOUR}),
    "glm4_moe": Family(fixed={"output_bias": False}),
    "glm4v_moe": Family(fixed={"output_bias": False}),
    "glm4_moe_lite": _DEEPSEEK,
    "glm_moe_dsa": _DEEPSEEK,
    "glm5_next": _DEEPSEEK,
    # Qwen
    "qwen": Family(fixed=_QWEN2, adjust=family_rules.qwen1),
    "qwen2": _QWEN2_VL,
    "qwen2_vl": _QWEN2_VL,
    "qwen2_5_vl": _QWEN2_VL,
    "qwen2_5_omni": _QWEN2_VL,
    "qwen2_audio": _QWEN2_VL,
    "qwen2_moe": Family(fixed=_QWEN2, windows=window_if_used),
    "qwen3": _QWEN3,
    "qwen3_vl": _QWEN3,
    "qwen3_moe": _QWEN3,
    "qwen3_vl_moe": _QWEN3,
    "qwen3_omni_moe": _QWEN3,
    "qwen3_next": _GATED_QWEN,
    "qwen3_5": _GATED_QWEN,
    "qwen3_5_moe": _GATED_QWEN,
    # Gemma
    "gemma": Family(tied=True),
    "gemma2": Family(fixed=_FOUR, tied=True, windows=window_but_every(2)),
    "gemma3": Family(
        fixed={**_FOUR, **_QK}, tied=True, windows=window_but_every(6), defaults=_GEMMA3_DEFAULTS
    ),
    "gemma3n": Family(fixed={**_FOUR, **_QK}, tied=True, adjust=family_rules.gemma3n),
    "gemma4": Family(fixed={**_FOUR, **_QK}, tied=True, adjust=family_rules.gemma4),
    # DeepSeek, Kimi and other latent-attention or fine-grained MoE models
    "deepseek": _DEEPSEEK,
    "deepseek_v2": _DEEPSEEK,
    "deepseek_v3": _DEEPSEEK,
    "deepseek_v32": _DEEPSEEK,
    "deepseek_v4": Family(attention=config_sparse.compressed),
    "deepseek_v41": Family(attention=config_sparse.compressed),
    "kimi_k2": _DEEPSEEK,
    "kimi_linear": _DEEPSEEK,
    "dots1": Family(fixed=_QK),
    "longcat_flash": Family(attention=family_rules.longcat),
    "step3p5": Family(
        fixed=_QK,
        names={"num_attention_groups": "num_key_value_heads"},
        silent=frozenset({"share_q_dim", "att_impl_type", "zero_centered", "yarn_only_types"}),
    ),
    "step3": Family(names={"share_q_dim": "q_lora_rank", "num_attention_groups": "num_key_value_heads"}),
    "bailing_moe": _LLAMA,
    "bailing_moe_v2": Family(fixed=_QK),
    "bailing_moe_linear": Family(fixed=_QK),
    "bailing_hybrid": Family(fixed=_QK),
    "gpt_oss": Family(
        fixed={"attention_bias": True, "output_bias": True, "mlp_bias": True}, windows=window_but_every(2)
    ),
    "minimax": _LLAMA,
    "minimax_text_01": _LLAMA,
    "minimax_m1": _LLAMA,
    "minimax_m3": Family(fixed=_QK, attention=config_sparse.block_sparse, adjust=family_rules.minimax_m3),
    "minimax_m2": Family(fixed=_QK, silent=frozenset({"sliding_window"})),
    # hybrids
    "zamba2": Family(
        tied=True,
        names={"n_mamba_heads": "mamba_num_heads"},
        adjust=config_shared_blocks.zamba2,
        silent=frozenset({"use_mem_rope", "time_step_limit", "use_long_context", "conv_dimension"}),
    ),
    "recurrent_gemma": Family(
        fixed={"output_bias": True, "mlp_bias": True}, tied=True, adjust=family_rules.recurrent_gemma
    ),
    "olmo_hybrid": Family(fixed=_QK),
    "jamba": _LLAMA,
    "falcon_h1": Family(windows=family_rules.state_in_every_layer, silent=_MAMBA2_HYBRID.silent),
}

# Model types and classes that go by another name above.
ALIASES: Final[Mapping[str, str]] = {
    "step3_text": "step3",
    "step3p7": "step3p5",
    "minimax_m3_vl": "minimax_m3",
    "kimi_k3": "kimi_linear",
    "ernie4_5_moe_vl": "ernie4_5_vl_moe",
    "grok1": "grok-1",
    "kimi_vl": "deepseek_v3",
    "kimi_k25": "kimi_k2",
    "deepseek_vl_v2": "deepseek_v2",
    "grok_1": "grok-1",
    "grok": "grok-1",
    "deci": "nemotron-nas",
    "deci_lm": "nemotron-nas",
    "internlm2_chat": "internlm2",
    "refined_web": "falcon",
    "refined_web_model": "falcon",
    "gptneox": "gpt_neox",
    "hunyuan_moe": "hunyuan_v1_moe",
    "hunyuan_dense": "hunyuan_v1_dense",
    "qwen3_omni_moe_thinker": "qwen3_omni_moe",
    "qwen2_5_omni_thinker": "qwen2_5_omni",
    "mini_max_text01": "minimax_text_01",
    "mini_max_m1": "minimax_m1",
    "mini_max_m2": "minimax_m2",
    "pixtral": "mistral",
    "gemma4_unified": "gemma4",
}

_ENCODERS: Final = "an encoder or an encoder and a decoder; only decoders that write token by token are"
_ATTENTION_FREE: Final = "no attention at all, so no KV cache to plan; hybrids that have some are"
_SHARED_BLOCKS: Final = "attention blocks whose weights serve several layers, which are not"
# Families that exist and are refused, with what the core does not model.
REFUSED: Final[Mapping[str, str]] = {
    **dict.fromkeys(("mamba", "mamba2", "falcon_mamba", "rwkv", "rwkv5", "rwkv6", "rwkv7"), _ATTENTION_FREE),
    **dict.fromkeys(("xlstm", "retnet", "hyena"), _ATTENTION_FREE),
    **dict.fromkeys(("zamba", "ouro", "iquest_loop_coder"), _SHARED_BLOCKS),
    "openelm": "layers with numbers of heads of their own, which are not",
    "jetmoe": "experts in its attention, which are not",
    **dict.fromkeys(("bert", "roberta", "xlm-roberta", "deberta-v2", "modernbert", "vit", "clip"), _ENCODERS),
    **dict.fromkeys(("t5", "mt5", "bart", "mbart", "whisper", "marian", "pegasus", "t5gemma"), _ENCODERS),
}
