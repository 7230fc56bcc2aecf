"""Parameters and KV bytes of an architecture, counted per tensor group as integers.

Attention: q, k, v, o (grouped-query), or the low-rank factors of multi-head latent attention. MLP: three
matrices when gated, else two. Experts, shared experts and router count per MoE layer. *Active* counts the
chosen experts only, and everything else once (embedding and head included).
KV bytes per token: grouped-query `2 · layers · kv_heads · head_dim · b`; latent
`layers · (kv_lora_rank + qk_rope_head_dim) · b`. Window layers stop growing at the window, so the sum over
all layers is the slope below it; `kv_layer_groups` says which layers hold what.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

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
    attention_per_layer: int
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
    attention = _attention(arch)
    mlp = _mlp(arch, arch.intermediate)
    expert = _mlp(arch, arch.moe_intermediate) if arch.is_moe else 0
    shared = _mlp(arch, arch.shared_intermediate) if arch.shared_intermediate else 0
    router = arch.experts * (arch.hidden + int(arch.mlp_bias)) if arch.is_moe else 0
    norm = arch.hidden * (2 if arch.norm_bias else 1)
    embedding = (arch.vocab + arch.learned_positions) * arch.hidden
    head = 0 if arch.tied_embeddings else arch.vocab * arch.hidden
    moe, dense = arch.moe_layers, arch.layers - arch.moe_layers
    groups = {
        "embedding": embedding,
        "attention": arch.layers * attention,
        "mlp": dense * mlp,
        "experts": moe * arch.experts * expert,
        "shared_experts": moe * shared,
        "router": moe * router,
        "norms": (arch.layers * arch.norms_per_layer + 1) * norm,
        "head": head,
        "extra": arch.extra_parameter_count,
    }
    whole = sum(groups.values())
    idle_experts = moe * (arch.experts - arch.experts_per_token) * expert
    return ParameterCounts(
        total=whole,
        active=whole - idle_experts - arch.extra_parameter_count,
        groups=groups,
        embedding=embedding,
        head=head,
        attention_per_layer=attention,
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
    groups.pop("extra")
    experts = groups.pop("experts")
    tree = _group_sum(arch, groups)
    if arch.is_moe:
        chosen = leaf(arch.experts_per_token, "experts_per_token", kind="catalog", source=arch.name)
        all_experts = leaf(arch.experts, "experts", kind="catalog", source=arch.name)
        held = leaf(experts, "experts_parameters", kind="catalog", source=arch.name)
        tree = tree + held * chosen / all_experts
    return tree.named("active_parameter_count", "")


def kv_bytes_per_token(arch: LlmArchitecture, dtype: str = "bf16") -> Term:
    """KV cache bytes that one token adds over all layers (window layers: while below their window)."""

    def shape(value: int, name: str) -> Term:
        return leaf(value, name, kind="catalog", source=arch.name, dimension="")

    width = leaf(BYTES_PER_ELEMENT[dtype], f"{dtype}_bytes_per_element", kind="constant", dimension="bytes")
    if arch.is_mla:
        latent = shape(arch.kv_lora_rank, "kv_lora_rank") + shape(arch.qk_rope_head_dim, "qk_rope_head_dim")
        tree = product(shape(arch.layers, "layers"), latent, width)
    else:
        heads = shape(arch.kv_heads, "kv_heads") * shape(arch.head_dim, "head_dim")
        tree = product(constant(2, "keys and values"), shape(arch.layers, "layers"), heads, width)
    return tree.named("kv_bytes_per_token")


def kv_layer_groups(arch: LlmArchitecture, dtype: str = "bf16") -> tuple[KvLayerGroup, ...]:
    """Full-attention layers first, then window layers; a group without layers is left out."""
    per_layer = kv_bytes_per_token(arch, dtype).value / arch.layers
    groups = (
        KvLayerGroup(layer_count=arch.full_layers, bytes_per_token=per_layer, window_tokens=0),
        KvLayerGroup(
            layer_count=arch.window_layers, bytes_per_token=per_layer, window_tokens=arch.window_tokens
        ),
    )
    return tuple(group for group in groups if group.layer_count)


def _attention(arch: LlmArchitecture) -> int:
    if arch.is_mla:
        return _latent_attention(arch)
    query, key_value = arch.heads * arch.head_dim, 2 * arch.kv_heads * arch.head_dim
    weights = arch.hidden * (query + key_value) + query * arch.hidden
    biases = arch.attention_bias * (query + key_value) + arch.output_bias * arch.hidden
    return weights + biases + arch.qk_norm * 2 * arch.head_dim


def _latent_attention(arch: LlmArchitecture) -> int:
    query_width = arch.heads * (arch.qk_nope_head_dim + arch.qk_rope_head_dim)
    rank = arch.q_lora_rank
    query = arch.hidden * rank + rank + rank * query_width if rank else arch.hidden * query_width
    down = arch.hidden * (arch.kv_lora_rank + arch.qk_rope_head_dim) + arch.kv_lora_rank
    up = arch.kv_lora_rank * arch.heads * (arch.qk_nope_head_dim + arch.v_head_dim)
    return query + down + up + arch.heads * arch.v_head_dim * arch.hidden


def _mlp(arch: LlmArchitecture, width: int) -> int:
    inward = 2 if arch.gated_mlp else 1
    biases = arch.mlp_bias * (inward * width + arch.hidden)
    return (inward + 1) * arch.hidden * width + biases


def _group_sum(arch: LlmArchitecture, groups: Mapping[str, int]) -> Term:
    leaves = [
        leaf(count, f"{name}_parameters", kind="catalog", source=f"shape of {arch.name}")
        for name, count in groups.items()
        if count
    ]
    return total(*leaves)
