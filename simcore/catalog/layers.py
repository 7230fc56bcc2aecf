"""Which layers attend alike, and how many numbers each keeps per token.

An architecture counts its layers by kind; here the counts become `AttentionKind`s: full layers, window
layers, and those that reuse the KV of an earlier layer. Parameters, KV bytes, operators and memory are sums
over them. An entry (what one token leaves in one layer) holds keys and values, `kv_heads · (head_dim +
value_dim)` numbers; latent attention `kv_lora_rank + qk_rope_head_dim`; shared key-and-value `head_dim`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from simcore.catalog.types import ContextGroup, LlmArchitecture

INDEX_SCALE_BYTES: Final = 4  # indexer keys are kept in fp8 with one 32-bit scale per key


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionKind:
    """Layers whose attention has one shape and sees the same part of the context."""

    layer_count: int
    window_tokens: int  # 0: the whole context
    kv_heads: int
    head_dim: int
    value_dim: int
    has_value_matrix: bool
    stores_kv: bool

    @property
    def is_window(self) -> bool:
        return self.window_tokens > 0


def attention_kinds(arch: LlmArchitecture) -> tuple[AttentionKind, ...]:
    """Full layers first, then window layers; a kind without layers is left out."""
    value_dim = arch.v_head_dim or arch.head_dim
    window_dim = arch.window_head_dim or arch.head_dim
    full = AttentionKind(
        layer_count=arch.full_layers - arch.shared_kv_full_layers,
        window_tokens=0,
        kv_heads=arch.kv_heads,
        head_dim=arch.head_dim,
        value_dim=value_dim,
        has_value_matrix=not (arch.value_from_key or arch.kv_stored_once),
        stores_kv=True,
    )
    window = AttentionKind(
        layer_count=arch.window_layers - arch.shared_kv_window_layers,
        window_tokens=arch.window_tokens,
        kv_heads=arch.window_kv_heads or arch.kv_heads,
        head_dim=window_dim,
        value_dim=arch.window_v_head_dim or (window_dim if arch.window_head_dim else value_dim),
        has_value_matrix=not arch.kv_stored_once,
        stores_kv=True,
    )
    borrowing = (
        _without_kv(full, arch.shared_kv_full_layers),
        _without_kv(window, arch.shared_kv_window_layers),
    )
    return tuple(kind for kind in (full, borrowing[0], window, borrowing[1]) if kind.layer_count)


def _without_kv(kind: AttentionKind, layer_count: int) -> AttentionKind:
    return AttentionKind(
        layer_count=layer_count,
        window_tokens=kind.window_tokens,
        kv_heads=kind.kv_heads,
        head_dim=kind.head_dim,
        value_dim=kind.value_dim,
        has_value_matrix=False,
        stores_kv=False,
    )


def context_groups(arch: LlmArchitecture) -> tuple[ContextGroup, ...]:
    """How the full layers see their context: as the architecture says, or all of it."""
    if arch.context_groups or not arch.full_layers:
        return arch.context_groups
    cached = arch.full_layers - arch.shared_kv_full_layers
    return (ContextGroup(layer_count=arch.full_layers, cached_layer_count=cached),)


def index_bytes_per_entry(arch: LlmArchitecture) -> int:
    if not arch.index_head_dim:
        return 0
    return arch.index_key_bytes or arch.index_head_dim + INDEX_SCALE_BYTES


def local_window_layers(arch: LlmArchitecture) -> int:
    """Full layers that also keep a sliding window beside their compressed entries (DeepSeek V4)."""
    return arch.full_layers if arch.kv_stored_once and arch.window_tokens else 0


def layer_counts(arch: LlmArchitecture) -> Mapping[str, int]:
    """Layers by kind; a layer with both attention and state counts in both."""
    sparse = sum(group.layer_count for group in arch.context_groups if group.topk_entries)
    counts = {
        "full": arch.full_layers - sparse,
        "sparse": sparse,
        "window": arch.window_layers,
        "recurrent": arch.recurrent_layers,
        "dense_mlp": arch.mlp_layers - arch.moe_layers,
        "moe": arch.moe_layers,
    }
    return {name: count for name, count in counts.items() if count}
