"""Low-rank adapters beside frozen weights (LoRA, Hu et al. 2021): what is trained, and what that saves and costs.

Each matrix of the targets has two thin ones, `in × r` and `r × out`. Frozen matrices need the gradient of their
inputs but none of their own, so their backward costs one forward instead of two; gradients, optimiser states
and data collectives are the adapters' alone. Thin products move bytes: an adapter drops out and reads its input
and adds to its output once forward, twice backward. Frozen weights are held in the format that multiplies them. Limits:
routed experts, embeddings and the head have no adapters; the frozen embedding is held as narrow as the rest.
"""

from __future__ import annotations

from typing import Final

from simcore.compute.ops import Operator
from simcore.parallelism import PipelineStage
from simcore.training.inputs import TrainingInputs
from simcore.training.memory_parts import stage_parameters
from simcore.training.products import count_in_stage, operators_of_layers, stream_bytes_per_s
from simcore.training.split import ZERO
from simcore.why import Term, constant, leaf, total

_MLP: Final = ("mlp_", "shared_experts_")
_PLAIN: Final = frozenset({"router", "state_update"})
_BYTES: Final = constant(2.0, "activation_bytes")


def adapted_operators(inputs: TrainingInputs) -> tuple[Operator, ...]:
    """Products whose matrices have adapters; none where everything is trained."""
    lora = inputs.spec.lora
    if not lora.rank:
        return ()
    return tuple(
        op
        for op in operators_of_layers(inputs)
        if op.fan_in is not None
        and op.name not in _PLAIN
        and (lora.targets == "all" or not op.name.startswith(_MLP))
    )


def rank_term(inputs: TrainingInputs) -> Term:
    return leaf(inputs.spec.lora.rank, "lora_rank", path="training.lora.rank", dimension="")


def adapter_parameters(inputs: TrainingInputs, stage: PipelineStage) -> Term:
    """Adapter parameters of one chip."""
    rank = rank_term(inputs)
    parts = [
        count_in_stage(inputs, op, stage) * rank * (op.fan_in + op.fan_out)
        for op in adapted_operators(inputs)
        if op.fan_in is not None and op.fan_out is not None
    ]
    return total(*parts).named("adapter_parameters_per_chip", "count")


def adapter_stream_s(inputs: TrainingInputs, stage: PipelineStage, tokens: Term) -> Term:
    """Bytes of the thin products, forward, 16 bit each: the input passes dropout and is read, the output added to."""
    parts = [
        count_in_stage(inputs, op, stage)
        * (constant(3.0, "dropped_and_read") * op.fan_in + constant(2.0, "read_and_added") * op.fan_out)
        for op in adapted_operators(inputs)
        if op.fan_in is not None and op.fan_out is not None
    ]
    return (tokens * _BYTES * total(*parts) / stream_bytes_per_s(inputs)).named("adapters_s", "s")


def trained_parameters(inputs: TrainingInputs, stage: PipelineStage) -> tuple[Term, Term]:
    """Parameters of one chip that have gradients and optimiser states: all but routed experts, and those."""
    if not inputs.spec.lora.rank:
        return stage_parameters(inputs, stage)
    return adapter_parameters(inputs, stage), ZERO
