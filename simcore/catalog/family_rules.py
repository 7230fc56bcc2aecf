"""The few functions that single families need: what neither keys nor constants of a row can say.

Each takes what was read so far and returns the fields that it changes.
"""

from __future__ import annotations

from simcore.catalog.config_reader import Reader, Shape
from simcore.catalog.types import Matrix
from simcore.errors import InputError


def other_window_shape(r: Reader, shape: Shape) -> Shape:
    """Window layers with heads of their own (MiMo prints `swa_*`, Step 3.5 `attention_other_setting`)."""
    other = r.inner("attention_other_setting")
    heads = r.count("swa_num_attention_heads") or (other.count("num_attention_heads") if other else 0)
    more = heads - shape["heads"] if heads and shape.get("window_layers") else 0
    if more < 0:
        r.remarks.append("window layers with fewer heads are counted as the full ones")
    if more > 0:
        r.remarks.append("the scores of the further heads of window layers are not counted as work")
        shape["matrices"] = (*shape.get("matrices", ()), *_further_heads(shape, more))
    return {
        "window_kv_heads": r.count("swa_num_key_value_heads"),
        "window_head_dim": r.count("swa_head_dim"),
        "window_v_head_dim": r.count("swa_v_head_dim"),
    }


def _further_heads(shape: Shape, more: int) -> tuple[Matrix, ...]:
    """Queries and outputs of the heads that window layers have beyond the full ones."""
    hidden, layers = shape["hidden"], shape["window_layers"]
    width, joined = more * shape["head_dim"], more * (shape["v_head_dim"] or shape["head_dim"])
    return (
        Matrix(name="window_query", fan_in=hidden, fan_out=width, layer_count=layers),
        Matrix(name="window_output", fan_in=joined, fan_out=hidden, layer_count=layers, split="fan_in"),
    )


def output_gate(r: Reader, shape: Shape) -> Shape:
    """A gate as wide as the attention's output, or one number per head, where a file says so."""
    if r.flag("use_head_wise_attn_gate"):
        return {"attention_gate_width": shape["heads"]}
    wide = r.flag("attn_output_gate", "attention_output_gate", "mla_use_output_gate")
    return wide_gate(r, shape) if wide else {}


def wide_gate(r: Reader, shape: Shape) -> Shape:
    return {"attention_gate_width": shape["heads"] * (shape["v_head_dim"] or shape["head_dim"])}


def residual_attention(r: Reader, shape: Shape) -> Shape:
    """Kimi K3 mixes the residuals of earlier blocks: one norm and one vector before attention and MLP, and
    before the head."""
    if not r.count("attn_res_block_size"):
        return {}
    vectors = 4 * shape["layers"] + 2
    return {"small_parameter_count": shape.get("small_parameter_count", 0) + vectors * shape["hidden"]}


def prediction_layers(r: Reader, shape: Shape) -> Shape:
    """Multi-token prediction under its names."""
    r.read |= {"use_mtp", "mtp_transformer_layers", "mtp_hybrid_override_pattern", "mtp_layers_block_type"}
    return {"mtp_layers": r.count("num_nextn_predict_layers", "num_mtp_modules", "mtp_num_hidden_layers")}


def learned_positions(r: Reader, shape: Shape) -> Shape:
    return {"learned_positions": shape["max_position"]}


def multi_query(r: Reader, shape: Shape) -> Shape:
    kv_heads = 1 if r.flag("multi_query", default=True) else shape["heads"]
    return {"kv_heads": kv_heads, **learned_positions(r, shape)}


def opt(r: Reader, shape: Shape) -> Shape:
    if r.number("word_embed_proj_dim", default=shape["hidden"]) != shape["hidden"]:
        raise r.unsupported("word_embed_proj_dim", "projected embeddings are not modelled")
    return {"learned_positions": shape["max_position"] + 2}


def falcon(r: Reader, shape: Shape) -> Shape:
    """The old form has one KV head and one norm; the new one prints `num_kv_heads`."""
    new = r.flag("new_decoder_architecture")
    one_head = not new and r.flag("multi_query", default=True)
    kv_heads = 1 if one_head else (shape["kv_heads"] if new else shape["heads"])
    parallel = r.flag("parallel_attn", default=True)
    r.read |= {"alibi", "num_ln_in_parallel_attn", "num_kv_heads", "activation"}
    return {"kv_heads": kv_heads, "norms_per_layer": 1 if parallel and not new else 2, "norm_bias": True}


