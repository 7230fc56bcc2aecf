"""Sparse and compressed attention, residual streams, and the other parts of the newest families.

- An indexer (DeepSeek V3.2, GLM-5) scores all cached tokens with small fp8 keys and attention reads the
  `index_topk` best. Layers of type "shared" reuse the choice of the layer before; some pool their keys.
- DeepSeek V4 keeps one vector (key and value at once) per `ratio` tokens beside a sliding window: ratio 4
  with an indexer, ratio 128 read whole, 0 the window alone. V4.1 stores them in a few layers for all.
- Hyper-connections carry `hc_mult` residual streams. Engram tables and per-layer embeddings are read by row.

Shapes follow the published code. Limits: V4.1's candidate filter before late indexers is not modelled, and
an indexer is charged as reading the keys of the whole context.
"""

from __future__ import annotations

from simcore.catalog.config_reader import Reader, Shape
from simcore.catalog.types import ContextGroup, Matrix


def indexer(r: Reader, shape: Shape) -> Shape:
    """DeepSeek sparse attention: top-k of the context by an indexer, on latent attention."""
    topk = r.count("index_topk")
    if not topk or "kv_lora_rank" not in shape:
        return {}
    heads, dim = r.number("index_n_heads"), r.number("index_head_dim")
    full = shape["layers"] - shape.get("window_layers", 0) - shape.get("attention_free_layers", 0)
    types = r.items("indexer_types")
    own = min(full, types.count("full")) if types else full
    r.read |= {"index_topk_freq", "index_topk_pattern", "index_skip_topk_offset", "index_kpool_compress"}
    rank, hidden = shape["q_lora_rank"] or shape["hidden"], shape["hidden"]
    group = ContextGroup(
        layer_count=full,
        cached_layer_count=full,
        topk_entries=topk,
        index_layer_count=own,
        index_cached_layer_count=own,
        index_ratio=r.number("index_kpool", default=1),
    )
    matrices = (
        Matrix(name="index_query", fan_in=rank, fan_out=heads * dim, layer_count=own, split="none"),
        Matrix(name="index_key", fan_in=hidden, fan_out=dim, layer_count=own, split="none"),
        Matrix(name="index_weights", fan_in=hidden, fan_out=heads, layer_count=own, split="none"),
    )
    return {
        "context_groups": (group,),
        "index_heads": heads,
        "index_head_dim": dim,
        "matrices": (*shape.get("matrices", ()), *matrices),
        "small_parameter_count": shape.get("small_parameter_count", 0) + own * 2 * dim,
    }


def block_sparse(r: Reader, shape: Shape) -> Shape:
    """MiniMax-M3: on ordinary keys and values, an indexer chooses blocks of tokens; its keys are at 16 bit.

    Its files print `sparse_attention_config`, or the same under the flat names of newer classes."""
    inner = r.inner("sparse_attention_config") or r
    if not inner.flag("use_sparse_attention", default=inner.has("index_topk_blocks", "sparse_topk_blocks")):
        return {}
    heads = inner.number("sparse_num_index_heads", "index_n_heads")
    dim = inner.number("sparse_index_dim", "index_head_dim")
    blocks = inner.number("sparse_topk_blocks", "index_topk_blocks")
    tokens = blocks * inner.number("sparse_block_size", "index_block_size")
    listed = inner.items("sparse_attention_freq") or [
        item == "minimax_m3_sparse" for item in r.items("layer_types")
    ]
    sparse = min(shape["layers"], sum(map(bool, listed))) if listed else shape["layers"]
    hidden, plain = shape["hidden"], shape["layers"] - sparse
    r.read |= {"index_local_blocks", "index_init_blocks"}
    groups = [ContextGroup(layer_count=plain, cached_layer_count=plain)] if plain else []
    if sparse:
        groups.append(
            ContextGroup(
                layer_count=sparse,
                cached_layer_count=sparse,
                topk_entries=tokens,
                index_layer_count=sparse,
                index_cached_layer_count=sparse,
            )
        )
    return {
        "context_groups": tuple(groups),
        "index_heads": heads,
        "index_head_dim": dim,
        "index_key_bytes": 2 * dim,
        "matrices": (
            Matrix(name="index_query", fan_in=hidden, fan_out=heads * dim, layer_count=sparse, split="none"),
            Matrix(name="index_key", fan_in=hidden, fan_out=dim, layer_count=sparse, split="none"),
        ),
        "small_parameter_count": sparse * 2 * dim,
    }


