"""Zamba2: state-space layers, and a few transformer blocks whose weights serve several layers.

Every layer has a Mamba-2 mixer. Before some of them runs one of `num_mem_blocks` blocks in turn: attention
over the layer's input beside the embedding (2·hidden wide), then an MLP; low-rank adapters and a linear map
are each use's own. Every use stores KV. The counts below are those of all uses, and what is held only once
is taken off again. Limit: with pipeline parallelism a stage is charged its share of the shared blocks.
"""

from __future__ import annotations

from simcore.catalog.config_reader import Reader, Shape
from simcore.catalog.types import Matrix


def zamba2(r: Reader, shape: Shape) -> Shape:
    """The fields that shared blocks change; the mixers were read before."""
    layers, hidden = shape["layers"], shape["hidden"]
    uses = layers - shape.get("attention_free_layers", 0)
    blocks = min(uses, r.number("num_mem_blocks", default=1))
    heads, joined = shape["heads"], 2 * hidden
    head_dim = r.number("attention_head_dim", default=max(1, joined // heads))
    rank, inner = r.number("adapter_rank", "lora_rank", default=128), shape["intermediate"]
    r.read |= {
        "attention_hidden_size",
        "hybrid_layer_ids",
        "num_query_groups",
        "kv_channels",
        "ffn_hidden_size",
        "lora_rank",
        "gated_linear_unit",
        "use_shared_block_lora",
        "use_shared_attention_lora",
        "state_size",
    }
    key_value = 2 * shape["kv_heads"] * head_dim
    maps = [
        ("block_embedding_qkv", hidden, heads * head_dim + key_value),
        ("block_linear", hidden, hidden),
        ("block_adapter_down", hidden, rank),
        ("block_adapter_up", rank, 2 * inner),
    ]
    if r.flag("use_shared_attention_adapter"):
        maps += [
            ("block_qkv_adapter_down", joined, 3 * rank),
            ("block_qkv_adapter_up", rank, heads * head_dim + key_value),
        ]
    attention = joined * (heads * head_dim + key_value) + heads * head_dim * hidden
    return {
        "recurrent_layers": layers,
        "mlp_free_layers": layers - uses,
        "head_dim": head_dim,
        "v_head_dim": 0,
        "norms_per_layer": 1,
        "matrices": (
            *shape.get("matrices", ()),
            *(Matrix(name=n, fan_in=i, fan_out=o, layer_count=uses) for n, i, o in maps),
        ),
        "small_parameter_count": shape.get("small_parameter_count", 0) + 3 * blocks * hidden,
        "reused_parameter_count": (uses - blocks) * (attention + 3 * hidden * inner),
    }
