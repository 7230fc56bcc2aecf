"""Weight bytes of one tensor- and pipeline-parallel rank, as a tree over tensor groups.

Split by `tp`: queries, outputs, MLP and experts, embedding and head; experts by `dp` too. Kept whole on every
rank: norms, routers, the latent (A) projections of MLA, and KV heads where there are fewer of them than ranks.
Embedding sits on the first stage, the head on the last (a tied one is copied there). Both stay at 16 bit
whatever the weights' format, as do norms, routers, convolutions and towers; a checkpoint that quantises
its experts only keeps the rest as it says. Matrices beside attention and MLP follow their own split; lookup
tables are shared out over the ranks of the first stage.
Limits: scales of block-quantised formats are in the bytes per element; EP and TP shares are equal; no expert is
held twice (redundant experts of a load balancer), and no engine's 16-bit copies of absorbed projections are.
"""

from __future__ import annotations

from math import ceil
from typing import Final

from simcore.catalog.layers import attention_kinds
from simcore.catalog.parameters import ParameterCounts, attention_parameters, parameter_terms
from simcore.catalog.types import BYTES_PER_ELEMENT, LlmArchitecture
from simcore.parallelism import Parallelism, PipelineStage
from simcore.why import Term, constant, leaf, total

_SIXTEEN_BIT: Final = constant(2.0, "bytes_per_16_bit_element")
_MXFP4_COLUMNS: Final = 256


def rank_weight_bytes(
    arch: LlmArchitecture, parallelism: Parallelism, stage: PipelineStage, *, weights_dtype: str
) -> Term:
    """Bytes of one rank's parameters, without the rotary table.

    >>> from simcore.catalog.types import LlmArchitecture
    >>> from simcore.parallelism import pipeline_stages
    >>> arch = LlmArchitecture(slug="a", name="a", layers=2, hidden=8, heads=2, kv_heads=2, head_dim=4,
    ...                        intermediate=16, vocab=10)
    >>> stage = pipeline_stages(arch, 1)[0]
    >>> one = rank_weight_bytes(arch, Parallelism(tp=1), stage, weights_dtype="bf16")
    >>> one.value == 2 * (parameter_terms(arch).total - arch.hidden)  # all but the final norm
    True
    """
    counts, tp = parameter_terms(arch), leaf(parallelism.tp_ranks, "tp", path="serving.parallelism.tp")
    linear, routed_dtype = arch.weight_formats(weights_dtype)
    narrow, expert = _element(linear), _element(routed_dtype)
    routed = stage.moe_layers * arch.experts * counts.expert * _padding(arch, parallelism, weights_dtype)
    zero = constant(0.0)
    held = _parameters("expert", routed)
    if parallelism.dp > 1:
        held = held / leaf(parallelism.dp, "dp", path="serving.parallelism.dp", dimension="")
    groups = (
        ("attention", *_attention(arch, counts, stage, parallelism.tp_ranks), narrow),
        ("matrices", *_matrices(arch, stage), narrow),
        ("lookup", _parameters("lookup", arch.lookup_parameter_count * stage.is_first), zero, narrow),
        ("reused", _parameters("reused", -arch.reused_parameter_count * stage.share), zero, narrow),
        ("mlp", _parameters("mlp", stage.dense_layers * counts.mlp_per_dense_layer), zero, narrow),
        ("experts", held, zero, expert),
        ("shared_experts", _parameters("shared_expert", _shared(counts, stage)), zero, narrow),
        (
            "norms_and_routers",
            zero,
            _parameters("norm_and_router", _small(arch, counts, stage)),
            _SIXTEEN_BIT,
        ),
        ("embedding", _parameters("embedding", counts.embedding * stage.is_first), zero, _SIXTEEN_BIT),
        ("head", _parameters("head", _head(counts, stage)), zero, _SIXTEEN_BIT),
        ("extra", _parameters("extra", arch.extra_parameter_count * stage.is_first), zero, _SIXTEEN_BIT),
    )
    terms = [
        ((split / tp + whole) * width).named(f"{name}_bytes", "bytes")
        for name, split, whole, width in groups
        if split.value or whole.value
    ]
    return total(*terms).named("weight_bytes_per_chip", "bytes")