def compressed(r: Reader, shape: Shape) -> Shape:
    """DeepSeek V4 and V4.1: one shared key-and-value head, low-rank queries, grouped outputs."""
    layers, window = shape["layers"], r.number("sliding_window")
    ratios = r.numbers("compress_ratios")[:layers]
    if len(ratios) != layers:
        raise r.wrong("compress_ratios", len(ratios), f"one ratio for each of {layers} layers is needed")
    sources = set(r.numbers("kv_source_layer_ids") if r.has("kv_source_layer_ids") else range(layers))
    scoring = set(r.numbers("index_source_layer_ids") if r.has("index_source_layer_ids") else range(layers))
    heads, dim, topk = r.number("index_n_heads"), r.number("index_head_dim"), r.number("index_topk")
    groups: list[ContextGroup] = []
    matrices: list[Matrix] = []
    for ratio in sorted(set(ratios) - {0}):
        at = [layer for layer in range(layers) if ratios[layer] == ratio]
        stored = sum(layer in sources for layer in at)
        is_sparse = ratio <= 4
        scored = sum(layer in scoring for layer in at) if is_sparse else 0
        groups.append(
            ContextGroup(
                layer_count=len(at),
                cached_layer_count=stored,
                ratio=ratio,
                topk_entries=topk if is_sparse else 0,
                index_layer_count=scored,
                index_cached_layer_count=stored if is_sparse else 0,
                index_ratio=ratio,
            )
        )
        matrices += _compressor(shape, ratio, stored, overlaps=ratio == 4)
        if is_sparse:
            matrices += _compressed_indexer(r, shape, ratio, stored, scored)
    return {
        "window_layers": ratios.count(0),
        "window_tokens": window,
        "context_groups": tuple(groups),
        "kv_stored_once": True,
        "q_lora_rank": r.number("q_lora_rank"),
        "output_groups": r.number("o_groups"),
        "output_lora_rank": r.number("o_lora_rank"),
        "index_heads": heads,
        "index_head_dim": dim,
        "matrices": tuple(matrices),
        # norm of the shared head and attention sinks
        "small_parameter_count": layers * (shape["head_dim"] + shape["heads"]),
    }


def _compressor(shape: Shape, ratio: int, stored: int, *, overlaps: bool) -> list[Matrix]:
    """Values and their softmax gates; windows that overlap (ratio 4) need both twice."""
    width = shape["head_dim"] * (2 if overlaps else 1)
    names = ("compress_value", "compress_gate") if ratio > 1 else ("compress_value",)
    return [
        Matrix(name=name, fan_in=shape["hidden"], fan_out=width, layer_count=stored, split="none")
        for name in names
        if stored
    ]


def _compressed_indexer(r: Reader, shape: Shape, ratio: int, stored: int, scored: int) -> list[Matrix]:
    heads, dim, hidden = r.number("index_n_heads"), r.number("index_head_dim"), shape["hidden"]
    key_width = 4 * dim if ratio == 4 else dim  # pooled like the entries: value and gate, twice
    shapes = [
        ("index_query", r.number("q_lora_rank"), heads * dim, scored),
        ("index_weights", hidden, heads, scored),
        ("index_key", hidden, key_width, stored),
    ]
    return [
        Matrix(name=name, fan_in=fan_in, fan_out=fan_out, layer_count=count, split="none")
        for name, fan_in, fan_out, count in shapes
        if count
    ]


