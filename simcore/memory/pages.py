"""Bytes of KV cache: what a token and a sequence hold on one rank, and the pages that they are held in.

Layers with full and with window attention share one pool of pages: group size min(full, window), `ceil`
groups of each, pages as large as the kind that stores most per token needs. Models that hold a state per
sequence (recurrent layers, or the local windows beside compressed entries) are affine: a constant per
sequence, and a slope per token over the layers that keep the whole context.
"""

from __future__ import annotations

from math import ceil

from simcore.catalog.layers import (
    AttentionKind,
    attention_kinds,
    context_groups,
    index_bytes_per_entry,
    local_window_layers,
)
from simcore.catalog.types import BYTES_PER_ELEMENT, LlmArchitecture
from simcore.memory.request import MemoryRequest, block_size_leaf, tp_leaf
from simcore.parallelism import PipelineStage
from simcore.why import Term, constant, leaf, total
from simcore.why import ceil as ceil_term


def is_affine(arch: LlmArchitecture) -> bool:
    """Whether a sequence's cache is a constant plus a slope, rather than pages of full and window layers."""
    return bool(arch.recurrent_layers or arch.context_groups)


def grows_with_tokens(arch: LlmArchitecture) -> bool:
    """Whether any layer keeps the whole context; where none does, a sequence's bytes do not depend on it."""
    return any(kind.stores_kv and not kind.is_window for kind in attention_kinds(arch))


def cached_layers(stage: PipelineStage, arch: LlmArchitecture | None = None) -> tuple[int, int]:
    """(full, window) layers of a stage that store KV of their own."""
    if arch is None:
        return stage.full_layers, stage.window_layers
    full = stage.full_layers - round(arch.shared_kv_full_layers * stage.share)
    return max(0, full), max(0, stage.window_layers - round(arch.shared_kv_window_layers * stage.share))


def layer_groups(stage: PipelineStage, arch: LlmArchitecture | None = None) -> tuple[int, int]:
    """(layers per group, number of groups) of the shared page pool.

    >>> layer_groups(PipelineStage(layers=62, moe_layers=0, window_layers=52, is_first=True, is_last=True))
    (10, 7)
    """
    full, window = cached_layers(stage, arch)
    if not full or not window:
        return max(1, full + window), 1
    size = min(full, window)
    return size, ceil(full / size) + ceil(window / size)


def page_bytes(request: MemoryRequest, group_layers: int) -> Term:
    """Pages of one pool have one size: that of the kind of layer that stores most per token."""
    kinds = [kind for kind in attention_kinds(request.arch) if kind.stores_kv]
    per_layer = max((_entry_bytes(request, kind) for kind in kinds), key=lambda term: term.value)
    layers = constant(float(group_layers), "layers_per_group")
    per_layer = per_layer.named("kv_bytes_per_layer_token", "bytes")
    return (block_size_leaf(request) * per_layer * layers).named("page_bytes", "bytes")


def _entry_bytes(request: MemoryRequest, kind: AttentionKind) -> Term:
    """What one token leaves in one layer on one rank."""
    arch = request.arch
    element = constant(BYTES_PER_ELEMENT[request.kv_dtype], f"bytes_per_{request.kv_dtype}_element")
    if arch.is_mla:
        return (arch.leaf("kv_lora_rank") + arch.leaf("qk_rope_head_dim")) * element
    heads = ceil_term(_shape(arch, kind.kv_heads, "kv_heads") / tp_leaf(request)).named(
        "kv_heads_per_chip", ""
    )
    if arch.kv_stored_once:
        return heads * _shape(arch, kind.head_dim, "head_dim") * element
    if kind.head_dim != kind.value_dim:
        return heads * constant(float(kind.head_dim + kind.value_dim), "key_and_value_widths") * element
    return constant(2.0, "k_and_v") * heads * _shape(arch, kind.head_dim, "head_dim") * element


def _shape(arch: LlmArchitecture, value: int, figure: str) -> Term:
    if getattr(arch, figure) == value:
        return arch.leaf(figure)
    return leaf(value, f"{figure}_of_these_layers", kind="catalog", source=arch.name, dimension="")


def affine_page_bytes(request: MemoryRequest, stage: PipelineStage) -> Term:
    """A block of tokens over all layers that keep the whole context, with the keys of their indexers."""
    arch, parts = request.arch, [constant(0.0)]
    for kind in attention_kinds(arch):
        if kind.is_window or not kind.stores_kv:
            continue
        share = stage.full_layers / arch.full_layers
        entry = _entry_bytes(request, kind).named("kv_bytes_per_entry", "bytes")
        for group in context_groups(arch):
            layers = constant(round(group.cached_layer_count * share / group.ratio, 9), "layers_per_entry")
            parts.append(layers * entry)
            if group.index_cached_layer_count:
                keys = constant(float(index_bytes_per_entry(arch)), "index_key_bytes")
                each = group.index_cached_layer_count * share / group.index_ratio
                parts.append(constant(round(each, 9), "layers_with_index_keys") * keys)
    if not sum(part.value for part in parts):
        return constant(1.0, "page_bytes_of_a_stage_without_kv")  # never the scarcest stage
    slope = total(*parts).named("kv_bytes_per_token_and_chip", "bytes")
    return (block_size_leaf(request) * slope).named("page_bytes", "bytes")


def state_bytes(request: MemoryRequest, stage: PipelineStage) -> Term:
    """What one sequence holds on this rank whatever its length: states split over the ranks, and full
    windows where the model is affine."""
    arch, parts = request.arch, [constant(0.0)]
    if stage.recurrent_layers:
        held = constant(float(stage.recurrent_layers), "recurrent_layers") * arch.leaf(
            "state_bytes_per_layer"
        )
        parts.append(held / tp_leaf(request))
    if is_affine(arch) and arch.window_tokens:
        local = local_window_layers(arch) * stage.share
        layers = constant(round(stage.window_layers + local, 9), "layers_with_a_window")
        entry = _entry_bytes(request, attention_kinds(arch)[-1]).named("kv_bytes_per_entry", "bytes")
        parts.append(layers * arch.leaf("window_tokens") * entry)
    return total(*parts).named("state_bytes_per_sequence_and_chip", "bytes")
