"""How deep a shock goes, how long it lasts and what it costs, and which ability bought how much of that.

The same requests are served twice, with the shocks and without; request by request, who met the SLO without them and
who does with them. In slices of time by arrival, `kept = met with ÷ met without`:

    dip       1 − the least of kept
    recovery  from the first shock to the end of the last slice in which kept is below 95 %
    lost      Σ (met without − met with) ÷ Σ met without, over the whole run

Pairing takes the chance of arrivals out: who has finished before the first shock has the same in both, and without
shocks nothing differs at all. Who arrived shortly before it may be interrupted, so a dip begins a little early.
What each ability bought is its Shapley value (Shapley 1953): its mean gain over all orders in which the abilities could
be added, so that the gains add up to what all of them buy together.

Limits: a slice without anybody who would have met the SLO says nothing and counts as kept; slices hold some fifty
requests in the mean, so a shorter dip shows as a shallower one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
RECOVERED_FRACTION: Final = 0.95
_PER_SLICE: Final = 50
_MOST_SLICES: Final = 120
_FEWEST_SLICES: Final = 10
_Name = TypeVar("_Name", bound=str)


@dataclass(frozen=True, slots=True, kw_only=True)
class Slices:
    """Equal slices of time, and which of them each request arrived in; −1: it never did."""

    edges_s: Floats
    place: NDArray[np.int64]

    @classmethod
    def of(cls, arrival_s: Floats) -> Slices:
        """Slices from the first arrival to the last."""
        there = np.isfinite(arrival_s)
        count = int(np.clip(there.sum() // _PER_SLICE, _FEWEST_SLICES, _MOST_SLICES))
        begin, end = (arrival_s[there].min(), arrival_s[there].max()) if there.any() else (0.0, 1.0)
        edges = np.linspace(begin, max(end, begin + 1e-9), count + 1)
        place = np.clip(np.searchsorted(edges, arrival_s, side="right") - 1, 0, count - 1)
        return cls(edges_s=edges, place=np.where(there, place, -1))

    def counts(self, flags: Flags) -> Floats:
        """How many of some requests arrived in each slice."""
        some = flags & (self.place >= 0)
        return np.bincount(self.place[some], minlength=len(self.edges_s) - 1).astype(np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """What a shock did to the goodput."""

    dip_fraction: float
    dip_at_s: float  # the middle of the slice that kept least
    recovery_s: float
    lost_fraction: float


def recovery(slices: Slices, met_without: Flags, met_with: Flags, *, first_shock_s: float) -> Recovery:
    """Dip, recovery and loss of one run against the same run without shocks."""
    steady, shocked = slices.counts(met_without), slices.counts(met_with)
    kept = np.divide(shocked, steady, out=np.ones_like(steady), where=steady > 0)
    least = int(kept.argmin())
    below = np.flatnonzero(kept < RECOVERED_FRACTION)
    whole = float(steady.sum())
    edges = slices.edges_s
    return Recovery(
        dip_fraction=float(1.0 - kept[least]),
        dip_at_s=float(edges[least] + edges[least + 1]) / 2,
        recovery_s=max(0.0, float(edges[below[-1] + 1]) - first_shock_s) if len(below) else 0.0,
        lost_fraction=float(steady.sum() - shocked.sum()) / whole if whole else 0.0,
    )


def shapley(names: Sequence[_Name], value: Callable[[frozenset[str]], float]) -> dict[_Name, float]:
    """What each member adds to `value`, over all orders of joining; the sum is `value(all) − value(nobody)`.

    >>> shapley(["a", "b"], lambda some: float(len(some) == 2))
    {'a': 0.5, 'b': 0.5}
    """
    found: dict[_Name, float] = {}
    for name in names:
        others = [one for one in names if one != name]
        found[name] = sum(
            (value(frozenset(some) | {name}) - value(frozenset(some)))
            / (len(names) * comb(len(others), size))
            for size in range(len(names))
            for some in combinations(others, size)
        )
    return found
