"""How much KV cache a replica gets, by the engine's own arithmetic, rank by rank.

    budget     = gpu_memory_utilization × visible memory
    activation = max(c·4·max_num_seqs·vocab + 2·mbt·hidden,  2·mbt·(g·inter/tp + 3·hidden)) + MoE workspace
    KV         = budget − weights − rotary table − activation − non-torch
    blocks     = floor(KV / page),  page = block × KV bytes per token and layer × layers of a group
    tokens     = blocks // groups × block;  a pipeline has the smallest of its ranks

(vLLM; c copies of the logits only on the rank that samples, mbt = max_num_batched_tokens.) Layers with
full and with window attention share one pool of pages: group size min(full, window), `ceil` groups of
each. SGLang: KV = fraction × free before load − weights; TensorRT-LLM: KV = 0.9 × free after load.
Limits: CUDA graphs are captured outside this budget; the vision encoder's cache is not counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any, Final, Literal

from simcore.catalog.types import BYTES_PER_ELEMENT, Chip, LlmArchitecture
from simcore.errors import InfeasibleError, Message
from simcore.memory.engines import EngineConstants
from simcore.memory.weights import StageLayers, rank_weight_bytes, rotary_bytes, stages
from simcore.parallelism import Parallelism
from simcore.why import Term, constant, floor, leaf, maximum, minimum, total
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
        return self.max_num_seqs or self.engine.default_max_num_seqs(self.chip.hbm_visible_bytes)

    @property
    def batched_tokens(self) -> int:
        return self.max_num_batched_tokens or self.engine.default_max_num_batched_tokens(
            self.chip.hbm_visible_bytes
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RankBudget:
    """Memory of one pipeline stage's chips."""

    stage: StageLayers
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change that would make it fit, with the capacity that results."""

    path: str
    value: str
    token_capacity: int
    message: Message


@dataclass(frozen=True, slots=True, kw_only=True)
class KvBudget:
    """The replica's KV cache: its scarcest rank decides."""

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
    def changes(self) -> tuple[Change, ...]:
        """Up to three changes that would make it fit, cheapest first; none where it fits. Tried when asked."""
        return () if self.fits else _changes(self.request, self, self.other_chips)

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
    other_chips: Sequence[Chip] = (),
) -> KvBudget:
    """Budget of one replica. Where it does not fit, its `changes` are up to three that would."""
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
    )
    return budget_of(request, other_chips=tuple(other_chips))


def budget_of(request: MemoryRequest, *, other_chips: tuple[Chip, ...] = ()) -> KvBudget:
    """The same from a request, as suggestions try it."""
    ranks = tuple(_rank(request, stage) for stage in stages(request.arch, request.parallelism.pp))
    scarcest = min(ranks, key=lambda rank: rank.token_capacity.value)
    blocks = minimum(*(rank.block_count for rank in ranks)) if len(ranks) > 1 else scarcest.block_count
    capacity = int(max(0.0, scarcest.token_capacity.value))
    wanted = request.max_model_len or request.arch.max_position
    length = wanted if request.max_model_len else max(1, min(wanted, capacity))
    concurrency = _concurrency(request, scarcest, length)
    fits = capacity > 0 and concurrency.value >= 1.0
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
        binding="" if fits else _binding(scarcest),
        request=request,
        other_chips=other_chips,
    )


def _rank(request: MemoryRequest, stage: StageLayers) -> RankBudget:
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
    size, groups = _groups(stage)
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


def _activation(request: MemoryRequest, stage: StageLayers) -> tuple[Term, ActivationTerm]:
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


def _moe_workspace(request: MemoryRequest, stage: StageLayers) -> Term:
    arch = request.arch
    if not (request.engine.moe_workspace and stage.moe_layers):
        return constant(0.0, "moe_workspace_bytes")
    tokens = _input(request.batched_tokens, "max_num_batched_tokens", "serving.scheduler", "tokens")
    width = arch.leaf("moe_intermediate") / _tp(request)
    rows = constant(2.0, "bytes_per_16_bit_element") * tokens * arch.leaf("experts_per_token")
    buffers = maximum(constant(2.0) * width, arch.leaf("hidden")) + width
    return (rows * buffers).named("moe_workspace_bytes", "bytes")


def _groups(stage: StageLayers) -> tuple[int, int]:
    """(layers per group, number of groups) of the shared page pool.

    >>> _groups(StageLayers(index=0, layers=62, moe_layers=0, window_layers=52, is_first=True, is_last=True))
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


def _concurrency(request: MemoryRequest, rank: RankBudget, length: int) -> Term:
    """Sequences of full length that fit: a window group holds the window, one step's chunk and one block."""
    block, stage = request.block_size_tokens, rank.stage
    whole = ceil(length / block)
    full, window = stage.layers - stage.window_layers, stage.window_layers
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
    """What stands in the way: the largest consumer, or the length asked for where some KV is left."""
    if rank.token_capacity.value > 0:
        return "max_model_len"
    uses = {
        "weights": rank.weight_bytes.value,
        "activation": rank.activation_bytes.value + rank.moe_workspace_bytes.value,
        "non_torch": rank.non_torch_bytes.value,
    }
    return max(uses, key=lambda name: uses[name])


