"""A step taken apart: one row per operator, with its work, its traffic, its seconds and what it waits for.

Seconds are read off the step's own expression tree (`steps.py`), so the rows sum to the step; FLOP and
bytes come from the operators that made it. An operator is bound by compute where its arithmetic at the
reached rate takes longer than its bytes at the reached bandwidth. Rows stand in the order of execution,
all layers of a kind together, and count one chip of the slowest pipeline stage.
Limits: windows and whole contexts are one attention row; launches are one row, as the model charges them;
prefill attention moves K and V alone, since queries and outputs are not charged in prefill.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np

from simcore.catalog.grids import MEASURED_RATIO
from simcore.compute.operator_time import operator_paces
from simcore.compute.ops import Operator
from simcore.compute.stage_attention import StageAttention
from simcore.compute.steps import StepModel
from simcore.parallelism import PipelineStage
from simcore.why import Term

Lane = Literal["compute", "collective", "host"]
Phase = Literal["decode", "prefill"]
_AFTER_ATTENTION: Final = ("attention_output", "output_down")
_LANES: Final[dict[str, tuple[str, Lane, str]]] = {
    "communication_s": ("all_reduce", "collective", "scaleup"),
    "expert_exchange_s": ("expert_exchange", "collective", "scaleup"),
    "expert_wait_s": ("expert_wait", "collective", "scaleup"),
    "rank_skew_s_per_step": ("rank_wait", "collective", "scaleup"),
    "overhead_s": ("host", "host", "host"),
}
_COUNTS: Final[dict[str, Callable[[PipelineStage], float]]] = {
    "all_reduce": lambda stage: 2.0 * stage.depth,
    "rank_wait": lambda stage: 2.0 * stage.depth,
    "expert_exchange": lambda stage: 2.0 * stage.moe_layers,
    "expert_wait": lambda stage: float(stage.moe_layers),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorRow:
    """One operator of one step; `term` is the name of its seconds in the step's tree."""

    phase: Phase
    operator: str
    term: str
    lane: Lane
    per_layer: bool
    count: float
    flop: float
    moved_bytes: float
    s: float
    bound: str
    dtype: str = ""
    source: str = ""  # of its seconds: measured tables, a fit, or an assumption

    def through(self, stages: int) -> OperatorRow:
        """The same on every pipeline stage that a batch passes."""
        return replace(
            self,
            count=self.count * stages,
            flop=self.flop * stages,
            moved_bytes=self.moved_bytes * stages,
            s=self.s * stages,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionWork:
    """FLOP and bytes of all attention layers of a step on one chip."""

    flop: float
    moved_bytes: float


def decode_rows(model: StepModel, step: Term, *, batch: float, context_tokens: float) -> list[OperatorRow]:
    """The rows of `decode_step` with the same batch and context."""
    work = decode_attention_work(model.attention, batch=batch, context_tokens=context_tokens)
    return _rows(model, step, "decode", tokens=batch, sampled=batch, work=work)


def prefill_rows(
    model: StepModel, step: Term, *, tokens: float, done_tokens: float = 0.0
) -> list[OperatorRow]:
    """The rows of `prefill_step` with the same chunk."""
    cost, context = model.attention, done_tokens + tokens / 2.0
    window = min(context, cost.window_tokens)
    work = AttentionWork(
        flop=tokens
        * (context * cost.prefill_flop_per_pair.value + window * cost.prefill_flop_per_window_pair.value),
        moved_bytes=tokens
        * (context * cost.prefill_bytes_per_pair.value + window * cost.prefill_bytes_per_window_pair.value),
    )
    return _rows(model, step, "prefill", tokens=tokens, sampled=1.0, work=work)


def decode_attention_work(cost: StageAttention, *, batch: float, context_tokens: float) -> AttentionWork:
    """KV read and its arithmetic for one token of each sequence."""
    window = min(context_tokens, cost.window_tokens)
    return AttentionWork(
        flop=batch
        * (context_tokens * cost.decode_flop_per_token.value + window * cost.window_flop_per_token.value),
        moved_bytes=batch
        * (
            context_tokens * cost.kv_bytes_per_token.value
            + window * cost.window_bytes_per_token.value
            + cost.decode_bytes_per_sequence.value
        ),
    )


def _rows(
    model: StepModel, step: Term, phase: Phase, *, tokens: float, sampled: float, work: AttentionWork
) -> list[OperatorRow]:
    parts = {part.name: part for part in step.args}
    linear, head = parts["linear_s"], parts["head_s"]
    graph = linear.args[0] if linear.op == "max" else linear
    layers = list(_operator_rows(model, phase, model.layer_operators, graph, tokens))
    launch_s = linear.value - sum(row.s for row in layers)
    layers.insert(_attention_place(layers), _attention_row(model, parts[f"{phase}_attention_s"], phase, work))
    launch = OperatorRow(
        phase=phase,
        operator="launch",
        term="launch_s" if linear is graph else "eager_host_s",
        lane="host",
        per_layer=True,
        count=float(model.stage.depth),
        flop=0.0,
        moved_bytes=0.0,
        s=launch_s,
        bound="host",
        source=kernel_source(graph.args[-1], measured=False),
    )
    beside = [_beside(model, part, phase) for name, part in parts.items() if name in _LANES and part.value]
    heads = list(_operator_rows(model, phase, model.head_operators, head, sampled, per_layer=False))
    waits = [row for row in beside if row.per_layer]
    return [launch, *layers, *waits, *heads, *(row for row in beside if not row.per_layer)]


def _operator_rows(
    model: StepModel,
    phase: Phase,
    operators: Sequence[Operator],
    term: Term,
    tokens: float,
    *,
    per_layer: bool = True,
) -> Iterator[OperatorRow]:
    """Rows of operators of one name are one; `term` is the sum over them, in their order."""
    paces = operator_paces(operators, model.chip, model.calibration)
    found: dict[str, OperatorRow] = {}
    for op, seconds in zip(operators, term.args, strict=False):
        rates, count, amount = paces[op.operator_class, op.dtype].rates, op.count.value, np.asarray(tokens)
        flop, moved = count * float(op.flop(amount)), count * float(op.moved_bytes(amount))
        computes = flop / rates.flop_per_s.value >= moved / rates.bytes_per_s.value
        row = OperatorRow(
            phase=phase,
            operator=op.name,
            term=seconds.name,
            lane="compute",
            per_layer=per_layer,
            count=count,
            flop=flop,
            moved_bytes=moved,
            s=seconds.value,
            bound="compute" if computes else "hbm",
            dtype=op.dtype,
            source=kernel_source(seconds, measured=model.calibration.measured is not None),
        )
        found[op.name] = _merged(found[op.name], row) if op.name in found else row
    yield from found.values()


def _merged(one: OperatorRow, other: OperatorRow) -> OperatorRow:
    return replace(
        one,
        count=one.count + other.count,
        flop=one.flop + other.flop,
        moved_bytes=one.moved_bytes + other.moved_bytes,
        s=one.s + other.s,
        bound=one.bound if one.s >= other.s else other.bound,
    )


def _attention_place(layers: Sequence[OperatorRow]) -> int:
    places = (at for at, row in enumerate(layers) if row.operator in _AFTER_ATTENTION)
    return next(places, 0)


def _attention_row(model: StepModel, term: Term, phase: Phase, work: AttentionWork) -> OperatorRow:
    cost = model.attention
    share = cost.decode_compute_fraction if phase == "decode" else cost.prefill_compute_fraction
    return OperatorRow(
        phase=phase,
        operator="attention",
        term=term.name,
        lane="compute",
        per_layer=True,
        count=model.stage.attention_layers,
        flop=work.flop,
        moved_bytes=work.moved_bytes,
        s=term.value,
        bound="compute" if share > 0.5 else "hbm",
        dtype="bf16",
        source=kernel_source(term, measured=model.calibration.measured is not None),
    )


def _beside(model: StepModel, part: Term, phase: Phase) -> OperatorRow:
    operator, lane, bound = _LANES[part.name]
    return OperatorRow(
        phase=phase,
        operator=operator,
        term=part.name,
        lane=lane,
        per_layer=lane == "collective",
        count=_COUNTS[operator](model.stage) if operator in _COUNTS else 1.0,
        flop=0.0,
        moved_bytes=0.0,
        s=part.value,
        bound=bound,
        source=kernel_source(part, measured=model.calibration.measured is not None),
    )


def kernel_source(term: Term, *, measured: bool) -> str:
    """Where the seconds of a kernel are from, as the leaves of their tree say."""
    if measured and (found := _leaf(term, lambda leaf: leaf.name == MEASURED_RATIO, reversed)):
        return f"measured: {found.source}"  # a factor stands last
    if found := _leaf(term, lambda leaf: leaf.kind == "calibrated"):
        return f"fitted: {found.source}"
    found = _leaf(term, lambda leaf: leaf.kind == "assumption")
    return f"assumed: {found.source}" if found else "roofline"


def _leaf(
    term: Term,
    is_wanted: Callable[[Term], bool],
    order: Callable[[tuple[Term, ...]], Iterator[Term]] = iter,
) -> Term | None:
    """The first such leaf of the tree, its parts taken in this order."""
    if not term.args:
        return term if is_wanted(term) else None
    return next((found for part in order(term.args) if (found := _leaf(part, is_wanted, order))), None)
