"""What does not fit: the term that binds, and the cheapest changes that would make it fit.

The levers are tried in the order of what they cost: sizes of the engine, narrower numbers, more chips, other
chips, stages. Each is tried with the arithmetic of the budget, the least value that fits first; where fewer
than three single levers do, two and then three are pulled together. Limits: prices are not looked at; of two
levers the first one's least value is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from math import floor
from typing import Any, Final

from simcore.catalog.types import BYTES_PER_ELEMENT, Chip
from simcore.errors import InfeasibleError, Message, Phrases
from simcore.memory.budget import KvBudget, budget_of
from simcore.memory.rank import RankBudget
from simcore.memory.request import MemoryRequest

SUGGESTIONS: Final = 3
_TOGETHER: Final = 3  # levers at one time
_Step = tuple[str, Callable[[MemoryRequest], MemoryRequest]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Values by path that would make it fit together, with the capacity that results."""

    edits: tuple[tuple[str, str], ...]
    token_capacity: int
    message: Message


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lever:
    """One path with the values to try, the least change first."""

    path: str
    steps: tuple[_Step, ...]


def require_fit(budget: KvBudget, *, path: str = "serving") -> KvBudget:
    """The budget, or an InfeasibleError with the binding term and the changes that would help."""
    if budget.fits:
        return budget
    rank, changes = budget.rank, fitting_changes(budget)
    nothing = Message(code="memory.no_change", template="no three changes together")
    params: dict[str, Any] = {
        "changes": Phrases(tuple(change.message for change in changes) or (nothing,)),
        "nearest": [{"edits": dict(one.edits), **one.message.params} for one in changes],
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
    fullest = min(budget.ranks, key=lambda one: one.left_bytes.value)
    if budget.binding == "kv_cache":
        raise InfeasibleError.at(
            path,
            "memory.cache_too_large",
            "a KV cache of {asked_gib:.1f} GiB per chip is asked for and {left_gib:.1f} GiB are left beside the "
            "weights and activations. What would fit: {changes}",
            **params,
            asked_gib=fullest.kv_bytes.value / 2**30,
            left_gib=_room_bytes(fullest) / 2**30,
        )
    raise InfeasibleError.at(
        path,
        "memory.does_not_fit",
        "does not fit, and {binding} bind: of {budget_gib:.1f} GiB per chip, weights take {weights_gib:.1f} and "
        "activations {activation_gib:.1f} GiB, {missing_gib:.1f} GiB too much. What would fit: {changes}",
        **params,
        binding={"activation": "activations", "non_torch": "non-torch buffers"}.get(
            budget.binding, budget.binding
        ),
        budget_gib=rank.budget_bytes.value / 2**30,
        weights_gib=rank.weight_bytes.value / 2**30,
        activation_gib=(rank.activation_bytes.value + rank.moe_workspace_bytes.value) / 2**30,
        missing_gib=-min(rank.kv_bytes.value, fullest.left_bytes.value) / 2**30,
    )


def fitting_changes(budget: KvBudget) -> tuple[Change, ...]:
    """The three cheapest changes that fit; none where the budget fits."""
    if budget.fits:
        return ()
    levers, found = _levers(budget), list[Change]()
    for count in range(1, _TOGETHER + 1):
        for chosen in combinations(levers, count):
            if len(found) == SUGGESTIONS:
                return tuple(found)
            paths = {lever.path for lever in chosen}
            if any({path for path, _value in change.edits} <= paths for change in found):
                continue  # less does already
            change = _least(budget.request, chosen)
            if change is not None:
                found.append(change)
    return tuple(found)


def _least(request: MemoryRequest, levers: Sequence[_Lever]) -> Change | None:
    """The least values of these levers that fit; several levers are given up where their most does not."""
    if len(levers) > 1 and _tried(request, [lever.steps[-1] for lever in levers]) is None:
        return None
    for steps in product(*(lever.steps for lever in levers)):
        result = _tried(request, steps)
        if result is not None:
            edits = tuple((lever.path, value) for lever, (value, _) in zip(levers, steps, strict=True))
            return _change(edits, result, request)
    return None


def _tried(request: MemoryRequest, steps: Sequence[_Step]) -> KvBudget | None:
    for _value, pull in steps:
        request = pull(request)
    if request.max_num_seqs is not None and request.max_num_seqs > request.batched_tokens:
        return None  # each sequence needs a token of the budget
    result = budget_of(request)
    return result if result.fits else None


def _change(edits: tuple[tuple[str, str], ...], result: KvBudget, before: MemoryRequest) -> Change:
    capacity = int(result.token_capacity.value)
    params: dict[str, Any] = {
        "changed": " + ".join(f"{path}: {value}" for path, value in edits),
        "capacity": capacity,
    }
    message = Message(
        code="memory.change", template="{changed} leaves room for {capacity:,} tokens", params=params
    )
    chips = result.request.parallelism.replica_chip_count
    if chips != before.parallelism.replica_chip_count:
        message = replace(
            message,
            template="{changed}, {chips} chips a replica, leaves room for {capacity:,} tokens",
            params=params | {"chips": chips},
        )
    return Change(edits=edits, token_capacity=capacity, message=message)


def _levers(budget: KvBudget) -> list[_Lever]:
    """Cheapest first; a lever without a value to try is left out."""
    request = budget.request
    tried: list[tuple[str, Iterator[_Step]]] = [
        ("serving.num_gpu_blocks_override", _fewer_blocks(budget)),
        ("serving.kv_cache_memory_bytes", _smaller_cache(budget)),
        ("serving.max_model_len", _halves("max_model_len", request.max_model_len or 0, 16)),
        ("serving.scheduler.max_num_seqs", _counts("max_num_seqs", request.sequences, (256, 64, 16))),
        (
            "serving.scheduler.max_num_batched_tokens",
            _counts("max_num_batched_tokens", request.batched_tokens, (2048,)),
        ),
        ("serving.kv.gpu_memory_utilization", _utilisation(request)),
        ("serving.kv.dtype", _narrower("kv_dtype", request.kv_dtype)),
        ("serving.weights_dtype", _narrower("weights_dtype", request.weights_dtype)),
        ("serving.parallelism.tp", _wider(request)),
        ("hardware.chip", _larger(request, budget.other_chips)),
        ("serving.parallelism.pp", _deeper(request)),
    ]
    found = (_Lever(path=path, steps=tuple(steps)) for path, steps in tried)
    return [lever for lever in found if lever.steps]


def _set(**values: Any) -> Callable[[MemoryRequest], MemoryRequest]:
    return lambda request: replace(request, **values)


def _room_bytes(rank: RankBudget) -> float:
    """What is left for KV beside weights and activations."""
    return rank.left_bytes.value + rank.kv_bytes.value


def _fewer_blocks(budget: KvBudget) -> Iterator[_Step]:
    asked = budget.request.num_gpu_blocks_override
    if asked is not None:
        share = min(_room_bytes(rank) / rank.kv_bytes.value for rank in budget.ranks)
        if (count := floor(asked * share)) > 0:
            yield f"{count}", _set(num_gpu_blocks_override=count)


def _smaller_cache(budget: KvBudget) -> Iterator[_Step]:
    if budget.request.kv_cache_memory_bytes is not None:
        room = floor(min(_room_bytes(rank) for rank in budget.ranks) / 1e8) * 1e8
        if room > 0:
            yield f"{room / 1e9:.1f} GB", _set(kv_cache_memory_bytes=room)


def _halves(name: str, value: int, least: int) -> Iterator[_Step]:
    """Powers of two below a value."""
    count = 2 ** ((value - 1).bit_length() - 1) if value > 1 else 0
    while count >= least:
        yield f"{count}", _set(**{name: count})
        count //= 2


def _counts(name: str, now: int, counts: Sequence[int]) -> Iterator[_Step]:
    for count in counts:
        if count < now:
            yield f"{count}", _set(**{name: count})


def _utilisation(request: MemoryRequest) -> Iterator[_Step]:
    if request.gpu_memory_utilization < 0.95 and not request.cache_was_asked_for:
        yield "0.95", _set(gpu_memory_utilization=0.95)


def _narrower(name: str, dtype: str) -> Iterator[_Step]:
    if BYTES_PER_ELEMENT[dtype] > 1:
        yield "fp8", _set(**{name: "fp8"})


def _wider(request: MemoryRequest) -> Iterator[_Step]:
    """Larger tensor parallel degrees that divide the heads."""
    tp = request.parallelism.tp_ranks * 2
    while tp <= min(64, request.arch.heads):
        if request.arch.heads % tp == 0:
            yield f"{tp}", _parallel("tp", tp)
        tp *= 2


def _deeper(request: MemoryRequest) -> Iterator[_Step]:
    pp = request.parallelism.pp * 2
    while pp <= min(16, request.arch.layers):
        yield f"{pp}", _parallel("pp", pp)
        pp *= 2


def _parallel(name: str, degree: int) -> Callable[[MemoryRequest], MemoryRequest]:
    return lambda request: replace(request, parallelism=request.parallelism.model_copy(update={name: degree}))


def _larger(request: MemoryRequest, chips: Sequence[Chip]) -> Iterator[_Step]:
    for chip in sorted(chips, key=lambda chip: chip.hbm_visible_bytes):
        if chip.hbm_visible_bytes > request.chip.hbm_visible_bytes:
            yield chip.slug, _set(chip=chip)
