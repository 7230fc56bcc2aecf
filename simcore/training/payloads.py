"""What the ranks of a training step hand each other: how many bytes at once, and how often.

`communication.py` says how long it takes, `plan/traffic.py` over which links it goes; both read the bytes here.
Payloads are those of nccl-tests' size column: the whole of what is reduced or gathered, per rank of its group.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from simcore.fabric.collectives import Operation
from simcore.parallelism import PipelineStage
from simcore.training.adapters import trained_parameters
from simcore.training.inputs import TrainingInputs
from simcore.training.memory_parts import stage_parameters
from simcore.why import Term, constant, leaf, maximum

BYTES: Final = constant(2.0, "activation_bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class DataCall:
    """A collective of the data group: `bytes_each` of every parameter that takes part, `count` times a step."""

    operation: Operation
    bytes_each: Term
    parameters: Term
    count: int

    @property
    def payload_bytes(self) -> Term:
        return (self.parameters * self.bytes_each).named(f"{self.operation}_bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class DataGroup:
    """Ranks that hold the same parameters, `stride` chips apart, and what they exchange."""

    name: str
    ranks: int
    stride: int
    calls: tuple[DataCall, ...]


def passes(inputs: TrainingInputs) -> Term:
    """Forward, backward, and the forward that full recomputation repeats."""
    return constant(3.0 if inputs.spec.recompute == "full" else 2.0, "passes_over_layers")


def activation_bytes(inputs: TrainingInputs) -> Term:
    return (BYTES * inputs.rank_tokens * inputs.arch.leaf("hidden")).named("activation_payload_bytes")


def tensor_calls(inputs: TrainingInputs, stage: PipelineStage) -> Term:
    """All-reduces of a micro-batch, or pairs of reduce-scatter and all-gather."""
    # a layer's experts exchange by all-to-all where they are shared out, else like an MLP
    per_pass = 2 * stage.layers - (stage.moe_layers if inputs.parallelism.ep > 1 else 0)
    return constant(float(per_pass), "collectives_per_pass") * passes(inputs)


def gathered_kv_bytes(inputs: TrainingInputs) -> Term:
    """Keys and values of one layer, of every token of the micro-batch."""
    arch, parallelism = inputs.arch, inputs.parallelism
    tp = inputs.leaf("tp", parallelism.tp_ranks, degree=True)
    heads = maximum(constant(1.0), arch.leaf("kv_heads") / tp)
    every_token = inputs.rank_tokens * inputs.leaf("cp", parallelism.cp, degree=True)
    return (constant(4.0, "k_and_v_bytes") * every_token * heads * arch.leaf("head_dim")).named(
        "gathered_kv_bytes"
    )


def stage_payload_bytes(inputs: TrainingInputs) -> Term:
    """What one rank sends to the next stage: its share of the activations."""
    payload = activation_bytes(inputs)
    if inputs.parallelism.tp_ranks > 1:
        payload = payload / inputs.leaf("tp", inputs.parallelism.tp_ranks, degree=True)
    return payload.named("stage_payload_bytes")


def data_groups(inputs: TrainingInputs, stage: PipelineStage) -> tuple[DataGroup, ...]:
    """Who exchanges gradients and weights of a stage: of dense layers, and of its experts."""
    parallelism, split = inputs.parallelism, inputs.expert_split
    ranks = parallelism.dp * parallelism.cp
    replicas = parallelism.tp_ranks * ranks // split
    held, trained = stage_parameters(inputs, stage), trained_parameters(inputs, stage)
    shapes = (("data", ranks, parallelism.tp_ranks), ("expert_data", replicas, split))
    return tuple(
        DataGroup(name=name, ranks=group, stride=stride, calls=_data_calls(inputs, held[at], trained[at]))
        for at, (name, group, stride) in enumerate(shapes)
        if held[at].value and group > 1
    )


def _data_calls(inputs: TrainingInputs, held: Term, trained: Term) -> tuple[DataCall, ...]:
    """ZeRO 0: all-reduce; 1: scatter and gather once; 2: scatter per micro-batch; 3: and gather twice in each."""
    stage, batches = inputs.spec.zero_stage, inputs.micro_batch_count
    gradient = leaf(
        inputs.stack.gradient_bytes, "gradient_bytes", kind="calibrated", source=inputs.stack.source
    )
    if stage == 0:
        return (DataCall(operation="all_reduce", bytes_each=gradient, parameters=trained, count=1),)
    scatters, gathers = {1: (1, 1), 2: (batches, 1), 3: (batches, 2 * batches)}[stage]
    return (
        DataCall(operation="reduce_scatter", bytes_each=gradient, parameters=trained, count=scatters),
        DataCall(
            operation="all_gather",
            bytes_each=BYTES,
            parameters=held if stage == 3 else trained,
            count=gathers,
        ),
    )
