"""`trimtab calibrate`: from measured rows to a calibration of one chip, with the error before and after.

Kernel rows give the constants of `compute/kernels.py` and collectives (`compute/fitting.py`); rows of served
models (`step_rows.py`) give what an engine adds to a step, by engine and version, and the residuals from which
error bands are read. What the rows say nothing about stays as the chip's present calibration has it. A fit
replaces the plain roofline only where it is closer on the rows that it has not seen.
"""

from __future__ import annotations

import csv
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from simcore.catalog import Catalog
from simcore.catalog.kernels import FitRecord, Kernels, Residuals
from simcore.catalog.types import Calibration, Chip, Source, StepRange
from simcore.compute.fit_rows import Folds, Group, Key, open_rows, read_rows
from simcore.compute.fitting import fit_collective, fit_kernel, out_of_fold_s
from simcore.compute.forms import predicted_s, roofline_predicted_s
from simcore.compute.roofline import Floats
from simcore.fabric.collectives import bus_factor
from simcore.validation.step_fit import engine_key, fit_front_end_s, fit_overhead, predict_steps
from simcore.validation.step_rows import (
    EAGER_ENGINE,
    GRAPH_ENGINE,
    StepRow,
    StepRows,
    holds_steps,
    read_steps,
)

_FEW_ROWS: Final = 100  # below which quantiles alone would say too little of the tails
MOST_POINTS: Final = 150  # of a regime, for a picture
_TABLES: Final = tuple(item.name for item in fields(Kernels))
Mask = np.ndarray[tuple[int], np.dtype[np.bool_]]


Point = tuple[
    float, float, float
]  # seconds: measured, as the present calibration has it, as the new one does


@dataclass(frozen=True, slots=True, kw_only=True)
class Regime:
    """One line of the report: errors before and after, on rows seen and not seen."""

    name: str
    source: str
    fitted_rows: int
    held_out_rows: int
    before_fraction: float  # mean error of the present calibration, all rows
    fitted_mape_fraction: float
    held_out_mape_fraction: float
    held_out_median_fraction: float
    is_kept: bool = True  # False: the present calibration is closer
    points_s: tuple[Point, ...] = ()  # some rows, spread evenly


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    calibration: Calibration
    regimes: tuple[Regime, ...]
    rejected: Mapping[str, int]


def calibrate(
    paths: Sequence[Path],
    chip: Chip,
    catalog: Catalog,
    *,
    fitted_on: str,
    prefer: str = "vllm",
    steps_like: str = "",
    note: str = "",
) -> Outcome:
    """Fit what the rows allow. `prefer` names the source where several measured the same kernel, `steps_like` a
    chip whose overheads stand in where no served model was measured on this one; `note` goes beside the source
    of every kernel fit (whose rows, under which licence)."""
    present = catalog.calibration_for(chip)
    steps = [path for path in paths if holds_steps(_columns(path))]
    kernels = [path for path in paths if path not in steps]
    calibration = replace(present, fitted_on=fitted_on, is_class_default=False)
    regimes: list[Regime] = []
    rejected: Counter[str] = Counter()
    if kernels:
        measured = read_rows(kernels, chip)
        rejected.update(measured.rejected)
        calibration, found = _with_kernels(calibration, measured.groups, chip, prefer, note)
        regimes += found
    if steps:
        rows = read_steps(steps, chip, catalog)
        rejected.update(rows.rejected)
        calibration, found = _with_steps(calibration, present, rows, chip, catalog)
        regimes += found
    elif steps_like:
        calibration = _with_overheads_of(calibration, catalog.chip(steps_like, path="steps_like"), catalog)
    return Outcome(calibration=calibration, regimes=tuple(regimes), rejected=rejected)


def _with_overheads_of(calibration: Calibration, like: Chip, catalog: Catalog) -> Calibration:
    other = catalog.calibration_for(like)
    source = Source(
        title=f"as measured on {like.name}", kind="assumption", note="no served model on this chip"
    )
    return replace(
        calibration,
        step_overhead=replace(other.step_overhead, source=source),
        engine_overheads={
            engine: replace(overhead, source=source) for engine, overhead in other.engine_overheads.items()
        },
    )


def _columns(path: Path) -> list[str]:
    with open_rows(path) as file:
        return next(csv.reader(file), [])


# ---- kernels and collectives ------------------------------------------------------------------------


