"""One forward step for every batch size at once: the only physics that the serving engine reads.

    step = linear_s[tokens] + head_s[sampled] + comm_s[tokens] + attention + overhead

tokens = decode sequences + prefill tokens of the iteration, sampled = decode sequences + prompts that end
in it. Each array is evaluated once per plan from the operators of `ops.py`, vectorised over tokens; a
test holds it against the expression trees of `steps.py`. Where experts are unbalanced all chips wait for the
busiest: a part of comm_s, as are dispatch and combine between data parallel ranks. With pipeline stages the
arrays describe the slowest stage. Entry 0 is an iteration that does not run and costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Final

import numpy as np

from simcore.catalog.types import Calibration, Chip, LlmArchitecture, StepOverhead
from simcore.compute.attention import Attention, Flash
from simcore.compute.calibration import (
    engine_overhead,
    indexer_launch_s,
    overhead_leaf,
    quantisation_launch_s,
    step_launch_s,
)
from simcore.compute.operator_time import later_s, operator_paces, operator_time
from simcore.compute.ops import (
    Operator,
    bottleneck_stage,
    flop_per_token,
    head_operators,
    layer_operators,
)
from simcore.compute.roofline import Floats
from simcore.compute.stage_attention import stage_attention
from simcore.parallelism import Parallelism
from simcore.why import Term, constant, leaf, total


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTimeTable:
    """Step time of one replica lane; arrays are float64 in seconds or bytes."""

    linear_s: Floats  # [max_tokens+1] weights, norms and launches of a step with n tokens, without LM head
    head_s: Floats  # [max_sequences+1] LM head and sampling for n sampled sequences
    comm_s: Floats  # [max_tokens+1] exposed collectives, and ranks waiting for each other
    scaleout_s: Floats | None = None  # of comm_s, what crosses scale-up domains; None: nothing
    decode_attention_s_per_token: float  # per context token, all full-attention layers, summed over sequences
    decode_attention_s_per_window_token: float  # per min(context, window) token, all window layers
    window_tokens: int  # 0: no window layers
    decode_attention_s_per_sequence: float
    decode_attention_s: float  # fixed, when any decode sequence is in the step
    prefill_attention_s_per_token_context: float  # × Σ chunk·(done + chunk/2)
    prefill_attention_s_per_window_token: float  # × Σ chunk·min(window, done + chunk/2)
    prefill_attention_s: float  # fixed, when any prefill chunk is in the step: launches outside of graphs
    overhead_s: float  # host work per iteration
    overhead_s_per_sequence: float
    front_end_s: float = 0.0  # of a request, outside of all steps
    verified_tokens: int = 1  # that a decoding sequence puts into a step; with speculation its drafts too
    gained_tokens: float = 1.0  # that it gets of a step in the mean
    head_comm_s: Floats | None = None  # of head_s, the collectives of draft passes
    # attribution: flop/(e_c·peak); what memory adds to it; launches, and what tiles and waves leave idle.
    # They sum to linear_s; the head's remainder is its idle tiles.
    linear_compute_s: Floats
    linear_hbm_s: Floats
    linear_launch_s: Floats
    head_compute_s: Floats
    head_hbm_s: Floats
    decode_attention_compute_fraction: float = 0.0  # of the decode attention time
    prefill_attention_compute_fraction: float = 1.0
    flop_per_token: float
    flop_per_context_token: float
    head_flop_per_sequence: float
    weight_bytes_per_step: Floats  # [max_tokens+1]
    kv_bytes_per_context_token: float


_NOT_OF_STEP: Final = frozenset({"window_tokens", "front_end_s", "verified_tokens", "gained_tokens"})
OF_STEP: Final = frozenset(
    field.name
    for field in fields(StepTimeTable)
    if not field.name.endswith("_fraction") and field.name not in _NOT_OF_STEP
)


def scaled(table: StepTimeTable, factors: Mapping[str, float]) -> StepTimeTable:
    """The table with these of its times and work, by name, so many times as large."""
    values = {name: getattr(table, name) for name in factors}
    return replace(
        table, **{name: value * factors[name] for name, value in values.items() if value is not None}
    )


def build_step_table(
    arch: LlmArchitecture,
    chip: Chip,
    calibration: Calibration,
    parallelism: Parallelism,
    *,
    weights_dtype: str,
    kv_dtype: str,
    max_tokens: int,
    max_sequences: int,
    communication_s: Floats,
    exchange_s: Floats | None = None,
    attention: Attention | None = None,
    engine: str = "",
) -> StepTimeTable:
    """The table of one replica lane. `communication_s` (all-reduces) and `exchange_s` (tokens on their way to
    experts) have max_tokens + 1 entries, from the fabric; `engine` ("vLLM 0.19") chooses the overheads, the
    chip's default ones where empty or not measured."""
    assert communication_s.shape == (max_tokens + 1,), "one communication time per token count"
    layers = layer_operators(arch, chip, parallelism, weights_dtype=weights_dtype, kv_dtype=kv_dtype)
    heads = head_operators(arch, parallelism)
    stage = bottleneck_stage(arch, parallelism.pp)
    tokens = np.arange(max_tokens + 1, dtype=np.float64)
    linear = _sum_operators(layers, tokens, chip, calibration)
    head = _sum_operators(heads, np.arange(max_sequences + 1, dtype=np.float64), chip, calibration)
    overhead = engine_overhead(calibration, engine)
    comm_s = communication_s + skew(meeting_ranks(arch, parallelism), overhead, stage.depth).value
    if exchange_s is not None:
        comm_s = comm_s + exchange_s
    if parallelism.expert_imbalance_ratio != 1:
        comm_s = comm_s + _expert_waits_s(layers, tokens, chip, calibration)
    kernels_s = linear.whole_s - (linear.compute_s + linear.hbm_s)
    launch_s = kernels_s + launch(layers, calibration, stage.depth, overhead).value
    if overhead.eager_per_layer_s:
        host_s = eager_floor(overhead, stage.depth).value
        launch_s = np.maximum(launch_s, host_s - linear.compute_s - linear.hbm_s)
    launch_s[0] = comm_s[0] = 0.0
    cost = stage_attention(
        arch,
        chip,
        calibration,
        parallelism,
        stage=stage,
        kv_dtype=kv_dtype,
        attention=attention or Flash(),
        context_tokens=max_tokens,
    )
    return StepTimeTable(
        linear_s=linear.compute_s + linear.hbm_s + launch_s,
        head_s=head.whole_s,
        comm_s=comm_s,
        decode_attention_s_per_token=cost.decode_s_per_token.value,
        decode_attention_s_per_window_token=cost.decode_s_per_window_token.value,
        window_tokens=cost.window_tokens,
        decode_attention_s_per_sequence=cost.decode_s_per_sequence.value,
        decode_attention_s=0.0,  # its launch is one of the layer's kernels: see calibration.py
        prefill_attention_s_per_token_context=cost.prefill_s_per_pair.value,
        prefill_attention_s_per_window_token=cost.prefill_s_per_window_pair.value,
        prefill_attention_s=prefill_launch(overhead, stage.depth).value,
        overhead_s=overhead_leaf(overhead, "per_iteration_s").value,
        overhead_s_per_sequence=overhead_leaf(overhead, "per_sequence_s").value,
        front_end_s=overhead.per_request_s,
        linear_compute_s=linear.compute_s,
        linear_hbm_s=linear.hbm_s,
        linear_launch_s=launch_s,
        head_compute_s=head.compute_s,
        head_hbm_s=head.hbm_s,
        decode_attention_compute_fraction=cost.decode_compute_fraction,
        prefill_attention_compute_fraction=cost.prefill_compute_fraction,
        flop_per_token=flop_per_token(layers).value,
        flop_per_context_token=cost.decode_flop_per_token.value,
        head_flop_per_sequence=flop_per_token(heads).value,
        weight_bytes_per_step=linear.weight_bytes,
        kv_bytes_per_context_token=cost.kv_bytes_per_token.value,
    )


