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

from simcore.fabric.collectives import Interconnect, Operation, collective_s, point_to_point_s
from simcore.parallelism import PipelineStage
from simcore.training.adapters import trained_parameters
from simcore.training.experts import expert_exchange
from simcore.training.inputs import TrainingInputs
from simcore.training.kernels import StageKernels
from simcore.training.memory_parts import stage_parameters
from simcore.training.split import ZERO, Split
from simcore.why import Term, constant, leaf, maximum

_BYTES: Final = constant(2.0, "activation_bytes")
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
            inputs, stage, passes=_passes(inputs), kernels_s=kernels.forward.total + kernels.backward.total
        )
    if inputs.parallelism.cp > 1:
        found["context"] = _context(inputs, stage, kernels)
    if inputs.parallelism.pp > 1:
        found["pipeline"] = _pipeline(inputs)
    return found


def _passes(inputs: TrainingInputs) -> Term:
    """Forward, backward, and the forward that full recomputation repeats."""
    return constant(3.0 if inputs.spec.recompute == "full" else 2.0, "passes_over_layers")


def _activation_bytes(inputs: TrainingInputs) -> Term:
    return (_BYTES * inputs.rank_tokens * inputs.arch.leaf("hidden")).named("activation_payload_bytes")


def _tensor(inputs: TrainingInputs, stage: PipelineStage, kernels: StageKernels) -> Split:
    tp, network = inputs.parallelism.tp_ranks, inputs.scaled_network
    payload = _activation_bytes(inputs)
    if inputs.splits_sequence:
        once = collective_s("reduce_scatter", payload, tp, network) + collective_s(
            "all_gather", payload, tp, network
        )
    else:
        once = collective_s("all_reduce", payload, tp, network)
    # a layer's experts exchange by all-to-all where they are shared out, else like an MLP
    per_pass = 2 * stage.layers - (stage.moe_layers if inputs.parallelism.ep > 1 else 0)
    calls = constant(float(per_pass), "collectives_per_pass") * _passes(inputs)
    seconds = (calls * once).named("tensor_collectives_s", "s")
    if inputs.spec.overlap.tp:
        chunks = inputs.leaf("tp", tp, degree=True)
        behind = kernels.products_s * constant(2.0 + (inputs.spec.recompute == "full"), "passes_to_hide")
        rest = maximum(constant(0.0), seconds - seconds / chunks - behind)
        seconds = (seconds / chunks + rest).named("exposed_tensor_collectives_s", "s")
    return _on_tier(seconds, ranks=tp, domain_size=network.domain_size)


def _context(inputs: TrainingInputs, stage: PipelineStage, kernels: StageKernels) -> Split:
    arch, parallelism = inputs.arch, inputs.parallelism
    tp = inputs.leaf("tp", parallelism.tp_ranks, degree=True)
    heads = maximum(constant(1.0), arch.leaf("kv_heads") / tp)
    every_token = inputs.rank_tokens * inputs.leaf("cp", parallelism.cp, degree=True)
    payload = (constant(4.0, "k_and_v_bytes") * every_token * heads * arch.leaf("head_dim")).named(
        "gathered_kv_bytes"
    )
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
    payload = _activation_bytes(inputs)
    if parallelism.tp_ranks > 1:
        payload = payload / inputs.leaf("tp", parallelism.tp_ranks, degree=True)  # each rank sends its share
    stride = parallelism.tp_ranks * parallelism.cp * parallelism.dp
    crosses = stride >= inputs.network.domain_size
    network = inputs.scaled_network
    once = point_to_point_s(payload.named("stage_payload_bytes"), network, crosses_domain=crosses)
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
    parallelism = inputs.parallelism
    ranks = parallelism.dp * parallelism.cp
    held, trained = stage_parameters(inputs, stage), trained_parameters(inputs, stage)
    found = Split()
    for at, (name, group, stride) in enumerate(
        (
            ("data", ranks, parallelism.tp_ranks),
            ("expert_data", _expert_replicas(inputs), _expert_stride(inputs)),
        )
    ):
        if held[at].value and group > 1:
            network = group_network(inputs, stride=stride, ranks=group)
            windows = (forward_s, backward_s, step_kernels_s)
            seconds = _exposed(inputs, (held[at], trained[at]), group, network, windows)
            found += _on_tier(
                seconds.named(f"exposed_{name}_collectives_s", "s"),
                ranks=group,
                domain_size=network.domain_size,
            )
    return found


def _expert_replicas(inputs: TrainingInputs) -> int:
    parallelism = inputs.parallelism
    return parallelism.tp_ranks * parallelism.cp * parallelism.dp // inputs.expert_split


def _expert_stride(inputs: TrainingInputs) -> int:
    return inputs.expert_split


def _exposed(
    inputs: TrainingInputs,
    parameters: tuple[Term, Term],
    ranks: int,
    network: Interconnect,
    windows: tuple[Term, Term, Term],
) -> Term:
    """`parameters`: held, and those that are trained; `windows`: forward, backward, all kernels of the step."""
    stage, hides = inputs.spec.zero_stage, inputs.spec.overlap.dp
    (held, trained), (forward_s, backward_s, step_kernels_s) = parameters, windows

    def once(operation: Operation, bytes_each: Term, moved: Term = trained) -> Term:
        if not moved.value:
            return ZERO
        return collective_s(operation, (moved * bytes_each).named(f"{operation}_bytes"), ranks, network)

    gradient = _stack_leaf(inputs, "gradient_bytes", inputs.stack.gradient_bytes)
    micro_batches = constant(float(inputs.micro_batch_count), "micro_batches")
    if stage == 0:
        seconds = once("all_reduce", gradient)
        return maximum(constant(0.0), seconds - backward_s) if hides else seconds
    scatter = once("reduce_scatter", gradient)
    gather = once("all_gather", _BYTES, held if stage == 3 else trained)
    if stage == 1:
        if not hides:
            return scatter + gather
        return maximum(constant(0.0), scatter - backward_s) + maximum(constant(0.0), gather - forward_s)
    seconds = micro_batches * scatter + gather
    if stage == 3:
        seconds = micro_batches * (scatter + constant(2.0, "gathers_per_micro_batch") * gather)
    if not hides:
        return seconds
    window = step_kernels_s * constant(HIDING_FRACTION, "hiding_fraction")
    return maximum(constant(0.0), seconds - window)


def group_network(inputs: TrainingInputs, *, stride: int, ranks: int) -> Interconnect:
    """The network as a group sees it whose ranks stand `stride` chips apart."""
    network = inputs.scaled_network
    inside = max(1, network.domain_size // stride)
    while ranks > inside and ranks % inside:
        inside -= 1  # ranks fill domains evenly
    return replace(network, domain_size=inside)


def _stack_leaf(inputs: TrainingInputs, name: str, value: float) -> Term:
    return leaf(value, name, kind="calibrated", source=inputs.stack.source)


def _on_tier(seconds: Term, *, ranks: int, domain_size: int) -> Split:
    if not seconds.value:
        return Split()
    return Split(scaleout=seconds) if ranks > domain_size else Split(scaleup=seconds)
