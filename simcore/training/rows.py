"""A training step taken apart: one row per operator of a micro-batch, and what happens once per step.

Rows are of the slowest stage: `forward`, `backward` (gradients, what is computed again, launches that kernels wait
for, further tokens) and `once` (gradients and weights over the data group, optimiser, what stands between steps).
The rows of a phase sum to `training.<phase>_s`, so `(forward + backward) · (m + (p−1)/v) + once` is the step.
Bound by compute where no time waits for HBM. Collectives stand in the pass that sends them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from simcore.compute.ops import head_operators
from simcore.parallelism import PipelineStage
from simcore.training.adapters import adapter_stream_s
from simcore.training.experts import expert_products, expert_rows_s
from simcore.training.inputs import TrainingInputs
from simcore.training.kernels import (
    BACKWARD,
    FROZEN,
    attention_cost,
    attention_keys,
    core_attention,
    elementwise_s,
    lm_head,
)
from simcore.training.products import (
    SKIPPED,
    count_in_stage,
    operators_of_layers,
    stream_bytes_per_s,
    timed_products,
)
from simcore.training.split import Split
from simcore.training.step import TimedStage, TrainingStep
from simcore.why import Term, constant, total

Phase = Literal["forward", "backward", "once"]
Lane = Literal["compute", "collective", "host"]
PHASES: Final[tuple[Phase, ...]] = ("forward", "backward", "once")
_FORWARD_SHARE: Final[Mapping[str, float]] = {
    "context": 1 / 3,
    "pipeline": 1 / 2,
}  # of what a group exchanges


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRow:
    """One operator of one phase; its seconds are named `<operator>_s` in the phase's tree."""

    phase: Phase
    operator: str
    seconds: Term
    bound: str
    lane: Lane = "compute"
    count: float = 1.0
    flop: float = 0.0
    moved_bytes: float = 0.0
    dtype: str = ""

    @property
    def term(self) -> str:
        return f"{self.operator}_s"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    """An operator forward, and how many times that its backward takes."""

    operator: str
    split: Split
    backward: Term
    count: float
    flop: float = 0.0
    moved_bytes: float = 0.0
    dtype: str = ""

    def row(self, phase: Phase, factor: Term) -> TrainingRow:
        return TrainingRow(
            phase=phase,
            operator=self.operator,
            seconds=(self.split.total * factor).named(f"{self.operator}_s", "s"),
            bound="hbm" if self.split.hbm.value > self.split.compute.value or not self.flop else "compute",
            count=self.count,
            flop=self.flop * factor.value,
            moved_bytes=self.moved_bytes * factor.value,
            dtype=self.dtype,
        )


def training_rows(inputs: TrainingInputs, step: TrainingStep) -> list[TrainingRow]:
    """Rows of the three phases, in the order of execution."""
    slowest = step.slowest
    works = list(_works(inputs, slowest.stage))
    rows = [work.row("forward", constant(1.0, "passes")) for work in works]
    rows += [_exchanged(inputs, slowest, name, forward=True) for name in slowest.exchanged]
    rows += [work.row("backward", work.backward) for work in reversed(works)]
    rows += [_exchanged(inputs, slowest, name, forward=False) for name in slowest.exchanged]
    rows += _beside(slowest)
    rows += [_of_split("once", name, split) for name, split in step.once.items()]
    return [row for row in rows if row.seconds.value > 0]


def phase_terms(rows: list[TrainingRow]) -> dict[str, Term]:
    """`training.<phase>_s`: the sum of a phase's rows, as a tree."""
    found = {}
    for phase in PHASES:
        parts = [row.seconds for row in rows if row.phase == phase]
        name = f"training.{phase}_s"
        found[name] = (total(*parts) if len(parts) > 1 else parts[0] * constant(1.0, "one")).named(name, "s")
    return found


