"""Operators hold the model's weights exactly once, and FLOP are two per multiply-add."""

from __future__ import annotations

import pytest

from simcore.catalog import default_catalog
from simcore.catalog.parameters import parameter_terms
from simcore.compute.ops import bottleneck_stage, head_operators, layer_operators
from simcore.parallelism import Parallelism, stage_layers
from tests.simcore.compute.shapes import SHAPES, make_architecture, make_chip

CATALOG = default_catalog()


@pytest.mark.parametrize("model", sorted(CATALOG.models))
def test_operators_read_every_weight_of_the_layers_once(model: str) -> None:
    arch = CATALOG.model(model)
    operators = layer_operators(arch, make_chip(), Parallelism(tp=1), weights_dtype="bf16", kv_dtype="bf16")
    read = sum(op.count.value * op.weight_bytes.value for op in operators)
    groups = parameter_terms(arch).groups
    of_layers = ("attention", "recurrent", "mlp", "experts", "experts_latent", "shared_experts", "router")
    held = 2 * sum(groups[name] for name in of_layers)
    # biases and the norms inside attention are not operators
    assert read == pytest.approx(held, rel=2e-3)


@pytest.mark.parametrize("model", sorted(CATALOG.models))
def test_a_token_costs_two_flop_per_active_weight(model: str) -> None:
    arch = CATALOG.model(model)
    parallelism = Parallelism(tp=1)
    layers = layer_operators(arch, make_chip(), parallelism, weights_dtype="bf16", kv_dtype="bf16")
    operators = [*layers, *head_operators(arch, parallelism)]
    # a recurrent state is updated beside the weights, by operators that hold none
    flop = sum(op.count.value * op.flop_per_token.value for op in operators if op.weight_bytes.value)
    counts = parameter_terms(arch)
    active = counts.active - (0 if counts.tied_embeddings else counts.embedding)
    assert flop == pytest.approx(2 * active, rel=2e-2)


def test_narrow_weights_leave_the_head_at_sixteen_bit() -> None:
    arch = make_architecture()
    narrow = layer_operators(arch, make_chip(), Parallelism(tp=1), weights_dtype="fp8", kv_dtype="bf16")
    assert {op.dtype for op in narrow if op.weight_bytes.value} == {"fp8"}
    assert head_operators(arch, Parallelism(tp=1))[0].weight_bytes.value == 2 * arch.hidden * arch.vocab


def test_mxfp4_quantises_the_experts_only() -> None:
    arch = make_architecture(**SHAPES["moe"])
    operators = layer_operators(arch, make_chip(), Parallelism(tp=1), weights_dtype="mxfp4", kv_dtype="bf16")
    sizes = {op.name: op.weight_bytes.value for op in operators}
    assert sizes["qkv"] == 2 * 4096 * (32 + 16) * 128
    assert sizes["experts"] == pytest.approx(0.53125 * 128 * 3 * 4096 * 768)


def test_pipeline_stages_hold_every_layer_and_leave_the_last_light() -> None:
    for layers in range(8, 130, 7):
        for pp in range(1, 9):
            cut = stage_layers(layers, pp)
            assert sum(cut) == layers
            assert max(cut) - min(cut) <= 1
            assert cut[-1] == min(cut)


def test_the_slowest_stage_has_most_expert_layers() -> None:
    arch = make_architecture(layers=61, **{k: v for k, v in SHAPES["shared"].items() if k != "layers"})
    stage = bottleneck_stage(arch, 4)
    assert (stage.layers, stage.moe_layers) == (16, 16)
