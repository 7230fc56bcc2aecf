"""Collectives inside one scale-up domain, scaled to measured tables (`serving.kernels: measured`).

By operation and rank count along the payload; for an all-reduce the faster of NCCL and the engine's own kernel, as
engines choose. Rank counts that were not measured, and anything that leaves the domain, stay as fitted.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from simcore.catalog.grids import Correction, Floats, Grid, correction, grid_of
from simcore.catalog.measured import MeasuredTables


def collective_correction(
    tables: MeasuredTables,
    operation: str,
    ranks: int,
    fitted_s: Callable[[Floats], Floats],
    *,
    engine_limit_bytes: float,
) -> Correction | None:
    """Measured ÷ fitted along the payload; `fitted_s` is that of the measured link."""
    grid = tables.collective(operation, ranks)
    if grid is None:
        return None
    if operation == "all_reduce" and (own := tables.engine_all_reduce(ranks)) is not None:
        grid = _faster(grid, own, engine_limit_bytes)
    return correction(grid, {}, lambda columns: fitted_s(columns[grid.names[0]]))


def _faster(library: Grid, own: Grid, limit_bytes: float) -> Grid:
    """Both in one grid: at each payload the shorter time, the engine's kernel up to its limit."""
    name, used = library.names[0], own.axes[0] <= limit_bytes
    payload = np.concatenate([library.axes[0], own.axes[0][used]])
    measured_s = np.concatenate([library.measured_s, own.measured_s[used]])
    family = own.source.rpartition(", ")[2]
    return grid_of({name: payload}, measured_s, source=f"{library.source} and {family}")
