"""The training step: kernels and collectives of `m` micro-batches, the pipeline's bubble, the optimiser.

    step = m · t + t·(p−1)/v + exposed data collectives + optimiser + overhead,   t = slowest stage's micro-batch

so bubble ÷ ideal is `(p−1)/(v·m)` and `training.bubble_fraction` is `(p−1)/(v·m+p−1)`. The tree's first level
is the split by resource; its parts sum to the step. Useful FLOP count every matrix product of the active
parameters three times (forward, two gradients) and attention over causal pairs; MFU is useful FLOP over peak ×
time × chips in the run, HFU adds what is computed again. The optimiser streams its states once: 30 bytes per
parameter that a chip updates. Limits: stages wait for the slowest; no checkpointing, no failures (goodput
stands beside), no data loading.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from simcore.compute.calibration import peak, rates
from simcore.compute.ops import bottleneck_stage
from simcore.parallelism import PipelineStage, pipeline_stages
from simcore.training.adapters import trained_parameters
from simcore.training.communication import data_collectives, layer_collectives
from simcore.training.experts import host_wait_s
from simcore.training.flop import recomputed_flop, useful_flop
from simcore.training.inputs import TrainingInputs
from simcore.training.kernels import StageKernels, stage_kernels
from simcore.training.split import RESOURCES, Split
from simcore.why import Term, constant, leaf, total

__all__ = ["RESOURCES", "TimedStage", "TrainingStep", "training_step"]

OPTIMIZER_BYTES: Final = 30.0  # fp32 copy and two moments read and written, gradient read, weights written


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedStage:
    """A stage with the time that one micro-batch takes in it; `micro_batch` is the sum of the other parts."""

    stage: PipelineStage
    kernels: StageKernels
    exchanged: Mapping[str, Split]
    predicting: Split  # further tokens
    host_wait_s: Term
    micro_batch: Split


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingStep:
    """One step's closed form. `split` sums to `step_s`."""

    step_s: Term
    split: Split
    slowest: TimedStage
    once: Mapping[str, Split]  # per step: data collectives, optimiser, what stands between steps
    token_per_s: Term
    mfu_fraction: Term
    hfu_fraction: Term
    bubble_fraction: Term
    exposed_communication_fraction: Term
    days: Term | None

    @property
    def terms(self) -> Mapping[str, Term]:
        """Metrics by id."""
        found = {
            "training.step_s": self.step_s,
            "training.token_per_s": self.token_per_s,
            "training.mfu_fraction": self.mfu_fraction,
            "training.hfu_fraction": self.hfu_fraction,
            "training.bubble_fraction": self.bubble_fraction,
            "training.exposed_communication_fraction": self.exposed_communication_fraction,
        }
        return found if self.days is None else found | {"training.days": self.days}


def training_step(inputs: TrainingInputs) -> TrainingStep:
    """Time of one optimiser step, with what follows from it."""
    slowest = _slowest_stage(inputs)
    count = inputs.micro_batch_count
    batches = leaf(
        count, "micro_batches", kind="derived", source="global batch ÷ (sequence × micro-batch × dp)"
    )
    per_batch = slowest.micro_batch
    running = per_batch.times(batches)
    once = _per_step(inputs, slowest, running)
    split = (running + _bubble(inputs, per_batch) + sum(once.values(), Split())).named("step")
    step = split.total.named("training.step_s", "s")
    tokens = inputs.leaf("global_batch_tokens", inputs.spec.global_batch_tokens)
    per_second = (tokens / step).named("training.token_per_s", "token_per_s")
    useful, again = useful_flop(inputs), recomputed_flop(inputs)
    attainable = (step * _peak(inputs) * constant(float(inputs.chip_count), "chips")).named(
        "peak_flop", "flop"
    )
    exchanged = total(split.scaleup, split.scaleout) / step
    return TrainingStep(
        step_s=step,
        split=split,
        slowest=slowest,
        once=once,
        token_per_s=per_second,
        mfu_fraction=(useful / attainable).named("training.mfu_fraction", "fraction"),
        hfu_fraction=((useful + again) / attainable).named("training.hfu_fraction", "fraction"),
        bubble_fraction=_bubble_fraction(inputs, batches),
        exposed_communication_fraction=exchanged.named("training.exposed_communication_fraction", "fraction"),
        days=_days(inputs, per_second),
    )


