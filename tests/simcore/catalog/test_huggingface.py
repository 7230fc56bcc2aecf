"""The config.json importer: shapes equal the catalog's, what is missing or odd is said, nothing is guessed."""

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simcore.catalog import LlmArchitecture, default_catalog
from simcore.catalog.huggingface import architecture_from_config, supported_families
from simcore.catalog.parameters import kv_bytes_per_token, parameter_terms
from simcore.errors import InputError, Message

LLAMA_8B: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "max_position_embeddings": 131072,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 8,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "vocab_size": 128256,
}
GEMMA_27B: dict[str, Any] = {
    "architectures": ["Gemma3ForConditionalGeneration"],
    "model_type": "gemma3",
    "text_config": {
        "head_dim": 128,
        "hidden_size": 5376,
        "intermediate_size": 21504,
        "model_type": "gemma3_text",
        "num_attention_heads": 32,
        "num_hidden_layers": 62,
        "num_key_value_heads": 16,
        "query_pre_attn_scalar": 168,
        "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
        "sliding_window": 1024,
    },
    "torch_dtype": "bfloat16",
    "vision_config": {
        "hidden_size": 1152,
        "image_size": 896,
        "intermediate_size": 4304,
        "model_type": "siglip_vision_model",
        "num_attention_heads": 16,
        "num_hidden_layers": 27,
        "patch_size": 14,
    },
}
PHI_4: dict[str, Any] = {
    "model_type": "phi3",
    "hidden_size": 5120,
    "intermediate_size": 17920,
    "max_position_embeddings": 16384,
    "num_attention_heads": 40,
    "num_hidden_layers": 40,
    "num_key_value_heads": 10,
    "sliding_window": None,
    "vocab_size": 100352,
}
OPT_13B: dict[str, Any] = {
    "model_type": "opt",
    "hidden_size": 5120,
    "ffn_dim": 20480,
    "max_position_embeddings": 2048,
    "num_attention_heads": 40,
    "num_hidden_layers": 40,
    "vocab_size": 50272,
    "word_embed_proj_dim": 5120,
    "torch_dtype": "float16",
}
SHAPE = (
    "layers hidden heads kv_heads head_dim intermediate vocab tied_embeddings gated_mlp attention_bias output_bias "
    "mlp_bias norm_bias norms_per_layer qk_norm learned_positions max_position experts experts_per_token "
    "moe_intermediate shared_intermediate dense_layers kv_lora_rank q_lora_rank qk_rope_head_dim qk_nope_head_dim "
    "v_head_dim window_layers window_tokens"
).split()
FROM_FILES = {
    "meta-llama--Meta-Llama-3.1-8B": "llama-3.1-8b",
    "meta-llama--Meta-Llama-3.1-70B": "llama-3.1-70b",
    "meta-llama--Meta-Llama-3.1-405B": "llama-3.1-405b",
    "Qwen--Qwen3-0.6B": "qwen3-0.6b",
    "Qwen--Qwen3-8B": "qwen3-8b",
    "Qwen--Qwen3-32B": "qwen3-32b",
    "Qwen--Qwen3-30B-A3B": "qwen3-30b-a3b",
    "Qwen--Qwen3-235B-A22B": "qwen3-235b-a22b",
    "Qwen--Qwen3-Coder-480B-A35B-Instruct": "qwen3-coder-480b",
    "mistralai--Mixtral-8x7B-v0.1": "mixtral-8x7b",
    "mistralai--Mixtral-8x22B-v0.1": "mixtral-8x22b",
    "openai--gpt-oss-20b": "gpt-oss-20b",
    "openai--gpt-oss-120b": "gpt-oss-120b",
    "deepseek-ai--DeepSeek-V3": "deepseek-v3",
    "deepseek-ai--DeepSeek-R1": "deepseek-v3",
    "moonshotai--Kimi-K2-Instruct": "kimi-k2",
    "meta-llama--Llama-4-Scout-17B-16E-Instruct": "llama-4-scout",
    "meta-llama--Llama-4-Maverick-17B-128E-Instruct": "llama-4-maverick",
}


def shape(arch: LlmArchitecture) -> dict[str, Any]:
    return {name: getattr(arch, name) for name in SHAPE}


def imported(config: dict[str, Any]) -> LlmArchitecture:
    return architecture_from_config(config, name="mine")[0]


def outcome(config: dict[str, Any]) -> tuple[LlmArchitecture, list[Message]] | InputError:
    try:
        return architecture_from_config(config, name="mine")
    except InputError as error:
        return error