def qwen1(r: Reader, shape: Shape) -> Shape:
    """Its `intermediate_size` counts gate and up together."""
    r.read |= {
        "no_bias",
        "use_dynamic_ntk",
        "use_logn_attn",
        "use_flash_attn",
        "rotary_pct",
        "rotary_emb_base",
    }
    return {"intermediate": shape["intermediate"] // 2}


def llama4(r: Reader, shape: Shape) -> Shape:
    """`intermediate_size` is the experts' width; chunked attention where rotary is on."""
    expert, layers = shape["intermediate"], shape["layers"]
    uses_rotary = r.items("no_rope_layers") or [int((layer + 1) % 4 != 0) for layer in range(layers)]
    window = r.count("attention_chunk_size")
    r.read |= {"no_rope_layer_interval", "attention_bias"}
    return {
        "intermediate": r.number("intermediate_size_mlp", default=expert),
        "moe_intermediate": expert,
        "shared_intermediate": expert,
        "qk_norm": False,  # without weights
        "window_layers": sum(map(bool, uses_rotary[:layers])) if window else 0,
        "window_tokens": window,
    }


def minimax_m3(r: Reader, shape: Shape) -> Shape:
    """`intermediate_size` is the experts' width where the dense layers print their own."""
    if not r.has("dense_intermediate_size"):
        return {}
    return {
        "intermediate": r.number("dense_intermediate_size"),
        "moe_intermediate": r.number("moe_intermediate_size", "intermediate_size"),
    }


def recurrent_gemma(r: Reader, shape: Shape) -> Shape:
    """`intermediate_size` counts gate and up together; all attention is in windows."""
    window = r.number("attention_window_size", default=2048)
    return {
        "intermediate": max(1, shape["intermediate"] // 2),
        "window_layers": shape["layers"] - shape.get("attention_free_layers", 0),
        "window_tokens": window,
    }


def heads_per_layer(r: Reader, shape: Shape) -> Shape:
    """DeciLM: engines store every layer with the KV heads of the largest."""
    listed = r.numbers("num_key_value_heads_per_layer")
    if not listed:
        return searched_blocks(r, shape)
    r.remarks.append(
        "layers of different KV heads are counted with those of the largest, as engines store them"
    )
    if max(listed) < 1 or shape["heads"] % max(listed):
        raise r.wrong("num_key_value_heads_per_layer", max(listed), "it must divide the attention heads")
    return {"kv_heads": max(listed)}


def grok(r: Reader, shape: Shape) -> Shape:
    """Grok-2 has a dense MLP beside the experts, and a head of its own."""
    if not r.flag("residual_moe"):
        return {}
    return {"shared_intermediate": shape["intermediate"]}


def cross_attention(r: Reader, shape: Shape) -> Shape:
    listed = len(r.items("cross_attention_layers"))
    if listed:
        r.remarks.append(
            f"{listed} cross-attention layers are counted like the others, with KV of text tokens"
        )
    return {}


def seed_oss(r: Reader, shape: Shape) -> Shape:
    return {"output_bias": r.flag("attention_out_bias")}


def granite_hybrid(r: Reader, shape: Shape) -> Shape:
    """Without experts, the shared MLP is the MLP; without states, their sizes say nothing."""
    if not shape.get("recurrent_layers"):
        r.read |= {key for key in r.config if str(key).startswith("mamba_")}
    if shape.get("experts"):
        return {}
    return {"intermediate": r.number("shared_intermediate_size", "intermediate_size")}


def hunyuan(r: Reader, shape: Shape) -> Shape:
    """Cross-layer attention: of each group of `cla_share_factor` layers one stores KV."""
    factor = r.number("cla_share_factor", default=1) if r.flag("use_cla") else 1
    r.read |= {
        "cla_share_factor",
        "use_mixed_mlp_moe",
        "moe_layer_num_skipped",
        "capacity_factor",
        "moe_drop_tokens",
    }
    return {"shared_kv_full_layers": shape["layers"] - -(-shape["layers"] // factor)}


def arctic(r: Reader, shape: Shape) -> Shape:
    """A dense MLP runs beside the experts."""
    return {"shared_intermediate": shape["intermediate"] if r.flag("parallel_attn_mlp_res") else 0}


def lfm2(r: Reader, shape: Shape) -> Shape:
    """Its MLP width is printed before an adjustment to two thirds and a round multiple."""
    width = shape["intermediate"]
    r.read |= {"block_auto_adjust_ff_dim", "block_ffn_dim_multiplier", "block_multiple_of", "block_ff_dim"}
    if not r.flag("block_auto_adjust_ff_dim", default=True):
        return {}
    scale = r.config.get("block_ffn_dim_multiplier")
    width = int(2 * width / 3 * (scale if isinstance(scale, int | float) and 0 < scale < 100 else 1))
    multiple = r.number("block_multiple_of", default=256)
    return {"intermediate": multiple * -(-width // multiple)}


def gemma3n(r: Reader, shape: Shape) -> Shape:
    """Alternating updates and low-rank residuals beside per-layer inputs; queries of shared layers only."""
    streams, rank = r.count("altup_num_inputs"), r.count("laurel_rank")
    hidden, layers = shape["hidden"], shape["layers"]
    r.read |= {"activation_sparsity_pattern", "altup_active_idx", "altup_coef_clip", "altup_correct_scale"}
    beside = [
        Matrix(name="laurel_down", fan_in=hidden, fan_out=rank, layer_count=layers, split="none"),
        Matrix(name="laurel_up", fan_in=rank, fan_out=hidden, layer_count=layers, split="none"),
        Matrix(
            name="altup", fan_in=hidden, fan_out=hidden, layer_count=2 * max(0, streams - 1), split="none"
        ),
    ]
    kept = tuple(matrix for matrix in beside if matrix.fan_in and matrix.fan_out and matrix.layer_count)
    return {"matrices": (*shape.get("matrices", ()), *kept)}


def gemma4(r: Reader, shape: Shape) -> Shape:
    """Full layers have wider heads, fewer of them for KV, and no value matrix; experts run beside an MLP."""
    moe = r.flag("enable_moe_block")
    changed: Shape = {
        "head_dim": r.number("global_head_dim", default=shape["head_dim"]),
        "kv_heads": r.count("num_global_key_value_heads") or shape["kv_heads"],
        "window_head_dim": shape["head_dim"],
        "window_kv_heads": shape["kv_heads"],
        "value_from_key": r.flag("attention_k_eq_v"),
    }
    r.read |= {"expert_intermediate_size", "moe_intermediate_size", "top_k_experts", "num_experts"}
    if moe and shape.get("experts"):
        changed |= {"shared_intermediate": shape["intermediate"], "norms_per_layer": 7}
    shared = shape.get("shared_kv_full_layers", 0) + shape.get("shared_kv_window_layers", 0)
    if r.flag("use_double_wide_mlp") and shared:
        layers = shape["layers"]
        changed["intermediate"] = shape["intermediate"] * (layers + shared) // layers
        r.remarks.append("layers of different MLP widths are counted at their mean width")
    return changed


def state_in_every_layer(r: Reader, shape: Shape) -> Shape:
    """Falcon-H1: attention and a state side by side in every layer."""
    return {"recurrent_layers": shape["layers"]}


def searched_blocks(r: Reader, shape: Shape) -> Shape:
    """Nemotron's searched models: each block has attention or none, and a width of its own."""
    blocks = r.items("block_configs")
    if len(blocks) != shape["layers"]:
        raise InputError.at(
            f"{r.path}.block_configs",
            "config.wrong",
            "{got} blocks for {layers} layers",
            got=len(blocks),
            layers=shape["layers"],
        )
    r.read |= {"intermediate_size", "num_key_value_heads"}
    readers = [
        Reader(block if isinstance(block, dict) else {}, f"{r.path}.block_configs") for block in blocks
    ]
    attention = [block.inner("attention") for block in readers]
    mlps = [block.inner("ffn") for block in readers]
    groups = [a.number("n_heads_in_group", default=1) for a in attention if a and a.has("n_heads_in_group")]
    hidden = shape["hidden"]
    linear = sum(bool(part and part.flag("replace_with_linear")) for part in (*attention, *mlps))
    computed = [ffn for ffn in mlps if ffn and not (ffn.flag("no_op") or ffn.flag("replace_with_linear"))]
    widths = [_block_width(ffn, hidden) for ffn in computed]
    if len(set(widths)) > 1:
        r.remarks.append("blocks of different MLP widths are counted at their mean width")
    return {
        "kv_heads": max(1, shape["heads"] // max(groups, default=1)),
        "attention_free_layers": sum(not (a and a.has("n_heads_in_group")) for a in attention),
        "mlp_free_layers": len(mlps) - len(widths),
        "intermediate": max(1, round(sum(widths) / max(1, len(widths)))),
        "matrices": (Matrix(name="linear_block", fan_in=hidden, fan_out=hidden, layer_count=linear),)
        if linear
        else (),
    }


def _block_width(ffn: Reader, hidden: int) -> int:
    """`ffn_mult` as its code reads it: two thirds of it, rounded up to a multiple of 256."""
    ratio = ffn.config.get("ffn_mult")
    if not isinstance(ratio, int | float) or not 0 < ratio < 100:
        return ffn.number("intermediate_size")
    return 256 * -(-int(2 * ratio * hidden / 3) // 256)


def longcat(r: Reader, shape: Shape) -> Shape:
    """LongCat-Flash: a layer is two attentions and two MLPs, with experts beside the first; some experts
    do nothing, so fewer are computed per token."""
    empty = r.count("zero_expert_num")
    layers, experts = shape["layers"], r.number("n_routed_experts")
    chosen = r.number("moe_topk", "num_experts_per_tok")
    r.read |= {"zero_expert_type", "mla_scale_q_lora", "mla_scale_kv_lora", "router_bias"}
    r.config["num_experts_per_tok"] = max(1, round(chosen * experts / (experts + empty)))
    r.config.pop("moe_topk", None)
    r.config["n_shared_experts"] = 1
    r.config["shared_intermediate_size"] = shape["intermediate"]
    r.remarks.append("experts that do nothing are taken out of the experts per token on average")
    return {"layers": 2 * layers, "dense_layers": layers}
