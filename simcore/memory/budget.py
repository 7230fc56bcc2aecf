"""How much KV cache a replica gets, by the engine's own arithmetic: of several data parallel ranks, each.

Each pipeline rank has its own budget (`rank.py`); the scarcest decides:

    tokens = blocks // groups × block,    max_concurrency = blocks / blocks of one sequence of full length

What does not fit names what binds; `fit.py` says what would make it fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

from simcore.catalog.types import Chip, LlmArchitecture
from simcore.memory.engines import EngineConstants
from simcore.memory.pages import cached_layers, is_affine
from simcore.memory.rank import RankBudget, rank_budget
from simcore.memory.request import MemoryRequest
from simcore.parallelism import Parallelism, pipeline_stages
from simcore.why import Term, constant, leaf, maximum, minimum


@dataclass(frozen=True, slots=True, kw_only=True)
class KvBudget:
    """The KV cache of a data parallel rank: its scarcest pipeline rank decides."""

    ranks: tuple[RankBudget, ...]
    rank: RankBudget  # the scarcest
    block_count: Term
    token_capacity: Term
    max_concurrency: Term  # sequences of max_model_len at one time
    max_model_len: int
    max_num_seqs: int
    max_num_batched_tokens: int
    block_size_tokens: int
    fits: bool
    binding: str  # "" when it fits, else the largest consumer: weights, activation, non_torch, max_model_len
    request: MemoryRequest
    other_chips: tuple[Chip, ...] = ()  # what a change of chip may turn to

    @property
    def sequence_block_count(self) -> int:
        """Blocks for whole sequences (all layer groups of a token together): token_capacity / block."""
        return int(self.token_capacity.value) // self.block_size_tokens


def kv_budget(
    arch: LlmArchitecture,
    chip: Chip,
    parallelism: Parallelism,
    *,
    engine: EngineConstants,
    weights_dtype: str,
    kv_dtype: str,
    gpu_memory_utilization: float = 0.9,
    max_num_seqs: int | None = None,
    max_num_batched_tokens: int | None = None,
    max_model_len: int | None = None,
    block_size_tokens: int = 16,
    num_gpu_blocks_override: int | None = None,
    kv_cache_memory_bytes: float | None = None,
    draft: LlmArchitecture | None = None,
    other_chips: Sequence[Chip] = (),
) -> KvBudget:
    """Budget of one data parallel rank, whether it fits or not."""
    request = MemoryRequest(
        arch=arch,
        chip=chip,
        parallelism=parallelism,
        engine=engine,
        weights_dtype=weights_dtype,
        kv_dtype=kv_dtype,
        gpu_memory_utilization=gpu_memory_utilization,
        max_num_seqs=max_num_seqs,
        max_num_batched_tokens=max_num_batched_tokens,
        max_model_len=max_model_len,
        block_size_tokens=block_size_tokens,
        num_gpu_blocks_override=num_gpu_blocks_override,
        kv_cache_memory_bytes=kv_cache_memory_bytes,
        draft=draft,
    )
    return budget_of(request, other_chips=tuple(other_chips))


def budget_of(request: MemoryRequest, *, other_chips: tuple[Chip, ...] = ()) -> KvBudget:
    """The same from a request, as suggestions try it."""
    ranks = tuple(
        rank_budget(request, stage) for stage in pipeline_stages(request.arch, request.parallelism.pp)
    )
    scarcest = min(ranks, key=lambda rank: rank.token_capacity.value)
    blocks = minimum(*(rank.block_count for rank in ranks)) if len(ranks) > 1 else scarcest.block_count
    capacity = int(max(0.0, scarcest.token_capacity.value))
    wanted = request.max_model_len or request.arch.max_position
    length = wanted if request.max_model_len else max(1, min(wanted, capacity))
    concurrency = _concurrency(request, scarcest, length)
    while request.max_model_len is None and concurrency.value < 1 and length > request.block_size_tokens:
        length -= request.block_size_tokens  # a window group's extra block does not fit beside the others
        concurrency = _concurrency(request, scarcest, length)
    fullest = min(ranks, key=lambda rank: rank.left_bytes.value)
    fits = capacity > 0 and concurrency.value >= 1.0 and fullest.left_bytes.value >= 0
    return KvBudget(
        ranks=ranks,
        rank=scarcest,
        block_count=blocks.named("kv_block_count", "count"),
        token_capacity=scarcest.token_capacity,
        max_concurrency=concurrency,
        max_model_len=length,
        max_num_seqs=request.sequences,
        max_num_batched_tokens=request.batched_tokens,
        block_size_tokens=request.block_size_tokens,
        fits=fits,
        binding="" if fits else _binding(scarcest if fullest.left_bytes.value >= 0 else fullest),
        request=request,
        other_chips=other_chips,
    )


def _concurrency(request: MemoryRequest, rank: RankBudget, length: int) -> Term:
    """Sequences of full length that fit: a window group holds the window, one step's chunk and one block."""
    block, stage = request.block_size_tokens, rank.stage
    whole = ceil(length / block)
    full, window = cached_layers(stage, request.arch)
    if is_affine(request.arch):
        each = rank.state_bytes_per_sequence + constant(float(whole), "blocks_per_sequence") * rank.page_bytes
        return (maximum(constant(0.0), rank.kv_bytes) / each).named("max_concurrency_at_max_len", "")
    if not full or not window:
        needed = whole
    else:
        size = min(full, window)
        held = min(length, request.arch.window_tokens - 1 + request.batched_tokens)
        needed = ceil(full / size) * whole + ceil(window / size) * (ceil(held / block) + 1)
    per_sequence = leaf(
        needed, "blocks_per_sequence", kind="derived", source=f"{length:,} tokens", dimension="count"
    )
    return (rank.block_count / per_sequence).named("max_concurrency_at_max_len", "")


