"""Mixture of experts under any of its names: how many, how wide, how many chosen, on which layers.

Shared experts are printed as one width or as a count of experts; layers without experts as a number of
leading ones, a period, a list of indices or a list of types. Experts beside a dense MLP (Gemma 4, Arctic)
count that MLP as shared. Limits: dense layers that are not leading are counted, their place is not kept.
"""

from __future__ import annotations

from typing import Final

from simcore.catalog.config_reader import Reader, Shape
from simcore.errors import InputError

_COUNT: Final = (
    "n_routed_experts",
    "num_experts",
    "num_local_experts",
    "moe_num_experts",
    "num_routed_experts",
)
_CHOSEN: Final = (
    "num_experts_per_tok",
    "num_experts_per_token",
    "moe_topk",
    "moe_k",
    "moe_top_k",
    "top_k_experts",
    "experts_per_token",
)
_WIDTH: Final = (
    "moe_intermediate_size",
    "expert_intermediate_size",
    "expert_ffn_hidden_size",
    "moe_ffn_hidden_size",
)
_SHARED_WIDTH: Final = (
    "shared_expert_intermediate_size",
    "moe_shared_expert_intermediate_size",
    "shared_intermediate_size",
    "share_expert_dim",
)
_SHARED_COUNT: Final = (
    "n_shared_experts",
    "num_shared_experts",
    "num_shared_expert",
    "moe_num_shared_experts",
)


def experts(r: Reader, shape: Shape) -> Shape:
    """Nothing for a dense model (no experts, or one that all tokens take)."""
    count = r.first(*_COUNT)
    beside = _second_modality(r, shape)
    r.read |= set(_COUNT)  # some files print it twice
    if count <= 1 or shape.get("experts") == 0:
        r.read |= {*_CHOSEN, *_WIDTH, *_SHARED_WIDTH, *_SHARED_COUNT, "first_k_dense_replace"}
        r.read |= {"mlp_only_layers", "moe_layer_freq", "decoder_sparse_step"}
        r.read |= {"expert_layer_period", "expert_layer_offset"}
        return {"experts": 0}
    chosen = r.first(*_CHOSEN) or r.number(_CHOSEN[0])
    if chosen > count:
        raise InputError.at(
            f"{r.path}.num_experts_per_tok",
            "config.wrong",
            "{chosen} experts per token of {experts} experts",
            chosen=chosen,
            experts=count,
        )
    width = r.first(*_WIDTH) or shape["intermediate"]
    return {
        "experts": count,
        "experts_per_token": chosen,
        "moe_intermediate": width,
        "shared_intermediate": _shared(r, width),
        "dense_layers": _dense(r, shape),
        "extra_parameter_count": beside,
    }


def _second_modality(r: Reader, shape: Shape) -> int:
    """ERNIE 4.5 VL prints counts and widths of text and of vision experts: the second do no work for text."""
    counts, widths = r.config.get("moe_num_experts"), r.config.get("moe_intermediate_size")
    if not (isinstance(counts, list) and isinstance(widths, list) and len(counts) == len(widths) == 2):
        return 0
    numbers, sizes = r.numbers("moe_num_experts"), r.numbers("moe_intermediate_size")
    for key in ("moe_layer_start_index", "moe_layer_end_index"):
        if isinstance(r.config.get(key), list):
            r.config[key] = next(iter(r.numbers(key)), 0)
    layers = shape["layers"] - r.count("moe_layer_start_index")
    return max(0, int(layers)) * numbers[1] * 3 * int(shape["hidden"]) * sizes[1]


def _shared(r: Reader, width: int) -> int:
    shared = r.first(*_SHARED_COUNT)
    stated = r.first(*_SHARED_WIDTH)
    if stated:
        return stated * max(1, shared)
    return shared * width


def _dense(r: Reader, shape: Shape) -> int:
    """Layers without experts."""
    r.read |= {"first_k_dense_replace", "mlp_only_layers", "moe_layer_freq", "decoder_sparse_step"}
    layers: int = shape["layers"]
    if "dense_layers" in shape:
        return int(shape["dense_layers"])
    types = r.items("mlp_layer_types")
    if types:
        return min(layers, types.count("dense"))
    listed = _listed(r, layers)
    if listed is not None:
        return layers - listed
    start = r.count("moe_layer_start_index")
    end = min(layers, r.count("moe_layer_end_index") + 1) if r.count("moe_layer_end_index") else layers
    period = r.number(
        "decoder_sparse_step",
        "expert_layer_period",
        "interleave_moe_layer_step",
        "moe_layer_interval",
        "moe_every_n_layers",
        "moe_layer_frequency",
        default=1,
    )
    offset = r.count("expert_layer_offset") if r.has("expert_layer_offset") else period - 1
    leading = r.count("first_k_dense_replace", "num_dense_layers", "n_dense_layers")
    without = set(r.numbers("mlp_only_layers"))
    first = max(start, leading)
    # DeepSeek counts every n-th layer from 0, the others from the end of the first period
    step = r.number("moe_layer_freq", default=1)
    sparse = [
        layer
        for layer in range(first, end)
        if layer % period == offset and layer % step == 0 and layer not in without
    ]
    return layers - len(sparse)


def _listed(r: Reader, layers: int) -> int | None:
    """Number of MoE layers where a file lists them."""
    if isinstance(r.config.get("is_moe_layer"), list):
        return sum(map(bool, r.items("is_moe_layer")[:layers]))
    if isinstance(r.config.get("moe_layer_freq"), list):
        return sum(map(bool, r.items("moe_layer_freq")[:layers]))
    if isinstance(r.config.get("moe_layers_enum"), str):
        return min(layers, len(r.text("moe_layers_enum").split(",")))
    if isinstance(r.config.get("moe_layers_enum"), list):
        return min(layers, len(r.items("moe_layers_enum")))
    if r.items("moe_layers"):
        return min(layers, len(r.items("moe_layers")))
    return None
