"""A fit as its owner's: what was fitted anew says on how many rows, by whom and when; the rest keeps its source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, Final

from simcore.catalog.kernels import FitRecord, Kernels
from simcore.catalog.types import Calibration, Chip, Source
from simcore.validation.calibrate import Outcome

MAX_TITLE: Final = 200  # of a source that the rows named
_TABLES: Final = ("collectives", "engine_overheads", "residuals")


def own(outcome: Outcome, present: Calibration, *, name: str, chip: Chip, by: str = "") -> Calibration:
    """The fitted calibration under its owner's name; `present` is what the chip had before."""
    found = outcome.calibration
    rows = {
        key: regime.fitted_rows + regime.held_out_rows
        for regime in outcome.regimes
        for key in [regime.name.removeprefix("collective.")]
    }

    def table(now: Mapping[Any, Any], before: Mapping[Any, Any]) -> dict[Any, Any]:
        return {
            key: _signed(record, _row_count(key, record, rows), by, found.fitted_on)
            if record != before.get(key)
            else record
            for key, record in now.items()
        }

    tables: dict[str, Any] = {key: table(getattr(found, key), getattr(present, key)) for key in _TABLES}
    kernels: dict[str, Any] = {
        item.name: table(getattr(found.kernels, item.name), getattr(present.kernels, item.name))
        for item in fields(Kernels)
    }
    if found.step_overhead != present.step_overhead:
        tables["step_overhead"] = _signed(found.step_overhead, 0, by, found.fitted_on)
    return replace(found, name=name, chip=chip.slug, kernels=Kernels(**kernels), **tables)


def row_count(outcome: Outcome) -> int:
    """Measured rows that the fit used, held out or not."""
    return sum(regime.fitted_rows + regime.held_out_rows for regime in outcome.regimes if regime.fitted_rows)


def _row_count(key: Any, record: Any, rows: Mapping[str, int]) -> int:
    """How many rows made a record; 0 where its own source says it (an engine's overhead)."""
    if isinstance(record, FitRecord):
        return record.fitted_rows + record.held_out_rows
    name = f"{key[0]}/{key[1]}" if isinstance(key, tuple) else str(key)
    return rows.get(name, 0)


def _signed(record: Any, rows: int, by: str, fitted_on: str) -> Any:
    counted = f" on {rows:,} rows" if rows else ""
    author = f" by {by}" if by else ""
    title = f"calibrated{counted}{author}, {fitted_on} ({record.source.title[:MAX_TITLE]})"
    return replace(record, source=Source(title=title, kind="measured", note=record.source.note))