def codes(config: dict[str, Any], **more: Any) -> list[str]:
    return [message.code for message in architecture_from_config(config, name="mine", **more)[1]]


@pytest.mark.parametrize(("stem", "slug"), FROM_FILES.items(), ids=FROM_FILES)
def test_published_config_gives_the_catalogs_shape(shared: Path, stem: str, slug: str) -> None:
    file = shared / "reference" / "hf_configs" / f"{stem}_config.json"
    arch, _ = architecture_from_config(json.loads(file.read_text(encoding="utf-8")), name=stem)
    assert shape(arch) == shape(default_catalog().model(slug))


HYBRIDS_FROM_FILES = {
    "Qwen--Qwen3.5-397B-A17B": "qwen3.5-397b-a17b",
    "Qwen--Qwen3.5-122B-A10B": "qwen3.5-122b-a10b",
    "Qwen--Qwen3.5-35B-A3B": "qwen3.5-35b-a3b",
    "Qwen--Qwen3.5-27B": "qwen3.5-27b",
    "nvidia--NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": "nemotron-3-nano-30b-a3b",
    "nvidia--NVIDIA-Nemotron-3-Super-120B-A12B-FP8": "nemotron-3-super-120b-a12b",
    "deepseek-ai--DeepSeek-V3.2": "deepseek-v3.2",
    "deepseek-ai--DeepSeek-V4-Pro": "deepseek-v4-pro",
    "zai-org--GLM-5": "glm-5",
    "zai-org--GLM-5.2": "glm-5.2",
    "nvidia--Gemma-4-31B-IT-NVFP4": "gemma-4-31b",
    "nvidia--Gemma-4-26B-A4B-NVFP4": "gemma-4-26b-a4b",
}


@pytest.mark.parametrize(("stem", "slug"), HYBRIDS_FROM_FILES.items(), ids=HYBRIDS_FROM_FILES)
def test_catalog_holds_states_indexers_and_compressed_entries_as_the_importer_reads_them(
    shared: Path, stem: str, slug: str
) -> None:
    file = shared / "reference" / "hf_configs" / f"{stem}_config.json"
    arch, _ = architecture_from_config(json.loads(file.read_text(encoding="utf-8")), name=stem)
    stated = ("slug", "name", "source", "figures", "also_known_as")
    formats = ("weights_dtype", "linear_weights_dtype", "kv_dtype")  # of the one checkpoint that was read
    of_files, of_catalog = (
        {item.name: getattr(one, item.name) for item in fields(one) if item.name not in stated + formats}
        for one in (arch, default_catalog().model(slug))
    )
    assert of_catalog == of_files


@pytest.mark.parametrize(
    ("config", "slug"),
    [(LLAMA_8B, "llama-3.1-8b"), (GEMMA_27B, "gemma-3-27b"), (PHI_4, "phi-4"), (OPT_13B, "opt-13b")],
)
def test_common_families_give_the_catalogs_shape(config: dict[str, Any], slug: str) -> None:
    assert shape(imported(config)) == shape(default_catalog().model(slug))


def test_every_real_config_is_imported_and_all_its_keys_are_understood(shared: Path) -> None:
    for file in sorted((shared / "reference" / "hf_configs").glob("*_config.json")):
        if file.name.endswith("hf_quant_config.json"):
            continue
        config = json.loads(file.read_text(encoding="utf-8"))
        arch, messages = architecture_from_config(config, name=file.stem)
        assert parameter_terms(arch).total > 1e8
        assert all(message.text and message.path.startswith("model.config") for message in messages)
        said = {message.code for message in messages}
        assert not said & {"config.not_understood", "config.family_unknown"}, file.name


def test_gemma_names_the_defaults_it_filled_in_and_counts_its_vision_tower() -> None:
    arch, messages = architecture_from_config(GEMMA_27B, name="gemma")
    assert [message.code for message in messages] == ["config.vision_estimated", "config.defaults"]
    assert "vocab_size = 262,208" in messages[1].text
    assert arch.extra_parameter_count == pytest.approx(417e6, rel=0.02)
    assert (arch.full_layers, arch.window_layers) == (10, 52)


@pytest.mark.parametrize(
    "missing", ["hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size"]
)
def test_missing_field_is_named(missing: str) -> None:
    config = {key: value for key, value in LLAMA_8B.items() if key != missing}
    with pytest.raises(InputError) as caught:
        imported(config)
    assert caught.value.message.path == f"model.config.{missing}"
    assert missing in caught.value.message.text


