"""Parameters that one chip of a training run holds."""

from __future__ import annotations

from typing import Final

from simcore.catalog.parameters import parameter_terms
from simcore.memory.weights import rank_weight_bytes
from simcore.parallelism import PipelineStage
from simcore.training.inputs import TrainingInputs
from simcore.training.split import ZERO
from simcore.why import Term, constant, leaf

_SIXTEEN_BIT: Final = constant(2.0, "bytes_per_16_bit_element")


def stage_parameters(inputs: TrainingInputs, stage: PipelineStage) -> tuple[Term, Term]:
    """Parameters of one chip: all but routed experts, and routed experts."""
    arch, tp = inputs.arch, inputs.parallelism.tp_ranks
    whole = (
        rank_weight_bytes(arch, inputs.parallelism.of_one_rank, stage, weights_dtype="bf16") / _SIXTEEN_BIT
    )
    routed = stage.moe_layers * arch.experts * parameter_terms(arch).expert
    if not routed:
        return whole.named("parameters_per_chip", "count"), ZERO
    held = leaf(routed, "expert_parameters_of_stage", kind="catalog", source="shape of the model")
    split = inputs.leaf("ep" if inputs.parallelism.ep > 1 else "tp", inputs.expert_split, degree=True)
    experts = (held / split).named("expert_parameters_per_chip", "count")
    return (whole - held / inputs.leaf("tp", tp, degree=True)).named("parameters_per_chip", "count"), experts
