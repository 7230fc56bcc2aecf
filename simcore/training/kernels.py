"""Kernels of one micro-batch on one chip: forward, backward, and what is computed again.

Forward is the serving step's own operators at a training step's token count, `T = micro-batch × sequence ÷
cp` tokens per rank, on the calibrated roofline; backward is twice the forward for matrix products (gradients
of inputs and of weights) and for elementwise kernels. Attention costs per causal pair; flash's backward
computes the scores again (5 products to 2). `recompute: full` runs every layer's forward twice, `selective`
the core attention alone; flash attention keeps no scores, so there it costs and saves nothing.
Each product pays its kernel's fitted launch and drain. Limits: embedding lookup and dropout masks are inside
the elementwise constant; experts are balanced; window layers cost their window's pairs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from simcore.catalog.kernels import Kernels
from simcore.compute.attention import Flash, Naive
from simcore.compute.calibration import isolated_launch_s, rates
from simcore.compute.ops import Operator, bottleneck_stage, head_operators, layer_operators
from simcore.compute.roofline import Rates
from simcore.compute.stage_attention import stage_attention
from simcore.parallelism import PipelineStage
from simcore.training.inputs import TrainingInputs
from simcore.training.split import ZERO, Split
from simcore.why import Term, constant, leaf, maximum, minimum, total

_BACKWARD: Final = constant(2.0, "backward_over_forward")
_SKIPPED: Final = frozenset({"norms_and_activations", "sampling"})  # serving's; training moves its own bytes
_BYTES: Final = constant(2.0, "activation_bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class StageKernels:
    """Kernel time of one micro-batch in one stage."""

    forward: Split
    backward: Split
    recomputed: Split
    products_s: Term  # forward matrix products of the layers: what tensor parallel collectives hide behind
    attention_s: Term  # forward core attention


def stage_kernels(inputs: TrainingInputs, stage: PipelineStage, *, with_head: bool) -> StageKernels:
    """The kernels of a stage's layers, and of the LM head where it stands on this stage."""
    tokens = inputs.rank_tokens
    products = _products(inputs, stage, tokens)
    attention = _attention(inputs, stage, tokens)
    elementwise = Split(hbm=_elementwise_s(inputs, stage, tokens))
    layers = (products + attention + elementwise).named("layers_forward")
    attention_backward = constant(inputs.stack.attention_backward_ratio, "attention_backward_ratio")
    backward = (products + elementwise).times(_BACKWARD) + attention.times(attention_backward)
    head = _head(inputs, tokens) if with_head else Split()
    return StageKernels(
        forward=(layers + head).named("forward"),
        backward=(backward + head.times(_BACKWARD)).named("backward"),
        recomputed=_recomputed(inputs, layers, attention).named("recomputed"),
        products_s=products.total,
        attention_s=attention.total,
    )


def _recomputed(inputs: TrainingInputs, layers: Split, attention: Split) -> Split:
    if inputs.spec.recompute == "full":
        return layers
    if inputs.spec.recompute == "selective" and inputs.stack.attention == "naive":
        return attention
    return Split()


def gemm_rates(inputs: TrainingInputs, operator_class: str, dtype: str) -> Rates:
    """The chip's calibrated rates, times what this stack's products sustain beside them."""
    reached = rates(
        inputs.chip,
        inputs.calibration,
        "moe" if operator_class == "moe" else "gemm",
        dtype,
        name="experts" if operator_class == "moe" else "gemm",
    )
    key = f"moe_{dtype}" if operator_class == "moe" else dtype
    ratio = inputs.stack.ratio(inputs.chip.slug, key)
    if ratio == 1.0:
        return reached
    sustained = leaf(
        ratio, f"training_{key}_ratio", kind="calibrated", source=inputs.stack.source, dimension="ratio"
    )
    return Rates(
        flop_per_s=(reached.flop_per_s * sustained).named("training_gemm_flop_per_s", "flop_per_s"),
        bytes_per_s=reached.bytes_per_s,
    )


def _products(inputs: TrainingInputs, stage: PipelineStage, tokens: Term) -> Split:
    """Matrix products of a stage's layers, forward."""
    operators = layer_operators(
        inputs.arch, inputs.chip, inputs.parallelism, weights_dtype=inputs.spec.dtype, kv_dtype="bf16"
    )
    counted = [(op, _count(inputs, op, stage)) for op in operators if op.name not in _SKIPPED]
    return _run(inputs, counted, tokens)


