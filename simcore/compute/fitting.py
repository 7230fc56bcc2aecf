"""Fitting kernel constants to measured rows: robust least squares on relative errors, in numpy alone.

Minimised is Σ ρ(ln predicted − ln measured) with ρ quadratic below 5 % and linear above, by Levenberg–Marquardt
steps on the logarithms of the constants (all are positive), reweighted each step; tile shapes and exponents
are tried in turn. One shape in four is held out (`fit_rows.py`). Every class of kernel is one `Form`: its
formula from `kernels.py`, where its constants may lie, and which whole numbers are tried.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from simcore.catalog.kernels import DecodeKernel, ExpertKernel, FitRecord, GemmKernel, PrefillKernel
from simcore.catalog.types import BYTES_PER_ELEMENT, Calibration, Chip, CollectiveFit, Source
from simcore.compute.calibration import OperatorClass, efficiency
from simcore.compute.fit_rows import Group, Kind
from simcore.compute.kernels import (
    constant_numbers,
    decode_isolated_s,
    experts_isolated_s,
    gemm_isolated_s,
    machine_numbers,
    prefill_isolated_s,
)
from simcore.compute.roofline import Floats

_KNEE: Final = 0.05  # relative error beyond which a row pulls with constant force
_ITERATIONS: Final = 60
_SERVING_WEIGHT: Final = 4.0  # of a row in the regime that serving runs in
Predict = Callable[[Floats], Floats]
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
    )


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


_EXPONENTS: Final = (1, 2, 4, 8)
FORMS: Final[Mapping[Kind, Form]] = {
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
        },
        choices={"tile_rows": (16, 64, 128), "overlap_exponent": _EXPONENTS},
        starts=({}, {"compute_fraction": 0.1}),
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


def fit_kernel(group: Group, chip: Chip, *, source: Source) -> FitRecord:
    """The record of one class and dtype, fitted on the rows that are not held out."""
    form, dtype = FORMS[group.key.kind], group.key.dtype
    machine = machine_numbers(chip, dtype if group.key.kind in ("gemm", "experts") else "bf16")
    seen = ~group.held_out
    rows = {name: column[seen] for name, column in group.columns.items()}
    measured = np.log(group.measured_s[seen])
    names = list(form.bounds)
    weight = np.where(serves(group, chip)[seen], _SERVING_WEIGHT, 1.0)
    best: tuple[float, dict[str, float], dict[str, int]] | None = None
    for combination in product(*form.choices.values()):
        whole = dict(zip(form.choices, combination, strict=True))
        fixed = {name: np.asarray(float(value)) for name, value in whole.items()}

        def predict(
            values: Floats, fixed: Constants = fixed, exponent: int = whole["overlap_exponent"]
        ) -> Floats:
            constants = {**fixed, **dict(zip(names, values, strict=True))}
            return form.predict(constants, machine, rows, dtype, exponent)

        for changed in form.starts:
            bounds = [replace(b, start=changed.get(name, b.start)) for name, b in form.bounds.items()]
            values, cost = least_squares(predict, bounds, measured, weight)
            if best is None or cost < best[0]:
                best = cost, dict(zip(names, map(float, values), strict=True)), whole
    assert best is not None, "every form has at least one choice"
    _, constants, whole = best
    empty = {"fitted_rows": 0, "held_out_rows": 0, "fitted_mape_fraction": 0.0}
    empty |= {"held_out_mape_fraction": 0.0, "held_out_median_fraction": 0.0}
    record: FitRecord = form.record(source=source, **constants, **whole, **empty)
    error = np.abs(predicted_s(record, group, chip) / group.measured_s - 1.0)
    held = error[group.held_out] if group.held_out.any() else error
    return replace(
        record,
        fitted_rows=int(seen.sum()),
        held_out_rows=int(group.held_out.sum()),
        fitted_mape_fraction=float(error[seen].mean()),
        held_out_mape_fraction=float(held.mean()),
        held_out_median_fraction=float(np.median(held)),
    )


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
    kind, dtype = group.key.kind, group.key.dtype
    machine = machine_numbers(chip, dtype if kind in ("gemm", "experts") else "bf16")
    constants = constant_numbers(record)
    exponent = int(constants["overlap_exponent"])
    found: Floats = FORMS[kind].predict(constants, machine, group.columns, dtype, exponent)
    return found


def roofline_predicted_s(group: Group, chip: Chip, calibration: Calibration) -> Floats:
    """What the plain roofline of a calibration says of the rows of a group, launch included."""
    kind, dtype, columns = group.key.kind, group.key.dtype, group.columns
    classes: dict[str, OperatorClass] = {"gemm": "gemm", "experts": "moe"}
    operator_class = classes.get(kind) or ("attention_decode" if "decode" in kind else "attention_prefill")
    flop, moved = _work(kind, dtype, columns)
    fit = efficiency(calibration, operator_class, dtype)
    arithmetic = dtype if kind in classes else "bf16"
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
    batch, heads, kv_heads = columns["batch"], columns["heads"], columns["kv_heads"]
    if kind == "attention_decode":
        context = columns["ctx_len"] + 1.0
        return 4 * batch * context * heads * 128.0, 2 * batch * context * kv_heads * 128.0 * each
    tokens = columns["new_tokens"]
    return 2 * batch * tokens**2 * heads * 128.0, 4 * batch * tokens * (heads + kv_heads) * 128.0


def fit_collective(group: Group, *, bus_factor: float, source: Source) -> CollectiveFit:
    """`t = alpha + c·sqrt(w) + w/b` over w = bytes × bus factor."""
    moved = group.columns["bytes"] * bus_factor
    seen = ~group.held_out

    def predict(values: Floats, at: Floats = moved[seen]) -> Floats:
        times_s: Floats = values[0] + values[1] * np.sqrt(at) + at / values[2]
        return times_s

    bounds = [
        Bound(start=1e-5, low=1e-6, high=2e-4),
        Bound(start=5e-9, low=1e-12, high=2e-7),
        Bound(start=3e11, low=5e9, high=5e12),
    ]
    values, _ = least_squares(predict, bounds, np.log(group.measured_s[seen]))
    error = np.abs(predict(values, moved) / group.measured_s - 1.0)
    return CollectiveFit(
        alpha_s=float(values[0]),
        sqrt_s_per_sqrt_byte=float(values[1]),
        bus_bytes_per_s=float(values[2]),
        mape_fraction=float(error.mean()),
        source=source,
    )


def least_squares(
    predict: Predict, bounds: Sequence[Bound], log_measured: Floats, weight: Floats | float = 1.0
) -> tuple[Floats, float]:
    """Constants within bounds that bring `predict` close to the measurements, and what is left."""
    low, high = (np.log([getattr(b, side) for b in bounds]) for side in ("low", "high"))
    at: Floats = np.clip(np.log([b.start for b in bounds]), low, high)
    residual = np.log(predict(np.exp(at))) - log_measured
    cost, damping = _loss(residual, weight), 1e-2
    for _ in range(_ITERATIONS):
        slope = _slopes(predict, at, residual, log_measured, high)
        pulls = weight / np.maximum(np.abs(residual), _KNEE)
        curvature, pull = slope.T @ (slope * pulls[:, None]), slope.T @ (pulls * residual)
        gained = 0.0
        for _ in range(8):
            step = np.linalg.solve(curvature + damping * np.diag(np.diag(curvature) + 1e-9), -pull)
            tried: Floats = np.clip(at + step, low, high)
            found = np.log(predict(np.exp(tried))) - log_measured
            if (loss := _loss(found, weight)) < cost:
                gained, at, residual, cost = cost - loss, tried, found, loss
                damping = max(damping / 3, 1e-7)
                break
            damping *= 4
        if gained < 1e-6 * cost:
            break
    return np.exp(at), cost


def _loss(residual: Floats, weight: Floats | float) -> float:
    size = np.abs(residual)
    return float((weight * np.where(size < _KNEE, size * size / (2 * _KNEE), size - _KNEE / 2)).sum())


def _slopes(predict: Predict, at: Floats, residual: Floats, log_measured: Floats, high: Floats) -> Floats:
    """Forward differences in the logarithms, backwards at an upper bound."""
    columns = []
    for index in range(len(at)):
        moved = at.copy()
        moved[index] += 1e-3 if moved[index] + 1e-3 <= high[index] else -1e-3
        changed = np.log(predict(np.exp(moved))) - log_measured
        columns.append((changed - residual) / (moved[index] - at[index]))
    return np.stack(columns, axis=1)