def _binding(rank: RankBudget) -> str:
    """What stands in the way: the largest consumer, the cache asked for, or the length where some KV is left."""
    if rank.left_bytes.value < 0 and rank.left_bytes.value + rank.kv_bytes.value > 0:
        return "kv_cache"
    if rank.token_capacity.value > 0 and rank.left_bytes.value >= 0:
        return "max_model_len"
    uses = {
        "weights": rank.weight_bytes.value,
        "activation": rank.activation_bytes.value + rank.moe_workspace_bytes.value,
        "non_torch": rank.non_torch_bytes.value,
    }
    return max(uses, key=lambda name: uses[name])


def waterfall(budget: KvBudget) -> list[dict[str, Any]]:
    """Rows of the memory waterfall of the scarcest rank, from what the driver shows to what KV gets."""
    rank = budget.rank
    binds = {
        "logits": "logits of max_num_seqs bind",
        "mlp": "MLP of max_num_batched_tokens binds",
        "none": "",
    }
    rows = [
        ("visible", rank.visible_bytes.value, "total", "what the driver reports"),
        (
            "utilization_cut",
            rank.left_bytes.value,
            "loss",
            "left free by the size of the cache"
            if budget.request.cache_was_asked_for
            else "left free by gpu_memory_utilization",
        ),
        ("weights", rank.weight_bytes.value, "use", ""),
        ("draft", rank.draft_bytes.value, "use", "weights of the model that drafts"),
        ("rotary", rank.rotary_bytes.value, "use", "table of sines and cosines"),
        ("activation", rank.activation_bytes.value, "use", binds[rank.activation_binds]),
        ("moe_workspace", rank.moe_workspace_bytes.value, "use", ""),
        ("non_torch", rank.non_torch_bytes.value, "use", "device context, communication buffers"),
        ("state", rank.state_bytes.value, "use", "states of max_num_seqs sequences, whatever their length"),
        ("kv", rank.kv_bytes.value - rank.state_bytes.value, "free", "KV cache"),
    ]
    return [
        {"item": item, "bytes": value, "kind": kind, "note": note}
        for item, value, kind, note in rows
        if value or kind != "use"
    ]
