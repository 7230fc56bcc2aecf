"""The KV budget: identities, laws, and what is said when nothing fits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.catalog import default_catalog
from simcore.catalog.parameters import kv_bytes_per_token, parameter_terms
from simcore.errors import InfeasibleError
from simcore.memory.budget import KvBudget, kv_budget, waterfall
from simcore.memory.engines import engine_constants
from simcore.memory.fit import require_fit
from simcore.memory.weights import rank_weight_bytes
from simcore.parallelism import Parallelism, pipeline_stages
from simcore.why import evaluate

CATALOG = default_catalog()
GIB = 2**30


def budget(
    model: str = "llama-3.1-8b", chip: str = "nvidia-h100-sxm", tp: int = 1, pp: int = 1, **changes: object
) -> KvBudget:
    arguments: dict[str, object] = {
        "engine": engine_constants("vLLM 0.19"),
        "weights_dtype": "bf16",
        "kv_dtype": "bf16",
        "other_chips": tuple(CATALOG.chips.values()),
    }
    arguments |= changes
    return kv_budget(CATALOG.model(model), CATALOG.chip(chip), Parallelism(tp=tp, pp=pp), **arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("model", "expected", "dtype"),
    [
        ("llama-3.1-8b", 131_072, "bf16"),
        ("llama-3.1-70b", 327_680, "bf16"),
        ("llama-3.1-405b", 516_096, "bf16"),
        ("qwen3-30b-a3b", 98_304, "bf16"),
        ("gpt-oss-120b", 73_728, "bf16"),
        ("deepseek-v3", 70_272, "bf16"),
        ("kimi-k2", 35_136, "fp8"),
    ],
)
def test_kv_bytes_per_token_are_the_published_ones(model: str, expected: int, dtype: str) -> None:
    assert kv_bytes_per_token(CATALOG.model(model), dtype).value == expected


@pytest.mark.parametrize("model", sorted(CATALOG.models))
def test_one_rank_holds_every_parameter_once(model: str) -> None:
    arch = CATALOG.model(model)
    weights = rank_weight_bytes(arch, Parallelism(tp=1), pipeline_stages(arch, 1)[0], weights_dtype="bf16")
    # the final norm is left out of the per-layer groups
    assert weights.value == pytest.approx(2 * parameter_terms(arch).total, rel=1e-4)


@pytest.mark.parametrize("model", ["llama-3.1-70b", "qwen3-32b", "mixtral-8x7b", "deepseek-v3"])
def test_ranks_together_hold_the_model_and_what_is_replicated(model: str) -> None:
    arch = CATALOG.model(model)
    parallelism = Parallelism(tp=8, pp=4)
    ranks = [
        rank_weight_bytes(arch, parallelism, stage, weights_dtype="bf16")
        for stage in pipeline_stages(arch, 4)
    ]
    whole = 2 * parameter_terms(arch).total
    assert whole * 0.999 <= 8 * sum(rank.value for rank in ranks) <= whole * 1.05


@settings(max_examples=60, deadline=None)
@given(
    model=st.sampled_from(["llama-3.1-8b", "qwen3-32b", "gemma-3-27b", "gpt-oss-20b", "deepseek-v2-lite"]),
    tp=st.sampled_from([1, 2, 4, 8]),
    pp=st.sampled_from([1, 2]),
    block=st.sampled_from([1, 16, 64, 128]),
    kv_dtype=st.sampled_from(["bf16", "fp8"]),
)
def test_blocks_and_tokens_are_whole_and_inside_the_memory(
    model: str, tp: int, pp: int, block: int, kv_dtype: str
) -> None:
    got = budget(model, tp=tp, pp=pp, block_size_tokens=block, kv_dtype=kv_dtype)
    for rank in got.ranks:
        assert rank.block_count.value == int(rank.block_count.value) >= 0
        assert rank.block_count.value * rank.page_bytes.value <= max(0.0, rank.kv_bytes.value)
        assert rank.token_capacity.value == rank.block_count.value // rank.group_count * block
    assert got.token_capacity.value == min(rank.token_capacity.value for rank in got.ranks)
    assert got.sequence_block_count * block == got.token_capacity.value


def test_the_tree_is_the_computation() -> None:
    got = budget()
    capacity = got.token_capacity
    more = evaluate(capacity, {"hbm_visible_bytes": 160e9})
    bigger = replace(CATALOG.chip("nvidia-h100-sxm"), hbm_visible_bytes=160e9)
    again = kv_budget(
        CATALOG.model("llama-3.1-8b"),
        bigger,
        Parallelism(tp=1),
        engine=engine_constants("vLLM 0.19"),
        weights_dtype="bf16",
        kv_dtype="bf16",
    )
    assert more == again.token_capacity.value > capacity.value


def test_window_layers_share_pages_in_groups() -> None:
    rank = budget("gemma-3-27b", tp=2).rank
    assert rank.group_count == 7


def test_the_latent_cache_is_not_split_by_tensor_parallelism() -> None:
    one, two = budget("deepseek-v2-lite"), budget("deepseek-v2-lite", tp=2)
    assert one.rank.page_bytes.value == two.rank.page_bytes.value


def test_kv_heads_fewer_than_ranks_are_replicated() -> None:
    four, eight = budget("qwen3-30b-a3b", tp=4), budget("qwen3-30b-a3b", tp=8)
    assert four.rank.page_bytes.value == eight.rank.page_bytes.value


def test_an_override_of_the_block_count_is_taken_as_it_is() -> None:
    got = budget(num_gpu_blocks_override=1000)
    assert got.block_count.value == 1000
    assert got.token_capacity.value == 16_000
    assert got.max_model_len == 16_000


def test_kv_cache_memory_bytes_replaces_the_remainder() -> None:
    got = budget(kv_cache_memory_bytes=10 * GIB)
    assert got.rank.kv_bytes.value == 10 * GIB
    assert got.token_capacity.value == 10 * GIB // (16 * 131_072) * 16


def test_defaults_follow_the_card() -> None:
    large, small = budget(), budget("llama-3.1-8b", "nvidia-rtx-4090")
    assert (large.max_num_seqs, large.max_num_batched_tokens) == (1024, 8192)
    assert (small.max_num_seqs, small.max_num_batched_tokens) == (256, 2048)


def test_an_open_number_of_sequences_follows_a_small_token_budget() -> None:
    assert budget(max_num_batched_tokens=512).max_num_seqs == 512
    assert budget(max_num_batched_tokens=512, max_num_seqs=64).max_num_seqs == 64


def test_an_open_length_is_cut_to_what_fits() -> None:
    got = budget("llama-3.1-8b", "nvidia-rtx-4090")
    assert got.fits
    assert got.max_model_len == got.token_capacity.value < 131_072
    assert budget().max_model_len == 131_072


@pytest.mark.parametrize("blocks", [100, 500, 4000])
def test_an_open_length_fits_also_where_layers_have_windows(blocks: int) -> None:
    got = budget("gemma-3-27b", tp=2, num_gpu_blocks_override=blocks)
    assert got.fits
    assert got.max_concurrency.value >= 1.0


def test_the_waterfall_adds_up() -> None:
    rows = waterfall(budget("qwen3-30b-a3b"))
    whole = next(row["bytes"] for row in rows if row["kind"] == "total")
    assert sum(row["bytes"] for row in rows if row["kind"] != "total") == pytest.approx(whole)


@pytest.mark.parametrize(
    "asked", [{"num_gpu_blocks_override": 1_000_000}, {"kv_cache_memory_bytes": 500 * GIB}]
)
def test_a_cache_larger_than_the_memory_is_infeasible(asked: dict[str, Any]) -> None:
    got = budget(**asked)
    assert not got.fits
    with pytest.raises(InfeasibleError, match=rf"What would fit: serving\.{next(iter(asked))}: \d") as caught:
        require_fit(got)
    assert caught.value.message.code == "memory.cache_too_large"


def test_a_cache_may_use_what_the_utilisation_leaves_free() -> None:
    """vLLM takes the number as it is; only the memory itself is a limit."""
    assert budget(gpu_memory_utilization=0.2, num_gpu_blocks_override=10_000).fits


def test_weights_that_do_not_fit_are_not_hidden_by_an_override() -> None:
    got = budget("llama-3.1-70b", num_gpu_blocks_override=10)
    assert got.binding == "weights"
    with pytest.raises(InfeasibleError, match=r"weights bind: .* \d+\.\d GiB too much"):
        require_fit(got)


@pytest.mark.parametrize("asked", [{}, {"num_gpu_blocks_override": 1000}, {"kv_cache_memory_bytes": 5 * GIB}])
def test_the_waterfall_adds_up_whoever_set_the_cache(asked: dict[str, Any]) -> None:
    got = budget(**asked)
    rows = waterfall(got)
    whole = next(row["bytes"] for row in rows if row["kind"] == "total")
    assert sum(row["bytes"] for row in rows if row["kind"] != "total") == pytest.approx(whole)
    assert rows[-1]["bytes"] >= got.block_count.value * got.rank.page_bytes.value