@pytest.mark.parametrize(
    "value", [0, -1, 1.5, "32", True, [32], float("nan"), float("inf"), 10**12, {"a": 1}]
)
def test_wrong_value_is_refused_at_its_field(value: object) -> None:
    with pytest.raises(InputError) as caught:
        imported({**LLAMA_8B, "num_hidden_layers": value})
    assert caught.value.message.path == "model.config.num_hidden_layers"


def test_absurd_layer_count_and_uneven_heads_are_refused() -> None:
    with pytest.raises(InputError, match="at most 10,000"):
        imported({**LLAMA_8B, "num_hidden_layers": 20_000})
    with pytest.raises(InputError, match="do not divide"):
        imported({**LLAMA_8B, "num_key_value_heads": 7})


def test_unknown_family_is_read_by_its_fields_and_says_so() -> None:
    mystery = {**LLAMA_8B, "model_type": "mystery", "architectures": ["MysteryForCausalLM"]}
    arch, messages = architecture_from_config(mystery, name="mine")
    assert shape(arch) == shape(default_catalog().model("llama-3.1-8b"))
    assert [message.code for message in messages] == ["config.family_unknown"]
    assert messages[0].path == "model.config.model_type"


@pytest.mark.parametrize(
    ("family", "reason"),
    [("mamba2", "no attention at all"), ("t5", "an encoder"), ("zamba", "serve several layers")],
)
def test_family_that_cannot_be_planned_is_refused_with_its_reason(family: str, reason: str) -> None:
    with pytest.raises(InputError, match=reason) as caught:
        imported({**LLAMA_8B, "model_type": family})
    assert caught.value.message.path == "model.config.model_type"
    assert all(name in caught.value.message.text for name in supported_families())


def test_family_is_read_from_the_class_where_model_type_is_absent() -> None:
    assert imported({k: v for k, v in LLAMA_8B.items() if k != "model_type"}).layers == 32
    with pytest.raises(InputError, match="names neither"):
        imported({"hidden_size": 4096})


def test_field_that_is_not_understood_is_named_in_a_warning() -> None:
    arch, messages = architecture_from_config({**LLAMA_8B, "kv_sharing_stride": 4}, name="mine")
    assert [message.code for message in messages] == ["config.not_understood"]
    assert "kv_sharing_stride" in messages[0].text
    assert arch.layers == 32
    assert codes(LLAMA_8B) == []


@pytest.mark.parametrize(
    ("quantisation", "dtype"),
    [
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, "fp8_block"),
        ({"quant_method": "fp8"}, "fp8"),
        ({"quant_method": "mxfp4"}, "mxfp4"),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "nvfp4"),
        ({"quant_method": "modelopt", "quant_algo": "FP8"}, "fp8"),
        ({"quant_method": "compressed-tensors", "format": "float-quantized"}, "fp8"),
        ({"quant_method": "compressed-tensors", "format": "pack-quantized"}, "int4"),
        ({"quant_method": "compressed-tensors", "format": "int-quantized"}, "int8"),
        ({"quant_method": "awq", "bits": 4}, "int4"),
        ({"quant_method": "gptq", "bits": 8}, "int8"),
    ],
)
def test_quantised_checkpoint_sets_the_weights_dtype(quantisation: dict[str, Any], dtype: str) -> None:
    assert imported({**LLAMA_8B, "quantization_config": quantisation}).weights_dtype == dtype


def test_quantisation_beside_the_config_is_read_and_unknown_or_partial_ones_are_said() -> None:
    beside = {
        "quantization": {"quant_algo": "NVFP4", "exclude_modules": ["lm_head", "model.layers.0.self_attn*"]}
    }
    arch, messages = architecture_from_config(LLAMA_8B, name="mine", quant_config=beside)
    assert arch.weights_dtype == "nvfp4"
    assert [message.code for message in messages] == ["config.quantization_partial"]
    assert codes({**LLAMA_8B, "quantization_config": {"quant_method": "runes"}}) == [
        "config.quantization_unknown"
    ]


