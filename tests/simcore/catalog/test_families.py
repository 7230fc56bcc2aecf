"""Every family of the table against published parameter counts, and what hybrids and sparse models hold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simcore.catalog import LlmArchitecture
from simcore.catalog.families import ALIASES, FAMILIES, REFUSED
from simcore.catalog.huggingface import architecture_from_config
from simcore.catalog.layers import attention_kinds, layer_counts
from simcore.catalog.parameters import (
    active_parameter_count,
    kv_bytes_per_token,
    kv_layer_groups,
    mtp_parameter_count,
    parameter_count,
    parameter_terms,
    state_bytes_per_sequence,
)
from simcore.errors import InputError
from tests.simcore.catalog.published_configs import DENSE, EXPERTS, HYBRIDS, Published, base
from tests.simcore.catalog.published_wide import WIDE_DENSE_AND_EXPERTS, WIDE_HYBRIDS, WITH_TOWERS

TEXT_ONLY = DENSE | EXPERTS | HYBRIDS | WIDE_DENSE_AND_EXPERTS | WIDE_HYBRIDS
ALL = TEXT_ONLY | WITH_TOWERS


def imported(config: dict[str, Any], **more: Any) -> LlmArchitecture:
    return architecture_from_config(config, name="mine", **more)[0]


def real(shared: Path, stem: str) -> LlmArchitecture:
    file = shared / "reference" / "hf_configs" / f"{stem}_config.json"
    beside = file.with_name(f"{stem}_hf_quant_config.json")
    quant = json.loads(beside.read_text(encoding="utf-8")) if beside.exists() else None
    return imported(json.loads(file.read_text(encoding="utf-8")), quant_config=quant)


@pytest.mark.parametrize("published", ALL.values(), ids=ALL)
def test_parameters_are_the_published_ones(published: Published) -> None:
    arch = imported(published.config)
    counts = parameter_terms(arch)
    assert counts.total == pytest.approx(published.total_billions * 1e9, rel=6e-3)
    if published.active_billions:  # published to two digits, with or without embeddings
        assert counts.active == pytest.approx(published.active_billions * 1e9, rel=0.08)


@pytest.mark.parametrize("published", ALL.values(), ids=ALL)
def test_all_keys_of_published_files_are_understood(published: Published) -> None:
    _, messages = architecture_from_config(published.config, name="mine")
    said = {message.code for message in messages}
    towers = {"config.vision_estimated"}
    assert said <= {"config.defaults", "config.mtp_uncounted", "config.approximated"} | towers


@pytest.mark.parametrize("published", ALL.values(), ids=ALL)
def test_trees_and_counts_agree(published: Published) -> None:
    arch = imported(published.config)
    counts = parameter_terms(arch)
    assert parameter_count(arch).value == counts.total == sum(counts.groups.values())
    assert active_parameter_count(arch).value == pytest.approx(counts.active, rel=1e-9)
    everywhere = sum(g.layer_count * g.bytes_per_token for g in kv_layer_groups(arch) if not g.window_tokens)
    windows = sum(g.layer_count * g.bytes_per_token for g in kv_layer_groups(arch) if g.window_tokens)
    local = 0 if not arch.kv_stored_once else arch.full_layers * arch.head_dim * 2
    assert kv_bytes_per_token(arch).value == pytest.approx(everywhere + windows - local)


# Size in the name, where that is a total; names round, so 2 % or half of the last printed digit.
NAMED = {
    "Qwen--Qwen3.5-27B": 27.4,
    "Qwen--Qwen3.5-35B-A3B": 35.0,
    "Qwen--Qwen3.5-122B-A10B": 122.0,
    "Qwen--Qwen3.5-397B-A17B": 397.0,
    "Qwen--Qwen3-VL-235B-A22B-Instruct": 235.7,
    "deepseek-ai--DeepSeek-V3": 671.0,
    "deepseek-ai--DeepSeek-V4-Pro": 1573.0,
    "deepseek-ai--DeepSeek-V4.1-Flash": 748.0,
    "zai-org--GLM-5": 744.0,
    "moonshotai--Kimi-K2.5": 1027.0,
    "meta-models--Muse-Glimmer-30B": 30.0,
    "nvidia--Gemma-4-26B-A4B-NVFP4": 26.0,
    "nvidia--Gemma-4-31B-IT-NVFP4": 31.0,
    "nvidia--NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": 31.6,
    "nvidia--NVIDIA-Nemotron-3-Super-120B-A12B-FP8": 120.0,
    "nvidia--Nemotron-H-56B-Base-8K": 56.0,
    "nvidia--Llama-3_3-Nemotron-Super-49B-v1": 49.9,
}


@pytest.mark.parametrize(("stem", "billions"), NAMED.items(), ids=NAMED)
def test_real_files_have_the_size_of_their_name(shared: Path, stem: str, billions: float) -> None:
    assert parameter_terms(real(shared, stem)).total == pytest.approx(billions * 1e9, rel=0.02)


ACTIVE = {
    "Qwen--Qwen3.5-35B-A3B": (3, 3.5),
    "Qwen--Qwen3.5-122B-A10B": (9.5, 10.5),
    "Qwen--Qwen3.5-397B-A17B": (16.5, 17.5),
    "deepseek-ai--DeepSeek-V4-Pro": (48, 50),
    "nvidia--Gemma-4-26B-A4B-NVFP4": (3.5, 4.5),
    "nvidia--NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": (3, 3.6),
    "nvidia--NVIDIA-Nemotron-3-Super-120B-A12B-FP8": (12, 13),
}


@pytest.mark.parametrize(("stem", "bounds"), ACTIVE.items(), ids=ACTIVE)
def test_active_parameters_are_those_of_the_name(
    shared: Path, stem: str, bounds: tuple[float, float]
) -> None:
    assert bounds[0] * 1e9 <= parameter_terms(real(shared, stem)).active <= bounds[1] * 1e9


def test_hybrids_hold_a_constant_state_and_kv_only_where_they_attend(shared: Path) -> None:
    """Qwen3.5-397B: 45 of 60 layers keep 64 heads × 128 × 128 in fp32 and three inputs of a convolution."""
    arch = real(shared, "Qwen--Qwen3.5-397B-A17B")
    assert layer_counts(arch) == {"full": 15, "recurrent": 45, "moe": 60}
    assert kv_bytes_per_token(arch).value == 2 * 15 * 2 * 256 * 2
    convolution = (2 * 16 * 128 + 64 * 128) * 3 * 2
    assert state_bytes_per_sequence(arch).value == 45 * (64 * 128 * 128 * 4 + convolution)
    assert arch.attention_gate_width == 32 * 256


def test_one_block_per_layer_is_counted_as_such(shared: Path) -> None:
    arch = real(shared, "nvidia--NVIDIA-Nemotron-3-Super-120B-A12B-FP8")
    assert layer_counts(arch) == {"full": 8, "recurrent": 40, "moe": 40}
    assert arch.layers == 88
    assert (arch.moe_latent, arch.weights_dtype) == (1024, "fp8")
    assert kv_bytes_per_token(arch).value == 2 * 8 * 2 * 128 * 2


def test_an_indexer_keeps_keys_of_its_own_beside_the_latent_cache(shared: Path) -> None:
    """DeepSeek V3.2: 132 bytes (fp8 key and scale) in each of 61 layers; GLM-5.2 computes them in a quarter."""
    arch = real(shared, "deepseek-ai--DeepSeek-V3.2")
    assert kv_bytes_per_token(arch).value == 70_272 + 61 * 132
    assert arch.context_groups[0].topk_entries == 2048
    glm = real(shared, "zai-org--GLM-5.2")
    assert glm.context_groups[0].index_layer_count == 21
    assert kv_bytes_per_token(glm).value == 78 * 576 * 2 + 21 * 132


def test_compressed_attention_keeps_a_fraction_of_an_entry_per_token(shared: Path) -> None:
    """DeepSeek V4 Pro: 31 layers keep 1 of 128, 30 layers 1 of 4 with an index key each; windows beside."""
    arch = real(shared, "deepseek-ai--DeepSeek-V4-Pro")
    assert layer_counts(arch) == {"full": 31, "sparse": 30, "moe": 61}
    assert kv_bytes_per_token(arch).value == 31 * 1024 / 128 + 30 * (1024 + 132) / 4
    assert state_bytes_per_sequence(arch).value == 61 * 128 * 1024
    flash = real(shared, "deepseek-ai--DeepSeek-V4.1-Flash")
    assert [group.cached_layer_count for group in flash.context_groups] == [1, 3]
    assert flash.lookup_parameter_count == pytest.approx(196.6e9, rel=1e-3)


def test_full_layers_may_have_other_heads_than_window_layers(shared: Path) -> None:
    full, window = attention_kinds(real(shared, "nvidia--Gemma-4-31B-IT-NVFP4"))
    assert (full.layer_count, full.kv_heads, full.head_dim, full.has_value_matrix) == (10, 4, 512, False)
    assert (window.layer_count, window.kv_heads, window.head_dim) == (50, 16, 256)


def test_indexed_blocks_read_part_of_ordinary_keys_and_values() -> None:
    """MiniMax-M3: 60 layers of 4 heads, and 57 that keep index keys of 128 numbers at 16 bit."""
    arch = imported(WIDE_HYBRIDS["minimax-m3"].config)
    assert kv_bytes_per_token(arch).value == 60 * 2 * 4 * 128 * 2 + 57 * 128 * 2
    flat = {
        "index_n_heads": 4,
        "index_head_dim": 128,
        "index_block_size": 128,
        "index_topk_blocks": 16,
        "layer_types": ["full_attention"] * 3 + ["minimax_m3_sparse"] * 57,
        "mlp_layer_types": ["dense"] * 3 + ["sparse"] * 57,
    }
    text = dict(WIDE_HYBRIDS["minimax-m3"].config["text_config"])
    del text["sparse_attention_config"], text["moe_layer_freq"]
    newer = imported({"model_type": "minimax_m3_vl", "text_config": text | flat})
    assert newer.context_groups == arch.context_groups
    assert parameter_terms(newer).total == parameter_terms(arch).total


def test_shared_blocks_store_kv_at_every_use_and_weights_once() -> None:
    arch = imported(WIDE_HYBRIDS["zamba2-7b"].config)
    assert kv_bytes_per_token(arch).value == 2 * 13 * 32 * 224 * 2
    assert arch.recurrent_layers == 81
    once = imported(WIDE_HYBRIDS["zamba2-7b"].config | {"num_mem_blocks": 1})
    block = 7168 * 7168 * 3 + 7168 * 3584 + 3 * 3584 * 14336 + 3 * 3584
    assert parameter_terms(arch).total - parameter_terms(once).total == block


def test_windows_and_gated_recurrences_hold_the_same_whatever_the_length() -> None:
    arch = imported(WIDE_HYBRIDS["recurrentgemma-2b"].config)
    assert layer_counts(arch) == {"window": 8, "recurrent": 18, "dense_mlp": 26}
    assert arch.window_tokens == 2048
    assert state_bytes_per_sequence(arch).value == 18 * 2560 * (4 + 3 * 2)


def test_further_heads_of_window_layers_are_counted() -> None:
    config = WIDE_HYBRIDS["step-3.5-flash"].config
    other = config["attention_other_setting"] | {"num_attention_heads": 64}
    fewer = imported(config | {"attention_other_setting": other})
    difference = parameter_terms(imported(config)).total - parameter_terms(fewer).total
    assert difference == 33 * 2 * 4096 * 32 * 128


def test_layers_that_borrow_kv_store_none() -> None:
    arch = imported(HYBRIDS["gemma-3n-e4b"].config)
    assert (arch.shared_kv_full_layers, arch.shared_kv_window_layers) == (3, 12)
    assert kv_bytes_per_token(arch).value == 2 * 20 * 2 * 256 * 2
    assert arch.lookup_parameter_count == 262_144 * 35 * 256


def test_prediction_layers_are_named_and_not_counted(shared: Path) -> None:
    arch = real(shared, "deepseek-ai--DeepSeek-V3")
    assert mtp_parameter_count(arch) == pytest.approx(11.5e9, rel=0.02)
    assert parameter_terms(arch).total == pytest.approx(671.03e9, rel=1e-4)


def test_towers_are_counted_and_not_run(shared: Path) -> None:
    counts = parameter_terms(real(shared, "Qwen--Qwen3-VL-32B-Instruct"))
    assert counts.groups["extra"] == pytest.approx(0.59e9, rel=0.05)
    assert counts.active == pytest.approx(32.76e9, rel=1e-3)


MIXED = {
    "Qwen--Qwen3-235B-A22B-FP8": ("fp8_block", ""),
    "moonshotai--Kimi-K2.5": ("int4", "bf16"),
    "nvidia--Qwen3-235B-A22B-NVFP4": ("nvfp4", ""),
    "nvidia--Qwen3.5-397B-A17B-NVFP4": ("nvfp4", "bf16"),
    "nvidia--Qwen3.6-35B-A3B-NVFP4": ("nvfp4", "fp8"),
    "deepseek-ai--DeepSeek-V4-Pro": ("mxfp4", "fp8_block"),
    "nvidia--DeepSeek-V4-Pro-NVFP4": ("nvfp4", "fp8_block"),
    "openai--gpt-oss-120b": ("mxfp4", "bf16"),
    "zai-org--GLM-5-FP8": ("fp8_block", ""),
    "nvidia--NVIDIA-Nemotron-3-Nano-30B-A3B-NVFP4": ("nvfp4", "bf16"),
}


@pytest.mark.parametrize(("stem", "formats"), MIXED.items(), ids=MIXED)
def test_checkpoints_keep_experts_and_the_rest_in_their_formats(
    shared: Path, stem: str, formats: tuple[str, str]
) -> None:
    arch = real(shared, stem)
    assert (arch.weights_dtype, arch.linear_weights_dtype) == formats


def test_a_format_that_the_checkpoint_has_not_holds_for_all_weights(shared: Path) -> None:
    arch = real(shared, "moonshotai--Kimi-K2.5")
    assert arch.weight_formats("int4") == ("bf16", "int4")
    assert arch.weight_formats("fp8") == ("fp8", "fp8")


@pytest.mark.parametrize("key", ["text_config", "llm_config", "language_config"])
def test_language_model_is_found_where_it_is_nested(key: str) -> None:
    inner = base("qwen2", 3584, 28, 28, 4, 18944, 152064)
    outer = {"model_type": "internvl_chat", key: inner, "tie_word_embeddings": False}
    assert parameter_terms(imported(outer)).total == pytest.approx(7.62e9, rel=1e-3)
    with pytest.raises(InputError) as caught:
        imported({**outer, key: {k: v for k, v in inner.items() if k != "hidden_size"}})
    assert caught.value.message.path == f"model.config.{key}.hidden_size"


def test_a_thinker_nests_its_text_and_towers_two_levels_deep() -> None:
    text = base("qwen3_omni_moe_text", 2048, 48, 32, 4, 768, 152064, head_dim=128)
    experts = {"num_experts": 128, "num_experts_per_tok": 8, "moe_intermediate_size": 768}
    vision = {"hidden_size": 1152, "depth": 27, "intermediate_size": 4304, "patch_size": 16}
    omni = {
        "model_type": "qwen3_omni_moe",
        "thinker_config": {"text_config": text | experts, "vision_config": vision},
        "talker_config": {"hidden_size": 1024},
    }
    arch, messages = architecture_from_config(omni, name="omni")
    assert parameter_terms(arch).total == pytest.approx(30.9e9, rel=0.01)
    assert arch.extra_parameter_count > 4e8
    assert "config.not_understood" not in {message.code for message in messages}


def test_mistrals_own_file_format_is_read() -> None:
    params = {
        "dim": 5120,
        "n_layers": 40,
        "n_heads": 32,
        "n_kv_heads": 8,
        "head_dim": 128,
        "hidden_dim": 14336,
        "vocab_size": 131072,
        "norm_eps": 1e-5,
        "rope_theta": 1e6,
    }
    assert parameter_terms(imported(params)).total == pytest.approx(12.25e9, rel=1e-3)


def test_aliases_lead_to_rows_and_no_family_is_both_read_and_refused() -> None:
    assert set(ALIASES.values()) <= set(FAMILIES)
    assert not set(FAMILIES) & set(REFUSED)
    assert not set(ALIASES) & (set(FAMILIES) | set(REFUSED))


NEEDS_MORE = {
    "deepseek_v41": "sliding_window",
    "nemotron-nas": "block_configs",
    "qwen3_5": "linear_num_value_heads",
    "qwen3_5_moe": "linear_num_value_heads",
}


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_every_row_reads_a_config_or_names_what_it_needs(family: str) -> None:
    """Rows without a published config above read the keys that all files have."""
    configs = [p.config for p in ALL.values() if p.config["model_type"].removesuffix("_text") == family]
    config = configs[0] if configs else base(family, 1024, 8, 8, 2, 4096, 32000)
    if family in NEEDS_MORE:
        with pytest.raises(InputError) as caught:
            imported(config)
        assert caught.value.message.path == f"model.config.{NEEDS_MORE[family]}"
    else:
        assert parameter_terms(imported(config)).total > 5e7


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(published=st.sampled_from(list(ALL.values())), data=st.data(), value=JSON_VALUES)
def test_any_value_at_any_key_ends_in_a_shape_or_an_input_error(
    published: Published, data: st.DataObject, value: object
) -> None:
    key = data.draw(st.sampled_from(sorted(published.config)))
    try:
        arch = imported({**published.config, key: value})
    except InputError as error:
        found = error.message.path
    else:
        counts = parameter_terms(arch)
        assert counts.total >= counts.active > 0
        assert kv_bytes_per_token(arch).value >= 0
        return
    assert found.startswith("model.config")
