"""Attention in a step, scaled to measured tables (`serving.kernels: measured`).

A step knows attention as seconds per cached token, per sequence and per pair of tokens (`attention.py`), so a table
becomes one factor for decode and one for prefill: the geometric mean of measured ÷ fitted over the batches and
lengths where nothing but those terms counts. For decode these read twice the L2 of KV or more; for prefill, prompts
from 512 tokens on that together fill at least half of a step. The shortest time of the table stands for the launch,
which a step pays per layer.
Limits: the spread around the mean is not modelled; windows, sparse and compressed attention stay as fitted, and so
does prefill of latent attention in another head width than DeepSeek-V3's.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from simcore.catalog.grids import Floats, Grid, ratio_leaf
from simcore.catalog.measured import MeasuredTables
from simcore.compute.attention import AttentionCost, AttentionSetting, layer_cost
from simcore.compute.local_shape import LocalShape

_L2_CACHES_OF_KV: Final = 2.0
_SHORTEST_PROMPT_TOKENS: Final = 512.0
_LATENT_WIDTHS: Final = {
    "kv_lora_rank": 512,
    "qk_rope_head_dim": 64,
    "qk_nope_head_dim": 128,
    "v_head_dim": 128,
}


def corrected_cost(setting: AttentionSetting, shape: LocalShape) -> AttentionCost:
    """One layer, scaled where tables have its heads; otherwise as fitted."""
    cost, calibration = layer_cost(setting, shape), setting.calibration
    tables, chip = calibration.measured, calibration.measured_on
    if (
        tables is None
        or chip is None
        or shape.kind.is_window
        or setting.arch.context_groups
        or setting.attention.kind != "flash"
    ):
        return cost
    reference = cost if setting.chip is chip else layer_cost(replace(setting, chip=chip), shape)
    decode, prefill = _tables(tables, setting, shape)
    least = _L2_CACHES_OF_KV * (chip.l2_bytes or 0.0) / reference.kv_bytes_per_token.value
    if decode and (factor := decode_factor(decode, reference, least_tokens=least)):
        ratio = ratio_leaf(factor, decode.source)
        cost = replace(
            cost,
            decode_s_per_token=(cost.decode_s_per_token * ratio).named(cost.decode_s_per_token.name, "s"),
            decode_s_per_sequence=(cost.decode_s_per_sequence * ratio).named(
                cost.decode_s_per_sequence.name, "s"
            ),
            decode_compute_fraction=min(1.0, cost.decode_compute_fraction / factor),
        )
    if prefill and (factor := prefill_factor(prefill, reference, most_tokens=setting.context_tokens)):
        seconds = cost.prefill_s_per_pair * ratio_leaf(factor, prefill.source)
        cost = replace(
            cost,
            prefill_s_per_pair=seconds.named(cost.prefill_s_per_pair.name, "s"),
            prefill_compute_fraction=min(1.0, cost.prefill_compute_fraction / factor),
        )
    return cost


def _tables(
    tables: MeasuredTables, setting: AttentionSetting, shape: LocalShape
) -> tuple[Grid | None, Grid | None]:
    """Of decode and of prefill."""
    heads, kv_heads, head_dim = (int(term.value) for term in (shape.heads, shape.kv_heads, shape.head_dim))
    if setting.arch.is_mla:
        if any(getattr(setting.arch, name) != width for name, width in _LATENT_WIDTHS.items()):
            return None, None
        return tables.latent_decode(setting.kv_dtype, heads=heads), tables.latent_prefill(heads=heads)
    if shape.kind.head_dim != shape.kind.value_dim:
        return None, None
    return (
        tables.decode(setting.kv_dtype, heads=heads, kv_heads=kv_heads, head_dim=head_dim),
        tables.prefill(heads=heads, kv_heads=kv_heads, head_dim=head_dim),
    )


def decode_factor(grid: Grid, fitted: AttentionCost, *, least_tokens: float) -> float | None:
    """Measured ÷ fitted over batches that read `least_tokens` of KV or more; None where none was measured."""
    lengths, batches = np.meshgrid(grid.axes[0] + 1.0, grid.axes[1], indexing="ij")
    fitted_s = lengths * fitted.decode_s_per_token.value + fitted.decode_s_per_sequence.value
    return _mean_ratio(grid, batches * fitted_s, batches * lengths >= least_tokens)


def prefill_factor(grid: Grid, fitted: AttentionCost, *, most_tokens: float) -> float | None:
    """The same over prompts that together fill a step of `most_tokens`, at least by half."""
    lengths, batches = np.meshgrid(*grid.axes, indexing="ij")
    filled = lengths * batches / most_tokens
    counted = (lengths >= _SHORTEST_PROMPT_TOKENS) & (filled >= 0.5) & (filled <= 1.0)
    return _mean_ratio(grid, batches * lengths**2 / 2.0 * fitted.prefill_s_per_pair.value, counted)


def _mean_ratio(grid: Grid, fitted_s: Floats, counted: NDArray[np.bool_]) -> float | None:
    seen = counted & np.isfinite(grid.measured_s)
    if not seen.any():
        return None
    return float(np.exp(np.log(grid.measured_s[seen] / (fitted_s[seen] + grid.floor_s)).mean()))
