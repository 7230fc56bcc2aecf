"""Matrix products of a training step on the calibrated roofline, as kernels, experts and adapters use them.

A product takes its FLOP at the chip's fitted rate times what the stack's products sustain, or its bytes where
those take longer, and its kernel's launch and drain.
"""

from __future__ import annotations

from typing import Final

from simcore.compute.calibration import isolated_launch_s, rates
from simcore.compute.ops import Operator, bottleneck_stage, layer_operators
from simcore.compute.roofline import Rates
from simcore.parallelism import PipelineStage
from simcore.training.inputs import TrainingInputs
from simcore.training.split import ZERO, Split
from simcore.why import Term, constant, leaf, maximum, total

SKIPPED: Final = frozenset({"norms_and_activations", "sampling"})  # serving's; training moves its own bytes


def operators_of_layers(inputs: TrainingInputs) -> tuple[Operator, ...]:
    """Products of a layer of each kind, as forward runs them; bytes-only kernels are left out."""
    found = layer_operators(
        inputs.arch,
        inputs.chip,
        inputs.parallelism.of_one_rank,
        weights_dtype=inputs.spec.dtype,
        kv_dtype="bf16",
    )
    return tuple(op for op in found if op.name not in SKIPPED)


def gemm_rates(inputs: TrainingInputs, dtype: str) -> Rates:
    """The chip's calibrated rates, times what this stack's products sustain beside them."""
    reached = rates(inputs.chip, inputs.calibration, "gemm", dtype, name="gemm")
    ratio = inputs.stack.ratio(inputs.chip.slug, dtype)
    if ratio == 1.0:
        return reached
    sustained = leaf(
        ratio, f"training_{dtype}_ratio", kind="calibrated", source=inputs.stack.source, dimension="ratio"
    )
    return Rates(
        flop_per_s=(reached.flop_per_s * sustained).named("training_gemm_flop_per_s", "flop_per_s"),
        bytes_per_s=reached.bytes_per_s,
    )


def timed_products(inputs: TrainingInputs, operators: list[tuple[Operator, Term]], tokens: Term) -> Split:
    """All products, each so often: arithmetic, the bytes beyond it, launches."""
    compute, memory, launches = [], [], []
    for op, count in operators:
        reached = gemm_rates(inputs, op.dtype)
        busy_s = (op.flop(tokens) / reached.flop_per_s).named(f"{op.name}_compute_s", "s")
        moved_s = op.moved_bytes(tokens) / reached.bytes_per_s
        compute.append((count * busy_s).named(f"{op.name}_stage_compute_s", "s"))
        if moved_s.value > busy_s.value:
            memory.append(count * maximum(constant(0.0), moved_s - busy_s).named(f"{op.name}_hbm_s", "s"))
        launches.append(count * isolated_launch_s(inputs.calibration, op.operator_class, op.dtype))
    return Split(
        compute=total(*compute) if compute else ZERO,
        hbm=total(*memory) if memory else ZERO,
        overhead=total(*launches).named("launch_s") if launches else ZERO,
    )


def count_in_stage(inputs: TrainingInputs, op: Operator, stage: PipelineStage) -> Term:
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


def stream_bytes_per_s(inputs: TrainingInputs) -> Term:
    """HBM bandwidth that streaming kernels reach."""
    return rates(inputs.chip, inputs.calibration, "gemm", "bf16", name="gemm").bytes_per_s


def tp_term(inputs: TrainingInputs) -> Term:
    return inputs.leaf("tp", inputs.parallelism.tp_ranks, degree=True)