def _with_kernels(
    present: Calibration, groups: Sequence[Group], chip: Chip, prefer: str, note: str
) -> tuple[Calibration, list[Regime]]:
    kernels: dict[str, dict[str, FitRecord]] = {
        name: dict(getattr(present.kernels, name)) for name in _TABLES
    }
    residuals, collectives = dict(present.residuals), dict(present.collectives)
    regimes = []
    chosen = _chosen(groups, prefer)
    for group in chosen:
        key = group.key
        if key.kind == "collective":
            operation, _, ranks = key.dtype.partition("/")
            if "custom" in key.source:
                operation = f"custom_{operation}"
            regime, fit = _collective(group, operation, int(ranks), present, note)
            collectives[operation, int(ranks)] = fit
            regimes.append(regime)
            continue
        source = _fit_source(key, "one shape in four held out", note)
        record = fit_kernel(group, chip, source=source)
        regime = _kernel_regime(group, record, chip, present)
        regimes.append(regime)
        if regime.is_kept:
            kernels[key.kind][key.dtype] = record
            residuals[regime.name] = kernel_residuals(record, group, chip)
    regimes += _across_sources(groups, chosen, kernels, chip)
    typed: dict[str, Any] = kernels
    changed = replace(present, kernels=Kernels(**typed), residuals=residuals, collectives=collectives)
    return changed, regimes


def _across_sources(
    groups: Sequence[Group],
    chosen: Sequence[Group],
    kernels: Mapping[str, Mapping[str, FitRecord]],
    chip: Chip,
) -> list[Regime]:
    """How far the fits are from kernels of other backends, which differ among each other too."""
    found = []
    for group in groups:
        key = group.key
        record = kernels.get(key.kind, {}).get(key.dtype)
        if record is None or any(group is one for one in chosen):
            continue
        error = np.abs(predicted_s(record, group, chip) / group.measured_s - 1.0)
        found.append(
            Regime(
                name=f"{key.kind}.{key.dtype}, another source",
                source=key.source,
                fitted_rows=0,
                held_out_rows=len(error),
                before_fraction=float("nan"),
                fitted_mape_fraction=float("nan"),
                held_out_mape_fraction=float(error.mean()),
                held_out_median_fraction=float(np.median(error)),
            )
        )
    return found


def _chosen(groups: Iterable[Group], prefer: str) -> list[Group]:
    """One source per kernel: the preferred one, then the one with most rows."""
    by_kernel: dict[tuple[str, str, bool], list[Group]] = defaultdict(list)
    for group in groups:
        custom = "custom" in group.key.source
        by_kernel[group.key.kind, group.key.dtype, custom].append(group)
    return [
        max(found, key=lambda g: (prefer in g.key.source, len(g.measured_s), g.key.source))
        for found in by_kernel.values()
    ]


def _kernel_regime(group: Group, record: FitRecord, chip: Chip, present: Calibration) -> Regime:
    key = group.key
    known: FitRecord | None = getattr(present.kernels, key.kind).get(key.dtype)
    roofline = roofline_predicted_s(group, chip, present)
    before = roofline if known is None else predicted_s(known, group, chip)
    error = np.abs(before / group.measured_s - 1.0)
    plain = np.abs(roofline / group.measured_s - 1.0)
    return Regime(
        name=f"{key.kind}.{key.dtype}",
        source=key.source,
        fitted_rows=record.fitted_rows,
        held_out_rows=record.held_out_rows,
        before_fraction=float(error.mean()),
        fitted_mape_fraction=record.fitted_mape_fraction,
        held_out_mape_fraction=record.held_out_mape_fraction,
        held_out_median_fraction=record.held_out_median_fraction,
        is_kept=not group.held_out.any()
        or record.held_out_mape_fraction <= float(plain[group.held_out].mean()),
        points_s=_points(group.measured_s, before, predicted_s(record, group, chip)),
    )


def _points(measured: Floats, before: Floats, after: Floats) -> tuple[Point, ...]:
    """Rows in even steps of their measured times, at most `MOST_POINTS`."""
    order = np.argsort(measured)
    chosen = order[:: max(1, math.ceil(len(order) / MOST_POINTS))]
    return tuple((float(measured[row]), float(before[row]), float(after[row])) for row in chosen)


def _fit_source(key: Key, held_out: str, note: str) -> Source:
    return Source(
        title=f"fit of {key.source}", kind="measured", note=f"{held_out}; {note}" if note else held_out
    )


