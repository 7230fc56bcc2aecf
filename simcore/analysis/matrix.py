"""What a traffic matrix says, before a topology is chosen for it.

Locality counts bytes inside a scale-up domain, between domains on one rail, and across rails (`fabric/locality.py`);
rail affinity is the rail's share of what leaves a domain (a uniform matrix has 1 ÷ rails). Imbalance is the busiest
rank over the mean, by what it sends and by what it gets. Density is the share of ordered pairs that exchange anything.
Message figures are there where the file has them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from simcore.analysis.pattern import Pattern, pattern_of
from simcore.fabric.locality import PLACES, Placement, by_place, inside_blocks, views
from simcore.fabric.traffic import Floats, FlowGroup, Flows, Ints
from simcore.measurements.matrix import MeasuredMatrix

BUSIEST: Final = 10
_MEASURED: Final = FlowGroup(name="measured", traffic_class="core")


@dataclass(frozen=True, slots=True, kw_only=True)
class Locality:
    """Traffic of one of PLACES."""

    place: str
    moved_bytes: float
    share_fraction: float
    pair_count: int
    message_count: float | None
    latency_sensitive_fraction: float | None  # of its bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixSummary:
    """Everything in figures; `views` are the coarse matrices to draw."""

    rank_count: int
    domain_size: int
    total_bytes: float
    pair_count: int
    density_fraction: float
    message_count: float | None
    mean_message_bytes: float | None
    message_per_s: float | None
    duration_s: float | None
    latency_sensitive_fraction: float | None  # of the bytes
    locality: tuple[Locality, ...]
    rail_affinity_fraction: float | None
    uniform_rail_affinity_fraction: float | None
    send_imbalance_ratio: float
    receive_imbalance_ratio: float
    inside_blocks: tuple[tuple[int, float], ...]
    busiest: tuple[tuple[int, int, float], ...]
    pattern: Pattern
    views: tuple[Mapping[str, Any], ...]

    def as_dict(self) -> dict[str, Any]:
        found = {name: getattr(self, name) for name in self.__slots__}
        found["locality"] = [{name: getattr(one, name) for name in one.__slots__} for one in self.locality]
        found["pattern"] = self.pattern.as_dict()
        for name in ("inside_blocks", "busiest"):
            found[name] = [list(row) for row in found[name]]
        return found | {"views": list(self.views)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """The cells of a matrix that carry something."""

    source: Ints
    target: Ints
    moved_bytes: Floats
    message_count: Floats | None
    latency_sensitive_fraction: Floats | None


def pairs_of(matrix: MeasuredMatrix) -> Pairs:
    source, target = np.nonzero(matrix.moved_bytes)

    def picked(array: Floats | None) -> Floats | None:
        return None if array is None else array[source, target]

    return Pairs(
        source=source,
        target=target,
        moved_bytes=matrix.moved_bytes[source, target],
        message_count=picked(matrix.message_count),
        latency_sensitive_fraction=picked(matrix.latency_sensitive_fraction),
    )


def flows_of(pairs: Pairs) -> Flows:
    """The matrix as flows of one group, all on the critical path."""
    return Flows(
        source=pairs.source,
        target=pairs.target,
        moved_bytes=pairs.moved_bytes,
        group_of=np.zeros(len(pairs.source), np.int64),
        groups=(_MEASURED,),
    )


def summarise(matrix: MeasuredMatrix, placement: Placement, pairs: Pairs | None = None) -> MatrixSummary:
    pairs = pairs or pairs_of(matrix)
    total, count = float(pairs.moved_bytes.sum()), matrix.rank_count
    messages = None if pairs.message_count is None else float(pairs.message_count.sum())
    sensitive = _weighted(pairs.latency_sensitive_fraction, pairs.moved_bytes)
    places = by_place(placement, pairs.source, pairs.target, pairs.moved_bytes)
    leaving = float(places[1:].sum())
    several_rails = placement.rail_count > 1 and leaving > 0
    return MatrixSummary(
        rank_count=count,
        domain_size=placement.domain_size,
        total_bytes=total,
        pair_count=len(pairs.source),
        density_fraction=len(pairs.source) / (count * (count - 1)),
        message_count=messages,
        mean_message_bytes=total / messages if messages else None,
        message_per_s=messages / matrix.duration_s if messages and matrix.duration_s else None,
        duration_s=matrix.duration_s,
        latency_sensitive_fraction=sensitive,
        locality=_localities(placement, pairs, places),
        rail_affinity_fraction=float(places[1]) / leaving if several_rails else None,
        uniform_rail_affinity_fraction=1 / placement.rail_count if several_rails else None,
        send_imbalance_ratio=_imbalance(np.bincount(pairs.source, pairs.moved_bytes, count)),
        receive_imbalance_ratio=_imbalance(np.bincount(pairs.target, pairs.moved_bytes, count)),
        inside_blocks=tuple(inside_blocks(pairs.source, pairs.target, pairs.moved_bytes, rank_count=count)),
        busiest=_busiest(pairs),
        pattern=pattern_of(placement, pairs.source, pairs.target, pairs.moved_bytes),
        views=tuple(views(placement, pairs.source, pairs.target, pairs.moved_bytes)),
    )


def _weighted(shares: Floats | None, weights: Floats) -> float | None:
    return None if shares is None else float(shares @ weights / weights.sum())


def _imbalance(of_rank: Any) -> float:
    return float(of_rank.max() / of_rank.mean())


def _localities(placement: Placement, pairs: Pairs, places: Floats) -> tuple[Locality, ...]:
    place, total = placement.place_of(pairs.source, pairs.target), places.sum()
    counts = np.bincount(place, minlength=len(PLACES))
    messages, sensitive = (
        None if values is None else np.bincount(place, values, len(PLACES))
        for values in (
            pairs.message_count,
            None
            if pairs.latency_sensitive_fraction is None
            else pairs.latency_sensitive_fraction * pairs.moved_bytes,
        )
    )
    return tuple(
        Locality(
            place=name,
            moved_bytes=float(places[at]),
            share_fraction=float(places[at] / total),
            pair_count=int(counts[at]),
            message_count=None if messages is None else float(messages[at]),
            latency_sensitive_fraction=(
                None if sensitive is None or not places[at] else float(sensitive[at] / places[at])
            ),
        )
        for at, name in enumerate(PLACES)
    )


def _busiest(pairs: Pairs) -> tuple[tuple[int, int, float], ...]:
    most = min(BUSIEST, len(pairs.source))
    found = np.argpartition(-pairs.moved_bytes, most - 1)[:most]
    order = found[np.lexsort((pairs.target[found], pairs.source[found], -pairs.moved_bytes[found]))]
    return tuple((int(pairs.source[at]), int(pairs.target[at]), float(pairs.moved_bytes[at])) for at in order)
