"""Where traffic stays: inside a scale-up domain, on a rail, in a block of ranks; and the matrix in coarse cells.

Rank i is chip i along the fabric: domain `i // K`, rail its place among the domain's NICs. A flow is *domain* where
both ends share the scale-up domain, else *rail* where they hang on the same rail, else *other*: the last must cross
rails, in the network's upper tiers or by one more hop inside a domain.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np

from simcore.fabric.traffic import Floats, Ints

Place = Literal["domain", "rail", "other"]
PLACES: Final[tuple[Place, ...]] = ("domain", "rail", "other")
View = Literal["rank", "domain", "rail"]
MOST_CELLS: Final = 64  # along one side of a coarse matrix


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """How ranks lie on chips."""

    rank_count: int
    domain_size: int
    chips_per_nic: int = 1

    @property
    def rail_count(self) -> int:
        return max(1, min(self.domain_size, self.rank_count) // self.chips_per_nic)

    def domain_of(self, ranks: Ints) -> Ints:
        return ranks // self.domain_size

    def rail_of(self, ranks: Ints) -> Ints:
        return ranks % self.domain_size // self.chips_per_nic % self.rail_count

    def place_of(self, source: Ints, target: Ints) -> Ints:
        """Index into PLACES of each pair."""
        same_rail = self.rail_of(source) == self.rail_of(target)
        same_domain = self.domain_of(source) == self.domain_of(target)
        return np.where(same_domain, 0, np.where(same_rail, 1, 2))


@dataclass(frozen=True, slots=True, kw_only=True)
class Coarse:
    """Bytes between blocks of ranks: cells that carry something."""

    view: View
    block_count: int
    ranks_per_block: int  # of a block of ranks; of domains, how many domains; of a rail, 1
    row: Ints
    column: Ints
    moved_bytes: Floats

    def as_dict(self) -> Mapping[str, Any]:
        return {
            "view": self.view,
            "block_count": self.block_count,
            "ranks_per_block": self.ranks_per_block,
            "row": self.row.tolist(),
            "column": self.column.tolist(),
            "bytes": [float(f"{value:.4g}") for value in self.moved_bytes.tolist()],
        }


def by_place(placement: Placement, source: Ints, target: Ints, moved_bytes: Floats) -> Floats:
    """Bytes in each of PLACES."""
    place = placement.place_of(source, target)
    return np.bincount(place, moved_bytes, len(PLACES)).astype(np.float64)


def coarse(
    placement: Placement,
    view: View,
    source: Ints,
    target: Ints,
    moved_bytes: Floats,
    *,
    most: int = MOST_CELLS,
) -> Coarse:
    """The matrix in at most `most` blocks a side, evenly cut."""
    units, of_rank = _units(placement, view)
    each = -(-units // most)
    count = -(-units // each)
    row, column = of_rank(source) // each, of_rank(target) // each
    sums = np.bincount(row * count + column, moved_bytes, count * count).astype(np.float64)
    carrying = np.flatnonzero(sums)
    return Coarse(
        view=view,
        block_count=count,
        ranks_per_block=each,
        row=carrying // count,
        column=carrying % count,
        moved_bytes=sums[carrying],
    )


def _units(placement: Placement, view: View) -> tuple[int, Any]:
    if view == "rank":
        return placement.rank_count, lambda ranks: ranks
    if view == "domain":
        return -(-placement.rank_count // placement.domain_size), placement.domain_of
    return placement.rail_count, placement.rail_of


def views(placement: Placement, source: Ints, target: Ints, moved_bytes: Floats) -> list[Mapping[str, Any]]:
    """The three coarse matrices; one of domains or rails only where there are several."""
    found = [coarse(placement, "rank", source, target, moved_bytes)]
    if placement.rank_count > placement.domain_size > 1:
        found.append(coarse(placement, "domain", source, target, moved_bytes))
    if placement.rail_count > 1:
        found.append(coarse(placement, "rail", source, target, moved_bytes))
    return [one.as_dict() for one in found]


def inside_blocks(
    source: Ints, target: Ints, moved_bytes: Floats, *, rank_count: int
) -> list[tuple[int, float]]:
    """The share of bytes that stays in aligned blocks of 1, 2, 4, … ranks: pairs of block size and share.

    >>> inside_blocks(np.array([0, 0]), np.array([1, 2]), np.array([3.0, 1.0]), rank_count=4)
    [(1, 0.0), (2, 0.75), (4, 1.0)]
    """
    apart = source ^ target  # the highest differing bit says in which block both first lie
    bits = np.frexp(apart.astype(np.float64))[1]
    sums = np.cumsum(np.bincount(bits, moved_bytes, max(1, (rank_count - 1).bit_length()) + 1))
    return [(2**power, float(sums[power] / sums[-1])) for power in range((rank_count - 1).bit_length() + 1)]
