"""Distributions of times: exact by sorting, or sketched where there are too many to hold at once.

A sketch counts times by bin (DDSketch: Masson, Rim, Lee 2019, with linear bins inside each octave): its memory is that
of the bins whatever is added, and sketches of parts add up to that of the whole. Bins are under 0.8 % wide and stand
for the value that is equally far from both ends, so a quantile is off by at most `RELATIVE_ERROR_FRACTION`. Times
under 1 ns are counted as none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

import numpy as np

from simcore.serving.records import Floats, Integers

_PARTS_LOG2: Final = 7  # of an octave
_LOWEST_EXPONENT: Final = -30  # 1 ns
_OCTAVES: Final = 64  # up to 2**34 s, five centuries
_BINS: Final = 1 + (_OCTAVES << _PARTS_LOG2)
_MANTISSA_BITS: Final = 52
_SHIFT: Final = _MANTISSA_BITS - _PARTS_LOG2
_FIRST: Final = (1023 + _LOWEST_EXPONENT) << _PARTS_LOG2  # of the bits of 1 ns, those that tell its bin
RELATIVE_ERROR_FRACTION: Final = 1.0 / ((2 << _PARTS_LOG2) + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ordered:
    """Every time, in increasing order."""

    times_s: Floats

    @classmethod
    def of(cls, times_s: Floats) -> Self:
        """None may be negative or NaN."""
        return cls(times_s=np.sort(times_s))

    def __len__(self) -> int:
        return len(self.times_s)

    @property
    def mean_s(self) -> float:
        return float(self.times_s.mean())

    def at(self, fractions: Floats) -> Floats:
        """Quantiles, linear between order statistics."""
        place = fractions * (len(self) - 1)
        low = np.floor(place).astype(np.int64)
        high = np.minimum(low + 1, len(self) - 1)
        quantiles: Floats = self.times_s[low] + (place - low) * (self.times_s[high] - self.times_s[low])
        return quantiles


@dataclass(frozen=True, slots=True, kw_only=True)
class Sketch:
    """How many times lie in each bin, and what is known of them exactly."""

    counts: Integers  # the first: under 1 ns
    sum_s: float
    lowest_s: float
    highest_s: float

    @classmethod
    def of(cls, times_s: Floats) -> Self:
        """None may be negative or NaN.

        >>> Sketch.of(np.array([0.0, 1.0, 2.0])).at(np.array([0.0, 1.0]))
        array([0., 2.])
        """
        bits = np.ascontiguousarray(times_s).view(np.int64) >> _SHIFT
        places = np.clip(bits - (_FIRST - 1), 0, _BINS - 1)
        return cls(
            counts=np.bincount(places, minlength=_BINS),
            sum_s=float(times_s.sum()),
            lowest_s=float(times_s.min(initial=np.inf)),
            highest_s=float(times_s.max(initial=0.0)),
        )

    def __add__(self, other: Sketch) -> Sketch:
        return Sketch(
            counts=self.counts + other.counts,
            sum_s=self.sum_s + other.sum_s,
            lowest_s=min(self.lowest_s, other.lowest_s),
            highest_s=max(self.highest_s, other.highest_s),
        )

    def __len__(self) -> int:
        return int(self.counts.sum())

    @property
    def mean_s(self) -> float:
        """Exact."""
        return self.sum_s / len(self)

    def at(self, fractions: Floats) -> Floats:
        """Quantiles, linear between order statistics, each read as the value of its bin."""
        reached = np.cumsum(self.counts)
        place = fractions * (len(self) - 1)
        low = np.floor(place).astype(np.int64)
        high = np.minimum(low + 1, len(self) - 1)
        ends = (_VALUES_S[np.searchsorted(reached, rank, side="right")] for rank in (low, high))
        below, above = (np.clip(end, self.lowest_s, self.highest_s) for end in ends)
        quantiles: Floats = below + (place - low) * (above - below)
        return quantiles


def _values_s() -> Floats:
    """What each bin stands for: 2ab / (a + b), as far in proportion from a as from b."""
    parts = 1 << _PARTS_LOG2
    place = np.arange(_BINS)
    edges = 2.0 ** (place // parts + _LOWEST_EXPONENT) * (1.0 + (place % parts) / parts)
    below, above = edges[:-1], edges[1:]
    return np.append(0.0, 2.0 * below * above / (below + above))


_VALUES_S: Final = _values_s()
Distribution = Ordered | Sketch
