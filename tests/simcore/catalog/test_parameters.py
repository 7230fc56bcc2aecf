"""Parameter counts against the published ones, and the KV identities."""

import csv
from pathlib import Path

import pytest

from simcore.catalog import default_catalog
from simcore.catalog.parameters import (
    active_parameter_count,
    kv_bytes_per_token,
    kv_layer_groups,
    parameter_count,
    parameter_terms,
)
from simcore.why import leaves

MODELS = default_catalog().models


def published(shared: Path) -> list[dict[str, str]]:
    with (shared / "reference" / "models.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def near(count: int, billions: str) -> bool:
    """Within 0.5 %, or within the rounding of two printed decimals."""
    expected = float(billions) * 1e9
    return abs(count - expected) <= max(0.005 * expected, 0.0051e9)


def test_totals_are_the_published_ones_for_every_model(shared: Path) -> None:
    for row in published(shared):
        counts = parameter_terms(MODELS[row["model"].lower()])
        assert near(counts.total, row["params_total_B"]), row["model"]
        # the table counts a vision tower as active; here it is not run per text token
        assert near(counts.active + counts.groups["extra"], row["params_active_B"]), row["model"]


def test_kv_bytes_are_the_published_ones_for_every_model(shared: Path) -> None:
    for row in published(shared):
        arch = MODELS[row["model"].lower()]
        assert kv_bytes_per_token(arch).value == float(row["kv_bytes_per_token_16bit"]), row["model"]


def test_window_layers_are_the_published_ones_for_every_model(shared: Path) -> None:
    for row in published(shared):
        arch = MODELS[row["model"].lower()]
        assert arch.full_layers == int(row["full_layers"]), row["model"]
        assert arch.window_layers == int(row["window_or_chunk_layers"]), row["model"]


@pytest.mark.parametrize(
    ("slug", "expected"),
    [
        ("llama-3.1-8b", 131_072),
        ("llama-3.1-70b", 327_680),
        ("llama-3.1-405b", 516_096),
        ("opt-13b", 819_200),
        ("deepseek-v3", 70_272),
    ],
)
def test_kv_identities_are_exact(slug: str, expected: int) -> None:
    term = kv_bytes_per_token(MODELS[slug])
    assert term.value == expected
    assert kv_bytes_per_token(MODELS[slug], "fp8").value == expected / 2
    assert term.name == "kv_bytes_per_token"


@pytest.mark.parametrize(
    ("slug", "expected"),
    [
        ("llama-3.1-8b", 8_030_261_248),
        ("llama-3.1-70b", 70_553_706_496),
        ("llama-3.1-405b", 405_853_388_800),
        ("qwen3-8b", 8_190_735_360),
        ("qwen3-30b-a3b", 30_532_122_624),
        ("mixtral-8x7b", 46_702_792_704),
        ("phi-4", 14_659_507_200),
        ("opt-13b", 12_853_473_280),
    ],
)
def test_counts_are_exact_to_the_last_parameter(slug: str, expected: int) -> None:
    """As the safetensors index of each model sums up (OPT: with its 2,050 learned positions)."""
    assert parameter_terms(MODELS[slug]).total == expected


@pytest.mark.parametrize("slug", MODELS)
def test_tree_and_count_agree_and_active_never_exceeds_total(slug: str) -> None:
    arch = MODELS[slug]
    counts = parameter_terms(arch)
    assert sum(counts.groups.values()) == counts.total
    assert parameter_count(arch).value == counts.total
    assert active_parameter_count(arch).value == pytest.approx(counts.active, rel=1e-12)
    assert counts.active <= counts.total
    assert (counts.active + counts.groups["extra"] == counts.total) == (not arch.is_moe)
    assert all(found.source for found in leaves(parameter_count(arch)))


def test_layer_groups_share_the_kv_bytes_of_all_layers() -> None:
    gemma = MODELS["gemma-3-27b"]
    full, window = kv_layer_groups(gemma)
    assert (full.layer_count, full.window_tokens) == (10, 0)
    assert (window.layer_count, window.window_tokens) == (52, 1024)
    everywhere = full.layer_count * full.bytes_per_token + window.layer_count * window.bytes_per_token
    assert everywhere == kv_bytes_per_token(gemma).value
    assert len(kv_layer_groups(MODELS["llama-3.1-8b"])) == 1


def test_tied_embeddings_are_stored_once() -> None:
    counts = parameter_terms(MODELS["gemma-3-27b"])
    assert counts.head == 0
    assert counts.embedding == 262_208 * 5_376


def test_experts_count_all_in_total_and_the_chosen_in_active() -> None:
    arch = MODELS["mixtral-8x7b"]
    counts = parameter_terms(arch)
    assert counts.expert == 3 * 4096 * 14336
    assert counts.total - counts.active == 32 * (8 - 2) * counts.expert
