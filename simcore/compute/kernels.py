"""Kernel times from fitted constants, written once for expression trees and for whole arrays of shapes.

    GEMM       t = root(waves × wave time, operand bytes / bandwidth) + launch
    experts    the same over the padded rows and the weights of the experts that tokens reach
    prefill    t = root(causal blocks over all cores, longest block) + cost per block + launch
    decode     t = root(KV bytes, padded FLOP) / share of cores with a split + reduction + launch

`root(a, b) = (a^p + b^p)^(1/p)` lies between the sum (p = 1) and the larger of both (p = 8). *Waves* are tiles
of the output over the cores; a fitted share of the idle part of the last one is paid for. An **isolated**
kernel, as benchmarks repeat it, finds a small matrix in L2 and pays its launch; a **step** streams all weights
from HBM and pays launches per layer (`calibration.py`). Fits, error bands and steps read these formulas alone.
Limits: one tile shape per chip and dtype; attention fits are of head dimension 128; routing is balanced.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Final

import numpy as np

from simcore.catalog.kernels import FitRecord
from simcore.catalog.types import BYTES_PER_ELEMENT, Chip
from simcore.compute.roofline import Amount, Floats, greatest, labelled, root_sum, rounded_up
from simcore.units import dimension_of
from simcore.why import Term, leaf

BLOCK_ROWS: Final = 128.0  # query rows of one block of tiled attention
MMA_ROWS: Final = 16.0  # query heads that share a KV head are padded to the rows of a matrix instruction
_RECORD: Final = frozenset(item.name for item in fields(FitRecord))
_RESIDENT_STEEPNESS: Final = 3  # doublings of the exponent with which L2 hits vanish: x^8


def machine_terms(chip: Chip, peak: Term) -> dict[str, Term]:
    """What the formulas need of a chip, as leaves."""
    found = {
        "flop_per_s": peak,
        "bytes_per_s": chip.leaf("hbm_bytes_per_s"),
        "cores": chip.leaf("core_count"),
    }
    if chip.l2_bytes:
        found["l2_bytes"] = chip.leaf("l2_bytes")
    return found


def machine_numbers(chip: Chip, dtype: str) -> dict[str, Floats]:
    return {
        "flop_per_s": np.asarray(chip.peak_flop_per_s(dtype)),
        "bytes_per_s": np.asarray(chip.hbm_bytes_per_s),
        "cores": np.asarray(float(chip.core_count or 1)),
        "l2_bytes": np.asarray(chip.l2_bytes or 1.0),
    }


def constant_terms(kernel: FitRecord, name: str) -> dict[str, Term]:
    """The fitted constants as leaves that say where they are from and how well they hold."""
    source = f"{kernel.source.title}; mean error {kernel.held_out_mape_fraction:.0%} on rows not fitted"
    return {
        item.name: leaf(
            getattr(kernel, item.name),
            f"{name}_{item.name}",
            kind="calibrated",
            source=source,
            dimension=dimension_of(item.name),
        )
        for item in fields(kernel)
        if item.name not in _RECORD
    }


def constant_numbers(kernel: FitRecord) -> dict[str, Floats]:
    return {
        item.name: np.asarray(float(getattr(kernel, item.name)))
        for item in fields(kernel)
        if item.name not in _RECORD
    }


# ---- matrix products --------------------------------------------------------------------------------


def gemm_arithmetic_s(
    constants: Mapping[str, Amount],
    machine: Mapping[str, Amount],
    *,
    tokens: Amount,
    fan_in: Amount,
    fan_out: Amount,
) -> Amount:
    """Time of the tiles of `tokens × fan_out` outputs, each `fan_in` deep."""
    rows = labelled(rounded_up(tokens / constants["tile_rows"]), "rows_of_tiles", "count")
    columns = labelled(rounded_up(fan_out / constants["tile_columns"]), "columns_of_tiles", "count")
    waves = labelled(rows * columns / machine["cores"], "waves", "")
    started = labelled(rounded_up(waves), "waves_started", "count")
    paid = labelled(waves + constants["wave_fraction"] * (started - waves), "waves_paid", "")
    tile = constants["tile_rows"] * constants["tile_columns"] * (fan_in + constants["prologue_count"])
    rate = constants["compute_fraction"] * machine["flop_per_s"]
    wave_s = labelled(2.0 * machine["cores"] * tile / rate, "wave_s")
    return labelled(paid * wave_s, "arithmetic_s")


def gemm_isolated_s(
    constants: Mapping[str, Floats],
    machine: Mapping[str, Floats],
    *,
    tokens: Floats,
    fan_in: Floats,
    fan_out: Floats,
    dtype: str,
    exponent: int,
) -> Floats:
    """One product as a benchmark repeats it, launch included."""
    arithmetic_s = gemm_arithmetic_s(constants, machine, tokens=tokens, fan_in=fan_in, fan_out=fan_out)
    each = BYTES_PER_ELEMENT[dtype]
    weights = each * fan_in * fan_out
    moved = weights + each * tokens * fan_in + 2.0 * tokens * fan_out
    missed = _missed(weights, constants["resident_fraction"] * machine["l2_bytes"], constants)
    memory_s = moved * missed / (constants["memory_fraction"] * machine["bytes_per_s"])
    return constants["launch_s"] + root_sum(arithmetic_s, memory_s, exponent)


def _missed(held: Floats, room: Floats, constants: Mapping[str, Floats]) -> Floats:
    """Time over that of reading everything from HBM, where a repeated operand fits in L2."""
    ratio = np.minimum(held / room, 1e6)
    for _ in range(_RESIDENT_STEEPNESS):
        ratio = ratio * ratio
    hit = 1.0 / (1.0 + ratio)
    found: Floats = 1.0 - hit * (1.0 - 1.0 / constants["resident_speedup_ratio"])
    return found


# ---- experts ----------------------------------------------------------------------------------------


def expert_rows(constants: Mapping[str, Amount], *, rows: Amount, active: Amount) -> Amount:
    """Rows computed: those routed, and a share of what fills each active expert's last tile."""
    each = labelled(rounded_up(rows / active / constants["tile_rows"]), "tiles_of_each_expert", "count")
    padding = labelled(active * each * constants["tile_rows"] - rows, "padding_rows", "count")
    return labelled(
        rows + constants["padding_fraction"] * greatest(padding, 0.0 * rows), "rows_paid", "count"
    )


