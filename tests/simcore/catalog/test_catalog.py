"""Look-ups that help, overrides that are checked, and how fast the catalog is there."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simcore.catalog import default_catalog, overridable_figures, override_chip
from simcore.errors import InputError

H100 = default_catalog().chip("nvidia-h100-sxm")


@pytest.mark.parametrize(
    ("kind", "slug", "closest"),
    [
        ("chip", "nvidia-h100", "nvidia-h100-sxm"),
        ("chip", "H100", "nvidia-h100-sxm"),
        ("server", "dgx-h10", "dgx-h100"),
        ("model", "llama-3.1-7b", "llama-3.1-70b"),
        ("price_book", "h100-sheet", "h100-sheet-2024-08"),
        ("switch", "64x400", "64x400g"),
    ],
)
def test_unknown_slug_names_the_closest(kind: str, slug: str, closest: str) -> None:
    with pytest.raises(InputError) as caught:
        getattr(default_catalog(), kind)(slug, path="hardware.here")
    assert caught.value.message.path == "hardware.here"
    assert slug in caught.value.message.text
    assert closest in caught.value.message.text


@pytest.mark.parametrize(
    ("model_id", "slug"),
    [
        ("meta-llama/Llama-3.1-70B-Instruct", "llama-3.1-70b"),
        ("meta-llama/Meta-Llama-3.1-8B", "llama-3.1-8b"),
        ("meta-llama/Llama-2-7b-chat-hf", "llama-2-7b"),
        ("nvidia/Llama-3.1-70B-Instruct-FP8", "llama-3.1-70b"),
        ("Qwen/Qwen3-32B-FP8", "qwen3-32b"),
        ("Qwen/Qwen3-30B-A3B-Instruct-2507", "qwen3-30b-a3b"),
        ("google/gemma-3-27b-it", "gemma-3-27b"),
        ("mistralai/Mixtral-8x7B-Instruct-v0.1", "mixtral-8x7b"),
        ("deepseek-ai/DeepSeek-R1", "deepseek-v3"),
        ("openai/gpt-oss-120b", "gpt-oss-120b"),
        ("microsoft/phi-4", "phi-4"),
        ("RedHatAI/Meta-Llama-3.1-8B-Instruct-quantized.w4a16", "llama-3.1-8b"),
        ("MiniMaxAI/MiniMax-M2.5", "minimax-m2"),
        ("LLAMA-3.1-8B", "llama-3.1-8b"),
    ],
)
def test_model_id_finds_its_shape(model_id: str, slug: str) -> None:
    assert default_catalog().find_model(model_id) == slug
    assert default_catalog().model(model_id).slug == slug


@pytest.mark.parametrize("name", ["nobody/unheard-of", "meta-llama/Llama-3.1-9B", "", "-instruct"])
def test_unknown_model_id_is_not_guessed(name: str) -> None:
    assert default_catalog().find_model(name) is None


def test_override_multiplies_and_sets_and_is_marked_as_the_users() -> None:
    doubled = override_chip(H100, {"hbm_bytes_per_s": "x2", "tdp_w": 650, "bf16_flop_per_s": "1.2 PFLOP/s"})
    assert (doubled.hbm_bytes_per_s, doubled.tdp_w, doubled.bf16_flop_per_s) == (6.7e12, 650.0, 1.2e15)
    assert doubled.leaf("hbm_bytes_per_s").kind == "input"
    assert doubled.leaf("hbm_bytes_per_s").path == "hardware.chip_overrides.hbm_bytes_per_s"
    assert doubled.figures["hbm_bytes_per_s"].note == "was 3.35 TB/s"
    assert H100.hbm_bytes_per_s == 3.35e12
    assert override_chip(H100, {}) is H100


def test_visible_memory_follows_the_printed_size_unless_given() -> None:
    doubled = override_chip(H100, {"hbm_bytes": "x2"})
    assert doubled.hbm_visible_bytes == pytest.approx(2 * H100.hbm_visible_bytes)
    both = override_chip(H100, {"hbm_bytes": "x2", "hbm_visible_bytes": "150 GiB"})
    assert both.hbm_visible_bytes == 150 * 2**30


@pytest.mark.parametrize(
    ("name", "given_value", "says"),
    [
        ("hbm_bytes_per_s", float("nan"), "finite"),
        ("hbm_bytes_per_s", float("inf"), "finite"),
        ("hbm_bytes_per_s", "nan", "finite"),
        ("hbm_bytes_per_s", "-3 TB/s", "positive"),
        ("hbm_bytes_per_s", 0, "positive"),
        ("hbm_bytes_per_s", "x0", "positive"),
        ("hbm_bytes_per_s", "x-2", "positive"),
        ("hbm_bytes_per_s", "x1e400", "finite"),
        ("hbm_bytes_per_s", "twice", "not a number"),
        ("hbm_bytes_per_s", "3 TB", "does not measure"),
        ("hbm_bytes_per_s", True, "number"),
        ("hbm_bytes_per_s", None, "number"),
        ("hbm_bytes_per_s", [1], "number"),
        ("hbm_bytes_per_s", 3.35e19, "a million times"),
        ("hbm_bytes_per_s", 3.35, "a million times"),
        ("hbm_bytes", "1 B", "a million times"),
        ("fp4_flop_per_s", "x2", "no such figure"),
        ("hbm_byte_per_s", "x2", "did you mean hbm_bytes_per_s"),
        ("name", "x2", "not a figure"),
        ("default_server", "dgx-h200", "not a figure"),
    ],
)
def test_wrong_override_is_refused_at_its_path(name: str, given_value: object, says: str) -> None:
    with pytest.raises(InputError) as caught:
        override_chip(H100, {name: given_value}, path="here")
    assert caught.value.message.path == f"here.{name}"
    assert says in caught.value.message.text


@given(name=st.sampled_from(overridable_figures()), times=st.floats(1e-3, 1e3))
def test_override_changes_its_figure_and_no_other(name: str, times: float) -> None:
    base = getattr(H100, name)
    if base is None:
        return
    changed = override_chip(H100, {name: f"x{times!r}"})
    assert getattr(changed, name) == pytest.approx(base * times)
    follows = {name, "hbm_visible_bytes"} if name == "hbm_bytes" else {name}
    for other in set(overridable_figures()) - follows:
        assert getattr(changed, other) == getattr(H100, other)


def test_the_catalog_is_made_once() -> None:
    assert default_catalog() is default_catalog()
    assert default_catalog().chips["tpu-v4"] is default_catalog().chips["tpu-v4"]
