"""Which micro-batch runs when on which pipeline stage: 1F1B, and interleaved where stages have several pieces.

Each stage runs its passes in Megatron's order (Narayanan et al. 2021): as many forwards as the pipeline is deep, then
one forward and one backward in turn, then the backwards left. A pass starts when its stage is free and what it
needs has arrived. All stages take the slowest stage's time, as the closed form does, so where micro-batches are a
multiple of the stages (or pieces are one) the last pass ends at `(m + (p−1)/v) · (forward + backward)`.
Interleaving groups micro-batches by `p`; where they do not fill the last group, it is padded and the end is later.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """One micro-batch's forward or backward through one piece of one stage; all counts from 0."""

    stage: int
    micro_batch: int
    piece: int
    kind: Literal["forward", "backward"]
    start_s: float
    s: float

    @property
    def end_s(self) -> float:
        return self.start_s + self.s


def schedule(
    *, stages: int, pieces: int, micro_batches: int, forward_s: float, backward_s: float
) -> list[Pass]:
    """All passes in the order of their stages, then of time; seconds are a stage's, of all its pieces.

    >>> passes = schedule(stages=4, pieces=1, micro_batches=8, forward_s=1.0, backward_s=2.0)
    >>> max(one.end_s for one in passes)  # (8 + 3) · 3
    33.0
    """
    orders = [
        _order(stage, stages=stages, pieces=pieces, micro_batches=micro_batches) for stage in range(stages)
    ]
    ends: dict[tuple[str, int, int, int], float] = {}
    found: list[list[Pass]] = [[] for _stage in range(stages)]
    free_s, at = [0.0] * stages, [0] * stages
    seconds = {"forward": forward_s / pieces, "backward": backward_s / pieces}
    left = sum(len(order) for order in orders)
    while left:
        for stage, order in enumerate(orders):
            while at[stage] < len(order):
                kind, piece, micro_batch = order[at[stage]]
                needed = _needed(kind, stage, piece, stages=stages, pieces=pieces)
                ready_s = 0.0 if needed is None else ends.get((*needed, micro_batch))
                if ready_s is None:
                    break
                start_s = max(free_s[stage], ready_s)
                found[stage].append(
                    Pass(
                        stage=stage,
                        micro_batch=micro_batch,
                        piece=piece,
                        kind=kind,
                        start_s=start_s,
                        s=seconds[kind],
                    )
                )
                free_s[stage] = start_s + seconds[kind]
                ends[kind, stage, piece, micro_batch] = free_s[stage]
                at[stage] += 1
                left -= 1
    return [one for passes in found for one in passes]


def shortened(*, stages: int, pieces: int, micro_batches: int, most_passes: int) -> int:
    """Micro-batches whose schedule stays within so many passes of all stages: all, or a multiple of the stages that
    still fills the pipeline. A steady state repeats itself."""
    most = most_passes // (2 * stages * pieces)
    if micro_batches <= max(most, stages):
        return micro_batches
    return max(stages, most // stages * stages)


Order = list[tuple[Literal["forward", "backward"], int, int]]


def _order(stage: int, *, stages: int, pieces: int, micro_batches: int) -> Order:
    """Kind, piece and micro-batch of each pass of a stage."""
    groups = micro_batches if pieces == 1 else math.ceil(micro_batches / stages) * stages
    count = groups * pieces
    warm_up = stages - stage - 1
    if pieces > 1:
        warm_up = 2 * warm_up + (pieces - 1) * stages
    warm_up = min(warm_up, count)
    found: Order = [("forward", *_place(number, stages, pieces)) for number in range(warm_up)]
    for number in range(warm_up, count):
        found.append(("forward", *_place(number, stages, pieces)))
        found.append(("backward", *_place(number - warm_up, stages, pieces, backward=True)))
    found += [
        ("backward", *_place(number, stages, pieces, backward=True))
        for number in range(count - warm_up, count)
    ]
    return found


def _place(number: int, stages: int, pieces: int, *, backward: bool = False) -> tuple[int, int]:
    """Piece and micro-batch of a stage's pass of this number."""
    if pieces == 1:
        return 0, number
    group, within = divmod(number, stages * pieces)
    piece, place = divmod(within, stages)
    return (pieces - 1 - piece if backward else piece), group * stages + place


def _needed(kind: str, stage: int, piece: int, *, stages: int, pieces: int) -> tuple[str, int, int] | None:
    """The pass of the same micro-batch that must end first."""
    if kind == "forward":
        if stage:
            return "forward", stage - 1, piece
        return ("forward", stages - 1, piece - 1) if piece else None
    if stage < stages - 1:
        return "backward", stage + 1, piece
    return ("backward", 0, piece + 1) if piece < pieces - 1 else ("forward", stage, piece)