def experts_isolated_s(
    constants: Mapping[str, Floats],
    machine: Mapping[str, Floats],
    *,
    rows: Floats,
    local_experts: Floats,
    hidden: Floats,
    width: Floats,
    dtype: str,
    exponent: int,
    foreign_rows: Floats | float = 0.0,
) -> Floats:
    """One rank's fused gated experts with balanced routing, as a benchmark repeats it, launch included.

    Where experts are spread over ranks the benchmark hands each rank the tokens of all: `foreign_rows` are the
    rows of experts elsewhere. Some kernels move them, a few compute them; after a dispatch there are none.
    """
    active = np.minimum(local_experts, np.maximum(rows, 1.0))
    computed = expert_rows(constants, rows=rows, active=active) + constants["foreign_fraction"] * foreign_rows
    rate = constants["compute_fraction"] * machine["flop_per_s"]
    arithmetic_s = 6.0 * hidden * width * computed / rate
    weights = BYTES_PER_ELEMENT[dtype] * 3.0 * active * hidden * width
    passed = constants["passes_ratio"] * 2.0 * rows * (2.0 * hidden + 3.0 * width)
    passed = passed + constants["foreign_passes_ratio"] * 2.0 * foreign_rows * 2.0 * hidden
    room = 0.8 * machine["l2_bytes"]
    bandwidth = constants["memory_fraction"] * machine["bytes_per_s"]
    memory_s = (weights * _missed(weights, room, constants) + passed) / bandwidth
    return (
        constants["launch_s"]
        + root_sum(arithmetic_s, memory_s, exponent)
        + constants["per_expert_s"] * active
    )


# ---- attention --------------------------------------------------------------------------------------


def prefill_isolated_s(
    constants: Mapping[str, Floats],
    machine: Mapping[str, Floats],
    *,
    batch: Floats,
    tokens: Floats,
    heads: Floats,
    kv_heads: Floats,
    exponent: int,
    head_dim: float = 128.0,
) -> Floats:
    """Causal attention of `batch` prompts of equal length, launch included."""
    blocks = np.ceil(tokens / BLOCK_ROWS)
    core_rate = constants["compute_fraction"] * machine["flop_per_s"] / machine["cores"]
    padded = blocks * BLOCK_ROWS
    ramp = padded / (padded + constants["ramp_tokens"])
    key_s = 4.0 * head_dim * BLOCK_ROWS / (core_rate * ramp)  # one block of rows against one key
    keys = blocks * (blocks + 1.0) / 2.0 * BLOCK_ROWS
    shared_s = batch * heads * keys * key_s / machine["cores"]
    longest_s = constants["longest_ratio"] * padded * key_s
    per_block_s = batch * heads * blocks / machine["cores"] * constants["per_block_s"]
    moved = 4.0 * batch * tokens * (heads + kv_heads) * head_dim
    memory_s = moved / (constants["memory_fraction"] * machine["bytes_per_s"])
    arithmetic_s = root_sum(shared_s, longest_s, exponent) + per_block_s
    return constants["launch_s"] + np.maximum(arithmetic_s, memory_s)


def decode_padding(group: Amount, one: Amount) -> Amount:
    """Rows computed over rows used: the query heads of one KV head fill whole matrix instructions."""
    return rounded_up(group / MMA_ROWS) * (one * MMA_ROWS) / group


def decode_isolated_s(
    constants: Mapping[str, Floats],
    machine: Mapping[str, Floats],
    *,
    batch: Floats,
    context: Floats,
    heads: Floats,
    kv_heads: Floats,
    kv_dtype: str,
    exponent: int,
    head_dim: float = 128.0,
    flop_per_key: float = 512.0,
) -> Floats:
    """One new token of each of `batch` sequences of equal context, launch included.

    `head_dim` is half of what is read per key and KV head, `flop_per_key` what a query head computes with it.
    """
    kv_bytes = 2.0 * batch * context * kv_heads * head_dim * BYTES_PER_ELEMENT[kv_dtype]
    group = np.maximum(heads / kv_heads, 1.0)
    flop = batch * context * kv_heads * group * decode_padding(group, np.ones_like(group)) * flop_per_key
    missed = _missed(kv_bytes, constants["resident_fraction"] * machine["l2_bytes"], constants)
    memory_s = kv_bytes * missed / (constants["memory_fraction"] * machine["bytes_per_s"])
    arithmetic_s = flop / (constants["compute_fraction"] * machine["flop_per_s"])
    splits = np.clip(context / constants["split_tokens"], 1.0, constants["most_split_count"])
    share = np.minimum(1.0, batch * kv_heads * splits / machine["cores"])
    reduction_s = constants["reduction_s"] * context / (context + constants["reduction_tokens"])
    return (
        constants["launch_s"]
        + reduction_s
        + root_sum(memory_s, arithmetic_s, exponent) / share
        + batch * heads * constants["per_head_s"]
    )