def _head(inputs: TrainingInputs, tokens: Term) -> Split:
    """LM head over every token, and the loss's passes over its 32-bit logits."""
    operators = head_operators(inputs.arch, inputs.parallelism)
    split = _run(inputs, [(op, op.count) for op in operators if op.name not in _SKIPPED], tokens)
    passes = constant(16.0, "loss_bytes_per_logit")  # fp32 copy, maximum, exponentials and their sum
    logits = tokens * inputs.arch.leaf("vocab") / _tp(inputs)
    loss_s = (passes * logits / _stream(inputs)).named("loss_s", "s")
    return split + Split(hbm=loss_s)


def _run(inputs: TrainingInputs, operators: list[tuple[Operator, Term]], tokens: Term) -> Split:
    compute, memory, launches = [], [], []
    for op, count in operators:
        reached = gemm_rates(inputs, op.operator_class, op.dtype)
        busy_s = (op.flop(tokens) / reached.flop_per_s).named(f"{op.name}_compute_s", "s")
        moved_s = op.moved_bytes(tokens) / reached.bytes_per_s
        compute.append((count * busy_s).named(f"{op.name}_stage_compute_s", "s"))
        if moved_s.value > busy_s.value:
            memory.append(count * maximum(constant(0.0), moved_s - busy_s).named(f"{op.name}_hbm_s", "s"))
        launches.append(count * isolated_launch_s(inputs.calibration, op.operator_class, op.dtype))
    return Split(
        compute=total(*compute),
        hbm=total(*memory) if memory else ZERO,
        overhead=total(*launches).named("launch_s"),
    )


def _count(inputs: TrainingInputs, op: Operator, stage: PipelineStage) -> Term:
    """How often a stage runs an operator, which counts for the stage with most layers."""
    fullest = bottleneck_stage(inputs.arch, inputs.parallelism.pp)
    if stage.layers == fullest.layers:
        return op.count
    share = leaf(
        stage.layers / fullest.layers,
        "share_of_fullest_stage",
        kind="derived",
        source="layers of the stage over those of the fullest",
        dimension="fraction",
    )
    return op.count * share


def _attention(inputs: TrainingInputs, stage: PipelineStage, tokens: Term) -> Split:
    """Core attention of a stage's layers, forward, over all causal pairs of the micro-batch."""
    stack = inputs.stack
    cost = stage_attention(
        inputs.arch,
        inputs.chip,
        replace(inputs.calibration, kernels=Kernels()),  # a stack's ratios stand to the plain roofline
        inputs.parallelism,
        stage=stage,
        kv_dtype="bf16",
        attention=Flash() if stack.attention == "flash" else Naive(),
        context_tokens=inputs.spec.sequence_length,
    )
    mean_keys = (inputs.leaf("sequence_length", inputs.spec.sequence_length) / constant(2.0)).named(
        "mean_keys_per_query", "tokens"
    )
    seconds = tokens * mean_keys * cost.prefill_s_per_pair
    if cost.window_tokens:
        keys = minimum(mean_keys, constant(float(cost.window_tokens), "window_tokens"))
        seconds = seconds + tokens * keys * cost.prefill_s_per_window_pair
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


def _elementwise_s(inputs: TrainingInputs, stage: PipelineStage, tokens: Term) -> Term:
    """Norms, residual adds, dropout and activations of the layers, forward: bytes only."""
    arch, tp = inputs.arch, _tp(inputs)
    stream = constant(8.0, "stream_passes") * arch.leaf("hidden")
    if inputs.splits_sequence:
        stream = stream / tp
    passes = 3.0 if arch.gated_mlp else 2.0
    moved = [constant(float(stage.layers), "layers") * stream]
    if stage.dense_layers:
        width = constant(passes * stage.dense_layers, "mlp_passes") * arch.leaf("intermediate")
        moved.append(width / tp)
    if stage.moe_layers:
        chosen = arch.leaf("experts_per_token") * arch.leaf("moe_intermediate")
        moved.append(constant(passes * stage.moe_layers, "expert_passes") * chosen / tp)
    ratio = leaf(
        inputs.stack.elementwise_ratio,
        "training_elementwise_ratio",
        kind="calibrated",
        source=inputs.stack.source,
        dimension="ratio",
    )
    per_token = _BYTES * total(*moved) * ratio
    return (tokens * per_token / _stream(inputs)).named("elementwise_s", "s")


def _stream(inputs: TrainingInputs) -> Term:
    """HBM bandwidth that streaming kernels reach."""
    return rates(inputs.chip, inputs.calibration, "gemm", "bf16", name="gemm").bytes_per_s


def _tp(inputs: TrainingInputs) -> Term:
    return inputs.leaf("tp", inputs.parallelism.tp_ranks, degree=True)
