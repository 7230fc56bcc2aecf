"""Attention layers as one tensor-parallel rank sees them, and how many of each kind a stage holds.

Heads are shared out over `tp` ranks, rounded up; KV heads fewer than `tp` are replicated, and the latent
cache is on every rank.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from simcore.catalog.layers import AttentionKind, attention_kinds
from simcore.catalog.types import BYTES_PER_ELEMENT, LlmArchitecture
from simcore.parallelism import Parallelism, PipelineStage
from simcore.why import Term, ceil, constant, leaf


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalShape:
    """One kind of attention layer as one tensor-parallel rank sees it, in terms."""

    arch: LlmArchitecture
    kind: AttentionKind
    tp: Term
    hidden: Term
    heads: Term
    kv_heads: Term
    head_dim: Term
    value_dim: Term

    @classmethod
    def of(
        cls, arch: LlmArchitecture, parallelism: Parallelism, kind: AttentionKind | None = None
    ) -> LocalShape:
        """The first kind of the model where none is given."""
        kind = kind or attention_kinds(arch)[0]
        tp = leaf(parallelism.tp_ranks, "tp", path="serving.parallelism.tp", dimension="")
        head_dim = _width(arch, kind.head_dim, "head_dim")
        same = kind.value_dim == kind.head_dim
        return cls(
            arch=arch,
            kind=kind,
            tp=tp,
            hidden=arch.leaf("hidden"),
            heads=ceil(arch.leaf("heads") / tp).named("heads_per_chip", ""),
            kv_heads=ceil(_width(arch, kind.kv_heads, "kv_heads") / tp).named("kv_heads_per_chip", ""),
            head_dim=head_dim,
            value_dim=head_dim if same else _width(arch, kind.value_dim, "v_head_dim"),
        )


def _width(arch: LlmArchitecture, value: int, figure: str) -> Term:
    """A width of the model's shape; window layers may have their own."""
    if value == getattr(arch, figure):
        return arch.leaf(figure)
    return leaf(value, f"{figure}_of_these_layers", kind="catalog", source=arch.name, dimension="count")


def stage_attention_kinds(
    arch: LlmArchitecture, stage: PipelineStage
) -> tuple[tuple[float, AttentionKind], ...]:
    """(layers in the stage, kind), spread like all full or all window layers."""
    return tuple(
        (
            kind.layer_count * (stage.window_layers / arch.window_layers)
            if kind.is_window
            else kind.layer_count * (stage.full_layers / arch.full_layers),
            kind,
        )
        for kind in attention_kinds(arch)
    )


def projected_kinds(arch: LlmArchitecture, stage: PipelineStage) -> list[tuple[float, AttentionKind]]:
    """Kinds of attention whose projections differ: full and window layers mostly share one shape."""
    found: list[tuple[float, AttentionKind]] = []
    for count, kind in stage_attention_kinds(arch, stage):
        alike = [at for at, (_, other) in enumerate(found) if _projects_like(kind, other)]
        if alike:
            found[alike[0]] = (found[alike[0]][0] + count, found[alike[0]][1])
        else:
            found.append((count, kind))
    return [(round(count, 9), kind) for count, kind in found if count]


def _projects_like(one: AttentionKind, other: AttentionKind) -> bool:
    return replace(one, layer_count=0, window_tokens=0) == replace(other, layer_count=0, window_tokens=0)


def element_bytes(dtype: str) -> Term:
    return constant(BYTES_PER_ELEMENT[dtype], f"{dtype}_bytes_per_element")


def kv_bytes_per_layer_token(shape: LocalShape, kv_dtype: str) -> Term:
    """KV cache bytes that one token holds in one layer on one chip; the latent cache is not split."""
    arch, each = shape.arch, element_bytes(kv_dtype)
    if arch.is_mla:
        stored = arch.leaf("kv_lora_rank") + arch.leaf("qk_rope_head_dim")
    elif arch.kv_stored_once:
        stored = shape.kv_heads * shape.head_dim
    elif shape.kind.head_dim != shape.kind.value_dim:
        stored = shape.kv_heads * (shape.head_dim + shape.value_dim)
    else:
        stored = constant(2.0, "k_and_v") * shape.kv_heads * shape.head_dim
    return (stored * each).named("kv_bytes_per_layer_token", "bytes")
