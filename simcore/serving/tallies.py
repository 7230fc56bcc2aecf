"""What a run leaves behind beside its records: gaps between tokens by bin, and iterations by what they held."""

from __future__ import annotations

from typing import Any

import numpy as np

from simcore.compiled import compiled_in_place, inlined
from simcore.serving.state import (
    GAP_BINS,
    GAP_BINS_PER_OCTAVE_LOG2,
    GAP_LOWEST_EXPONENT,
)

_SHIFT = 52 - GAP_BINS_PER_OCTAVE_LOG2
_OFFSET = (1023 + GAP_LOWEST_EXPONENT) << GAP_BINS_PER_OCTAVE_LOG2


@inlined
def gap_bin(gap_s: float) -> int:
    """Bin of a gap: the exponent and the first bits of the mantissa of the float itself."""
    place = (np.float64(gap_s).view(np.int64) >> _SHIFT) - _OFFSET
    bounded: int = min(max(int(place), 0), GAP_BINS - 1)
    return bounded


@inlined
def add_gaps(gaps: Any, totals: Any, rate: float, slope: float, first: int, last: int, count: int) -> None:
    """Gaps of `count` sequences over steps first…last of a run."""
    steps = last - first + 1
    low, high = gap_bin(rate + slope * first), gap_bin(rate + slope * last)
    if low == high:
        gaps[low] += steps * count
    else:
        for step in range(first, last + 1):
            gaps[gap_bin(rate + slope * step)] += count
    totals.gaps += steps * count
    totals.gap_s += count * (rate * steps + slope * 0.5 * (first + last) * steps)


@compiled_in_place
def add_gap(gaps: Any, totals: Any, gap_s: float, count: int) -> None:
    """`count` equal gaps that are not one step of a run."""
    gaps[gap_bin(gap_s)] += count
    totals.gaps += count
    totals.gap_s += count * gap_s


@compiled_in_place
def looked_up(table: Any, setup: Any, count: int) -> float:
    """Entry `count` of a pool; beyond its last, that one in proportion (a prompt above the token budget)."""
    base, last = setup.token_base, setup.token_last
    value: float = table[base + count] if count <= last else table[base + last] * (count / last)
    return value


@compiled_in_place
def tally(histogram: Any, setup: Any, count: int, iterations: int) -> None:
    """Count iterations so that histogram · table is the sum of what `looked_up` gave."""
    base, last = setup.token_base, setup.token_last
    if count <= last:
        histogram[base + count] += iterations
    else:
        histogram[base + last] += iterations * (count / last)