def test_layer_types_must_fit_and_be_known() -> None:
    gpt = {
        **LLAMA_8B,
        "model_type": "gpt_oss",
        "num_local_experts": 8,
        "num_experts_per_tok": 2,
        "sliding_window": 128,
        "layer_types": ["sliding_attention", "full_attention"] * 16,
    }
    assert imported(gpt).window_layers == 16
    with pytest.raises(InputError, match="31 layer types for 32 layers"):
        imported({**gpt, "layer_types": gpt["layer_types"][:31]})
    with pytest.raises(InputError, match="no layer has attention"):
        imported({**gpt, "layer_types": ["linear_attention"] * 32, "conv_L_cache": 3})
    with pytest.raises(InputError, match="has no linear_num_value_heads or mamba_num_heads"):
        imported({**gpt, "layer_types": ["linear_attention", "full_attention"] * 16})
    with pytest.raises(InputError, match="bogus are not modelled"):
        imported({**gpt, "layer_types": ["bogus"] * 32})
    with pytest.raises(InputError, match="9 experts per token of 8"):
        imported({**gpt, "num_experts_per_tok": 9})


def test_window_that_is_switched_off_is_no_window() -> None:
    qwen = {
        **LLAMA_8B,
        "model_type": "qwen3",
        "head_dim": 128,
        "sliding_window": 4096,
        "max_window_layers": 20,
    }
    assert imported({**qwen, "use_sliding_window": False}).window_layers == 0
    assert imported({**qwen, "use_sliding_window": True}).window_layers == 12


def test_imported_numbers_are_the_users_inputs_in_a_trace() -> None:
    arch = imported(LLAMA_8B)
    assert arch.leaf("hidden").kind == "input"
    assert kv_bytes_per_token(arch).value == 131_072


OTHER_KEYS = (
    "head_dim text_config vision_config quantization_config layer_types sliding_window num_experts_per_tok "
    "no_rope_layers mlp_only_layers max_window_layers use_sliding_window"
).split()
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(
    family=st.sampled_from(supported_families()),
    key=st.sampled_from([*LLAMA_8B, *OTHER_KEYS]),
    value=JSON_VALUES,
)
def test_any_value_anywhere_ends_in_a_shape_or_an_input_error(family: str, key: str, value: object) -> None:
    found = outcome({**LLAMA_8B, "model_type": family, key: value})
    if isinstance(found, InputError):
        assert found.message.path.startswith("model.config")
    else:
        assert parameter_terms(found[0]).total > 0


@pytest.mark.parametrize(
    ("quantisation", "beside", "kv"),
    [
        ({}, {"quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8"}, "fp8"),
        ({}, {"quant_algo": "FP8", "kv_cache_quant_algo": None}, ""),
        ({"quant_method": "fp8", "kv_cache_scheme": {"num_bits": 8, "type": "float"}}, None, "fp8"),
        ({"quant_method": "modelopt", "quant_algo": "FP8", "kv_cache_scheme": "FP8"}, None, "fp8"),
        ({"quant_method": "compressed-tensors", "kv_cache_scheme": None}, None, ""),
        ({}, None, ""),
    ],
)
def test_checkpoint_states_the_format_of_its_cache(
    quantisation: dict[str, Any], beside: dict[str, Any] | None, kv: str
) -> None:
    quant = {"quantization": beside} if beside is not None else None
    config = LLAMA_8B | ({"quantization_config": quantisation} if quantisation else {})
    arch, _ = architecture_from_config(config, name="mine", quant_config=quant)
    assert arch.kv_dtype == kv


def test_cache_in_another_format_is_said_and_taken_as_16_bit() -> None:
    quant = {"quantization": {"quant_algo": "NVFP4", "kv_cache_quant_algo": "NVFP4"}}
    arch, messages = architecture_from_config(LLAMA_8B, name="mine", quant_config=quant)
    assert arch.kv_dtype == ""
    assert [message.code for message in messages] == ["config.kv_unknown"]


@pytest.mark.parametrize(
    ("scaling", "positions"),
    [
        ({"rope_type": "llama3", "factor": 8.0, "original_max_position_embeddings": 8192}, 131_072),
        ({"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 65_536}, 262_144),
        ({"rope_type": "yarn", "factor": 16.0, "original_max_position_embeddings": 8192}, 131_072),
        ({"type": "linear", "factor": 2}, 262_144),
        ({"type": "dynamic", "factor": "two"}, 131_072),
        (None, 131_072),
    ],
)
def test_rotary_scaling_stretches_the_length(scaling: dict[str, Any] | None, positions: int) -> None:
    config = LLAMA_8B | {"max_position_embeddings": 131_072, "rope_scaling": scaling}
    assert imported(config).max_position == positions
