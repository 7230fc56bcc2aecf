"""How near every chip's fitted kernels and collectives are to the rows themselves: `trimtab validate --data DIR`.

One line for a chip and a class of kernel: rows fitted and held out, mean and median error on those held out, the
mean over all rows where each quarter is predicted without itself, the error against other sources of the same
kernels (backends differ among each other too), and the share of rows that the 90 % band covers. Without the rows
`accuracy.py` says what the calibrations state of themselves.

**Coverage** asks of each quarter of the shapes how many of its rows, said by constants that have not seen them, lie
between the 5 % and the 95 % quantile of the other three quarters.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Final

import numpy as np

from simcore.catalog import Catalog
from simcore.catalog.kernels import FitRecord, Kernels
from simcore.catalog.types import Calibration, Chip, CollectiveFit
from simcore.compute.fit_rows import Folds, Group, read_rows
from simcore.compute.fitting import out_of_fold_s
from simcore.compute.forms import predicted_s, serves
from simcore.compute.roofline import Floats
from simcore.errors import InputError
from simcore.fabric.collectives import bus_factor
from simcore.validation.calibrate import coverage_fraction
from simcore.validation.step_targets import KNOWN_DEVIATIONS, TARGETS

FILES: Final = (
    "kernels_gemm.csv",
    "kernels_gemm_lowprec.csv",
    "kernels_vidur_mlp.csv",
    "kernels_attention_prefill.csv",
    "kernels_attention_decode.csv",
    "kernels_moe.csv",
    "kernels_mla.csv",
    "collectives_nccl.csv",
)
_NVLINK_OPERATIONS: Final = frozenset({"all_reduce", "all_gather", "reduce_scatter", "all_to_all"})


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetRow:
    """One chip and regime; None: not known from what was at hand."""

    chip: str
    regime: str
    fitted_rows: int
    held_out_rows: int
    mape_fraction: float
    median_fraction: float
    out_of_fold_fraction: float | None
    coverage_fraction: float | None
    across_mape_fraction: float | None = None
    across_source: str = ""

    @property
    def target_fraction(self) -> float:
        return TARGETS[self.regime]

    @property
    def is_met(self) -> bool:
        return self.mape_fraction <= self.target_fraction

    @property
    def cause(self) -> str:
        """Why a target is missed, if it is known."""
        return KNOWN_DEVIATIONS.get((self.chip, self.regime), "")


def kernel_targets(catalog: Catalog, data: Path) -> list[TargetRow]:
    """Every fitted chip's lines, from the measured rows that the folder holds.

    Raises InputError where it holds none.
    """
    files = [data / name for name in FILES if (data / name).is_file()]
    if not files:
        raise InputError.at(
            "--data", "targets.no_rows", "{folder} holds none of {files}", folder=data, files=", ".join(FILES)
        )
    found: list[TargetRow] = []
    for slug, calibration in sorted(catalog.calibrations.items()):
        if calibration.kernels.gemm:
            chip = catalog.chip(slug)
            found += _measured(slug, chip, calibration, read_rows(files, chip).groups)
    return found


def _records(calibration: Calibration) -> Iterator[tuple[str, FitRecord]]:
    for table in fields(Kernels):
        for dtype, record in getattr(calibration.kernels, table.name).items():
            yield f"{table.name}.{dtype}", record


def _measured(
    slug: str, chip: Chip, calibration: Calibration, groups: Sequence[Group]
) -> Iterator[TargetRow]:
    records = dict(_records(calibration))
    across: dict[str, list[Group]] = {}
    for group in groups:
        regime = f"{group.key.kind}.{group.key.dtype}"
        record = records.get(regime)
        if record is not None and group.key.source not in record.source.title:
            across.setdefault(regime, []).append(group)
    for group in groups:
        regime = f"{group.key.kind}.{group.key.dtype}"
        record = records.get(regime)
        if record is None or group.key.source not in record.source.title:
            continue
        error = np.abs(predicted_s(record, group, chip) / group.measured_s - 1.0)
        ratio = group.measured_s / out_of_fold_s(record, group, chip)
        yield replace(
            _row(slug, regime, error, group, _across(record, across.get(regime), chip)),
            out_of_fold_fraction=float(np.abs(1.0 / ratio - 1.0).mean()),
            coverage_fraction=coverage_fraction(ratio, group.fold),
        )
        if group.key.kind == "attention_decode":
            served = serves(group, chip)
            part = Group(
                key=group.key, columns={}, measured_s=group.measured_s[served], fold=group.fold[served]
            )
            yield _row(slug, f"production_decode.{group.key.dtype}", error[served], part)
    if chip.scaleup_bytes_per_s:
        yield from _collectives(slug, calibration.collectives, groups)


def _row(
    slug: str,
    regime: str,
    error: Floats,
    group: Group,
    across: tuple[str, float | None] = ("", None),
) -> TargetRow:
    held = error[group.held_out]
    return TargetRow(
        chip=slug,
        regime=regime,
        fitted_rows=int((~group.held_out).sum()),
        held_out_rows=len(held),
        mape_fraction=float(held.mean()),
        median_fraction=float(np.median(held)),
        out_of_fold_fraction=None,
        coverage_fraction=None,
        across_source=across[0],
        across_mape_fraction=across[1],
    )


def _across(record: FitRecord, groups: Sequence[Group] | None, chip: Chip) -> tuple[str, float | None]:
    """Sources other than the fit's own, and the mean error of all their rows."""
    if not groups:
        return "", None
    errors = [np.abs(predicted_s(record, group, chip) / group.measured_s - 1.0) for group in groups]
    names = ", ".join(group.key.source.removeprefix("aic-core-0.12.0:") for group in groups)
    return names, float(np.concatenate(errors).mean())