def rotary_bytes(arch: LlmArchitecture) -> Term:
    """The precomputed sines and cosines of every position; none for learned positions."""
    if arch.learned_positions:
        return constant(0.0, "rotary_table_bytes")
    width = arch.leaf("qk_rope_head_dim" if arch.is_mla else "head_dim")
    return (arch.leaf("max_position") * width * _SIXTEEN_BIT).named("rotary_table_bytes", "bytes")


def _element(dtype: str) -> Term:
    return constant(BYTES_PER_ELEMENT[dtype], f"bytes_per_{dtype}_element")


def _parameters(name: str, count: float) -> Term:
    return leaf(count, f"{name}_parameters", kind="catalog", source="shape of the model", dimension="count")


def _shared(counts: ParameterCounts, stage: PipelineStage) -> int:
    return stage.moe_layers * counts.shared_experts_per_layer


def _padding(arch: LlmArchitecture, parallelism: Parallelism, weights_dtype: str) -> float:
    """gpt-oss's kernel (MXFP4 experts with biases) holds each rank's width padded to 256 columns: 2,880 becomes
    3,072. Other checkpoints in this format are stored as they are."""
    if weights_dtype != "mxfp4" or not (arch.is_moe and arch.mlp_bias):
        return 1.0
    slices = parallelism.tp_ranks
    if parallelism.dp > 1:
        slices = max(1, parallelism.expert_chip_count // parallelism.ep)
    width = arch.moe_intermediate / slices
    return ceil(width / _MXFP4_COLUMNS) * _MXFP4_COLUMNS / width


def _attention(
    arch: LlmArchitecture, counts: ParameterCounts, stage: PipelineStage, tp: int
) -> tuple[Term, Term]:
    """Attention parameters of a stage: what is split, and what every rank holds besides its share."""
    whole, extra = 0.0, 0.0
    for kind in attention_kinds(arch):
        in_stage, of_model = (
            (stage.window_layers, arch.window_layers)
            if kind.is_window
            else (stage.full_layers, arch.full_layers)
        )
        layers = kind.layer_count * in_stage / of_model
        whole += layers * attention_parameters(arch, kind)
        if not arch.is_mla:
            spare_heads = ceil(kind.kv_heads / tp) - kind.kv_heads / tp
            widths = kind.head_dim * kind.stores_kv + kind.value_dim * kind.has_value_matrix
            extra += layers * arch.hidden * widths * spare_heads
    latent = arch.q_lora_rank + (arch.kv_lora_rank + arch.qk_rope_head_dim if arch.is_mla else 0)
    kept = stage.attention_layers * arch.hidden * latent
    return _parameters("attention", whole - kept), _parameters("kept_on_every_rank", kept + extra)


def _matrices(arch: LlmArchitecture, stage: PipelineStage) -> tuple[Term, Term]:
    split = sum(m.layer_count * m.parameter_count for m in arch.matrices if m.split != "none")
    whole = sum(m.layer_count * m.parameter_count for m in arch.matrices if m.split == "none")
    return _parameters("matrix", split * stage.share), _parameters("whole_matrix", whole * stage.share)


def _small(arch: LlmArchitecture, counts: ParameterCounts, stage: PipelineStage) -> float:
    norms = stage.layers * counts.norms_per_layer + arch.small_parameter_count * stage.share
    return norms + stage.moe_layers * counts.router_per_layer


def _head(counts: ParameterCounts, stage: PipelineStage) -> float:
    if not stage.is_last:
        return 0
    if counts.tied_embeddings:
        return 0 if stage.is_first else counts.embedding
    return counts.head
