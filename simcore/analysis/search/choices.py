"""Which candidates are feasible, which are best, which no other beats, and what would have to give where none is.

Limits: mean TTFT and TPOT, load over capacity, chips. The frontier is that of token/s per chip against token/s per
user (1 / TPOT). Where nothing is feasible, each limit is relaxed in turn, all others kept, to the least value at which
some candidate is; the one that gives least, as a ratio, is the nearest relaxation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from simcore.analysis.search.candidates import Candidates
from simcore.serving.records import Floats

Limits = Mapping[str, float]
_ROUNDING: Final = 1 + 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Relaxation:
    """One limit moved as little as lets something in: the candidate that is best then."""

    limit: str
    asked: float
    needed: float
    place: int

    @property
    def ratio(self) -> float:
        return self.needed / self.asked


def measured(found: Candidates, limit: str) -> Floats:
    """What a limit is on, of every candidate."""
    return found.columns.load_ratio if limit == "load_ratio" else found.figures[limit]


def feasible(found: Candidates, limits: Limits, *, but: str = "") -> NDArray[np.bool_]:
    """Which candidates keep every limit, or every one but one."""
    kept = np.ones(len(found), bool)
    for name, limit in limits.items():
        if name != but:
            kept &= measured(found, name) <= limit * _ROUNDING
    return kept


def best(found: Candidates, among: NDArray[np.bool_], objective: str) -> int | None:
    """The place of the best; of equals the one with fewer chips, then the quicker. None: nothing has a figure."""
    score = found.score(objective)
    places = np.flatnonzero(among & np.isfinite(score))
    if not len(places):
        return None
    order = np.lexsort((found.figures["tpot_s"][places], found.columns.chip_count[places], score[places]))
    return int(places[order[0]])


def frontier(found: Candidates, among: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Places that none beats in both token/s per chip and token/s per user, from the most per chip on."""
    places = np.flatnonzero(among & np.isfinite(found.figures["tpot_s"]))
    per_chip, tpot_s = (found.figures[name][places] for name in ("output_token_per_s_per_chip", "tpot_s"))
    order = np.lexsort((found.columns.chip_count[places], tpot_s, -per_chip))
    least = np.minimum.accumulate(np.append(np.inf, tpot_s[order]))[:-1]
    kept: NDArray[np.int64] = places[order[tpot_s[order] < least]]
    return kept


def thinned(places: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """At most so many, evenly along the line, both ends among them."""
    if len(places) <= most:
        return places
    kept: NDArray[np.int64] = places[
        np.unique(np.linspace(0, len(places) - 1, max(1, most)).round().astype(int))
    ]
    return kept


def relaxations(found: Candidates, limits: Limits, objective: str) -> list[Relaxation]:
    """For each limit that alone is in the way, the least that lets something in; the nearest first."""
    moved = []
    for name, asked in limits.items():
        others = feasible(found, limits, but=name)
        values = np.where(others, measured(found, name), np.inf)
        if not len(values) or not np.isfinite(values.min()):
            continue
        needed = float(values.min())
        place = best(found, others & (values <= needed * _ROUNDING), objective)
        if place is not None:
            moved.append(Relaxation(limit=name, asked=asked, needed=needed, place=place))
    return sorted(moved, key=lambda one: one.ratio)


def nearest(found: Candidates, limits: Limits) -> tuple[int, dict[str, float]] | None:
    """Where no single limit is in the way: the candidate whose worst overrun is least, and what each would be."""
    if not len(found):
        return None
    over = np.max([measured(found, name) / limit for name, limit in limits.items()], axis=0)
    if not np.isfinite(over.min()):
        return None
    place = int(np.argmin(over))
    return place, {name: float(measured(found, name)[place]) for name in limits}


def by_chip(
    found: Candidates, among: NDArray[np.bool_], objective: str, chips: Sequence[str]
) -> dict[str, int | None]:
    """The best of each chip."""
    chip_of = np.array([site.chip for site in found.sites])[found.site_of]
    return {chip: best(found, among & (chip_of == chip), objective) for chip in chips}
