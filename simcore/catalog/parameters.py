"""Parameters, KV bytes and state bytes of an architecture, counted per tensor group as integers.

Attention: q, k, v, o (grouped-query), or the low-rank factors of multi-head latent attention, per kind of
layer. MLP: three matrices when gated, else two. Experts, shared experts and router count per MoE layer.
*Active* counts the chosen experts only, and everything else once (embedding and head included; lookup
tables are read by row and are not active).
KV bytes per token: grouped-query `2 · layers · kv_heads · head_dim · b`; latent
`layers · (kv_lora_rank + qk_rope_head_dim) · b`; compressed entries count `1/ratio`, an indexer adds its
fp8 keys. Window layers stop growing at the window, so the sum over all layers is the slope below it;
`kv_layer_groups` says which layers hold what. Recurrent layers hold `state_bytes_per_sequence` instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from simcore.catalog.layers import (
    AttentionKind,
    attention_kinds,
    context_groups,
    index_bytes_per_entry,
    local_window_layers,
)
from simcore.catalog.types import BYTES_PER_ELEMENT, LlmArchitecture
from simcore.why import Term, constant, leaf, product, total


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterCounts:
    """Whole-model counts by group, per-layer counts, and their sums."""

    total: int
    active: int
    groups: Mapping[str, int]
    embedding: int
    head: int
    attention_per_layer: int  # of a full layer; window layers apart where their shape differs
    attention_per_window_layer: int
    mlp_per_dense_layer: int
    expert: int  # one routed expert of one layer
    shared_experts_per_layer: int
    router_per_layer: int
    norms_per_layer: int
    tied_embeddings: bool

    @property
    def per_dense_layer(self) -> int:
        return self.attention_per_layer + self.mlp_per_dense_layer + self.norms_per_layer


@dataclass(frozen=True, slots=True, kw_only=True)
class KvLayerGroup:
    """Layers with the same KV cache: its bytes per token and layer, and its window (0: the whole context)."""

    layer_count: int
    bytes_per_token: float
    window_tokens: int


def parameter_terms(arch: LlmArchitecture) -> ParameterCounts:
    """Exact counts per tensor group."""
    by_kind = [(kind, attention_parameters(arch, kind)) for kind in attention_kinds(arch)]
    mlp = _mlp(arch, arch.intermediate)
    expert = _mlp(arch, arch.moe_intermediate, arch.moe_latent) if arch.is_moe else 0
    shared = _mlp(arch, arch.shared_intermediate) if arch.shared_intermediate else 0
    router = arch.experts * (arch.hidden + int(arch.mlp_bias)) if arch.is_moe else 0
    norm = arch.hidden * (2 if arch.norm_bias else 1)
    embedding = (arch.vocab + arch.learned_positions) * arch.hidden
    head = 0 if arch.tied_embeddings else arch.vocab * arch.hidden
    moe = arch.moe_layers
    groups = {
        "embedding": embedding,
        "attention": sum(kind.layer_count * count for kind, count in by_kind) + _beside(arch, "attention"),
        "recurrent": _beside(arch, "recurrent"),
        "mlp": (arch.mlp_layers - moe) * mlp,
        "experts": moe * arch.experts * expert,
        "experts_latent": _beside(arch, "experts_latent"),
        "shared_experts": moe * shared,
        "router": moe * router,
        "norms": (arch.layers * arch.norms_per_layer + 1) * norm + arch.small_parameter_count,
        "head": head,
        "reused": -arch.reused_parameter_count,
        "lookup": arch.lookup_parameter_count,
        "extra": arch.extra_parameter_count,
    }
    whole = sum(groups.values())
    idle_experts = moe * (arch.experts - arch.experts_per_token) * expert
    full = [count for kind, count in by_kind if not kind.is_window]
    window = [count for kind, count in by_kind if kind.is_window]
    return ParameterCounts(
        total=whole,
        active=whole - idle_experts - arch.extra_parameter_count - arch.lookup_parameter_count,
        groups=groups,
        embedding=embedding,
        head=head,
        attention_per_layer=full[0] if full else sum(window[:1]),
        attention_per_window_layer=window[0] if window else 0,
        mlp_per_dense_layer=mlp,
        expert=expert,
        shared_experts_per_layer=shared,
        router_per_layer=router,
        norms_per_layer=arch.norms_per_layer * norm,
        tied_embeddings=arch.tied_embeddings,
    )


def parameter_count(arch: LlmArchitecture) -> Term:
    """All parameters as a tree over the tensor groups."""
    return _group_sum(arch, parameter_terms(arch).groups).named("parameter_count", "")


def active_parameter_count(arch: LlmArchitecture) -> Term:
    """Parameters that one token uses: all but the experts it is not sent to."""
    groups = dict(parameter_terms(arch).groups)
    del groups["extra"], groups["lookup"]
    experts = groups.pop("experts")
    tree = _group_sum(arch, groups)
    if arch.is_moe:
        chosen = leaf(arch.experts_per_token, "experts_per_token", kind="catalog", source=arch.name)
        all_experts = leaf(arch.experts, "experts", kind="catalog", source=arch.name)
        held = leaf(experts, "experts_parameters", kind="catalog", source=arch.name)
        tree = tree + held * chosen / all_experts
    return tree.named("active_parameter_count", "")


def mtp_parameter_count(arch: LlmArchitecture) -> int:
    """What the multi-token-prediction layers would add: one full layer each, joined by a 2h × h matrix."""
    counts = parameter_terms(arch)
    experts = arch.experts * counts.expert + counts.shared_experts_per_layer + counts.router_per_layer
    mlp = experts if arch.is_moe else counts.mlp_per_dense_layer
    layer = counts.attention_per_layer + mlp + counts.norms_per_layer
    return arch.mtp_layers * (layer + 2 * arch.hidden**2)


def entry_elements(arch: LlmArchitecture, kind: AttentionKind) -> int:
    """Numbers that one token leaves in the cache of one layer."""
    if arch.is_mla:
        return arch.kv_lora_rank + arch.qk_rope_head_dim
    return kind.kv_heads * (kind.head_dim if arch.kv_stored_once else kind.head_dim + kind.value_dim)


def kv_bytes_per_token(arch: LlmArchitecture, dtype: str = "bf16") -> Term:
    """KV cache bytes that one token adds over all layers (window layers: while below their window)."""
    width = leaf(BYTES_PER_ELEMENT[dtype], f"{dtype}_bytes_per_element", kind="constant", dimension="bytes")
    if not _is_uniform(arch):
        return _kv_sum(arch, width).named("kv_bytes_per_token")
    layers = _shape(
        arch, arch.attention_layers, "attention_layers" if arch.attention_free_layers else "layers"
    )
    if arch.is_mla:
        latent = arch.leaf("kv_lora_rank") + arch.leaf("qk_rope_head_dim")
        tree = product(layers, latent, width)
    else:
        heads = arch.leaf("kv_heads") * arch.leaf("head_dim")
        tree = product(constant(2, "keys and values"), layers, heads, width)
    return tree.named("kv_bytes_per_token")


def kv_layer_groups(arch: LlmArchitecture, dtype: str = "bf16") -> tuple[KvLayerGroup, ...]:
    """Layers that keep the whole context first, then window layers; a group without layers is left out."""
    width = BYTES_PER_ELEMENT[dtype]
    index = index_bytes_per_entry(arch)
    found: list[KvLayerGroup] = []
    for kind in attention_kinds(arch):
        if kind.stores_kv and not kind.is_window:
            entry = entry_elements(arch, kind) * width
            for group in context_groups(arch):
                cached = group.cached_layer_count
                keys = group.index_cached_layer_count * index / group.index_ratio
                each = entry / group.ratio + (keys / cached if cached else 0.0)
                found.append(KvLayerGroup(layer_count=cached, bytes_per_token=each, window_tokens=0))
            local = local_window_layers(arch)
            found.append(
                KvLayerGroup(layer_count=local, bytes_per_token=entry, window_tokens=arch.window_tokens)
            )
        elif kind.stores_kv:
            each = entry_elements(arch, kind) * width
            found.append(
                KvLayerGroup(
                    layer_count=kind.layer_count, bytes_per_token=each, window_tokens=kind.window_tokens
                )
            )
    return tuple(group for group in found if group.layer_count)


def state_bytes_per_sequence(arch: LlmArchitecture, dtype: str = "bf16") -> Term:
    """Bytes that a sequence holds whatever its length: recurrent states, and the local windows that
    compressed attention keeps beside its entries (128 tokens: full from the first step on)."""
    layers = _shape(arch, arch.recurrent_layers, "recurrent_layers")
    tree = layers * leaf(
        arch.state_bytes_per_layer,
        "state_bytes_per_layer",
        kind="catalog",
        source=arch.name,
        dimension="bytes",
    )
    local = local_window_layers(arch)
    if local:
        kind = attention_kinds(arch)[0]
        entry = leaf(
            entry_elements(arch, kind) * BYTES_PER_ELEMENT[dtype],
            "kv_entry_bytes",
            kind="catalog",
            source=arch.name,
        )
        tree = tree + product(_shape(arch, local, "local_window_layers"), arch.leaf("window_tokens"), entry)
    return tree.named("state_bytes_per_sequence")


def attention_parameters(arch: LlmArchitecture, kind: AttentionKind) -> int:
    """Of one layer of this kind, without what `matrices` add."""
    gate = arch.hidden * arch.attention_gate_width
    if arch.is_mla:
        return _latent_attention(arch) + gate
    query = arch.heads * kind.head_dim
    key = kind.kv_heads * kind.head_dim if kind.stores_kv else 0
    value = kind.kv_heads * kind.value_dim if kind.has_value_matrix else 0
    rank, joined = arch.q_lora_rank, arch.heads * kind.value_dim
    weights = (arch.hidden * rank + rank + rank * query if rank else arch.hidden * query) + gate
    weights += arch.hidden * (key + value)
    if arch.output_groups:
        weights += joined * arch.output_lora_rank + arch.output_groups * arch.output_lora_rank * arch.hidden
    else:
        weights += joined * arch.hidden
    biases = arch.attention_bias * (query + key + value) + arch.output_bias * arch.hidden
    return weights + biases + arch.qk_norm * (2 if kind.stores_kv else 1) * kind.head_dim


def _latent_attention(arch: LlmArchitecture) -> int:
    query_width = arch.heads * (arch.qk_nope_head_dim + arch.qk_rope_head_dim)
    rank = arch.q_lora_rank
    query = arch.hidden * rank + rank + rank * query_width if rank else arch.hidden * query_width
    down = arch.hidden * (arch.kv_lora_rank + arch.qk_rope_head_dim) + arch.kv_lora_rank
    up = arch.kv_lora_rank * arch.heads * (arch.qk_nope_head_dim + arch.v_head_dim)
    return query + down + up + arch.heads * arch.v_head_dim * arch.hidden


def _mlp(arch: LlmArchitecture, width: int, outer: int = 0) -> int:
    inward, outer = 2 if arch.gated_mlp else 1, outer or arch.hidden
    biases = arch.mlp_bias * (inward * width + outer)
    return (inward + 1) * outer * width + biases


def _beside(arch: LlmArchitecture, group: str) -> int:
    return sum(m.layer_count * m.parameter_count for m in arch.matrices if m.group == group)


def _is_uniform(arch: LlmArchitecture) -> bool:
    """Whether all attention layers store the same number of bytes for each token."""
    kinds = attention_kinds(arch)
    alike = len({(kind.kv_heads, kind.head_dim, kind.value_dim) for kind in kinds}) <= 1
    plain = all(kind.stores_kv and kind.head_dim == kind.value_dim for kind in kinds) or arch.is_mla
    return alike and plain and not arch.context_groups and not arch.kv_stored_once


def _kv_sum(arch: LlmArchitecture, width: Term) -> Term:
    """Entries of every kind of layer, and the keys of indexers."""
    parts: list[Term] = [constant(0.0)]
    for kind in attention_kinds(arch):
        if not kind.stores_kv:
            continue
        entry = _shape(arch, entry_elements(arch, kind), "kv_elements_per_entry") * width
        if kind.is_window:
            parts.append(_shape(arch, kind.layer_count, "window_layers") * entry)
            continue
        for group in context_groups(arch):
            layers = _shape(arch, group.cached_layer_count, "layers_with_kv")
            parts.append(layers * entry / constant(float(group.ratio), "tokens_per_entry"))
            if group.index_cached_layer_count:
                keys = leaf(index_bytes_per_entry(arch), "index_key_bytes", kind="catalog", source=arch.name)
                indexed = _shape(arch, group.index_cached_layer_count, "layers_with_index_keys")
                parts.append(indexed * keys / constant(float(group.index_ratio), "tokens_per_index_key"))
    return total(*parts)


def _shape(arch: LlmArchitecture, value: int, name: str) -> Term:
    return leaf(value, name, kind="catalog", source=arch.name, dimension="")


def _group_sum(arch: LlmArchitecture, groups: Mapping[str, int]) -> Term:
    leaves = [
        leaf(count, f"{name}_parameters", kind="catalog", source=f"shape of {arch.name}")
        for name, count in groups.items()
        if count
    ]
    return total(*leaves)
