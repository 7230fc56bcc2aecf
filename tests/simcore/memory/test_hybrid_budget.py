"""The budget of models that hold states, compressed entries, or layers of two shapes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simcore.catalog import default_catalog
from simcore.catalog.parameters import parameter_terms
from simcore.catalog.types import LlmArchitecture
from simcore.memory.budget import KvBudget, kv_budget, waterfall
from simcore.memory.engines import engine_constants
from simcore.memory.weights import rank_weight_bytes
from simcore.parallelism import Parallelism, pipeline_stages
from tests.simcore.compute.shapes import SHAPES, make_architecture

CHIP = default_catalog().chip("nvidia-h100-sxm")


def budget(arch: LlmArchitecture, tp: int = 1, pp: int = 1, **changes: object) -> KvBudget:
    arguments: dict[str, object] = {
        "engine": engine_constants("vLLM 0.19"),
        "weights_dtype": "bf16",
        "kv_dtype": "bf16",
        "max_num_seqs": 256,
        "max_model_len": 8192,
    }
    return kv_budget(arch, CHIP, Parallelism(tp=tp, pp=pp), **(arguments | changes))  # type: ignore[arg-type]


def shaped(name: str, **changes: object) -> LlmArchitecture:
    return make_architecture(**(SHAPES[name] | changes))


@pytest.mark.parametrize("shape", sorted(SHAPES))
@pytest.mark.parametrize("pp", [1, 4])
def test_ranks_together_hold_every_parameter_once(shape: str, pp: int) -> None:
    arch = shaped(shape, lookup_parameter_count=10**8, small_parameter_count=10**6)
    stages = pipeline_stages(arch, pp)
    held = sum(
        rank_weight_bytes(arch, Parallelism(tp=1, pp=pp), stage, weights_dtype="bf16").value
        for stage in stages
    )
    assert held == pytest.approx(2 * parameter_terms(arch).total, rel=1e-4)


def test_states_of_running_sequences_are_set_aside() -> None:
    found = budget(shaped("recurrent"))
    per_sequence = 24 * 2**21
    assert found.rank.state_bytes_per_sequence.value == per_sequence
    assert found.rank.state_bytes.value == 256 * per_sequence
    slope = 8 * 2 * 8 * 128 * 2
    left = found.rank.kv_bytes.value - found.rank.state_bytes.value
    assert found.token_capacity.value == left // (16 * slope) * 16


def test_a_sequence_costs_its_state_and_its_tokens() -> None:
    """Full-length sequences that fit: KV / (state + length × slope); longer ones cost little more state."""
    found = budget(shaped("recurrent"))
    slope = 8 * 2 * 8 * 128 * 2
    expected = found.rank.kv_bytes.value / (24 * 2**21 + 8192 * slope)
    assert found.max_concurrency.value == pytest.approx(expected)


def test_states_never_take_more_than_half() -> None:
    found = budget(shaped("recurrent", state_bytes_per_layer=2**26), max_num_seqs=1024)
    assert found.rank.state_bytes.value == pytest.approx(found.rank.kv_bytes.value / 2)
    assert found.fits


def test_states_are_split_over_tensor_parallel_ranks() -> None:
    one, four = budget(shaped("recurrent")), budget(shaped("recurrent"), tp=4)
    assert four.rank.state_bytes_per_sequence.value == one.rank.state_bytes_per_sequence.value / 4


def test_compressed_entries_hold_a_fraction_per_token_and_windows_per_sequence() -> None:
    found = budget(shaped("compressed"))
    assert found.rank.page_bytes.value == pytest.approx(16 * (15 * 1024 / 4 + 15 * 1024 / 128 + 15 * 132 / 4))
    assert found.rank.state_bytes_per_sequence.value == 32 * 128 * 1024


def test_pages_are_as_large_as_the_larger_kind_of_layer_needs() -> None:
    found = budget(shaped("two_shapes"))
    assert found.rank.page_bytes.value == 16 * 8 * max(2 * 4 * 256 * 2, 2 * 16 * 128 * 2)
    assert found.rank.group_count == 1 + 3


def test_layers_that_borrow_kv_take_no_pages() -> None:
    whole, half = budget(shaped("dense")), budget(shaped("dense", shared_kv_full_layers=16))
    assert half.rank.page_bytes.value == whole.rank.page_bytes.value / 2


def test_a_stage_without_attention_is_not_the_scarcest() -> None:
    arch = shaped("recurrent", attention_free_layers=31, recurrent_layers=31)
    found = budget(arch, pp=4)
    assert found.rank.stage.full_layers == 1
    assert found.fits


def test_the_waterfall_of_a_hybrid_adds_up_and_shows_its_states() -> None:
    rows = waterfall(budget(shaped("recurrent")))
    visible = next(row["bytes"] for row in rows if row["kind"] == "total")
    assert sum(row["bytes"] for row in rows if row["kind"] != "total") == pytest.approx(visible)
    assert next(row["bytes"] for row in rows if row["item"] == "state") == 256 * 24 * 2**21


def test_where_no_layer_keeps_the_context_whole_sequences_fit_or_do_not() -> None:
    """Windows and states only: as many sequences as their constant bytes allow, whatever their length."""
    arch = shaped("recurrent", window_layers=8, window_tokens=2048)
    per_sequence = 24 * 2**21 + 8 * 2048 * 2 * 8 * 128 * 2
    found = budget(arch)
    fitting = min(256, found.rank.kv_bytes.value // per_sequence)
    assert found.rank.state_bytes_per_sequence.value == per_sequence
    assert found.token_capacity.value == fitting * 8192
    assert budget(arch, max_model_len=65_536).token_capacity.value == fitting * 65_536


def test_only_gpt_oss_pads_experts_in_mxfp4() -> None:
    """Kimi K3 on 8 chips holds 384 columns of each expert as they are."""
    shape = {"experts": 64, "experts_per_token": 4, "moe_intermediate": 3072, "weights_dtype": "mxfp4"}
    biased = make_architecture(**shape, mlp_bias=True)
    plain = replace(biased, mlp_bias=False)

    def held(arch: LlmArchitecture, tp: int) -> float:
        stage = pipeline_stages(arch, 1)[0]
        return tp * rank_weight_bytes(arch, Parallelism(tp=tp), stage, weights_dtype="mxfp4").value

    padding = 32 * 64 * (512 - 384) * 8 * 3 * 4096 * 0.53125
    more = (held(biased, 8) - held(biased, 4)) - (held(plain, 8) - held(plain, 4))
    assert more == pytest.approx(padding, rel=0.01)
