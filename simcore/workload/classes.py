"""Classes of requests: shares of one stream of arrivals that differ in length and in what was promised to them.

Each request's class comes from a stream of its own, so classes disturb no arrival. Lengths of all classes are
drawn from the same streams, of which each request keeps its class's: a class that has the workload's lengths
changes nothing, and two shares differ only in the requests that changed class.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Final

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, Field

from simcore.spec import Spec
from simcore.streams import stream
from simcore.workload.lengths import AnyLengths, Lengths, Pair, draw_lengths

MAX_CLASSES: Final = 32
_ROUNDING: Final = 1e-9


class Slo(Spec):
    """What was promised: both times must be met for a request to count as goodput."""

    ttft_s: float = Field(default=1.0, gt=0, le=86_400)
    tpot_s: float = Field(default=0.05, gt=0, le=3_600)
    attainment_fraction: float = Field(default=0.95, gt=0, le=1)


class RequestClass(Spec):
    """A share of the requests; without lengths or an SLO of its own it has the workload's.

    `priority` is read where the waiting line goes by it (the lowest is first), `weight` where the line is fair.
    """

    name: str = Field(min_length=1, max_length=60)
    share_fraction: float = Field(gt=0, le=1)
    lengths: Lengths | None = None
    slo: Slo | None = None
    priority: int = Field(default=0, ge=-1000, le=1000)
    weight: float = Field(default=1.0, ge=1e-3, le=1e3)


def _checked(classes: tuple[RequestClass, ...]) -> tuple[RequestClass, ...]:
    names = [one.name for one in classes]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{twice!r} is the name of more than one class; give each its own")
    whole = math.fsum(one.share_fraction for one in classes)
    if classes and abs(whole - 1.0) > _ROUNDING:
        raise ValueError(f"the shares sum to {whole:.9g}; every request has one class, so make them sum to 1")
    return classes


RequestClasses = Annotated[tuple[RequestClass, ...], Field(max_length=MAX_CLASSES), AfterValidator(_checked)]


def draw_classes(classes: Sequence[RequestClass], count: int, seed: int) -> NDArray[np.int64]:
    """The place in `classes` of each of `count` requests."""
    ends = np.cumsum([one.share_fraction for one in classes[:-1]])
    return np.searchsorted(ends, stream(seed, "workload", "classes").random(count), side="right")


def draw_lengths_of_classes(
    classes: Sequence[RequestClass], class_of: NDArray[np.int64], common: AnyLengths, seed: int
) -> Pair:
    """Input and output tokens of requests whose classes are known; `common` where a class has no lengths."""
    count = len(class_of)
    inputs, outputs = np.empty(count, np.int64), np.empty(count, np.int64)
    for place, one in enumerate(classes):
        drawn_inputs, drawn_outputs = draw_lengths(one.lengths or common, count, seed)
        np.copyto(inputs, drawn_inputs, where=class_of == place)
        np.copyto(outputs, drawn_outputs, where=class_of == place)
    return inputs, outputs
