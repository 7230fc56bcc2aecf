"""Time of an operator in a step: the fitted kernel where the chip has one, the plain roofline otherwise.

Each time comes in three parts: *arithmetic* is flop/(e_c·peak) alone, *memory* what its bytes would take, and
the *whole*, which also holds what tiles and waves leave idle and how far arithmetic and memory overlap; where
measured tables are used it is scaled by measured ÷ fitted (`measured.py`). The step table and the expression
trees both call `operator_time`, once with arrays and once with terms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Generic

import numpy as np

from simcore.catalog.kernels import ExpertKernel, GemmKernel
from simcore.catalog.types import Calibration, Chip
from simcore.compute.calibration import OperatorClass, kernel_fit, peak, rates
from simcore.compute.kernels import constant_terms, expert_rows, gemm_arithmetic_s, machine_terms
from simcore.compute.measured import operator_correction
from simcore.compute.ops import Operator
from simcore.compute.roofline import Amount, Rates, greatest, labelled, least, over, root_sum, times
from simcore.remembered import remembered
from simcore.why import Term, constant


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """What operators of one class and dtype reach on a chip."""

    rates: Rates
    calibration: Calibration
    kernel: GemmKernel | ExpertKernel | None = None
    constants: Mapping[str, Term]
    machine: Mapping[str, Term]


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorTime(Generic[Amount]):
    """One call of an operator; the whole is never below the other two."""

    arithmetic_s: Amount
    memory_s: Amount
    whole_s: Amount


def operator_paces(
    operators: Sequence[Operator], chip: Chip, calibration: Calibration
) -> dict[tuple[OperatorClass, str], Pace]:
    """By class and dtype, each computed once."""
    first = {(op.operator_class, op.dtype): op for op in reversed(operators)}
    return {key: _pace(chip, calibration, *key, op.fit_dtype) for key, op in first.items()}


@remembered
def _pace(
    chip: Chip, calibration: Calibration, operator_class: OperatorClass, dtype: str, fit_dtype: str
) -> Pace:
    name = f"{operator_class}_{fit_dtype}"
    kernel = kernel_fit(calibration, operator_class, fit_dtype) if chip.core_count else None
    if kernel is None:
        plain = rates(chip, calibration, operator_class, dtype, name=name)
        return Pace(rates=plain, calibration=calibration, constants={}, machine={})
    constants, machine = constant_terms(kernel, name), machine_terms(chip, peak(chip, dtype))
    reached = Rates(
        flop_per_s=(constants["compute_fraction"] * machine["flop_per_s"]).named(
            f"{name}_flop_per_s", "flop_per_s"
        ),
        bytes_per_s=(constants["memory_fraction"] * machine["bytes_per_s"]).named(
            f"{name}_bytes_per_s", "bytes_per_s"
        ),
    )
    return Pace(rates=reached, calibration=calibration, kernel=kernel, constants=constants, machine=machine)


def operator_time(op: Operator, tokens: Amount, pace: Pace) -> OperatorTime[Amount]:
    """One call with `tokens` tokens (a term, or an array of all token counts)."""
    fitted = _fitted_time(op, tokens, pace)
    correction = operator_correction(op, pace.calibration)
    if correction is None:
        return fitted
    of_all = tokens if op.data_ranks == 1 else times(constant(float(op.data_ranks), "data_ranks"), tokens)
    whole_s = fitted.whole_s * correction.ratio(of_all)
    return OperatorTime(
        arithmetic_s=least(fitted.arithmetic_s, whole_s),
        memory_s=least(fitted.memory_s, whole_s),
        whole_s=whole_s,
    )


def later_s(op: Operator, tokens: Amount, pace: Pace) -> Amount:
    """How much longer the chip takes that most rows are routed to than the mean one."""
    mean_s, most_s = (operator_time(one, tokens, pace).whole_s for one in (op, op.busiest))
    return most_s - mean_s


def _fitted_time(op: Operator, tokens: Amount, pace: Pace) -> OperatorTime[Amount]:
    arithmetic_s = over(op.flop(tokens), pace.rates.flop_per_s)
    memory_s = labelled(over(op.moved_bytes(tokens), pace.rates.bytes_per_s), "memory_s")
    if isinstance(pace.kernel, ExpertKernel) and op.experts is not None:
        return _experts(op, tokens, pace, pace.kernel, arithmetic_s)
    if not isinstance(pace.kernel, GemmKernel) or op.fan_in is None or op.fan_out is None:
        whole_s = greatest(arithmetic_s, memory_s)
        return OperatorTime(arithmetic_s=arithmetic_s, memory_s=memory_s, whole_s=whole_s)
    tiles_s = gemm_arithmetic_s(
        _like(pace.constants, tokens),
        _like(pace.machine, tokens),
        tokens=tokens,
        fan_in=_one(op.fan_in, tokens),
        fan_out=_one(op.fan_out, tokens),
    )
    whole_s = root_sum(tiles_s, memory_s, pace.kernel.overlap_exponent)
    return OperatorTime(arithmetic_s=arithmetic_s, memory_s=memory_s, whole_s=whole_s)


def _experts(
    op: Operator, tokens: Amount, pace: Pace, kernel: ExpertKernel, arithmetic_s: Amount
) -> OperatorTime[Amount]:
    """Rows padded to tiles, weights of the experts reached, and a little for each of them."""
    assert op.experts is not None, "an expert layer has experts"
    assert op.experts_per_token is not None, "and routes to some of them"
    assert op.expert_share is not None, "and holds a share of them"
    constants = _like(pace.constants, tokens)
    # a step without tokens reaches no expert; it is charged nothing by its caller
    reached = times(op.experts, op.touched_fraction(tokens))
    active = labelled(greatest(reached, _one(constant(1.0), tokens)), "experts_reached", "count")
    rows_per_token = op.rows_per_token or op.experts_per_token
    rows = labelled(times(rows_per_token, tokens), "routed_rows", "count")
    per_row = op.flop_per_token / rows_per_token / pace.rates.flop_per_s
    tiles_s = labelled(
        times(per_row.named("s_per_row", "s"), expert_rows(constants, rows=rows, active=active)),
        "arithmetic_s",
    )
    passed = labelled(
        times(op.io_bytes_per_token * pace.constants["passes_ratio"], tokens), "activation_bytes"
    )
    memory_s = over(op.read_weight_bytes(tokens) + passed, pace.rates.bytes_per_s)
    memory_s = labelled(memory_s, "memory_s")
    share = op.expert_share * pace.constants["per_expert_s"]
    each_s = labelled(times(share, active), "per_expert_s")
    whole_s = root_sum(tiles_s, memory_s, kernel.overlap_exponent) + each_s
    return OperatorTime(arithmetic_s=arithmetic_s, memory_s=memory_s, whole_s=whole_s)


def _one(term: Term, like: Amount) -> Amount:
    """A term in the form that `like` has."""
    if isinstance(like, Term):
        return term
    return np.asarray(term.value)


def _like(terms: Mapping[str, Term], like: Amount) -> dict[str, Amount]:
    return {name: _one(term, like) for name, term in terms.items()}