def launch(
    operators: Sequence[Operator],
    calibration: Calibration,
    layers: float,
    overhead: StepOverhead | None = None,
) -> Term:
    """Launch time of a step (see calibration.py): per layer, for quantised activations, experts
    and indexers."""
    depth = leaf(layers, "layers_per_stage", kind="derived", source="pipeline stages", dimension="count")
    terms = [depth * overhead_leaf(overhead or calibration.step_overhead, "per_layer_s")]
    narrow = {op.dtype for op in operators if op.operator_class == "gemm"} - {"bf16"}
    terms += [depth * quantisation_launch_s(calibration, dtype) for dtype in sorted(narrow)]
    terms += [
        op.count * step_launch_s(calibration, op.operator_class, op.fit_dtype)
        for op in operators
        if op.operator_class == "moe"
    ]
    terms += [op.count * indexer_launch_s() for op in operators if op.name == "index_query"]
    whole = total(*terms)
    if calibration.latency_ratio != 1.0:
        whole = whole * leaf(calibration.latency_ratio, "latency_ratio", kind="assumption", source="tried")
    return whole.named("launch_s", "s")


def eager_floor(overhead: StepOverhead, layers: float) -> Term:
    """Layers of an engine without graphs: the host cannot launch them faster."""
    depth = leaf(layers, "layers_per_stage", kind="derived", source="pipeline stages", dimension="count")
    return (depth * overhead_leaf(overhead, "eager_per_layer_s")).named("eager_host_s", "s")


