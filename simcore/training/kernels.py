"""Kernels of one micro-batch on one chip: forward, backward, and what is computed again.

Forward is the serving step's own operators at a training step's token count, `T = micro-batch × sequence ÷
cp` tokens per rank, on the calibrated roofline; backward is twice the forward for matrix products (gradients
of inputs and of weights) and for elementwise kernels. Attention costs per causal pair; flash's backward
computes the scores again (5 products to 2). `recompute: full` runs every layer's forward twice, `selective`
the core attention alone; flash attention keeps no scores, so there it costs and saves nothing.
Routed experts are in `experts.py`, adapters beside frozen weights in `adapters.py`; frozen products' backward
costs one forward. Limits: embedding lookup and dropout masks are inside the elementwise constant; window layers
cost their window's pairs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from simcore.catalog.kernels import Kernels
from simcore.compute.attention import Flash, Naive
from simcore.compute.ops import head_operators
from simcore.compute.stage_attention import StageAttention, stage_attention
from simcore.parallelism import PipelineStage
from simcore.training.adapters import adapter_stream_s
from simcore.training.experts import expert_products, expert_rows_s
from simcore.training.inputs import TrainingInputs
from simcore.training.products import (
    SKIPPED,
    count_in_stage,
    operators_of_layers,
    stream_bytes_per_s,
    timed_products,
    tp_term,
)
from simcore.training.split import ZERO, Split
from simcore.why import Term, constant, leaf, minimum, total

BACKWARD: Final = constant(2.0, "backward_over_forward")
FROZEN: Final = constant(1.0, "backward_over_forward_of_frozen_weights")
_BYTES: Final = constant(2.0, "activation_bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class StageKernels:
    """Kernel time of one micro-batch in one stage."""

    forward: Split
    backward: Split
    recomputed: Split
    products_s: Term  # forward matrix products of the layers: what tensor parallel collectives hide behind
    attention_s: Term  # forward core attention
    layers: Split  # all passes of the layers
    head: Split  # all passes of a head, whether it stands here or not


def stage_kernels(inputs: TrainingInputs, stage: PipelineStage, *, with_head: bool) -> StageKernels:
    """The kernels of a stage's layers, and of the LM head where it stands on this stage."""
    tokens = inputs.rank_tokens
    products = _products(inputs, stage, tokens)
    attention = core_attention(inputs, stage, tokens)
    elementwise = Split(hbm=elementwise_s(inputs, stage, tokens))
    if stage.moe_layers:
        products += expert_products(inputs, stage, tokens)
        elementwise += Split(hbm=expert_rows_s(inputs, stage, tokens))
    if inputs.spec.lora.rank:
        elementwise += Split(hbm=adapter_stream_s(inputs, stage, tokens))
    layers = (products + attention + elementwise).named("layers_forward")
    attention_backward = constant(inputs.stack.attention_backward_ratio, "attention_backward_ratio")
    of_products = FROZEN if inputs.spec.lora.rank else BACKWARD
    backward = products.times(of_products) + elementwise.times(BACKWARD) + attention.times(attention_backward)
    recomputed = _recomputed(inputs, layers, attention).named("recomputed")
    head = lm_head(inputs, tokens) if with_head else Split()
    return StageKernels(
        forward=(layers + head).named("forward"),
        backward=(backward + head.times(of_products)).named("backward"),
        recomputed=recomputed,
        products_s=products.total,
        attention_s=attention.total,
        layers=layers + backward + recomputed,
        head=(head if with_head else lm_head(inputs, tokens)).times(constant(1.0) + of_products),
    )


def _recomputed(inputs: TrainingInputs, layers: Split, attention: Split) -> Split:
    if inputs.spec.recompute == "full":
        return layers
    if inputs.spec.recompute == "selective" and inputs.stack.attention == "naive":
        return attention
    return Split()


