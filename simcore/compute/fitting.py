"""Fitting kernel constants to measured rows: robust least squares on relative errors, in numpy alone.

Minimised is Σ ρ(ln predicted − ln measured) with ρ quadratic below 5 % and linear above, by Levenberg–Marquardt
steps on the logarithms of the constants (all are positive), reweighted each step; tile shapes and exponents
are tried in turn. One shape in four is held out (`fit_rows.py`); for error bands each quarter is held out in
turn, so that every row is once predicted by constants that have not seen it. The forms are in `forms.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, Final, cast

import numpy as np

from simcore.catalog.kernels import FitRecord
from simcore.catalog.types import Chip, CollectiveFit, Source
from simcore.compute.fit_rows import HOLD_OUT_ONE_IN, Group, stored_format
from simcore.compute.forms import FORMS, machine_of, predicted_s, serves
from simcore.compute.forms import Bound as Bound  # for those who fit forms of their own
from simcore.compute.kernels import constant_numbers
from simcore.compute.roofline import Floats

_KNEE: Final = 0.05  # relative error beyond which a row pulls with constant force
_ITERATIONS: Final = 60
_SERVING_WEIGHT: Final = 4.0  # of a row in the regime that serving runs in
Predict = Callable[[Floats], Floats]
Mask = np.ndarray[tuple[int], np.dtype[np.bool_]]


def fit_kernel(group: Group, chip: Chip, *, source: Source) -> FitRecord:
    """The record of one class and dtype, fitted on the rows that are not held out."""
    form, seen = FORMS[group.key.kind], ~group.held_out
    best: tuple[float, dict[str, float], dict[str, int]] | None = None
    for combination in product(*form.choices.values()):
        whole = dict(zip(form.choices, combination, strict=True))
        for changed in form.starts:
            starts = {name: changed.get(name, bound.start) for name, bound in form.bounds.items()}
            constants, cost = _constants(group, chip, seen, whole, starts)
            if best is None or cost < best[0]:
                best = cost, constants, whole
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


def out_of_fold_s(record: FitRecord, group: Group, chip: Chip) -> Floats:
    """Each row as constants say it that were fitted without its quarter of the shapes.

    The first quarter has the record's own constants; for the others they are fitted again from there, with the
    tiles and the exponent of the record, which the first three quarters chose.
    """
    form = FORMS[group.key.kind]
    known = {name: float(value) for name, value in constant_numbers(record).items()}
    whole = {name: int(known[name]) for name in form.choices}
    starts = {name: known[name] for name in form.bounds}
    found = predicted_s(record, group, chip)
    for fold in range(1, HOLD_OUT_ONE_IN):
        out = group.fold == fold
        if out.any() and not out.all():
            constants, _ = _constants(group, chip, ~out, whole, starts)
            again = replace(record, **cast(Any, constants))
            found[out] = predicted_s(again, group, chip)[out]
    return found


def _constants(
    group: Group, chip: Chip, seen: Mask, whole: Mapping[str, int], starts: Mapping[str, float]
) -> tuple[dict[str, float], float]:
    """The continuous constants that fit the rows seen, and what is left."""
    form, machine = FORMS[group.key.kind], machine_of(group, chip)
    rows = {name: column[seen] for name, column in group.columns.items()}
    fixed = {name: np.asarray(float(value)) for name, value in whole.items()}
    free = {
        name: replace(bound, start=starts[name])
        for name, bound in form.bounds.items()
        if form.tells is None or form.tells(name, rows)
    }
    silent = {name: np.asarray(0.0) for name in form.bounds if name not in free}

    def predict(values: Floats) -> Floats:
        constants = {**fixed, **silent, **dict(zip(free, values, strict=True))}
        dtype = stored_format(group.key.dtype)
        return form.predict(constants, machine, rows, dtype, whole["overlap_exponent"])

    weight = np.where(serves(group, chip)[seen], _SERVING_WEIGHT, 1.0)
    values, cost = least_squares(predict, list(free.values()), np.log(group.measured_s[seen]), weight)
    constants = dict(zip(free, map(float, values), strict=True))
    return {name: constants.get(name, 0.0) for name in form.bounds}, cost


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
