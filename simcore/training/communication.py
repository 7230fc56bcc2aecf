"""Collectives of a training step, per group, with what hides behind kernels taken off.

Ranks are laid out tensor first, then context, data, pipeline, as Megatron does. So a tensor group fills a
scale-up domain before it leaves it, a data group has `domain ÷ tp` ranks in each domain, and stages are
neighbours over the network wherever tp × cp × dp covers a domain.
- tensor: per layer two all-reduces forward and two backward of the micro-batch's activations; sequence
  parallelism turns each into reduce-scatter and all-gather, the same bytes. Overlapped, they run in tp chunks
  behind the products: the first chunk stays exposed, and what is longer than the products.
- expert: dispatch and combine, see `experts.py`.
- context: keys and values gathered round the ring, behind attention.
- pipeline: activations and their gradients between stages, once per virtual stage.
- data: gradients and weights by ZeRO stage: 0 all-reduce; 1 reduce-scatter and all-gather once per step; 2
  reduce-scatter per micro-batch; 3 also gathers the weights, twice per micro-batch. Overlapped, gradients hide
  behind the last backward pass and weights behind the first forward pass (3: behind the whole step).
Limits: groups do not disturb each other; experts' gradients go over their own, smaller group.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from simcore.fabric.collectives import Interconnect, collective_s, point_to_point_s
from simcore.parallelism import PipelineStage
from simcore.training.experts import expert_exchange
from simcore.training.inputs import TrainingInputs
from simcore.training.kernels import StageKernels
from simcore.training.payloads import (
    DataCall,
    DataGroup,
    activation_bytes,
    data_groups,
    gathered_kv_bytes,
    passes,
    stage_payload_bytes,
    tensor_calls,
)
from simcore.training.split import ZERO, Split
from simcore.why import Term, constant, leaf, maximum

HIDING_FRACTION: Final = 0.9  # of a step's kernels that ZeRO-3's collectives can hide behind


def layer_collectives(
    inputs: TrainingInputs, stage: PipelineStage, kernels: StageKernels
) -> dict[str, Split]:
    """Exposed time per micro-batch of what the layers of a stage exchange, by group."""
    found: dict[str, Split] = {}
    if inputs.parallelism.tp_ranks > 1:
        found["tensor"] = _tensor(inputs, stage, kernels)
    if inputs.parallelism.ep > 1 and stage.moe_layers:
        found["expert"] = expert_exchange(
            inputs, stage, passes=passes(inputs), kernels_s=kernels.forward.total + kernels.backward.total
        )
    if inputs.parallelism.cp > 1:
        found["context"] = _context(inputs, stage, kernels)
    if inputs.parallelism.pp > 1:
        found["pipeline"] = _pipeline(inputs)
    return found


def _tensor(inputs: TrainingInputs, stage: PipelineStage, kernels: StageKernels) -> Split:
    tp, network = inputs.parallelism.tp_ranks, inputs.scaled_network
    payload = activation_bytes(inputs)
    if inputs.splits_sequence:
        once = collective_s("reduce_scatter", payload, tp, network) + collective_s(
            "all_gather", payload, tp, network
        )
    else:
        once = collective_s("all_reduce", payload, tp, network)
    seconds = (tensor_calls(inputs, stage) * once).named("tensor_collectives_s", "s")
    if inputs.spec.overlap.tp:
        chunks = inputs.leaf("tp", tp, degree=True)
        behind = kernels.products_s * constant(2.0 + (inputs.spec.recompute == "full"), "passes_to_hide")
        rest = maximum(constant(0.0), seconds - seconds / chunks - behind)
        seconds = (seconds / chunks + rest).named("exposed_tensor_collectives_s", "s")
    return _on_tier(seconds, ranks=tp, domain_size=network.domain_size)


def _context(inputs: TrainingInputs, stage: PipelineStage, kernels: StageKernels) -> Split:
    parallelism, payload = inputs.parallelism, gathered_kv_bytes(inputs)
    network = group_network(inputs, stride=parallelism.tp_ranks, ranks=parallelism.cp)
    once = collective_s("all_gather", payload, parallelism.cp, network)
    # forward gathers, backward gathers again and scatters the gradients
    per_layer = maximum(
        constant(0.0),
        constant(3.0, "gathers_and_scatters") * once - _attention_window(inputs, stage, kernels),
    )
    seconds = (constant(float(stage.layers), "layers") * per_layer).named(
        "exposed_context_collectives_s", "s"
    )
    return _on_tier(seconds, ranks=parallelism.cp, domain_size=network.domain_size)


def _attention_window(inputs: TrainingInputs, stage: PipelineStage, kernels: StageKernels) -> Term:
    """Attention of one layer, forward and backward."""
    both = constant(1.0 + inputs.stack.attention_backward_ratio, "forward_and_backward_attention")
    return both * kernels.attention_s / constant(float(stage.layers), "layers")


def _pipeline(inputs: TrainingInputs) -> Split:
    parallelism, virtual = inputs.parallelism, inputs.spec.virtual_stages
    stride = parallelism.tp_ranks * parallelism.cp * parallelism.dp
    crosses = stride >= inputs.network.domain_size
    network = replace(inputs.scaled_network, stride=stride)
    once = point_to_point_s(stage_payload_bytes(inputs), network, crosses_domain=crosses)
    exposed = inputs.stack.interleaved_send_exposed_fraction if virtual > 1 else 1.0
    sends = constant(2.0 * virtual, "sends_per_micro_batch")
    seconds = sends * once
    if exposed < 1.0:
        seconds = seconds * _stack_leaf(inputs, "interleaved_send_exposed_fraction", exposed)
    seconds = seconds.named("exposed_sends_s", "s")
    return Split(scaleout=seconds) if crosses else Split(scaleup=seconds)


def data_collectives(
    inputs: TrainingInputs, stage: PipelineStage, *, forward_s: Term, backward_s: Term, step_kernels_s: Term
) -> Split:
    """Exposed time per step of gradients and weights over the data (and context) group."""
    found = Split()
    for group in data_groups(inputs, stage):
        network = group_network(inputs, stride=group.stride, ranks=group.ranks)
        seconds = _exposed(inputs, group, network, (forward_s, backward_s, step_kernels_s))
        found += _on_tier(
            seconds.named(f"exposed_{group.name}_collectives_s", "s"),
            ranks=group.ranks,
            domain_size=network.domain_size,
        )
    return found


def _exposed(
    inputs: TrainingInputs, group: DataGroup, network: Interconnect, windows: tuple[Term, Term, Term]
) -> Term:
    """`windows`: forward, backward, all kernels of the step."""
    stage, hides = inputs.spec.zero_stage, inputs.spec.overlap.dp
    forward_s, backward_s, step_kernels_s = windows
    once = [_once(call, group.ranks, network) for call in group.calls]
    if stage == 0:
        return maximum(constant(0.0), once[0] - backward_s) if hides else once[0]
    scatter, gather = once
    if stage == 1:
        if not hides:
            return scatter + gather
        return maximum(constant(0.0), scatter - backward_s) + maximum(constant(0.0), gather - forward_s)
    micro_batches = constant(float(inputs.micro_batch_count), "micro_batches")
    seconds = micro_batches * scatter + gather
    if stage == 3:
        seconds = micro_batches * (scatter + constant(2.0, "gathers_per_micro_batch") * gather)
    if not hides:
        return seconds
    window = step_kernels_s * constant(HIDING_FRACTION, "hiding_fraction")
    return maximum(constant(0.0), seconds - window)


def _once(call: DataCall, ranks: int, network: Interconnect) -> Term:
    if not call.parameters.value:
        return ZERO
    return collective_s(call.operation, call.payload_bytes, ranks, network)


def group_network(inputs: TrainingInputs, *, stride: int, ranks: int) -> Interconnect:
    """The network as a group sees it whose ranks stand `stride` chips apart."""
    network = inputs.scaled_network
    inside = max(1, network.domain_size // stride)
    while ranks > inside and ranks % inside:
        inside -= 1  # ranks fill domains evenly
    return replace(network, domain_size=inside, stride=stride)


def _stack_leaf(inputs: TrainingInputs, name: str, value: float) -> Term:
    return leaf(value, name, kind="calibrated", source=inputs.stack.source)


def _on_tier(seconds: Term, *, ranks: int, domain_size: int) -> Split:
    if not seconds.value:
        return Split()
    return Split(scaleout=seconds) if ranks > domain_size else Split(scaleup=seconds)