def _products(inputs: TrainingInputs, stage: PipelineStage, tokens: Term) -> Split:
    """Matrix products of a stage's layers, forward, but for the routed experts'."""
    counted = [
        (op, count_in_stage(inputs, op, stage))
        for op in operators_of_layers(inputs)
        if op.operator_class != "moe"
    ]
    return timed_products(inputs, counted, tokens)


def lm_head(inputs: TrainingInputs, tokens: Term) -> Split:
    """LM head over every token, and the loss's passes over its 32-bit logits."""
    operators = head_operators(inputs.arch, inputs.parallelism)
    split = timed_products(inputs, [(op, op.count) for op in operators if op.name not in SKIPPED], tokens)
    passes = constant(16.0, "loss_bytes_per_logit")  # fp32 copy, maximum, exponentials and their sum
    logits = tokens * inputs.arch.leaf("vocab") / tp_term(inputs)
    loss_s = (passes * logits / stream_bytes_per_s(inputs)).named("loss_s", "s")
    return split + Split(hbm=loss_s)


def attention_cost(inputs: TrainingInputs, stage: PipelineStage) -> StageAttention:
    """Core attention of a stage's layers by pair; a stack's ratios stand to the plain roofline."""
    return stage_attention(
        inputs.arch,
        inputs.chip,
        replace(inputs.calibration, kernels=Kernels()),
        inputs.parallelism,
        stage=stage,
        kv_dtype="bf16",
        attention=Flash() if inputs.stack.attention == "flash" else Naive(),
        context_tokens=inputs.spec.sequence_length,
    )


def attention_keys(inputs: TrainingInputs, cost: StageAttention) -> tuple[Term, Term]:
    """Mean keys per query over all causal pairs: of whole contexts, and of windows."""
    mean_keys = (inputs.leaf("sequence_length", inputs.spec.sequence_length) / constant(2.0)).named(
        "mean_keys_per_query", "tokens"
    )
    if not cost.window_tokens:
        return mean_keys, ZERO
    return mean_keys, minimum(mean_keys, constant(float(cost.window_tokens), "window_tokens"))


def core_attention(inputs: TrainingInputs, stage: PipelineStage, tokens: Term) -> Split:
    """Core attention of a stage's layers, forward, over all causal pairs of the micro-batch."""
    stack, cost = inputs.stack, attention_cost(inputs, stage)
    keys, window_keys = attention_keys(inputs, cost)
    seconds = tokens * keys * cost.prefill_s_per_pair
    if cost.window_tokens:
        seconds = seconds + tokens * window_keys * cost.prefill_s_per_window_pair
    ratio = stack.ratio(inputs.chip.slug, "attention")
    if ratio != 1.0:
        seconds = seconds * leaf(
            ratio,
            "training_attention_ratio",
            kind="calibrated",
            source=stack.source,
            dimension="ratio",
        )
    seconds = seconds.named("core_attention_s", "s")
    busy = constant(cost.prefill_compute_fraction, "attention_compute_share")
    idle = constant(1.0 - cost.prefill_compute_fraction, "attention_memory_share")
    return Split(compute=seconds * busy, hbm=seconds * idle if idle.value else ZERO)


def elementwise_s(inputs: TrainingInputs, stage: PipelineStage, tokens: Term) -> Term:
    """Norms, residual adds, dropout and activations of the layers, forward: bytes only."""
    arch, tp = inputs.arch, tp_term(inputs)
    stream = constant(8.0, "stream_passes") * arch.leaf("hidden")
    if inputs.splits_sequence:
        stream = stream / tp
    passes = 3.0 if arch.gated_mlp else 2.0
    moved = [constant(float(stage.layers), "layers") * stream]
    if stage.dense_layers:
        width = constant(passes * stage.dense_layers, "mlp_passes") * arch.leaf("intermediate")
        moved.append(width / tp)
    ratio = leaf(
        inputs.stack.elementwise_ratio,
        "training_elementwise_ratio",
        kind="calibrated",
        source=inputs.stack.source,
        dimension="ratio",
    )
    per_token = _BYTES * total(*moved) * ratio
    return (tokens * per_token / stream_bytes_per_s(inputs)).named("elementwise_s", "s")