def _changes(request: MemoryRequest, budget: KvBudget, other_chips: Sequence[Chip]) -> tuple[Change, ...]:
    """The three cheapest changes that fit: knobs first, then narrower numbers, then chips."""
    found: list[Change] = []
    for path, value, changed in _candidates(request, budget, other_chips):
        if len(found) == 3:
            break
        result = budget_of(changed)
        if result.fits and path not in {change.path for change in found}:
            found.append(_change(path, value, int(result.token_capacity.value)))
    return tuple(found)


def _candidates(
    request: MemoryRequest, budget: KvBudget, other_chips: Sequence[Chip]
) -> list[tuple[str, str, MemoryRequest]]:
    capacity = int(budget.token_capacity.value) // request.block_size_tokens * request.block_size_tokens
    listed: list[tuple[str, str, MemoryRequest]] = []
    if request.max_model_len and capacity > 0:
        shorter = 2 ** (capacity.bit_length() - 1)
        listed.append(("serving.max_model_len", f"{shorter}", replace(request, max_model_len=shorter)))
    listed += [
        ("serving.scheduler.max_num_seqs", f"{count}", replace(request, max_num_seqs=count))
        for count in (256, 64, 16)
        if count < request.sequences
    ]
    if request.batched_tokens > 2048:
        changed = replace(request, max_num_batched_tokens=2048, max_num_seqs=min(request.sequences, 256))
        listed.append(("serving.scheduler.max_num_batched_tokens", "2048", changed))
    if request.gpu_memory_utilization < 0.95:
        changed = replace(request, gpu_memory_utilization=0.95)
        listed.append(("serving.kv.gpu_memory_utilization", "0.95", changed))
    if BYTES_PER_ELEMENT[request.kv_dtype] > 1:
        listed.append(("serving.kv.dtype", "fp8", replace(request, kv_dtype="fp8")))
    if BYTES_PER_ELEMENT[request.weights_dtype] > 1:
        listed.append(("serving.weights_dtype", "fp8", replace(request, weights_dtype="fp8")))
    listed += [("serving.parallelism.tp", f"{tp}", changed) for tp, changed in _wider(request)]
    larger = sorted(other_chips, key=lambda chip: chip.hbm_visible_bytes)
    listed += [
        ("hardware.chip", chip.slug, replace(request, chip=chip))
        for chip in larger
        if chip.hbm_visible_bytes > request.chip.hbm_visible_bytes
    ]
    return listed


def _wider(request: MemoryRequest) -> list[tuple[int, MemoryRequest]]:
    """Larger tensor parallel degrees that divide the heads."""
    found, tp = [], request.parallelism.tp_ranks * 2
    while tp <= min(64, request.arch.heads):
        if request.arch.heads % tp == 0:
            parallelism = request.parallelism.model_copy(update={"tp": tp})
            found.append((tp, replace(request, parallelism=parallelism)))
        tp *= 2
    return found


def _change(path: str, value: str, capacity: int) -> Change:
    message = Message(
        code="memory.change",
        template="{path}: {value} leaves room for {capacity:,} tokens",
        params={"path": path, "value": value, "capacity": capacity},
        path=path,
    )
    return Change(path=path, value=value, token_capacity=capacity, message=message)


def require_fit(budget: KvBudget, *, path: str = "serving") -> KvBudget:
    """The budget, or an InfeasibleError with the binding term and the changes that would help."""
    if budget.fits:
        return budget
    rank = budget.rank
    params: dict[str, Any] = {
        "binding": budget.binding.replace("_", " "),
        "budget_gib": rank.budget_bytes.value / 2**30,
        "weights_gib": rank.weight_bytes.value / 2**30,
        "activation_gib": (rank.activation_bytes.value + rank.moe_workspace_bytes.value) / 2**30,
        "changes": "; ".join(change.message.text for change in budget.changes) or "no single change fits",
    }
    if budget.binding == "max_model_len":
        raise InfeasibleError.at(
            path,
            "memory.sequence_does_not_fit",
            "one sequence of {length:,} tokens does not fit: the KV cache holds {capacity:,}. What would fit: "
            "{changes}",
            **params,
            capacity=int(rank.token_capacity.value),
            length=budget.max_model_len,
        )
    raise InfeasibleError.at(
        path,
        "memory.does_not_fit",
        "does not fit, and {binding} bind: of {budget_gib:.1f} GiB per chip, weights take {weights_gib:.1f} and "
        "activations {activation_gib:.1f} GiB, {missing_gib:.1f} GiB too much. What would fit: {changes}",
        **params,
        missing_gib=-rank.kv_bytes.value / 2**30,
    )


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
            rank.visible_bytes.value - rank.budget_bytes.value,
            "loss",
            "left free by gpu_memory_utilization",
        ),
        ("weights", rank.weight_bytes.value, "use", ""),
        ("rotary", rank.rotary_bytes.value, "use", "table of sines and cosines"),
        ("activation", rank.activation_bytes.value, "use", binds[rank.activation_binds]),
        ("moe_workspace", rank.moe_workspace_bytes.value, "use", ""),
        ("non_torch", rank.non_torch_bytes.value, "use", "CUDA context, NCCL"),
        ("kv", rank.kv_bytes.value, "free", "KV cache"),
    ]
    return [
        {"item": item, "bytes": value, "kind": kind, "note": note}
        for item, value, kind, note in rows
        if value or kind != "use"
    ]
