"""Memory of one chip in training: weights, gradients, optimiser states, activations.

Per parameter: 2 bytes of weights, the stack's gradients (4, fp32), 12 of Adam's states (fp32 copy, two
moments); ZeRO 1 shards the states over the data group, 2 the gradients too, 3 the weights too (two gathered
layers stand beside the shard). With adapters, gradients and states are theirs alone. Activations per layer and
micro-batch, after Korthikanti et al. 2022:

    s·b·h (10 + 24/t + 5·a·s/(h·t)),  sequence parallel s·b·h/t (34 + 5·a·s/h),  selective 34·s·b·h/t

for a GPT layer; gated MLPs, grouped queries, experts and models without dropout change the counts of the same
terms; narrow formats keep the inputs of products as they were multiplied, and flash attention keeps no scores.
Full recomputation keeps each layer's input and one layer's whole.
A pipeline's first stage holds `p` micro-batches in flight, interleaved `p + (p−1)/v`; the last holds the
logits. The fullest of both decides. There is no KV cache. Limits: allocator fragmentation and communication
buffers are one assumed reserve; experts are balanced.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from simcore.catalog.types import BYTES_PER_ELEMENT
from simcore.compute.calibration import arithmetic_dtype
from simcore.parallelism import PipelineStage, pipeline_stages
from simcore.training.adapters import trained_parameters
from simcore.training.inputs import TrainingInputs
from simcore.training.memory_parts import stage_parameters
from simcore.why import Term, constant, leaf, total

RESERVED_BYTES: Final = 3 * 2**30
STATE_BYTES: Final = 12.0
_SIXTEEN_BIT: Final = constant(2.0, "bytes_per_16_bit_element")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingMemory:
    """The fullest chip's memory by use."""

    uses: Mapping[str, Term]  # weights, gradients, optimizer, activations, logits, reserved
    used: Term
    visible: Term
    free: Term

    @property
    def fits(self) -> bool:
        return self.free.value >= 0

    @property
    def binding(self) -> str:
        """The largest use."""
        return max(self.uses, key=lambda name: self.uses[name].value)


def training_memory(inputs: TrainingInputs) -> TrainingMemory:
    """Memory of the fullest stage's chips."""
    stages = pipeline_stages(inputs.arch, inputs.parallelism.pp)
    ends = (stages[0],) if len(stages) == 1 else (stages[0], stages[-1])
    candidates = [_stage_uses(inputs, stage) for stage in ends]
    uses = max(candidates, key=lambda found: sum(term.value for term in found.values()))
    used = total(*uses.values()).named("memory_bytes_per_chip", "bytes")
    visible = inputs.chip.leaf("hbm_visible_bytes")
    return TrainingMemory(
        uses=uses, used=used, visible=visible, free=(visible - used).named("free_bytes_per_chip", "bytes")
    )


