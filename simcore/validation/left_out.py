"""How well measured tables stand in for shapes between theirs: every inner line of a grid, left out in turn.

A line is one value of one coordinate. Without it, each of its shapes is interpolated between the lines on both
sides, as `catalog/grids.py` does for a shape that nobody measured, and held against its measurement. Lines at the
edge have one neighbour and are not counted. Products and experts take the form that was fitted to the chip, attention
the work of a shape (tokens, or pairs of tokens) beside the shortest time of the table.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from simcore.catalog.catalog import Catalog
from simcore.catalog.grids import Columns, Floats, Grid
from simcore.catalog.kernels import ExpertKernel, GemmKernel
from simcore.catalog.measured import MeasuredTables
from simcore.catalog.types import Chip
from simcore.compute.calibration import efficiency, kernel_fit
from simcore.compute.kernels import machine_numbers
from simcore.compute.measured import experts_form, product_form

_FORMATS = ("bf16", "fp8", "fp8_block", "nvfp4", "mxfp4")
_HEADS = ((32, 8), (16, 8), (8, 1), (16, 2), (64, 8))  # query and KV heads of one rank
_LATENT_HEADS = (16, 32, 64, 128)
Form = Callable[[Columns], Floats]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """Errors of one kind of kernel in one format over all lines of one coordinate."""

    kind: str
    dtype: str
    coordinate: str
    source: str
    count: int
    mape_fraction: float
    median_fraction: float


def left_out(catalog: Catalog, chip: Chip, tables: MeasuredTables) -> list[LeftOut]:
    """One row for each kind, format and coordinate that these tables have."""
    errors: dict[tuple[str, str, str, str], list[Floats]] = defaultdict(list)
    for kind, dtype, grid, form in _grids(catalog, chip, tables):
        for coordinate, error in left_out_errors(grid, form).items():
            errors[kind, dtype, coordinate, grid.source].append(error)
    return [
        LeftOut(
            kind=kind,
            dtype=dtype,
            coordinate=coordinate,
            source=source,
            count=len(error),
            mape_fraction=float(error.mean()),
            median_fraction=float(np.median(error)),
        )
        for (kind, dtype, coordinate, source), found in errors.items()
        if len(error := np.concatenate(found))
    ]


def left_out_errors(grid: Grid, form: Form) -> dict[str, Floats]:
    """|interpolated ÷ measured − 1| of every shape on an inner line with both neighbours, by coordinate."""
    mesh = np.meshgrid(*grid.axes, indexing="ij")
    fitted_s = form({name: column.ravel() for name, column in zip(grid.names, mesh, strict=True)})
    log_ratio = np.log(grid.measured_s) - np.log(fitted_s).reshape(grid.measured_s.shape)
    return {
        name: _errors(np.log(axis), np.moveaxis(log_ratio, at, 0))
        for at, (name, axis) in enumerate(zip(grid.names, grid.axes, strict=True))
    }


def _errors(log_at: Floats, log_ratio: Floats) -> Floats:
    below, own, above = log_ratio[:-2], log_ratio[1:-1], log_ratio[2:]
    share = (log_at[1:-1] - log_at[:-2]) / (log_at[2:] - log_at[:-2])
    share = share.reshape(-1, *[1] * (log_ratio.ndim - 1))
    error = np.abs(np.exp((1.0 - share) * below + share * above - own) - 1.0)
    return error[np.isfinite(error)]


def _grids(catalog: Catalog, chip: Chip, tables: MeasuredTables) -> Iterator[tuple[str, str, Grid, Form]]:
    calibration = catalog.calibration_for(chip)
    for dtype in _FORMATS:
        machine = tuple((name, value.item()) for name, value in machine_numbers(chip, dtype).items())
        product = kernel_fit(calibration, "gemm", dtype)
        if isinstance(product, GemmKernel) and (grid := tables.gemm(dtype)):
            yield "gemm", dtype, grid, product_form(grid, product, machine, dtype)
        layer = kernel_fit(calibration, "moe", dtype)
        record = layer if isinstance(layer, ExpertKernel) else efficiency(calibration, "moe", dtype)
        for hidden, experts, topk in sorted(_expert_layers(catalog)):
            if grid := tables.experts(dtype, hidden=hidden, experts=experts, topk=topk):
                form = experts_form(grid, record, machine, dtype, hidden=hidden, experts=experts, topk=topk)
                yield "experts", dtype, grid, form
    yield from _attention(tables)


def _expert_layers(catalog: Catalog) -> set[tuple[int, int, int]]:
    return {
        (arch.moe_latent or arch.hidden, arch.experts, arch.experts_per_token)
        for arch in catalog.models.values()
        if arch.is_moe
    }


def _attention(tables: MeasuredTables) -> Iterator[tuple[str, str, Grid, Form]]:
    for heads, kv_heads in _HEADS:
        if grid := tables.prefill(heads=heads, kv_heads=kv_heads, head_dim=128):
            yield "attention_prefill", "bf16", grid, _work_form(grid, {"isl": 2, "batch_size": 1})
        for kv_dtype in ("bf16", "fp8"):
            if grid := tables.decode(kv_dtype, heads=heads, kv_heads=kv_heads, head_dim=128):
                yield "attention_decode", kv_dtype, grid, _work_form(grid, {"step": 1, "batch_size": 1})
    for heads in _LATENT_HEADS:
        if grid := tables.latent_prefill(heads=heads):
            yield "mla_prefill", "bf16", grid, _work_form(grid, {"isl": 2, "batch_size": 1})
        for kv_dtype in ("bf16", "fp8"):
            if grid := tables.latent_decode(kv_dtype, heads=heads):
                yield "mla_decode", kv_dtype, grid, _work_form(grid, {"step": 1, "batch_size": 1})


def _work_form(grid: Grid, powers: Mapping[str, int]) -> Form:
    """The shortest time, and the rest in proportion to the work of the shape that took longest."""
    longest = np.unravel_index(np.nanargmax(grid.measured_s), grid.measured_s.shape)
    most = np.prod(
        [axis[at] ** powers[name] for name, axis, at in zip(grid.names, grid.axes, longest, strict=True)]
    )
    s_per_work = (float(np.nanmax(grid.measured_s)) - grid.floor_s) / most

    def fitted_s(shapes: Columns) -> Floats:
        work = np.prod([shapes[name] ** power for name, power in powers.items()], axis=0)
        return np.asarray(grid.floor_s + s_per_work * work)

    return fitted_s
