"""When flows finish that share the links of a network fairly.

All flows start together. While they run each has its max-min fair rate (`simcore.fabric.water_filling`): it cannot
be raised without lowering one that is no higher. As flows finish the rest share anew. Under *strict* priority
`core` takes what it can, then `inter_domain` and `management` what is left; *weights* by class share in proportion.

Rates change some `_ENTRIES ÷ (flow-link pairs)` times, 4 to 256. Where flows finish at no more instants than that the
result is exact; else each change waits for its share of those to come, a quarter at most, and what earlier ones free
in between goes unused: every time is then an upper bound. Limits: a fluid; no queues, latency or congestion control.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from simcore.fabric.base import Fabric
from simcore.fabric.links import Network
from simcore.fabric.routing import Paths, Routing, paths_of
from simcore.fabric.traffic import TRAFFIC_CLASSES, Flows, TrafficClass
from simcore.fabric.water_filling import fill, transposed

Sharing = Literal["max_min", "strict"] | Mapping[TrafficClass, float]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
_ENTRIES: Final = 16_000_000
_MOST_CHANGES: Final = 256
_FEWEST_LEFT: Final = 4
_SAME_INSTANT: Final = 1e-9
_USED_UP: Final = 1e-9  # of a link's capacity


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """When each flow ends, and the last one of all, of each group and of each class."""

    finish_s: Floats  # infinite where no path is left
    makespan_s: float  # of those that arrive
    group_s: Mapping[str, float]
    class_s: Mapping[TrafficClass, float]
    unreachable_count: int
    unreachable_bytes: float


@dataclass(frozen=True, slots=True)
class _Shared:
    """Rows both ways round, and the flows that are served together, first come first."""

    paths: Paths
    starts: Ints
    flow_of: Ints
    weight_ratio: Floats
    turns: tuple[Bools, ...]


def sharing_of(fabric: Fabric) -> Sharing:
    """How the fabric's links are shared among classes."""
    if fabric.class_sharing == "weighted":
        return dict(zip(TRAFFIC_CLASSES, fabric.class_weight_ratio, strict=True))
    return fabric.class_sharing


def completion(
    network: Network, flows: Flows, *, routing: Routing, sharing: Sharing = "max_min", seed: int = 0
) -> Completion:
    """Finish times of all flows under the routing and the sharing."""
    paths = paths_of(network, flows, routing=routing, seed=seed)
    finish_s = finish_times(paths, flows.moved_bytes, _kinds(flows), sharing)
    lost = paths.is_unreachable
    arrives = np.where(lost, 0.0, finish_s)
    names = [group.name for group in flows.groups]
    return Completion(
        finish_s=finish_s,
        makespan_s=float(arrives.max(initial=0.0)),
        group_s=dict(zip(names, _latest(arrives, flows.group_of, len(names)), strict=True)),
        class_s=dict(
            zip(TRAFFIC_CLASSES, _latest(arrives, _kinds(flows), len(TRAFFIC_CLASSES)), strict=True)
        ),
        unreachable_count=int(lost.sum()),
        unreachable_bytes=float(flows.moved_bytes[lost].sum()),
    )


def _kinds(flows: Flows) -> Ints:
    kinds = [TRAFFIC_CLASSES.index(group.traffic_class) for group in flows.groups]
    return np.array(kinds, np.int64)[flows.group_of]


def _latest(finish_s: Floats, part_of: Ints, count: int) -> list[float]:
    latest = np.zeros(count)
    np.maximum.at(latest, part_of, finish_s)
    return [float(value) for value in latest]


def max_min_rates(paths: Paths, kind_of: Ints, sharing: Sharing, running: Bools | None = None) -> Floats:
    """Rates of the running flows while none of them finishes; flows without links have rate 0."""
    everyone = np.ones(len(kind_of), np.bool_) if running is None else running
    return _rates(_shared(paths, kind_of, sharing), everyone)


def _shared(paths: Paths, kind_of: Ints, sharing: Sharing) -> _Shared:
    starts, flow_of = transposed(paths.row_start, paths.resource, len(paths.capacity_bytes_per_s))
    has_links = (np.diff(paths.row_start) > 0) & ~paths.is_unreachable
    weight = np.ones(len(kind_of))
    turns: tuple[Bools, ...] = (has_links,)
    if sharing == "strict":
        turns = tuple(has_links & (kind_of == kind) for kind in range(len(TRAFFIC_CLASSES)))
    elif isinstance(sharing, Mapping):
        weight = np.array([sharing.get(name, 1.0) for name in TRAFFIC_CLASSES])[kind_of]
    return _Shared(paths, starts, flow_of, weight, turns)


def _rates(shared: _Shared, running: Bools) -> Floats:
    paths = shared.paths
    spare, rate = paths.capacity_bytes_per_s.copy(), np.zeros(len(running))
    for turn in shared.turns:
        growing = turn & running
        if growing.any():
            fill(
                paths.row_start,
                paths.resource,
                paths.share_fraction,
                shared.starts,
                shared.flow_of,
                shared.weight_ratio,
                growing,
                spare,
                rate,
            )
            spare[spare <= _USED_UP * paths.capacity_bytes_per_s] = (
                0.0  # the next class gets no rounding errors
            )
    return rate


def finish_times(paths: Paths, moved_bytes: Floats, kind_of: Ints, sharing: Sharing) -> Floats:
    """Finish time of each flow; those without links end at once, those without a path never."""
    shared = _shared(paths, kind_of, sharing)
    finish_s = np.where(paths.is_unreachable, np.inf, 0.0)
    left = np.where(np.diff(paths.row_start) > 0, moved_bytes, 0.0)
    running = (left > 0) & ~paths.is_unreachable
    changes = min(_MOST_CHANGES, max(_FEWEST_LEFT, _ENTRIES // max(1, len(paths.resource))))
    now = 0.0
    while running.any():
        rate = _rates(shared, running)
        moving = np.flatnonzero(running & (rate > 0))
        needs_s = left[moving] / rate[moving]
        lasts_s = _until_next_change(needs_s, changes)
        ends = needs_s <= lasts_s * (1 + _SAME_INSTANT)
        finish_s[moving[ends]] = now + needs_s[ends]
        left[moving] -= rate[moving] * lasts_s
        running[moving[ends]] = False
        now += lasts_s
        changes = max(_FEWEST_LEFT, changes - 1)
    return finish_s


def _until_next_change(needs_s: Floats, changes: int) -> float:
    """The next finish, or a later one where there are more different ones than changes left."""
    ordered = np.sort(needs_s)
    instants = ordered[np.diff(ordered, prepend=-np.inf) > _SAME_INSTANT * ordered]
    return float(instants[max(0, -(-len(instants) // changes) - 1)])
