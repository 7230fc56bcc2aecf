"""What would make a training run fit: changes tried with the same arithmetic, cheapest first.

A change's cost is the step time that it leaves: recomputation costs FLOP, ZeRO costs traffic, a wider cut
costs collectives. The three cheapest with different paths are named, each with its memory and its tokens per
second; where fewer than three single changes fit, two at once are tried.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from simcore.catalog.types import Chip
from simcore.errors import InfeasibleError, InputError, Message
from simcore.training.inputs import TrainingInputs, check_inputs
from simcore.training.memory import TrainingMemory, training_memory
from simcore.training.step import training_step

SUGGESTIONS: Final = 3
_MOST_DEGREES: Final = 64


Edits = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingChange:
    """A change that fits, with what it leaves: one edit, or two."""

    edits: Edits  # scenario paths and their values
    used_bytes: float
    token_per_s: float
    message: Message


def require_fit(
    inputs: TrainingInputs, memory: TrainingMemory, other_chips: Sequence[Chip] = ()
) -> TrainingMemory:
    """The memory, or an InfeasibleError with the binding use and the changes that would help."""
    if memory.fits:
        return memory
    changes = fitting_changes(inputs, other_chips)
    uses = {f"{name}_gib": term.value / 2**30 for name, term in memory.uses.items()}
    raise InfeasibleError.at(
        "training",
        "training.does_not_fit",
        "does not fit, and {binding} bind: of {visible_gib:.1f} GiB per chip, weights take {weights_gib:.1f}, "
        "gradients {gradients_gib:.1f}, optimiser states {optimizer_gib:.1f} and activations "
        "{activations_gib:.1f} GiB, {missing_gib:.1f} GiB too much. What would fit: {changes}",
        binding={"optimizer": "optimiser states"}.get(memory.binding, memory.binding),
        visible_gib=memory.visible.value / 2**30,
        missing_gib=-memory.free.value / 2**30,
        changes="; ".join(change.message.text for change in changes) or "no one or two changes fit",
        nearest=[{"edits": dict(change.edits), "token_per_s": change.token_per_s} for change in changes],
        **uses,
    )


def fitting_changes(inputs: TrainingInputs, other_chips: Sequence[Chip] = ()) -> tuple[TrainingChange, ...]:
    """The three cheapest changes that fit."""
    found = _fitting(_single(inputs, other_chips))
    if len(found) < SUGGESTIONS:
        found += _fitting(_double(inputs))
    return tuple(sorted(found, key=_cost)[:SUGGESTIONS])


def _cost(change: TrainingChange) -> tuple[bool, int, float]:
    """Other chips last, then single changes before pairs, then the fastest."""
    return change.edits[0][0] == "hardware.chip", len(change.edits), -change.token_per_s


def _single(inputs: TrainingInputs, other_chips: Sequence[Chip]) -> Iterator[tuple[Edits, TrainingInputs]]:
    for path, value, changed in _candidates(inputs, other_chips):
        yield ((path, value),), changed


def _double(inputs: TrainingInputs) -> Iterator[tuple[Edits, TrainingInputs]]:
    """Two changes of different paths, each pair once."""
    for first, value, changed in _candidates(inputs, ()):
        for second, other, both in _candidates(changed, ()):
            if first < second:
                yield ((first, value), (second, other)), both


def _fitting(candidates: Iterable[tuple[Edits, TrainingInputs]]) -> list[TrainingChange]:
    """The first of each set of paths that fits."""
    found: dict[tuple[str, ...], TrainingChange] = {}
    for edits, changed in candidates:
        paths = tuple(path for path, _ in edits)
        if paths in found or not _possible(changed):
            continue
        memory = training_memory(changed)
        if memory.fits:
            found[paths] = _change(edits, changed, memory)
    return list(found.values())


def _possible(inputs: TrainingInputs) -> bool:
    try:
        check_inputs(inputs)
    except InputError:
        return False
    return True


def _candidates(
    inputs: TrainingInputs, other_chips: Sequence[Chip]
) -> Iterator[tuple[str, str, TrainingInputs]]:
    """Single changes, the mildest of each path first."""
    spec = inputs.spec

    def edited(**changes: Any) -> TrainingInputs:
        return replace(inputs, spec=spec.model_copy(update=changes))

    order = ("none", "selective", "full")
    for recompute in order[order.index(spec.recompute) + 1 :]:
        yield "training.recompute", recompute, edited(recompute=recompute)
    for stage in range(spec.zero_stage + 1, 4):
        yield "training.zero_stage", str(stage), edited(zero_stage=stage)
    size = spec.micro_batch_size // 2
    while size:
        yield "training.micro_batch_size", str(size), edited(micro_batch_size=size)
        size //= 2
    if not spec.sequence_parallel:
        yield "training.sequence_parallel", "true", edited(sequence_parallel=True)
    for degree in ("tp", "pp", "cp"):
        yield from _wider(inputs, degree)
    if inputs.arch.is_moe:
        yield from _shared_experts(inputs)
    larger = sorted(other_chips, key=lambda chip: chip.hbm_visible_bytes)
    for chip in larger:
        if chip.hbm_visible_bytes > inputs.chip.hbm_visible_bytes and chip.vendor == inputs.chip.vendor:
            yield "hardware.chip", chip.slug, replace(inputs, chip=chip)


def _wider(inputs: TrainingInputs, degree: str) -> Iterator[tuple[str, str, TrainingInputs]]:
    """A degree doubled and doubled again on the same chips: data parallelism gives way."""
    parallelism = inputs.parallelism
    factor = 2
    while parallelism.dp % factor == 0 and getattr(parallelism, degree) * factor <= _MOST_DEGREES:
        value = getattr(parallelism, degree) * factor
        changed = parallelism.model_copy(update={degree: value, "dp": parallelism.dp // factor})
        yield f"training.parallelism.{degree}", str(value), replace(inputs, parallelism=changed)
        factor *= 2


def _shared_experts(inputs: TrainingInputs) -> Iterator[tuple[str, str, TrainingInputs]]:
    """The expert group doubled, and doubled again: it takes ranks that are there already."""
    ep = inputs.parallelism.ep * 2
    while ep <= inputs.arch.experts:
        changed = inputs.parallelism.model_copy(update={"ep": ep})
        yield "training.parallelism.ep", str(ep), replace(inputs, parallelism=changed)
        ep *= 2


def _change(edits: Edits, inputs: TrainingInputs, memory: TrainingMemory) -> TrainingChange:
    per_second = training_step(inputs).token_per_s.value
    used = memory.used.value
    message = Message(
        code="training.change",
        template="{change} needs {used_gib:.1f} GiB per chip and trains {token_per_s:,.0f} token/s",
        params={
            "change": " + ".join(f"{path}: {value}" for path, value in edits),
            "used_gib": used / 2**30,
            "token_per_s": per_second,
        },
        path=edits[0][0],
    )
    return TrainingChange(edits=edits, used_bytes=used, token_per_s=per_second, message=message)
