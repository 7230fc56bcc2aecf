"""How measured tables correct the fitted forms of products and experts (`serving.kernels: measured`).

A benchmark repeats one kernel on an empty device: it pays its launch, and may find a small matrix in L2. A step
does neither (`kernels.py`). So the *isolated* form of the chip that was measured is held against the table, with
the shortest time of the table as its launch (for products: at their number of rows, by which kernels are chosen),
and what the step's form says is scaled by measured ÷ fitted at that shape (`catalog/grids.py`).
Limits: an expert layer that no table has stays as fitted, and so do operators that are bytes only; a format that
is only stored narrow takes the table of the format that it multiplies in.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

import numpy as np

from simcore.catalog.grids import Columns, Correction, Floats, Grid, correction
from simcore.catalog.kernels import WHOLE_EXPERTS, ExpertKernel, GemmKernel
from simcore.catalog.types import BYTES_PER_ELEMENT, Calibration, Efficiency
from simcore.compute.calibration import efficiency, kernel_fit
from simcore.compute.kernels import constant_numbers, experts_isolated_s, gemm_isolated_s, machine_numbers
from simcore.compute.ops import Operator

Machine = tuple[tuple[str, float], ...]  # figures of the chip that was measured


def operator_correction(op: Operator, calibration: Calibration) -> Correction | None:
    """Measured ÷ fitted along the tokens of a step; None where the shape or the format was not measured."""
    tables, chip = calibration.measured, calibration.measured_on
    if tables is None or chip is None or op.fan_in is None or op.fan_out is None:
        return None
    machine = tuple((name, value.item()) for name, value in machine_numbers(chip, op.dtype).items())
    fit = kernel_fit(calibration, op.operator_class, op.fit_dtype)
    if isinstance(fit, GemmKernel):
        grid = tables.gemm(op.dtype)
        if grid is None:
            return None
        return _product(grid, fit, machine, op.dtype, op.fan_in.value, op.fan_out.value)
    if op.experts is None or op.experts_per_token is None or op.expert_share is None:
        return None
    dtype, ranks = op.fit_dtype.removesuffix(WHOLE_EXPERTS), round(1.0 / op.expert_share.value)
    experts, topk = int(op.experts.value), int(op.experts_per_token.value)
    grid = tables.experts(dtype, hidden=int(op.fan_in.value), experts=experts, topk=topk)
    if grid is None:
        return None
    record = fit if isinstance(fit, ExpertKernel) else efficiency(calibration, "moe", op.dtype)
    # the operator spreads every expert over all ranks; ranks that own whole experts hold wider ones
    width = op.fan_out.value * ranks
    return _experts(grid, record, machine, dtype, (op.fan_in.value, width, experts, topk, ranks))


@lru_cache(maxsize=4096)
def _product(
    grid: Grid, fit: GemmKernel, machine: Machine, dtype: str, fan_in: float, fan_out: float
) -> Correction | None:
    return correction(grid, {"n": fan_out, "k": fan_in}, product_form(grid, fit, machine, dtype))


def product_form(grid: Grid, fit: GemmKernel, machine: Machine, dtype: str) -> Callable[[Columns], Floats]:
    """What the fit says of measured products, with the launch of this table at their number of rows."""
    constants, floors_s = constant_numbers(fit), grid.floors_s
    figures = {name: np.asarray(value) for name, value in machine}

    def fitted_s(shapes: Columns) -> Floats:
        return gemm_isolated_s(
            {**constants, "launch_s": floors_s[np.searchsorted(grid.axes[0], shapes["m"])]},
            figures,
            tokens=shapes["m"],
            fan_in=shapes["k"],
            fan_out=shapes["n"],
            dtype=dtype,
            exponent=fit.overlap_exponent,
        )

    return fitted_s


@lru_cache(maxsize=4096)
def _experts(
    grid: Grid,
    fit: ExpertKernel | Efficiency,
    machine: Machine,
    dtype: str,
    layer: tuple[float, float, int, int, int],
) -> Correction | None:
    hidden, width, experts, topk, ranks = layer
    fitted_s = experts_form(grid, fit, machine, dtype, hidden=hidden, experts=experts, topk=topk)
    if not (grid.axes[1][0] <= width <= grid.axes[1][-1]):
        return None
    return correction(grid, {"width": width, "moe_ep_size": ranks}, fitted_s)


def experts_form(
    grid: Grid,
    fit: ExpertKernel | Efficiency,
    machine: Machine,
    dtype: str,
    *,
    hidden: float,
    experts: int,
    topk: int,
) -> Callable[[Columns], Floats]:
    """The same of measured expert layers; the plain roofline where no richer form was fitted."""
    fit = replace(fit, launch_s=grid.floor_s)
    figures = {name: np.asarray(value) for name, value in machine}

    def fitted_s(shapes: Columns) -> Floats:
        routed, held = shapes["num_tokens"] * topk, experts / shapes["moe_ep_size"]
        rows = routed / shapes["moe_ep_size"]
        if isinstance(fit, ExpertKernel):
            return experts_isolated_s(
                constant_numbers(fit),
                figures,
                rows=rows,
                local_experts=held,
                hidden=np.asarray(hidden),
                width=shapes["width"],
                dtype=dtype,
                exponent=fit.overlap_exponent,
                foreign_rows=routed - rows,
            )
        matrices = 3.0 * hidden * shapes["width"]
        moved = BYTES_PER_ELEMENT[dtype] * np.minimum(held, np.maximum(rows, 1.0)) * matrices
        busy_s = 2.0 * rows * matrices / (fit.compute_fraction * figures["flop_per_s"])
        return np.maximum(busy_s, moved / (fit.memory_fraction * figures["bytes_per_s"])) + fit.launch_s

    return fitted_s
