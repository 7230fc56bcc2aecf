"""The memory of one pipeline rank: from what the driver shows to pages of KV cache.

    budget     = gpu_memory_utilization × visible memory
    activation = max(c·4·max_num_seqs·vocab + 2·mbt·hidden,  2·mbt·(g·inter/tp + 3·hidden)) + MoE workspace
    KV         = budget − weights − rotary table − activation − non-torch
    blocks     = floor(KV / page),  page = block × KV bytes per token and layer × layers of a group

(vLLM; c copies of the logits only on the rank that samples, mbt = max_num_batched_tokens.) Layers with
full and with window attention share one pool of pages: group size min(full, window), `ceil` groups of
each. SGLang: KV = fraction × free before load − weights; TensorRT-LLM: KV = 0.9 × free after load.
Models that hold a state per sequence (recurrent layers, or the local windows beside compressed entries) are
affine: `bytes = sequences · state + tokens · slope`. States of max_num_seqs sequences are set aside, at
most half of the KV memory; page = block × slope of all layers. Where no layer keeps the whole context there
is no slope: as many whole sequences as states fit, at most max_num_seqs.
Data parallel ranks share the weights of experts, and the rows in their workspace. Limits: CUDA graphs are captured
outside this budget; buffers that a dispatch registers with the network and the vision encoder's cache are not
counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Final, Literal

from simcore.memory.draft import draft_bytes, with_draft
from simcore.memory.pages import (
    affine_page_bytes,
    grows_with_tokens,
    is_affine,
    layer_groups,
    page_bytes,
    state_bytes,
)
from simcore.memory.request import MemoryRequest, block_size_leaf, input_leaf, tp_leaf
from simcore.memory.weights import rank_weight_bytes, rotary_bytes
from simcore.parallelism import PipelineStage
from simcore.why import Term, constant, floor, leaf, maximum, minimum, total

ActivationTerm = Literal["logits", "mlp", "none"]
_TRT_FREE_FRACTION: Final = 0.9
_MOST_STATE_FRACTION: Final = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class RankBudget:
    """Memory of one pipeline stage's chips."""

    stage: PipelineStage
    visible_bytes: Term
    budget_bytes: Term
    weight_bytes: Term
    draft_bytes: Term  # weights of a draft model
    rotary_bytes: Term
    activation_bytes: Term
    activation_binds: ActivationTerm
    moe_workspace_bytes: Term
    non_torch_bytes: Term
    kv_bytes: Term
    state_bytes: Term  # of this, set aside for the states of running sequences
    state_bytes_per_sequence: Term
    page_bytes: Term
    group_count: int
    block_count: Term
    token_capacity: Term
    left_bytes: (
        Term  # of the visible memory, taken by nobody; negative where more was asked for than there is
    )


def rank_budget(request: MemoryRequest, stage: PipelineStage) -> RankBudget:
    arch, chip, engine = request.arch, request.chip, request.engine
    visible = chip.leaf("hbm_visible_bytes")
    utilization = input_leaf(
        request.gpu_memory_utilization, "gpu_memory_utilization", "serving.kv", "fraction"
    )
    budget = (utilization * visible).named("memory_budget_bytes", "bytes")
    weights = rank_weight_bytes(arch, request.parallelism, stage, weights_dtype=request.weights_dtype)
    rotary = rotary_bytes(arch)
    activation, binds = _activation(request, stage)
    workspace = _moe_workspace(request, stage)
    parallel = request.parallelism.tp_ranks > 1 or (request.parallelism.dp > 1 and arch.is_moe)
    non_torch = leaf(
        engine.non_torch_bytes_parallel if parallel else engine.non_torch_bytes,
        "non_torch_bytes",
        kind="calibrated",
        source=engine.source,
    )
    draft = draft_bytes(request)
    beside = (draft,) if request.draft else ()
    used = total(weights, rotary, activation, workspace, non_torch, *beside).named("reserved_bytes", "bytes")
    if request.kv_cache_memory_bytes is not None:
        kv = input_leaf(request.kv_cache_memory_bytes, "kv_cache_memory_bytes", "serving", "bytes")
    elif engine.family == "TensorRT-LLM":
        kv = constant(_TRT_FREE_FRACTION, "free_memory_fraction") * (visible - used)
    else:
        kv = budget - used
    kv = kv.named("kv_bytes_per_chip", "bytes")
    per_sequence = state_bytes(request, stage)
    state = _reserved_states(request, kv, per_sequence)
    if is_affine(arch):
        groups, page = 1, with_draft(request, affine_page_bytes(request, stage), 1)
        blocks = _blocks(request, kv - state, page)
        if not grows_with_tokens(arch) and request.num_gpu_blocks_override is None:
            blocks = _blocks_of_states(request, state, per_sequence)
    else:
        size, groups = layer_groups(stage, arch)
        page = with_draft(request, page_bytes(request, size), groups)
        blocks = _blocks(request, kv, page)
    if request.num_gpu_blocks_override is not None:
        kv = (state + blocks * page).named("kv_bytes_per_chip", "bytes")
    # a token needs one block's slot in every group, so groups share the blocks out evenly
    shared = floor(blocks / constant(float(groups), "layer_groups")) if groups > 1 else blocks
    return RankBudget(
        stage=stage,
        visible_bytes=visible,
        budget_bytes=budget,
        weight_bytes=weights,
        draft_bytes=draft,
        rotary_bytes=rotary,
        activation_bytes=activation,
        activation_binds=binds,
        moe_workspace_bytes=workspace,
        non_torch_bytes=non_torch,
        kv_bytes=kv,
        state_bytes=state,
        state_bytes_per_sequence=per_sequence,
        page_bytes=page,
        group_count=groups,
        block_count=blocks,
        token_capacity=(shared * block_size_leaf(request)).named("kv_token_capacity", "tokens"),
        left_bytes=(visible - used - kv).named("left_bytes", "bytes"),
    )