def _collectives(
    slug: str, fits: Mapping[tuple[str, int], CollectiveFit], groups: Sequence[Group]
) -> Iterator[TargetRow]:
    """The library's four operations at all rank counts together; other versions of it are other sources."""
    errors: list[Floats] = []
    folds: list[Folds] = []
    others: dict[str, list[Floats]] = {}
    for group in groups:
        operation, _, ranks = group.key.dtype.partition("/")
        if (
            group.key.kind != "collective"
            or "custom" in group.key.source
            or operation not in _NVLINK_OPERATIONS
        ):
            continue
        fit = fits.get((operation, int(ranks)))
        if fit is None:
            continue
        moved = group.columns["bytes"] * bus_factor(operation, int(ranks))  # type: ignore[arg-type]
        times = fit.alpha_s + fit.sqrt_s_per_sqrt_byte * np.sqrt(moved) + moved / fit.bus_bytes_per_s
        error = np.abs(times / group.measured_s - 1.0)
        if group.key.source in fit.source.title:
            errors.append(error)
            folds.append(group.fold)
        else:
            others.setdefault(group.key.source, []).append(error)
    if not errors:
        return
    error, held = np.concatenate(errors), np.concatenate(folds) == 0
    yield TargetRow(
        chip=slug,
        regime="collectives",
        fitted_rows=int((~held).sum()),
        held_out_rows=int(held.sum()),
        mape_fraction=float(error[held].mean()),
        median_fraction=float(np.median(error[held])),
        out_of_fold_fraction=None,
        coverage_fraction=None,
        across_source=", ".join(others),
        across_mape_fraction=float(np.concatenate([e for found in others.values() for e in found]).mean())
        if others
        else None,
    )


# ---- as text


def targets_text(rows: Sequence[TargetRow]) -> str:
    """The table, one line for a chip and regime; misses are followed by their cause."""
    heads = (
        "chip",
        "regime",
        "fitted",
        "held",
        "mean",
        "median",
        "target",
        "",
        "all",
        "band",
        "other sources",
    )
    lines = [heads, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(heads))]
    text = [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]
    missed = [row for row in rows if not row.is_met]
    text.append(f"{len(rows) - len(missed)} of {len(rows)} targets met")
    text += [f"missed: {row.chip} {row.regime}: {row.cause or 'cause not known'}" for row in missed]
    return "\n".join(text)


def _cells(row: TargetRow) -> tuple[str, ...]:
    across = "" if row.across_mape_fraction is None else f"{row.across_mape_fraction:.1%} {row.across_source}"
    return (
        row.chip,
        row.regime,
        str(row.fitted_rows),
        str(row.held_out_rows),
        f"{row.mape_fraction:.1%}",
        f"{row.median_fraction:.1%}",
        f"{row.target_fraction:.0%}",
        "met" if row.is_met else "MISSED" if not row.cause else "known",
        "" if row.out_of_fold_fraction is None else f"{row.out_of_fold_fraction:.1%}",
        "" if row.coverage_fraction is None else f"{row.coverage_fraction:.0%}",
        across,
    )