def _collective(
    group: Group, operation: str, ranks: int, present: Calibration, note: str
) -> tuple[Regime, Any]:
    source = _fit_source(group.key, "one payload in four held out", note)
    factor = bus_factor("all_reduce" if "all_reduce" in operation else "all_gather", ranks)
    fit = fit_collective(group, bus_factor=factor, source=source)
    moved = group.columns["bytes"] * factor

    def times(known: Any) -> Floats:
        found: Floats = (
            known.alpha_s + known.sqrt_s_per_sqrt_byte * np.sqrt(moved) + moved / known.bus_bytes_per_s
        )
        return found

    def error(known: Any) -> Floats:
        found: Floats = np.abs(times(known) / group.measured_s - 1.0)
        return found

    known = present.collectives.get((operation, ranks))
    after, held = error(fit), group.held_out
    regime = Regime(
        name=f"collective.{operation}/{ranks}",
        source=group.key.source,
        fitted_rows=int((~held).sum()),
        held_out_rows=int(held.sum()),
        before_fraction=float(error(known).mean()) if known else float("nan"),
        fitted_mape_fraction=float(after[~held].mean()),
        held_out_mape_fraction=float(after[held].mean()) if held.any() else float("nan"),
        held_out_median_fraction=float(np.median(after[held])) if held.any() else float("nan"),
        points_s=_points(group.measured_s, times(known or fit), times(fit)),
    )
    return regime, fit


def kernel_residuals(record: FitRecord, group: Group, chip: Chip) -> Residuals:
    """Quantiles over all rows, each as constants say it that have not seen its quarter of the shapes."""
    everything = np.ones(len(group.measured_s), dtype=bool)
    said_s = out_of_fold_s(record, group, chip)
    ratio = group.measured_s / said_s
    low, high = band(ratio)
    return replace(
        _residuals(said_s, group.measured_s, everything, record.source),
        p5_ratio=low,
        p95_ratio=high,
        coverage_fraction=coverage_fraction(ratio, group.fold),
    )


def band(ratio: Floats) -> tuple[float, float]:
    """Between which two ratios nine in ten of the next measurements fall.

    The 5 % and the 95 % quantile; of few rows, which say little of their tails, no narrower than Student's interval
    for one more row of log-normal ratios.
    """
    low, high = np.quantile(ratio, (0.05, 0.95), method="weibull")
    count = len(ratio)
    if 2 < count < _FEW_ROWS:
        logs = np.log(ratio)
        half = _student_95(count - 1) * logs.std(ddof=1) * math.sqrt(1 + 1 / count)
        low, high = min(low, math.exp(logs.mean() - half)), max(high, math.exp(logs.mean() + half))
    return float(low), float(high)