def _activation(request: MemoryRequest, stage: PipelineStage) -> tuple[Term, ActivationTerm]:
    """Peak of the profiling run, and which of its two terms is the larger."""
    arch, engine = request.arch, request.engine
    if engine.family != "vLLM":
        return constant(0.0, "activation_bytes"), "none"
    tokens = input_leaf(
        request.batched_tokens, "max_num_batched_tokens", "serving.scheduler", "tokens"
    ) * constant(2.0, "bytes_per_16_bit_element")
    hidden, tp = arch.leaf("hidden"), tp_leaf(request)
    matrices = constant(3.0 if arch.gated_mlp else 2.0, "mlp_buffers")
    mlp = (tokens * (matrices * arch.leaf("intermediate") / tp + constant(3.0) * hidden)).named(
        "mlp_activation_bytes", "bytes"
    )
    if not stage.is_last:
        return mlp.named("activation_bytes", "bytes"), "mlp"
    copies = leaf(
        engine.sampler_copies, "sampler_copies", kind="calibrated", source=engine.source, dimension=""
    )
    sequences = input_leaf(request.sequences, "max_num_seqs", "serving.scheduler", "count")
    logits = copies * constant(4.0, "bytes_per_32_bit_logit") * sequences * arch.leaf("vocab")
    logits = (logits + tokens * hidden).named("logits_activation_bytes", "bytes")
    binds: ActivationTerm = "logits" if logits.value >= mlp.value else "mlp"
    return maximum(logits, mlp).named("activation_bytes", "bytes"), binds


def _moe_workspace(request: MemoryRequest, stage: PipelineStage) -> Term:
    arch = request.arch
    if not (request.engine.moe_workspace and stage.moe_layers):
        return constant(0.0, "moe_workspace_bytes")
    tokens = input_leaf(request.batched_tokens, "max_num_batched_tokens", "serving.scheduler", "tokens")
    width = arch.leaf("moe_intermediate") / tp_leaf(request)
    rows = constant(2.0, "bytes_per_16_bit_element") * tokens * arch.leaf("experts_per_token")
    if request.parallelism.dp > 1:
        gathered = constant(float(request.parallelism.dp), "data_ranks") / input_leaf(
            request.parallelism.ep, "ep", "serving.parallelism", ""
        )
        rows, width = rows * gathered, width / gathered
    buffers = maximum(constant(2.0) * width, arch.leaf("hidden")) + width
    return (rows * buffers).named("moe_workspace_bytes", "bytes")


def _reserved_states(request: MemoryRequest, kv: Term, per_sequence: Term) -> Term:
    if not per_sequence.value or kv.value <= 0:
        return constant(0.0, "state_bytes")
    sequences = input_leaf(request.sequences, "max_num_seqs", "serving.scheduler", "count")
    share = _MOST_STATE_FRACTION if grows_with_tokens(request.arch) else 1.0
    most = constant(share, "largest_share_for_states") * kv
    return minimum(sequences * per_sequence, most).named("state_bytes", "bytes")


def _blocks_of_states(request: MemoryRequest, state: Term, per_sequence: Term) -> Term:
    """Room for every sequence whose state fits, at full length: no block of it costs anything more."""
    length = request.max_model_len or request.arch.max_position
    each = constant(float(ceil(length / request.block_size_tokens)), "blocks_per_sequence")
    return floor(state / per_sequence) * each


def _blocks(request: MemoryRequest, kv: Term, page: Term) -> Term:
    if request.num_gpu_blocks_override is not None:
        return input_leaf(request.num_gpu_blocks_override, "num_gpu_blocks_override", "serving", "count")
    if kv.value <= 0:
        return floor(maximum(constant(0.0), kv) / page)
    return floor(kv / page)
