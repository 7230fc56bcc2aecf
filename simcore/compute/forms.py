"""What each class of measured kernel is compared with: its formula, where its constants may lie, and its rows.

A `Form` binds a formula of `kernels.py` to the columns of the rows (`fit_rows.py`); `fitting.py` looks for the
constants. Latent attention uses the forms of grouped-query attention with DeepSeek-V3's widths, which alone were
measured. The plain roofline stands beside, for the error before a fit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from simcore.catalog.kernels import DecodeKernel, ExpertKernel, FitRecord, GemmKernel, PrefillKernel
from simcore.catalog.types import BYTES_PER_ELEMENT, Calibration, Chip
from simcore.compute.calibration import OperatorClass, efficiency
from simcore.compute.fit_rows import Group, Kind, stored_format
from simcore.compute.kernels import (
    constant_numbers,
    decode_isolated_s,
    experts_isolated_s,
    gemm_isolated_s,
    machine_numbers,
    prefill_isolated_s,
)
from simcore.compute.roofline import Floats

# Latent attention as measured, DeepSeek-V3's: keys of 192 and values of 128 in prefill (their mean), a latent of
# 512 and 64 rotary elements, read once for scores and values, in decode.
LATENT_PREFILL_DIM: Final = (192.0 + 128.0) / 2
LATENT_DECODE_DIM: Final = (512.0 + 64.0) / 2
LATENT_FLOP_PER_KEY: Final = 2.0 * (512.0 + 64.0 + 512.0)
Constants = Mapping[str, Floats]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """Where one constant starts and between which values it may go."""

    start: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """One class of kernel: formula, continuous constants, and the whole numbers that are tried."""

    record: type[Any]
    predict: Callable[[Constants, Constants, Constants, str, int], Floats]
    bounds: Mapping[str, Bound]
    choices: Mapping[str, Sequence[int]]
    starts: tuple[Mapping[str, float], ...] = ({},)
    tells: Callable[[str, Constants], bool] | None = (
        None  # whether rows say anything of a constant; else it is 0
    )


def _gemm(c: Constants, machine: Constants, rows: Constants, dtype: str, exponent: int) -> Floats:
    return gemm_isolated_s(
        c, machine, tokens=rows["m"], fan_in=rows["k"], fan_out=rows["n"], dtype=dtype, exponent=exponent
    )


def _experts(c: Constants, machine: Constants, rows: Constants, dtype: str, exponent: int) -> Floats:
    return experts_isolated_s(
        c,
        machine,
        rows=rows["tokens"] * rows["topk"] / rows["ep"],
        local_experts=rows["experts"] / rows["ep"],
        hidden=rows["hidden"],
        width=rows["inter"] / rows["tp"],
        dtype=dtype,
        exponent=exponent,
        foreign_rows=rows["tokens"] * rows["topk"] * (1.0 - 1.0 / rows["ep"]),
    )


def _tells_of_experts(name: str, rows: Constants) -> bool:
    return not name.startswith("foreign") or bool((rows["ep"] > 1).any())


def _prefill(c: Constants, machine: Constants, rows: Constants, dtype: str, exponent: int) -> Floats:
    return prefill_isolated_s(
        c,
        machine,
        batch=rows["batch"],
        tokens=rows["new_tokens"],
        heads=rows["heads"],
        kv_heads=rows["kv_heads"],
        exponent=exponent,
    )


def _decode(c: Constants, machine: Constants, rows: Constants, dtype: str, exponent: int) -> Floats:
    return decode_isolated_s(
        c,
        machine,
        batch=rows["batch"],
        context=rows["ctx_len"] + 1.0,
        heads=rows["heads"],
        kv_heads=rows["kv_heads"],
        kv_dtype=dtype,
        exponent=exponent,
    )


def _latent_prefill(c: Constants, machine: Constants, rows: Constants, dtype: str, exponent: int) -> Floats:
    return prefill_isolated_s(
        c,
        machine,
        batch=rows["batch"],
        tokens=rows["new_tokens"],
        heads=rows["heads"],
        kv_heads=rows["heads"],
        exponent=exponent,
        head_dim=LATENT_PREFILL_DIM,
    )


def _latent_decode(c: Constants, machine: Constants, rows: Constants, dtype: str, exponent: int) -> Floats:
    return decode_isolated_s(
        c,
        machine,
        batch=rows["batch"],
        context=rows["ctx_len"] + 1.0,
        heads=rows["heads"],
        kv_heads=np.ones_like(rows["heads"]),
        kv_dtype=dtype,
        exponent=exponent,
        head_dim=LATENT_DECODE_DIM,
        flop_per_key=LATENT_FLOP_PER_KEY,
    )


_EXPONENTS: Final = (1, 2, 4, 8)
_FORMS: Final[Mapping[Kind, Form]] = {
    "gemm": Form(
        record=GemmKernel,
        predict=_gemm,
        bounds={
            "compute_fraction": Bound(start=0.7, low=0.05, high=1.0),
            "memory_fraction": Bound(start=0.75, low=0.1, high=1.0),
            "launch_s": Bound(start=5e-6, low=1e-7, high=1e-4),
            "wave_fraction": Bound(start=0.5, low=0.01, high=1.0),
            "prologue_count": Bound(start=100.0, low=1.0, high=2000.0),
            "resident_fraction": Bound(start=0.5, low=0.05, high=2.0),
            "resident_speedup_ratio": Bound(start=2.0, low=1.0, high=8.0),
        },
        choices={
            "tile_rows": (64, 128, 256),
            "tile_columns": (64, 128, 256),
            "overlap_exponent": _EXPONENTS,
        },
    ),
    "experts": Form(
        record=ExpertKernel,
        predict=_experts,
        bounds={
            "compute_fraction": Bound(start=0.3, low=0.01, high=1.0),
            "memory_fraction": Bound(start=0.8, low=0.1, high=1.0),
            "launch_s": Bound(start=3e-5, low=1e-6, high=1e-4),
            "padding_fraction": Bound(start=0.5, low=0.01, high=1.0),
            "passes_ratio": Bound(start=1.0, low=0.1, high=20.0),
            "per_expert_s": Bound(start=1e-8, low=1e-10, high=3e-6),
            "resident_speedup_ratio": Bound(start=2.0, low=1.0, high=8.0),
            "foreign_fraction": Bound(start=0.01, low=1e-6, high=1.0),
            "foreign_passes_ratio": Bound(start=0.3, low=1e-4, high=20.0),
        },
        choices={"tile_rows": (16, 64, 128), "overlap_exponent": _EXPONENTS},
        starts=({}, {"compute_fraction": 0.1}, {"foreign_fraction": 0.5}),
        tells=_tells_of_experts,
    ),
    "attention_prefill": Form(
        record=PrefillKernel,
        predict=_prefill,
        bounds={
            "compute_fraction": Bound(start=0.6, low=0.05, high=1.0),
            "memory_fraction": Bound(start=0.5, low=0.05, high=1.0),
            "launch_s": Bound(start=1.1e-5, low=1e-6, high=5e-5),
            "longest_ratio": Bound(start=1.0, low=0.05, high=10.0),
            "per_block_s": Bound(start=2e-6, low=1e-9, high=2e-5),
            "ramp_tokens": Bound(start=50.0, low=0.01, high=2000.0),
        },
        choices={"overlap_exponent": _EXPONENTS},
    ),
    "attention_decode": Form(
        record=DecodeKernel,
        predict=_decode,
        bounds={
            "compute_fraction": Bound(start=0.2, low=0.01, high=1.0),
            "memory_fraction": Bound(start=0.85, low=0.5, high=1.0),
            "launch_s": Bound(start=6e-6, low=1e-6, high=6e-5),
            "split_tokens": Bound(start=256.0, low=16.0, high=20000.0),
            "most_split_count": Bound(start=32.0, low=2.0, high=512.0),
            "reduction_s": Bound(start=5e-6, low=1e-7, high=5e-5),
            "reduction_tokens": Bound(start=300.0, low=30.0, high=20000.0),
            "per_head_s": Bound(start=1e-10, low=1e-13, high=2e-8),
            "resident_fraction": Bound(start=0.8, low=0.05, high=2.0),
            "resident_speedup_ratio": Bound(start=2.0, low=1.0, high=8.0),
        },
        choices={"overlap_exponent": _EXPONENTS},
        starts=({}, {"resident_fraction": 0.3}, {"compute_fraction": 0.5}, {"split_tokens": 60.0}),
    ),
}
_DECODE: Final = _FORMS["attention_decode"]
FORMS: Final[Mapping[Kind, Form]] = {
    **_FORMS,
    "latent_prefill": replace(_FORMS["attention_prefill"], predict=_latent_prefill),
    "latent_decode": replace(
        _DECODE,
        predict=_latent_decode,
        # chips without a kernel of their own for it (A100, L40S) reach less
        bounds={**_DECODE.bounds, "memory_fraction": Bound(start=0.8, low=0.05, high=1.0)},
    ),
}


def serves(group: Group, chip: Chip) -> NDArray[np.bool_]:
    """Rows of the regime that serving runs in: decode of 4 to 16 query heads to a KV head, KV above twice L2."""
    if group.key.kind != "attention_decode":
        return np.zeros(len(group.measured_s), dtype=bool)
    heads, kv_heads = group.columns["heads"], group.columns["kv_heads"]
    per_token = 2 * 128 * BYTES_PER_ELEMENT[group.key.dtype] * kv_heads
    kv_bytes = group.columns["batch"] * (group.columns["ctx_len"] + 1) * per_token
    grouped = (heads >= 4 * kv_heads) & (heads <= 16 * kv_heads)
    return np.asarray(grouped & (kv_bytes > 2 * (chip.l2_bytes or 0)))


def predicted_s(record: FitRecord, group: Group, chip: Chip) -> Floats:
    """What a fitted record says of the rows of a group."""
    constants = constant_numbers(record)
    exponent = int(constants["overlap_exponent"])
    key = group.key
    found: Floats = FORMS[key.kind].predict(
        constants, machine_of(group, chip), group.columns, stored_format(key.dtype), exponent
    )
    return found


def machine_of(group: Group, chip: Chip) -> dict[str, Floats]:
    """What the formulas need of a chip; attention multiplies in 16 bit."""
    is_product = group.key.kind in ("gemm", "experts")
    return machine_numbers(chip, stored_format(group.key.dtype) if is_product else "bf16")


def roofline_predicted_s(group: Group, chip: Chip, calibration: Calibration) -> Floats:
    """What the plain roofline of a calibration says of the rows of a group, launch included."""
    kind, dtype, columns = group.key.kind, group.key.dtype, group.columns
    classes: dict[str, OperatorClass] = {"gemm": "gemm", "experts": "moe"}
    operator_class = classes.get(kind) or ("attention_decode" if "decode" in kind else "attention_prefill")
    flop, moved = _work(kind, stored_format(dtype), columns)
    fit = efficiency(calibration, operator_class, stored_format(dtype))
    arithmetic = stored_format(dtype) if kind in classes else "bf16"
    busy_s = flop / (fit.compute_fraction * chip.peak_flop_per_s(arithmetic))
    return np.maximum(busy_s, moved / (fit.memory_fraction * chip.hbm_bytes_per_s)) + fit.launch_s


def _work(kind: Kind, dtype: str, columns: Constants) -> tuple[Floats, Floats]:
    """FLOP and bytes of the rows, without tiles, padding or caches."""
    each = BYTES_PER_ELEMENT[dtype]
    if kind == "gemm":
        m, n, k = (columns[name] for name in "mnk")
        return 2 * m * n * k, each * (m * k + n * k) + 2 * m * n
    if kind == "experts":
        rows = columns["tokens"] * columns["topk"] / columns["ep"]
        active = np.minimum(columns["experts"] / columns["ep"], np.maximum(rows, 1.0))
        width = columns["inter"] / columns["tp"]
        weights = 3 * columns["hidden"] * width
        return 2 * rows * weights, each * active * weights + 2 * rows * (2 * columns["hidden"] + 3 * width)
    batch, heads = columns["batch"], columns["heads"]
    if kind == "latent_decode":
        context = columns["ctx_len"] + 1.0
        keys = batch * context
        return keys * heads * LATENT_FLOP_PER_KEY, keys * 2 * LATENT_DECODE_DIM * each
    if kind == "latent_prefill":
        tokens, width = columns["new_tokens"], np.asarray(LATENT_PREFILL_DIM)
        return 2 * batch * tokens**2 * heads * width, 8 * batch * tokens * heads * width
    kv_heads = columns["kv_heads"]
    if kind == "attention_decode":
        context = columns["ctx_len"] + 1.0
        return 4 * batch * context * heads * 128.0, 2 * batch * context * kv_heads * 128.0 * each
    tokens = columns["new_tokens"]
    return 2 * batch * tokens**2 * heads * 128.0, 4 * batch * tokens * (heads + kv_heads) * 128.0