def _works(inputs: TrainingInputs, stage: PipelineStage) -> Iterator[_Work]:
    tokens = inputs.rank_tokens
    of_products = FROZEN if inputs.spec.lora.rank else BACKWARD
    attended = False
    for op in operators_of_layers(inputs):
        if op.operator_class == "moe":
            continue
        if not attended and op.name in ("attention_output", "output_down"):
            attended = True
            yield _attention_work(inputs, stage, tokens)
        count = count_in_stage(inputs, op, stage)
        yield _Work(
            operator=op.name,
            split=timed_products(inputs, [(op, count)], tokens),
            backward=of_products,
            count=count.value,
            flop=(count * op.flop(tokens)).value,
            moved_bytes=(count * op.moved_bytes(tokens)).value,
            dtype=op.dtype,
        )
    if not attended:
        yield _attention_work(inputs, stage, tokens)
    if stage.moe_layers:
        yield from _expert_works(inputs, stage, tokens, of_products)
    yield _streamed(inputs, "elementwise", elementwise_s(inputs, stage, tokens), stage)
    if inputs.spec.lora.rank:
        yield _streamed(inputs, "adapters", adapter_stream_s(inputs, stage, tokens), stage)
    if stage.is_last:
        head = [op for op in head_operators(inputs.arch, inputs.parallelism) if op.name not in SKIPPED]
        yield _Work(
            operator="lm_head",
            split=lm_head(inputs, tokens),
            backward=of_products,
            count=1.0,
            flop=sum(op.flop(tokens).value for op in head),
            moved_bytes=sum(op.moved_bytes(tokens).value for op in head),
            dtype=head[0].dtype,
        )


def _attention_work(inputs: TrainingInputs, stage: PipelineStage, tokens: Term) -> _Work:
    cost = attention_cost(inputs, stage)
    keys, window_keys = (term.value for term in attention_keys(inputs, cost))
    each = tokens.value
    return _Work(
        operator="core_attention",
        split=core_attention(inputs, stage, tokens),
        backward=constant(inputs.stack.attention_backward_ratio, "attention_backward_ratio"),
        count=float(stage.attention_layers),
        flop=each
        * (keys * cost.prefill_flop_per_pair.value + window_keys * cost.prefill_flop_per_window_pair.value),
        moved_bytes=each
        * (keys * cost.prefill_bytes_per_pair.value + window_keys * cost.prefill_bytes_per_window_pair.value),
        dtype="bf16",
    )


def _expert_works(
    inputs: TrainingInputs, stage: PipelineStage, tokens: Term, of_products: Term
) -> Iterator[_Work]:
    op = next(op for op in operators_of_layers(inputs) if op.operator_class == "moe")
    group = float(inputs.parallelism.ep)
    weights = op.read_weight_bytes(tokens * constant(group)).value / group
    yield _Work(
        operator="experts",
        split=expert_products(inputs, stage, tokens),
        backward=of_products,
        count=float(stage.moe_layers),
        flop=stage.moe_layers * op.flop(tokens).value,
        moved_bytes=stage.moe_layers * (weights + (op.io_bytes_per_token * tokens).value),
        dtype=op.dtype,
    )
    yield _streamed(inputs, "expert_rows", expert_rows_s(inputs, stage, tokens), stage)


def _streamed(inputs: TrainingInputs, operator: str, seconds: Term, stage: PipelineStage) -> _Work:
    """What moves bytes alone, at the bandwidth that streaming kernels reach."""
    return _Work(
        operator=operator,
        split=Split(hbm=seconds),
        backward=BACKWARD,
        count=float(stage.layers),
        moved_bytes=seconds.value * stream_bytes_per_s(inputs).value,
    )


def _exchanged(inputs: TrainingInputs, slowest: TimedStage, name: str, *, forward: bool) -> TrainingRow:
    again = 3.0 if inputs.spec.recompute == "full" else 2.0
    share = _FORWARD_SHARE.get(name, 1.0 / again)
    part = slowest.exchanged[name].times(
        constant(share if forward else 1.0 - share, "share_of_pass" if forward else "share_of_backward_pass")
    )
    return _of_split("forward" if forward else "backward", f"{name}_collectives", part)


def _beside(slowest: TimedStage) -> list[TrainingRow]:
    """What the backward pass has beside gradients."""
    wait = Split(overhead=slowest.host_wait_s)
    return [
        _of_split("backward", "recomputed", slowest.kernels.recomputed),
        _of_split("backward", "multi_token_prediction", slowest.predicting),
        _of_split("backward", "host_launch_wait", wait),
    ]


def _of_split(phase: Phase, operator: str, split: Split) -> TrainingRow:
    parts = split.parts
    bound = max(parts, key=lambda name: parts[name].value) if parts else "overhead"
    lanes: dict[str, Lane] = {"scaleup": "collective", "scaleout": "collective", "overhead": "host"}
    return TrainingRow(
        phase=phase,
        operator=operator,
        seconds=(split.total * constant(1.0, "whole")).named(f"{operator}_s", "s"),
        bound=bound,
        lane=lanes.get(bound, "compute"),
    )