def _stage_uses(inputs: TrainingInputs, stage: PipelineStage) -> dict[str, Term]:
    weights_held, trained = stage_parameters(inputs, stage), trained_parameters(inputs, stage)
    parallelism, zero = inputs.parallelism, inputs.spec.zero_stage
    dense_ranks = parallelism.dp * parallelism.cp
    expert_ranks = max(1, parallelism.tp_ranks * dense_ranks // inputs.expert_split)

    def held(counts: tuple[Term, Term], bytes_each: Term, name: str, *, sharded: bool) -> Term:
        dense, experts = counts
        parts = [_sharded(dense * bytes_each, dense_ranks if sharded else 1)]
        if experts.value:
            parts.append(_sharded(experts * bytes_each, expert_ranks if sharded else 1))
        return total(*parts).named(name, "bytes")

    gradient = leaf(
        inputs.stack.held_gradient_bytes, "held_gradient_bytes", kind="assumption", source=inputs.stack.name
    )
    states = constant(STATE_BYTES, "adam_bytes_per_parameter")
    weights = held(weights_held, _weight_bytes_each(inputs), "weight_bytes_per_chip", sharded=zero >= 3)
    if zero >= 3:
        weights = (weights + _gathered(stage, *weights_held)).named("weight_bytes_per_chip", "bytes")
    return {
        "weights": weights,
        "gradients": held(trained, gradient, "gradient_bytes_per_chip", sharded=zero >= 2),
        "optimizer": held(trained, states, "optimizer_bytes_per_chip", sharded=zero >= 1),
        "activations": _activations(inputs, stage),
        **({"logits": _logits(inputs)} if stage.is_last else {}),
        "reserved": leaf(
            RESERVED_BYTES,
            "reserved_bytes",
            kind="assumption",
            source="device context, communication buffers, fragmentation",
        ),
    }


def _weight_bytes_each(inputs: TrainingInputs) -> Term:
    """Trained weights at 16 bit; frozen ones as they are multiplied, as nothing updates them."""
    if not inputs.spec.lora.rank:
        return _SIXTEEN_BIT
    return constant(product_input_bytes(inputs), "bytes_per_frozen_weight")


def _sharded(held: Term, ranks: int) -> Term:
    return held if ranks == 1 else held / constant(float(ranks), "data_group_ranks")


def _gathered(stage: PipelineStage, dense: Term, experts: Term) -> Term:
    layers = constant(float(max(1, stage.layers)), "layers")
    whole = dense + experts if experts.value else dense
    return (constant(4.0, "two_layers_at_16_bit") * whole / layers).named("gathered_layers_bytes", "bytes")


def _activations(inputs: TrainingInputs, stage: PipelineStage) -> Term:
    """What the backward pass needs, for every micro-batch in flight."""
    layers = constant(float(stage.layers), "layers")
    flight = in_flight_term(inputs, stage)
    whole = layer_activation_bytes(inputs, stage)
    if inputs.spec.recompute == "full":
        kept = _SIXTEEN_BIT * _stream_elements(inputs)
        return (flight * layers * kept + whole).named("activation_bytes_per_chip", "bytes")
    return (flight * layers * whole).named("activation_bytes_per_chip", "bytes")


def in_flight_term(inputs: TrainingInputs, stage: PipelineStage) -> Term:
    """Micro-batches whose activations a stage holds at one time."""
    pp, virtual = inputs.parallelism.pp, inputs.spec.virtual_stages
    if pp == 1:
        return constant(1.0, "micro_batches_in_flight")
    depth = float(pp if stage.is_first else 1) + ((pp - 1) / virtual if virtual > 1 else 0.0)
    held = min(depth, float(inputs.micro_batch_count))
    return leaf(held, "micro_batches_in_flight", kind="derived", source="1F1B schedule", dimension="")


def _stream_elements(inputs: TrainingInputs) -> Term:
    """Elements of the residual stream that one chip keeps per layer."""
    stream = inputs.rank_tokens * inputs.arch.leaf("hidden")
    return (
        stream / inputs.leaf("tp", inputs.parallelism.tp_ranks, degree=True)
        if inputs.splits_sequence
        else stream
    )


def layer_activation_bytes(inputs: TrainingInputs, stage: PipelineStage) -> Term:
    """Bytes that one layer keeps of one micro-batch on one chip: the mean over the stage's layers."""
    arch, tokens = inputs.arch, inputs.rank_tokens
    tp = inputs.leaf("tp", inputs.parallelism.tp_ranks, degree=True)
    masks = 2.0 if inputs.stack.has_dropout else 0.0
    kept = product_input_bytes(inputs)
    # two norm inputs at 2 bytes, the inputs of attention and MLP, two dropout masks at 1
    stream = constant(4.0 + masks + 2 * kept, "stream_bytes_per_hidden") * _stream_elements(inputs)
    query, key = arch.leaf("heads") * arch.leaf("head_dim"), arch.leaf("kv_heads") * arch.leaf("head_dim")
    split = constant(2.0 + kept, "query_and_output_bytes") * query
    split = split + constant(4.0, "key_and_value_bytes") * key
    split = split + _mlp_bytes_per_token(inputs, stage)
    per_layer = stream + tokens * split / tp
    scores = _score_bytes(inputs)
    if scores is not None:
        per_layer = per_layer + scores
    return per_layer.named("activation_bytes_per_layer", "bytes")


def product_input_bytes(inputs: TrainingInputs) -> float:
    """Bytes per element in which the inputs of matrix products are kept: as they were multiplied."""
    return BYTES_PER_ELEMENT[arithmetic_dtype(inputs.chip, inputs.spec.dtype)]


def _mlp_bytes_per_token(inputs: TrainingInputs, stage: PipelineStage) -> Term:
    """Inputs of the activation and of the second product; experts keep them for every chosen expert."""
    arch = inputs.arch
    kept = product_input_bytes(inputs)
    each = constant((4.0 if arch.gated_mlp else 2.0) + kept, "bytes_per_mlp_column")
    dense_share = stage.dense_layers / max(1, stage.layers)
    parts = []
    if dense_share:
        parts.append(constant(dense_share, "share_of_dense_layers") * each * arch.leaf("intermediate"))
    if stage.moe_layers:
        routed = arch.leaf("experts_per_token") * (
            each * arch.leaf("moe_intermediate")
            + constant(2.0 + kept, "dispatched_bytes") * arch.leaf("hidden")
        )
        if arch.shared_intermediate:
            routed = routed + each * arch.leaf("shared_intermediate")
        parts.append(constant(1.0 - dense_share, "share_of_expert_layers") * routed)
    return parts[0] if len(parts) == 1 else total(*parts)


def _score_bytes(inputs: TrainingInputs) -> Term | None:
    """Scores that naive attention keeps where they are not recomputed: 5·a·s per token with dropout."""
    if inputs.stack.attention == "flash" or inputs.spec.recompute == "selective":
        return None
    arch = inputs.arch
    each = constant(5.0 if inputs.stack.has_dropout else 2.0, "bytes_per_score")
    keys = inputs.leaf("sequence_length", inputs.spec.sequence_length)
    tp = inputs.leaf("tp", inputs.parallelism.tp_ranks, degree=True)
    return inputs.rank_tokens * each * arch.leaf("heads") * keys / tp


def _logits(inputs: TrainingInputs) -> Term:
    """32-bit logits and their 16-bit gradient, split by vocabulary."""
    tp = inputs.leaf("tp", inputs.parallelism.tp_ranks, degree=True)
    each = constant(6.0, "bytes_per_logit")
    return (each * inputs.rank_tokens * inputs.arch.leaf("vocab") / tp).named("logit_bytes_per_chip", "bytes")


def memory_rows(memory: TrainingMemory) -> list[dict[str, Any]]:
    """The waterfall: what the driver shows, what is used, what is left."""
    notes = {
        "weights": "16 bit",
        "optimizer": "fp32 copy and two moments",
        "activations": "kept for the backward pass",
        "logits": "LM head's output and its gradient",
        "reserved": "device context, communication buffers",
    }
    rows = [("visible", memory.visible.value, "total", "what the driver reports")]
    rows += [(name, term.value, "use", notes.get(name, "")) for name, term in memory.uses.items()]
    rows.append(("free", memory.free.value, "free", ""))
    return [{"item": item, "bytes": value, "kind": kind, "note": note} for item, value, kind, note in rows]
