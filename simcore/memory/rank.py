"""The memory of one pipeline rank: from what the driver shows to pages of KV cache.

    budget     = gpu_memory_utilization × visible memory
    activation = max(c·4·max_num_seqs·vocab + 2·mbt·hidden,  2·mbt·(g·inter/tp + 3·hidden)) + MoE workspace
    KV         = budget − weights − rotary table − activation − non-torch
    blocks     = floor(KV / page),  page = block × KV bytes per token and layer × layers of a group

(vLLM; c copies of the logits only on the rank that samples, mbt = max_num_batched_tokens.) Layers with
full and with window attention share one pool of pages: group size min(full, window), `ceil` groups of
each. SGLang: KV = fraction × free before load − weights; TensorRT-LLM: KV = 0.9 × free after load.
Limits: CUDA graphs are captured outside this budget; the vision encoder's cache is not counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Final, Literal

from simcore.catalog.types import BYTES_PER_ELEMENT, Chip, LlmArchitecture
from simcore.memory.engines import EngineConstants
from simcore.memory.weights import rank_weight_bytes, rotary_bytes
from simcore.parallelism import Parallelism, PipelineStage
from simcore.why import Term, constant, floor, leaf, maximum, total
from simcore.why import ceil as ceil_term

ActivationTerm = Literal["logits", "mlp", "none"]
_TRT_FREE_FRACTION: Final = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRequest:
    """Everything that the budget depends on; `changed` versions of it are what suggestions try."""

    arch: LlmArchitecture
    chip: Chip
    parallelism: Parallelism
    engine: EngineConstants
    weights_dtype: str
    kv_dtype: str
    gpu_memory_utilization: float = 0.9
    max_num_seqs: int | None = None  # None: the engine's own default for this card
    max_num_batched_tokens: int | None = None
    max_model_len: int | None = None  # None: the model's, cut to what fits
    block_size_tokens: int = 16
    num_gpu_blocks_override: int | None = None
    kv_cache_memory_bytes: float | None = None

    @property
    def sequences(self) -> int:
        """As given; the engine's own default never exceeds the token budget, since each needs a token."""
        default = self.engine.default_max_num_seqs(self.chip.hbm_visible_bytes)
        return self.max_num_seqs or min(default, self.batched_tokens)

    @property
    def batched_tokens(self) -> int:
        return self.max_num_batched_tokens or self.engine.default_max_num_batched_tokens(
            self.chip.hbm_visible_bytes
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RankBudget:
    """Memory of one pipeline stage's chips."""

    stage: PipelineStage
    visible_bytes: Term
    budget_bytes: Term
    weight_bytes: Term
    rotary_bytes: Term
    activation_bytes: Term
    activation_binds: ActivationTerm
    moe_workspace_bytes: Term
    non_torch_bytes: Term
    kv_bytes: Term
    page_bytes: Term
    group_count: int
    block_count: Term
    token_capacity: Term


def rank_budget(request: MemoryRequest, stage: PipelineStage) -> RankBudget:
    arch, chip, engine = request.arch, request.chip, request.engine
    visible = chip.leaf("hbm_visible_bytes")
    utilization = _input(request.gpu_memory_utilization, "gpu_memory_utilization", "serving.kv", "fraction")
    budget = (utilization * visible).named("memory_budget_bytes", "bytes")
    weights = rank_weight_bytes(arch, request.parallelism, stage, weights_dtype=request.weights_dtype)
    rotary = rotary_bytes(arch)
    activation, binds = _activation(request, stage)
    workspace = _moe_workspace(request, stage)
    parallel = request.parallelism.tp_ranks > 1
    non_torch = leaf(
        engine.non_torch_bytes_parallel if parallel else engine.non_torch_bytes,
        "non_torch_bytes",
        kind="calibrated",
        source=engine.source,
    )
    used = total(weights, rotary, activation, workspace, non_torch).named("reserved_bytes", "bytes")
    if request.kv_cache_memory_bytes is not None:
        kv = _input(request.kv_cache_memory_bytes, "kv_cache_memory_bytes", "serving", "bytes")
    elif engine.family == "TensorRT-LLM":
        kv = constant(_TRT_FREE_FRACTION, "free_memory_fraction") * (visible - used)
    else:
        kv = budget - used
    kv = kv.named("kv_bytes_per_chip", "bytes")
    size, groups = layer_groups(stage)
    page = _page_bytes(request, size)
    blocks = _blocks(request, kv, page)
    # a token needs one block's slot in every group, so groups share the blocks out evenly
    shared = floor(blocks / constant(float(groups), "layer_groups")) if groups > 1 else blocks
    return RankBudget(
        stage=stage,
        visible_bytes=visible,
        budget_bytes=budget,
        weight_bytes=weights,
        rotary_bytes=rotary,
        activation_bytes=activation,
        activation_binds=binds,
        moe_workspace_bytes=workspace,
        non_torch_bytes=non_torch,
        kv_bytes=kv,
        page_bytes=page,
        group_count=groups,
        block_count=blocks,
        token_capacity=(shared * _block_size(request)).named("kv_token_capacity", "tokens"),
    )


def _input(value: float, name: str, section: str, dimension: str) -> Term:
    return leaf(value, name, path=f"{section}.{name}", dimension=dimension)


def _block_size(request: MemoryRequest) -> Term:
    return _input(request.block_size_tokens, "block_size", "serving.kv", "tokens")


def _activation(request: MemoryRequest, stage: PipelineStage) -> tuple[Term, ActivationTerm]:
    """Peak of the profiling run, and which of its two terms is the larger."""
    arch, engine = request.arch, request.engine
    if engine.family != "vLLM":
        return constant(0.0, "activation_bytes"), "none"
    tokens = _input(
        request.batched_tokens, "max_num_batched_tokens", "serving.scheduler", "tokens"
    ) * constant(2.0, "bytes_per_16_bit_element")
    hidden, tp = arch.leaf("hidden"), _tp(request)
    matrices = constant(3.0 if arch.gated_mlp else 2.0, "mlp_buffers")
    mlp = (tokens * (matrices * arch.leaf("intermediate") / tp + constant(3.0) * hidden)).named(
        "mlp_activation_bytes", "bytes"
    )
    if not stage.is_last:
        return mlp.named("activation_bytes", "bytes"), "mlp"
    copies = leaf(
        engine.sampler_copies, "sampler_copies", kind="calibrated", source=engine.source, dimension=""
    )
    sequences = _input(request.sequences, "max_num_seqs", "serving.scheduler", "count")
    logits = copies * constant(4.0, "bytes_per_32_bit_logit") * sequences * arch.leaf("vocab")
    logits = (logits + tokens * hidden).named("logits_activation_bytes", "bytes")
    binds: ActivationTerm = "logits" if logits.value >= mlp.value else "mlp"
    return maximum(logits, mlp).named("activation_bytes", "bytes"), binds


def _tp(request: MemoryRequest) -> Term:
    return _input(request.parallelism.tp_ranks, "tp", "serving.parallelism", "")


def _moe_workspace(request: MemoryRequest, stage: PipelineStage) -> Term:
    arch = request.arch
    if not (request.engine.moe_workspace and stage.moe_layers):
        return constant(0.0, "moe_workspace_bytes")
    tokens = _input(request.batched_tokens, "max_num_batched_tokens", "serving.scheduler", "tokens")
    width = arch.leaf("moe_intermediate") / _tp(request)
    rows = constant(2.0, "bytes_per_16_bit_element") * tokens * arch.leaf("experts_per_token")
    buffers = maximum(constant(2.0) * width, arch.leaf("hidden")) + width
    return (rows * buffers).named("moe_workspace_bytes", "bytes")


def layer_groups(stage: PipelineStage) -> tuple[int, int]:
    """(layers per group, number of groups) of the shared page pool.

    >>> layer_groups(PipelineStage(layers=62, moe_layers=0, window_layers=52, is_first=True, is_last=True))
    (10, 7)
    """
    full, window = stage.layers - stage.window_layers, stage.window_layers
    if not full or not window:
        return stage.layers, 1
    size = min(full, window)
    return size, ceil(full / size) + ceil(window / size)


def _page_bytes(request: MemoryRequest, group_layers: int) -> Term:
    arch = request.arch
    element = constant(BYTES_PER_ELEMENT[request.kv_dtype], f"bytes_per_{request.kv_dtype}_element")
    if arch.is_mla:
        per_layer = (arch.leaf("kv_lora_rank") + arch.leaf("qk_rope_head_dim")) * element
    else:
        heads = ceil_term(arch.leaf("kv_heads") / _tp(request)).named("kv_heads_per_chip", "")
        per_layer = constant(2.0, "k_and_v") * heads * arch.leaf("head_dim") * element
    layers = constant(float(group_layers), "layers_per_group")
    per_layer = per_layer.named("kv_bytes_per_layer_token", "bytes")
    return (_block_size(request) * per_layer * layers).named("page_bytes", "bytes")


def _blocks(request: MemoryRequest, kv: Term, page: Term) -> Term:
    if request.num_gpu_blocks_override is not None:
        return _input(request.num_gpu_blocks_override, "num_gpu_blocks_override", "serving", "count")
    if kv.value <= 0:
        return floor(maximum(constant(0.0), kv) / page)
    return floor(kv / page)