def residual_streams(r: Reader, shape: Shape) -> Shape:
    """Hyper-connections: before attention and before the MLP, h streams are mixed by (2 + h)·h outputs."""
    streams = r.count("hc_mult")
    r.read |= {"hc_eps", "hc_sinkhorn_iters", "mhc"}
    if streams <= 1:
        return {}
    outputs = (2 + streams) * streams
    mixer = outputs * streams * shape["hidden"] + outputs + 3
    return {"small_parameter_count": shape.get("small_parameter_count", 0) + 2 * shape["layers"] * mixer}


def latent_experts(r: Reader, shape: Shape) -> Shape:
    """Experts that work in a narrower space, with one projection into it and one back (Nemotron 3 Super,
    Kimi K3)."""
    latent = r.count("moe_latent_size", "routed_expert_hidden_size")
    normed = r.flag("latent_moe_use_norm")
    if not latent or not shape.get("experts"):
        return {}
    count = shape["layers"] - shape.get("mlp_free_layers", 0) - shape.get("dense_layers", 0)
    matrices = (
        Matrix(
            name="latent_in",
            fan_in=shape["hidden"],
            fan_out=latent,
            layer_count=count,
            split="none",
            group="experts_latent",
        ),
        Matrix(
            name="latent_out",
            fan_in=latent,
            fan_out=shape["hidden"],
            layer_count=count,
            split="none",
            group="experts_latent",
        ),
    )
    norms = count * latent if normed else 0
    return {
        "moe_latent": latent,
        "matrices": (*shape.get("matrices", ()), *matrices),
        "small_parameter_count": shape.get("small_parameter_count", 0) + norms,
    }


def engram(r: Reader, shape: Shape) -> Shape:
    """DeepSeek V4.1's n-gram memory: big tables read by row, and a projection into the residual streams."""
    rows = r.numbers("engram_num_embeddings")
    if not rows:
        return {}
    dim = r.number("engram_head_dim")
    columns = (r.number("engram_max_ngram_size") - 1) * r.number("engram_n_heads")
    outputs = shape["hidden"] * (1 + r.number("hc_mult", default=1))
    r.read |= {"engram_layer_ids", "engram_vocab_size", "engram_pad_token_id", "engram_compressed_vocab_size"}
    projection = Matrix(name="engram", fan_in=columns * dim, fan_out=outputs, layer_count=len(rows))
    return {
        "lookup_parameter_count": sum(rows) * dim,
        "matrices": (*shape.get("matrices", ()), projection),
    }


def per_layer_inputs(r: Reader, shape: Shape) -> Shape:
    """Gemma 3n and 4: an embedding table per layer, gated into each layer's residual."""
    width = r.count("hidden_size_per_layer_input")
    if not width:
        r.read.add("vocab_size_per_layer_input")
        return {}
    layers, hidden = shape["layers"], shape["hidden"]
    gates = (
        Matrix(name="layer_input_gate", fan_in=hidden, fan_out=width, layer_count=layers, split="none"),
        Matrix(name="layer_input_out", fan_in=width, fan_out=hidden, layer_count=layers, split="none"),
        Matrix(name="layer_input_model", fan_in=hidden, fan_out=layers * width, layer_count=1, split="none"),
    )
    rows = r.number("vocab_size_per_layer_input", default=shape["vocab"])
    return {
        "lookup_parameter_count": rows * layers * width,
        "matrices": (*shape.get("matrices", ()), *gates),
        "small_parameter_count": shape.get("small_parameter_count", 0) + layers * (hidden + width),
    }


def shared_kv(r: Reader, shape: Shape) -> Shape:
    """The last layers reuse the KV of an earlier layer of their kind (Gemma 3n and 4)."""
    shared = min(r.count("num_kv_shared_layers"), shape["layers"] - 1)
    if not shared:
        return {}
    types = r.items("layer_types")[-shared:]
    window = sum(item == "sliding_attention" for item in types)
    return {"shared_kv_full_layers": shared - window, "shared_kv_window_layers": window}