def _slowest_stage(inputs: TrainingInputs) -> TimedStage:
    """The stage with most layers, or the last one where the LM head makes it slower."""
    last = pipeline_stages(inputs.arch, inputs.parallelism.pp)[-1]
    fullest = bottleneck_stage(inputs.arch, inputs.parallelism.pp)
    timed = [_timed(inputs, stage) for stage in ([last] if fullest == last else [fullest, last])]
    return max(timed, key=lambda one: one.micro_batch.total.value)


def _timed(inputs: TrainingInputs, stage: PipelineStage) -> TimedStage:
    kernels = stage_kernels(inputs, stage, with_head=stage.is_last)
    exchanged = layer_collectives(inputs, stage, kernels)
    every = sum(exchanged.values(), Split())
    predicting = Split()
    if inputs.spec.multi_token_prediction:
        predicting = _predicting(inputs, stage, kernels, every)
    work = kernels.forward + kernels.backward + kernels.recomputed + every + predicting
    waited = host_wait_s(inputs, stage, work)
    return TimedStage(
        stage=stage,
        kernels=kernels,
        exchanged=exchanged,
        predicting=predicting,
        host_wait_s=waited,
        micro_batch=(work + Split(overhead=waited)).named("micro_batch"),
    )


def _predicting(
    inputs: TrainingInputs, stage: PipelineStage, kernels: StageKernels, exchanged: Split
) -> Split:
    """Layers that predict further tokens, each with a pass of the head; stages are balanced by hand around them."""
    layer = (kernels.layers + exchanged).times(constant(1.0 / stage.layers, "one_layer"))
    share = constant(inputs.arch.mtp_layers / inputs.parallelism.pp, "prediction_layers_per_stage")
    return (layer + kernels.head).times(share).named("multi_token_prediction")


def _bubble(inputs: TrainingInputs, per_batch: Split) -> Split:
    stages, virtual = inputs.parallelism.pp, inputs.spec.virtual_stages
    if stages == 1:
        return Split()
    waits = inputs.leaf("pp", stages, degree=True) - constant(1.0)
    return Split(
        bubble=waits / inputs.leaf("virtual_stages", virtual) * per_batch.total.named("micro_batch_s", "s")
    )


def _bubble_fraction(inputs: TrainingInputs, batches: Term) -> Term:
    waits = inputs.leaf("pp", inputs.parallelism.pp, degree=True) - constant(1.0)
    ideal = inputs.leaf("virtual_stages", inputs.spec.virtual_stages) * batches
    return (waits / (ideal + waits)).named("training.bubble_fraction", "fraction")


def _per_step(inputs: TrainingInputs, slowest: TimedStage, running: Split) -> dict[str, Split]:
    """What happens once per step: data collectives, optimiser, overhead."""
    kernels = slowest.kernels
    backward = kernels.backward + kernels.recomputed
    data = data_collectives(
        inputs,
        slowest.stage,
        forward_s=kernels.forward.total,
        backward_s=backward.total,
        step_kernels_s=running.kernels,
    )
    overhead = leaf(
        inputs.stack.step_overhead_s,
        "step_overhead_s",
        kind="assumption",
        source="gradient norm, loss scale, logging; between steps",
    )
    return {
        "data_collectives": data,
        "optimizer": Split(hbm=_optimizer_s(inputs, slowest.stage)),
        "between_steps": Split(overhead=overhead),
    }


def _optimizer_s(inputs: TrainingInputs, stage: PipelineStage) -> Term:
    dense, experts = trained_parameters(inputs, stage)
    owned = dense + experts if experts.value else dense
    if inputs.spec.zero_stage:
        ranks = inputs.parallelism.dp * inputs.parallelism.cp
        owned = owned / constant(float(ranks), "data_group_ranks")
    each = constant(OPTIMIZER_BYTES, "optimizer_bytes_moved_per_parameter")
    stream = rates(inputs.chip, inputs.calibration, "gemm", "bf16", name="gemm").bytes_per_s
    return (owned * each / stream).named("optimizer_s", "s")


def _peak(inputs: TrainingInputs) -> Term:
    return peak(inputs.chip, inputs.spec.dtype)


def _days(inputs: TrainingInputs, token_per_s: Term) -> Term | None:
    wanted = inputs.spec.total_tokens
    if wanted is None:
        return None
    every = inputs.leaf("total_tokens", wanted)
    return (every / token_per_s / constant(86_400.0, "seconds per day")).named("training.days", "")
