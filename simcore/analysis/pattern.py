"""Which communication pattern a traffic matrix is, in words, with the share of bytes that says so.

Asked in this order, each by a share of all bytes (`ENOUGH` of them decides):
- hot spot: one rank is an end of them, in a matrix of more than four ranks;
- all to all: nine pairs of ten exchange, about as much each (coefficient of variation below `EVEN`);
- hierarchical: inside domains and along rails, some of both;
- ring: they go to the next rank or the one before, round the end of a domain or of all ranks;
- pipeline: they go a fixed distance on or back and never round the end; round it, a ring of rails;
- local: inside domains.
Otherwise it is irregular. Limits: one pattern for the whole matrix; several that overlap are irregular or hierarchical.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from simcore.errors import Message
from simcore.fabric.locality import Placement, by_place
from simcore.fabric.traffic import Floats, Ints

ENOUGH: Final = 0.8
EVEN: Final = 0.75
DENSE: Final = 0.9
BOTH: Final = 0.05  # the least share of each level of a hierarchy


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """A name, and a sentence with the evidence."""

    name: str
    message: Message

    def as_dict(self) -> Mapping[str, Any]:
        return {"name": self.name, **self.message.as_dict()}


def pattern_of(placement: Placement, source: Ints, target: Ints, moved_bytes: Floats) -> Pattern:
    found = next(_candidates(placement, source, target, moved_bytes), None)
    return found or _pattern(
        "irregular",
        template="irregular: {pairs:,} pairs exchange, and no single pattern covers {enough:.0%} of the bytes",
        pairs=len(source),
        enough=ENOUGH,
    )


def _candidates(placement: Placement, source: Ints, target: Ints, moved: Floats) -> Iterator[Pattern]:
    total, count = moved.sum(), placement.rank_count
    touched = np.bincount(source, moved, count) + np.bincount(target, moved, count)
    if count > 4 and touched.max() >= ENOUGH * total:
        yield _pattern(
            "hot_spot",
            template="a hot spot: rank {rank} is one end of {share:.0%} of the bytes",
            rank=int(touched.argmax()),
            share=float(touched.max() / total),
        )
    if len(source) >= DENSE * count * (count - 1) and count > 2 and moved.std() <= EVEN * moved.mean():
        yield _pattern(
            "all_to_all",
            template="all to all: {density:.0%} of the pairs exchange, {variation:.0%} around their mean",
            density=len(source) / (count * (count - 1)),
            variation=float(moved.std() / moved.mean()),
        )
    yield from _levels(placement, source, target, moved)
    yield from _regular(placement, source, target, moved)
    yield from _local(placement, source, target, moved)


def _regular(placement: Placement, source: Ints, target: Ints, moved: Floats) -> Iterator[Pattern]:
    """Bytes by distance, the same in both directions."""
    count, domain = placement.rank_count, placement.domain_size
    onward = (target - source) % count
    around = (target - source) % domain
    of_domain = (source // domain == target // domain) & (np.minimum(around, domain - around) == 1)
    next_to = of_domain | (np.minimum(onward, count - onward) == 1)
    share = float(moved[next_to].sum() / moved.sum())
    if share >= ENOUGH:
        yield _pattern(
            "ring",
            template="a nearest-neighbour ring: {share:.0%} of the bytes go to the next rank or the one before",
            share=share,
        )
    distance = np.abs(target - source)
    sums = np.bincount(distance, moved, count)
    step = int(sums.argmax())
    wrapped = float(moved[np.minimum(onward, count - onward) == min(step, count - step)].sum() / moved.sum())
    straight = float(sums[step] / moved.sum())
    if wrapped >= ENOUGH and wrapped > straight:
        yield _pattern(
            "strided_ring",
            template="a ring with stride {step:,}: {share:.0%} of the bytes go {step:,} ranks on or back",
            step=min(step, count - step),
            share=wrapped,
        )
    if straight >= ENOUGH:
        yield _pattern(
            "pipeline",
            template="a pipeline: {share:.0%} of the bytes go {step:,} ranks on or back, and none round the end",
            step=step,
            share=straight,
        )


def _levels(placement: Placement, source: Ints, target: Ints, moved: Floats) -> Iterator[Pattern]:
    domain, rail, _ = by_place(placement, source, target, moved) / moved.sum()
    if domain + rail >= ENOUGH and min(domain, rail) >= BOTH and placement.rail_count > 1:
        yield _pattern(
            "hierarchical",
            template="hierarchical: {inside:.0%} of the bytes stay in a scale-up domain and {rail:.0%} go along a rail",
            inside=float(domain),
            rail=float(rail),
        )


def _local(placement: Placement, source: Ints, target: Ints, moved: Floats) -> Iterator[Pattern]:
    domain = by_place(placement, source, target, moved)[0] / moved.sum()
    if domain >= ENOUGH and placement.rank_count > placement.domain_size:
        yield _pattern(
            "local",
            template="local: {inside:.0%} of the bytes stay in a scale-up domain of {size} ranks",
            inside=float(domain),
            size=placement.domain_size,
        )


def _pattern(name: str, *, template: str, **params: Any) -> Pattern:
    return Pattern(name=name, message=Message(code=f"pattern.{name}", template=template, params=params))