def _student_95(freedom: int) -> float:
    """The 95 % quantile of Student's t, to 1 % from 3 degrees of freedom (Abramowitz and Stegun 26.7.5)."""
    z = 1.6448536
    first, second = (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96
    return z + first / freedom + second / freedom**2


def coverage_fraction(ratio: Floats, fold: Folds) -> float | None:
    """Share of rows in the band that the other quarters give; None where there are none."""
    inside = []
    for one in np.unique(fold):
        others = ratio[fold != one]
        if not len(others):
            return None
        low, high = band(others)
        inside.append((ratio[fold == one] >= low) & (ratio[fold == one] <= high))
    return float(np.concatenate(inside).mean())


def _residuals(predicted: Floats, measured: Floats, held_out: Mask, source: Source) -> Residuals:
    """Quantiles of measured ÷ predicted over rows not fitted (over all where none was held out)."""
    rows = held_out if held_out.any() else np.ones_like(held_out)
    ratio = measured[rows] / predicted[rows]
    # p(n + 1)-th of the sorted rows: of the next measurement, nine in ten fall between the outer two
    p5, p50, p90, p95 = np.quantile(ratio, (0.05, 0.5, 0.9, 0.95), method="weibull")
    return Residuals(
        row_count=int(rows.sum()),
        p5_ratio=float(p5),
        p50_ratio=float(p50),
        p90_ratio=float(p90),
        p95_ratio=float(p95),
        mape_fraction=float(np.abs(1.0 / ratio - 1.0).mean()),
        source=source,
    )


def transfer_residuals(
    paths: Sequence[Path], chips: Sequence[Chip], catalog: Catalog, *, kernels: bool
) -> dict[str, Residuals]:
    """Residuals of steps on chips as if their steps (`kernels`: True) or nothing of them had been measured:
    what to expect of a chip that was not."""
    default = catalog.calibrations["class-default"]
    source = Source(
        title=f"served models on {', '.join(chip.name for chip in chips)}, predicted without their rows",
        kind="measured",
        note="kernels fitted, overheads of the class" if kernels else "class defaults alone",
    )
    found: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for chip in chips:
        own = catalog.calibration_for(chip)
        stripped = replace(own, step_overhead=default.step_overhead, engine_overheads={})
        rows = [row for row in read_steps(paths, chip, catalog).rows if row.engine != EAGER_ENGINE]
        said = predict_steps(rows, chip, stripped if kernels else default, catalog)
        for row in rows:
            found["tpot" if row.phase == "decode" else row.phase].append((said[row], row.measured_s))
    suffix = "kernels" if kernels else "class"
    residuals = {}
    for phase, pairs in found.items():
        predicted, measured = (np.array(column) for column in zip(*pairs, strict=True))
        everything = np.ones(len(measured), dtype=bool)
        residuals[f"{phase}.{suffix}"] = _residuals(predicted, measured, everything, source)
    return residuals


# ---- steps ------------------------------------------------------------------------------------------


def _with_steps(
    calibration: Calibration, present: Calibration, steps: StepRows, chip: Chip, catalog: Catalog
) -> tuple[Calibration, list[Regime]]:
    overheads = dict(calibration.engine_overheads)
    changed = calibration
    for engine in sorted({row.engine for row in steps.rows}, key=lambda name: name != GRAPH_ENGINE):
        own = [row for row in steps.rows if row.engine == engine]
        decodes = [row for row in own if row.phase in ("tpot", "decode")]
        overhead = fit_overhead(decodes, changed, chip, catalog)
        alone = replace(changed, engine_overheads=overheads | {engine_key(engine): overhead})
        front_s = fit_front_end_s(own, predict_steps(own, chip, alone, catalog))
        overheads[engine_key(engine)] = replace(overhead, per_request_s=front_s)
        changed = replace(changed, engine_overheads=dict(overheads))
        if engine == GRAPH_ENGINE:
            changed = replace(changed, step_overhead=overheads[engine_key(engine)])
    # an eager engine's overhead ends where graphs begin, measured or not
    overheads.setdefault(engine_key(GRAPH_ENGINE), changed.step_overhead)
    changed = replace(changed, engine_overheads=overheads)
    before = predict_steps(steps.rows, chip, present, catalog)
    after = predict_steps(steps.rows, chip, changed, catalog)
    regimes, residuals = [], dict(changed.residuals)
    by_regime: dict[tuple[str, str], list[StepRow]] = defaultdict(list)
    for row in steps.rows:
        if row.is_always_fitted:
            continue
        by_regime[row.phase, engine_key(row.engine)].append(row)
    for (phase, engine), rows in by_regime.items():
        regime, found = _step_regime(f"{phase}.{engine}", rows, before, after)
        regimes.append(regime)
        residuals[regime.name] = found
    graph = [row for row in steps.rows if row.phase == "tpot"]
    reach = changed.step_range
    if graph:
        reach = StepRange(
            most_sequences_count=float(max(row.batch_count for row in graph)),
            most_context_tokens=float(max(row.context_tokens for row in graph)),
            most_ranks_count=float(max(row.tp for row in graph)),
        )
    return replace(changed, residuals=residuals, step_range=reach), regimes


def _step_regime(
    name: str, rows: Sequence[StepRow], known: Mapping[StepRow, float], found: Mapping[StepRow, float]
) -> tuple[Regime, Residuals]:
    measured = np.array([row.measured_s for row in rows])
    before, after = (np.array([said[row] for row in rows]) for said in (known, found))
    held = np.array([row.is_held_out for row in rows])
    error = np.abs(after / measured - 1.0)
    source = Source(
        title="closed loops and iterations of dense models, half of them held out", kind="measured"
    )
    regime = Regime(
        name=name,
        source=rows[0].engine,
        fitted_rows=int((~held).sum()),
        held_out_rows=int(held.sum()),
        before_fraction=float(np.abs(before / measured - 1.0).mean()),
        fitted_mape_fraction=float(error[~held].mean()),
        held_out_mape_fraction=float(error[held].mean()),
        held_out_median_fraction=float(np.median(error[held])),
        points_s=_points(measured, before, after),
    )
    return regime, _residuals(after, measured, held, source)
