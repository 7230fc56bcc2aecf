"""Layers that hold a state instead of KV: linear attention, state-space models, short convolutions.

For each kind: its matrices, what else it keeps (convolutions, decays, norms), the state of one sequence
and layer, and the FLOP of one state update. A state is d_k × d_v numbers per head plus the last k − 1
inputs of its convolution; its format is the file's (`mamba_ssm_cache_dtype`, …), else 16 bit, and
convolutions are at 16 bit. Sources: the models' published code. Limits: FLOP of chunked prefill are taken
as those of the recurrence.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from simcore.catalog.config_reader import Reader, Shape
from simcore.catalog.types import Matrix

_CONVOLUTION_BYTES: Final = 2


def recurrence(r: Reader, shape: Shape) -> Shape:
    """Which kind it is follows from the keys that are there."""
    count = shape.get("recurrent_layers", 0)
    if not count:
        return {}
    if r.has("linear_num_value_heads"):
        return _gated_delta_net(r, shape, count)
    if r.has("linear_attn_config", "linear_num_heads"):
        return _kimi_delta(r, shape, count)
    if r.has("mamba_dt_rank") and not r.has("mamba_n_heads", "mamba_num_heads"):
        return _mamba(r, shape, count)
    if r.has("mamba_n_heads", "mamba_num_heads"):
        return _mamba2(r, shape, count)
    if r.has("conv_L_cache"):
        return _short_convolution(r, shape, count)
    if r.has("lru_width", "conv1d_width"):
        return _gated_linear_recurrence(r, shape, count)
    if r.has("attn_type_list", "layer_group_size"):
        return _lightning(r, shape, count)
    # nothing gives the size of the state: one of these is missing
    r.number("linear_num_value_heads", "mamba_num_heads", "mamba_dt_rank", "conv_L_cache")
    return {}


def _state_width(r: Reader) -> int:
    for key in ("mamba_ssm_cache_dtype", "mamba_ssm_dtype"):
        if r.text(key):
            return 4 if "32" in r.text(key) else 2
    return 2


def _gated_delta_net(r: Reader, shape: Shape, count: int) -> Shape:
    """Qwen3-Next and 3.5: keys on fewer heads than values, one convolution over all three."""
    key_heads, value_heads = r.number("linear_num_key_heads"), r.number("linear_num_value_heads")
    key_dim, value_dim = r.number("linear_key_head_dim"), r.number("linear_value_head_dim")
    keys, values, kernel = key_heads * key_dim, value_heads * value_dim, r.number("linear_conv_kernel_dim")
    channels, hidden = 2 * keys + values, shape["hidden"]
    state = value_heads * key_dim * value_dim
    return _fields(
        "gated_delta_net",
        [
            Matrix(name="delta_in", fan_in=hidden, fan_out=channels + values, layer_count=count),
            Matrix(name="delta_gates", fan_in=hidden, fan_out=2 * value_heads, layer_count=count),
            Matrix(name="delta_out", fan_in=values, fan_out=hidden, layer_count=count, split="fan_in"),
        ],
        small=count * (channels * kernel + 2 * value_heads + value_dim),
        state_bytes=state * _state_width(r) + channels * (kernel - 1) * _CONVOLUTION_BYTES,
        flop=8 * state,
    )


def _kimi_delta(r: Reader, shape: Shape, count: int) -> Shape:
    """Kimi Linear and GLM-5.3-Flash: q, k, v of one size, low-rank decay and output gate; state in fp32."""
    inner = r.inner("linear_attn_config") or r
    heads = inner.number("num_heads", "linear_num_heads")
    dim = inner.number("head_dim", "linear_head_dim")
    kernel = inner.number("short_conv_kernel_size", "linear_conv_kernel_dim", default=4)
    r.read |= {"linear_num_heads", "linear_head_dim", "linear_conv_kernel_dim", "linear_lower_bound"}
    width, hidden, state = heads * dim, shape["hidden"], heads * dim * dim
    gate = [
        Matrix(name="delta_gate_down", fan_in=hidden, fan_out=dim, layer_count=count, split="none"),
        Matrix(name="delta_gate_up", fan_in=dim, fan_out=width, layer_count=count),
    ]
    if inner.flag("use_full_rank_gate"):  # Kimi K3
        gate = [Matrix(name="delta_gate", fan_in=hidden, fan_out=width, layer_count=count)]
    return _fields(
        "kimi_delta",
        [
            Matrix(name="delta_in", fan_in=hidden, fan_out=3 * width, layer_count=count),
            Matrix(name="delta_decay_down", fan_in=hidden, fan_out=dim, layer_count=count, split="none"),
            Matrix(name="delta_decay_up", fan_in=dim, fan_out=width, layer_count=count),
            *gate,
            Matrix(name="delta_beta", fan_in=hidden, fan_out=heads, layer_count=count),
            Matrix(name="delta_out", fan_in=width, fan_out=hidden, layer_count=count, split="fan_in"),
        ],
        small=count * (3 * width * kernel + width + heads + dim),
        state_bytes=4 * state + 3 * width * (kernel - 1) * _CONVOLUTION_BYTES,
        flop=8 * state,
    )


def _mamba2(r: Reader, shape: Shape, count: int) -> Shape:
    """Mamba-2: x, z and the shared B, C of each group, one scalar decay per head."""
    heads = r.number("mamba_num_heads", "mamba_n_heads")
    hidden = shape["hidden"]
    width = r.count("mamba_d_ssm") or r.count("mamba_expand") * hidden
    dim = r.count("mamba_head_dim", "mamba_d_head", "mamba_headdim") or max(1, width // heads)
    states = r.number("ssm_state_size", "mamba_d_state")
    groups = r.number("n_groups", "mamba_n_groups", "mamba_ngroups", default=1)
    kernel = r.number("conv_kernel", "mamba_d_conv", default=4)
    r.read |= {"expand", "mamba_expand", "chunk_size", "mamba_chunk_size", "use_conv_bias", "mamba_conv_bias"}
    width, shared = heads * dim, 2 * groups * states
    channels, state = width + shared, heads * dim * states
    return _fields(
        "mamba2",
        [
            Matrix(name="mamba_in", fan_in=hidden, fan_out=channels + width + heads, layer_count=count),
            Matrix(name="mamba_out", fan_in=width, fan_out=hidden, layer_count=count, split="fan_in"),
        ],
        small=count * (channels * (kernel + 1) + 3 * heads + width),
        state_bytes=state * _state_width(r) + channels * (kernel - 1) * _CONVOLUTION_BYTES,
        flop=6 * state,
    )


def _mamba(r: Reader, shape: Shape, count: int) -> Shape:
    """Mamba-1, as Jamba has it: a low-rank step, one state vector per channel."""
    hidden = shape["hidden"]
    width = r.number("mamba_expand", default=2) * hidden
    states, rank = r.number("mamba_d_state", default=16), r.count("mamba_dt_rank") or -(-hidden // 16)
    kernel = r.number("mamba_d_conv", default=4)
    return _fields(
        "mamba",
        [
            Matrix(name="mamba_in", fan_in=hidden, fan_out=2 * width, layer_count=count),
            Matrix(
                name="mamba_x", fan_in=width, fan_out=rank + 2 * states, layer_count=count, split="fan_in"
            ),
            Matrix(name="mamba_step", fan_in=rank, fan_out=width, layer_count=count),
            Matrix(name="mamba_out", fan_in=width, fan_out=hidden, layer_count=count, split="fan_in"),
        ],
        small=count * (width * (kernel + 1) + width * (states + 2) + rank + 2 * states),
        state_bytes=width * (states * _state_width(r) + (kernel - 1) * _CONVOLUTION_BYTES),
        flop=6 * width * states,
    )


def _short_convolution(r: Reader, shape: Shape, count: int) -> Shape:
    """LFM2: a gated convolution over a few tokens."""
    hidden, kernel = shape["hidden"], r.number("conv_L_cache")
    r.read |= {"conv_dim", "conv_dim_out", "conv_bias", "conv_use_xavier_init"}
    return _fields(
        "short_convolution",
        [
            Matrix(name="convolution_in", fan_in=hidden, fan_out=3 * hidden, layer_count=count),
            Matrix(name="convolution_out", fan_in=hidden, fan_out=hidden, layer_count=count, split="fan_in"),
        ],
        small=count * hidden * kernel,
        state_bytes=hidden * kernel * _CONVOLUTION_BYTES,
        flop=2 * hidden * kernel,
    )


def _gated_linear_recurrence(r: Reader, shape: Shape, count: int) -> Shape:
    """RecurrentGemma's RG-LRU: one decaying number per channel in fp32, its two gates block-diagonal over
    the attention heads, a convolution before it; all of its projections have biases."""
    hidden, width = shape["hidden"], r.number("lru_width", default=shape["hidden"])
    block, kernel = max(1, width // shape["heads"]), r.number("conv1d_width", default=4)
    return _fields(
        "gated_linear_recurrence",
        [
            Matrix(name="lru_in", fan_in=hidden, fan_out=2 * width, layer_count=count),
            Matrix(name="lru_gates", fan_in=block, fan_out=2 * width, layer_count=count),
            Matrix(name="lru_out", fan_in=width, fan_out=hidden, layer_count=count, split="fan_in"),
        ],
        small=count * (width * (kernel + 6) + hidden),
        state_bytes=width * (4 + (kernel - 1) * _CONVOLUTION_BYTES),
        flop=8 * width,
    )


def _lightning(r: Reader, shape: Shape, count: int) -> Shape:
    """MiniMax-Text-01 and M1, Ling: linear attention with a fixed decay and an output gate."""
    heads, dim, hidden = shape["heads"], shape["head_dim"], shape["hidden"]
    width, state = heads * dim, heads * dim * dim
    return _fields(
        "lightning",
        [
            Matrix(name="lightning_in", fan_in=hidden, fan_out=4 * width, layer_count=count),
            Matrix(name="lightning_out", fan_in=width, fan_out=hidden, layer_count=count, split="fan_in"),
        ],
        small=count * width,
        state_bytes=state * 4,
        flop=6 * state,
    )


def _fields(kind: str, matrices: list[Matrix], *, small: int, state_bytes: int, flop: int) -> Shape:
    grouped = tuple(replace(matrix, group="recurrent") for matrix in matrices)
    return {
        "recurrence": kind,
        "matrices": grouped,
        "small_parameter_count": small,
        "state_bytes_per_layer": state_bytes,
        "recurrence_flop_per_token": flop,
    }
