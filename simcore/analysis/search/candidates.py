"""All candidates of a search with their closed-form figures, each figure one array.

A candidate is a row of columns and the lanes that it is made of; `overrides` says it as the inputs of a scenario.
Money and power of a chip count are linear in how busy chips are, so each distinct cluster is priced twice, idle and
full, and all its candidates lie between. What a price book does not price is not a number, and nothing unpriced is
ever best.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from simcore.analysis.search.apart import Pair, apart_columns, pairs
from simcore.analysis.search.columns import Columns, joined, together_columns
from simcore.analysis.search.lanes import Lane, Work, site_lanes
from simcore.analysis.search.space import Site
from simcore.analysis.search.spec import MOST_IS_BEST, Search
from simcore.cost.opex import HOURS_PER_YEAR
from simcore.serving.records import Floats
from simcore.why import constant

_ROLES: Final = ("both", "prefill", "decode")
_SECONDS_PER_YEAR: Final = HOURS_PER_YEAR * 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """Columns of all candidates; those of two pools come after those of one."""

    columns: Columns
    lanes: Sequence[Lane]
    pairs: Sequence[Pair]
    sites: Sequence[Site]
    site_of: NDArray[np.int64]
    figures: Mapping[str, Floats]  # by objective, and `output_token_per_s`, `power_w`

    def __len__(self) -> int:
        return len(self.columns)

    def apart(self, place: int) -> Pair | None:
        """The pair of a candidate whose prompts are computed elsewhere."""
        if not self.columns.prefill_replicas[place]:
            return None
        return self.pairs[int(self.columns.origin[place])]

    def lane(self, place: int) -> Lane:
        """The lane that decodes."""
        pair = self.apart(place)
        return self.lanes[int(self.columns.origin[place])] if pair is None else pair.decode

    def score(self, objective: str) -> Floats:
        """The smaller the better."""
        found = self.figures[objective]
        return -found if objective in MOST_IS_BEST else found


def candidates(sites: Sequence[Site], search: Search, work: Work, *, max_chips: int) -> Candidates:
    """Every candidate that holds the model, with its figures."""
    mixes: dict[Any, Any] = {}
    made = [lane for site in sites for lane in site_lanes(site, search, work, most=max_chips, mixes=mixes)]
    lanes, prefills, decodes = ([one for one in made if one.role == role] for role in _ROLES)
    found_pairs = list(pairs(prefills, decodes, work.requests))
    free = search.rate == "free"
    columns = joined(
        [
            together_columns(lanes, work.requests, max_chips=max_chips, free=free),
            apart_columns(found_pairs, work.requests, max_chips=max_chips, free=free),
        ]
    )
    return _figured(columns, lanes, found_pairs, work)


def _figured(columns: Columns, lanes: Sequence[Lane], found: Sequence[Pair], work: Work) -> Candidates:
    sites, site_of = _sites(columns, lanes, found)
    tco, power = _money(columns, sites, site_of)
    served = columns.served_request_per_s
    outputs = served * float(work.requests.output_tokens.mean())
    tokens = outputs + served * float(work.requests.input_tokens.mean())
    with np.errstate(divide="ignore", invalid="ignore"):
        per_second = 1e6 * tco / _SECONDS_PER_YEAR
        figures = {
            "usd_per_million_tokens": per_second / tokens,
            "usd_per_million_output_tokens": per_second / outputs,
            "ttft_s": columns.ttft_s,
            "tpot_s": columns.tpot_s,
            "output_token_per_s_per_chip": outputs / columns.chip_count,
            "joule_per_token": power / outputs,
            "chip_count": columns.chip_count.astype(np.float64),
            "tco_usd_per_year": tco,
        }
    kept = np.flatnonzero(np.isfinite(power))  # what can be wired
    return Candidates(
        columns=columns.taken(kept),
        lanes=lanes,
        pairs=found,
        sites=sites,
        site_of=site_of[kept],
        figures={name: values[kept] for name, values in figures.items()},
    )


def _sites(
    columns: Columns, lanes: Sequence[Lane], found: Sequence[Pair]
) -> tuple[list[Site], NDArray[np.int64]]:
    """The sites that hold anything, and which of them each candidate is on."""
    made = [[lane.site for lane in lanes], [pair.decode.site for pair in found]]
    listed = list({id(site): site for part in made for site in part}.values())
    place_of = {id(site): place for place, site in enumerate(listed)}
    site_of = np.zeros(len(columns), np.int64)
    together = columns.prefill_replicas == 0
    for rows, part in zip((together, ~together), made, strict=True):
        places = np.array([place_of[id(site)] for site in part], np.int64)
        site_of[rows] = places[columns.origin[rows]] if rows.any() else 0
    return listed, site_of


def _money(columns: Columns, sites: Sequence[Site], site_of: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """TCO per year and watts of each candidate."""
    distinct, which = np.unique(np.stack([site_of, columns.chip_count]), axis=1, return_inverse=True)
    ends = np.array([_ends(sites[place], int(count)) for place, count in distinct.T]).reshape(-1, 4)
    idle_usd, full_usd, idle_w, full_w = ends[which.ravel()].T
    busy = columns.busy_fraction
    return idle_usd + (full_usd - idle_usd) * busy, idle_w + (full_w - idle_w) * busy


def _ends(site: Site, chip_count: int) -> tuple[float, float, float, float]:
    """TCO and watts of a cluster, idle and full; not numbers where it is unpriced or cannot be wired."""
    cost = site.cost(chip_count)
    if cost is None:
        return (np.nan, np.nan, np.nan, np.nan)
    idle, full = constant(0.0, "utilisation_fraction"), constant(1.0, "utilisation_fraction")
    priced = all(line.priced for line in cost.bill if line.label == "chips")
    tco = [cost.tco(used).value if priced else np.nan for used in (idle, full)]
    return (tco[0], tco[1], cost.power(idle).value, cost.power(full).value)