def prefill_launch(overhead: StepOverhead, layers: float) -> Term:
    """Layers of an iteration with prompts, launched from the host where graphs hold decode steps alone."""
    depth = leaf(layers, "layers_per_stage", kind="derived", source="pipeline stages", dimension="count")
    return (depth * overhead_leaf(overhead, "per_prefill_layer_s")).named("prefill_launch_s", "s")


def meeting_ranks(arch: LlmArchitecture, parallelism: Parallelism) -> int:
    """Chips of a stage that wait for each other in every layer: data parallel ranks meet at their experts."""
    return parallelism.expert_chip_count if arch.is_moe else parallelism.tp_ranks


def skew(ranks: int, overhead: StepOverhead, layers: float) -> Term:
    """Time that ranks wait for each other beside the collectives themselves: the slowest of more ranks is
    later, by one constant per doubling (fitted on tensor parallel ones)."""
    depth = leaf(layers, "layers_per_stage", kind="derived", source="pipeline stages", dimension="count")
    doublings = constant(math.log2(ranks), "log2(tp)")
    return (doublings * depth * overhead_leaf(overhead, "rank_skew_s")).named("rank_skew_s_per_step", "s")


def _expert_waits_s(
    operators: Sequence[Operator], tokens: Floats, chip: Chip, calibration: Calibration
) -> Floats:
    """How much later than the mean chip the one with the busiest experts is, over all layers."""
    paces = operator_paces(operators, chip, calibration)
    waits_s = np.zeros_like(tokens)
    for op in operators:
        if op.imbalance is not None:
            waits_s += op.count.value * later_s(op, tokens, paces[op.operator_class, op.dtype])
    return waits_s


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sum:
    compute_s: Floats
    hbm_s: Floats
    whole_s: Floats
    weight_bytes: Floats


def _sum_operators(
    operators: Sequence[Operator], tokens: Floats, chip: Chip, calibration: Calibration
) -> _Sum:
    """Arithmetic, the wait that memory adds, the whole, and weight bytes, over operators and layers."""
    compute, hbm, whole, weights = (np.zeros_like(tokens) for _ in range(4))
    paces = operator_paces(operators, chip, calibration)
    for op in operators:
        found = operator_time(op, tokens, paces[op.operator_class, op.dtype])
        compute += op.count.value * found.arithmetic_s
        hbm += op.count.value * np.maximum(found.memory_s - found.arithmetic_s, 0.0)
        whole += op.count.value * found.whole_s
        if op.weight_bytes.value:
            weights += op.count.value * op.read_weight_bytes(tokens)
    for array in (compute, hbm, whole, weights):
        array[0] = 0.0
    return _Sum(compute_s=compute, hbm_s=hbm, whole_s=whole, weight_bytes=weights)
