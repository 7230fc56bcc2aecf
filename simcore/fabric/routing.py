"""The ways that flows take through a network, and what they load on every link.

`ecmp` splits each flow evenly over the links that lead nearer to its target, hop by hop; `minimal_adaptive` splits
it evenly over all shortest paths (on a torus: all of the minimal quadrant, counted exactly). `hashed` sends each
flow whole over links that a hash chooses, `adaptive` over the least loaded, the largest flow first,
`dimension_order` along one axis after the other (on switches: over the first link). All are minimal.

An even split is exact on groups of alike vertices (`simcore.fabric.symmetry`): a flow then uses some *bundles* of
links that all carry the same, not single cables. Limits: no detours; a flow that no path is left for is reported.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from simcore.errors import InputError
from simcore.fabric import single_paths
from simcore.fabric.base import Fabric
from simcore.fabric.even_split import pushed, spread
from simcore.fabric.legs import Legs, legs_of
from simcore.fabric.links import Network
from simcore.fabric.rows import assembled
from simcore.fabric.traffic import TRAFFIC_CLASSES, Flows
from simcore.streams import stream

Routing = Literal["ecmp", "hashed", "adaptive", "dimension_order", "minimal_adaptive"]
ROUTINGS: Final[tuple[Routing, ...]] = get_args(Routing)
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
_EVEN: Final = ("ecmp", "minimal_adaptive")
_CHOICE: Final = {
    "hashed": single_paths.HASHED,
    "adaptive": single_paths.ADAPTIVE,
    "dimension_order": single_paths.LOWEST_AXIS,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Loads:
    """Bytes on every directed link of a network, in all and by traffic class (rows)."""

    moved_bytes: Floats
    class_bytes: Floats
    is_unreachable: Bools  # by flow


@dataclass(frozen=True, slots=True, kw_only=True)
class Paths:
    """What each flow uses, as rows: ports and NICs, then cables, or bundles of cables under an even split."""

    row_start: Ints
    resource: Ints
    share_fraction: Floats  # of the flow that goes over it
    capacity_bytes_per_s: Floats  # by resource
    is_unreachable: Bools


MOST_DISTANCES: Final = 1_200_000_000  # of two bytes: 32,768 chips that all talk, on a torus


def default_routing(*, is_lattice: bool) -> Routing:
    """Dimension order on a lattice, as tori of chips do it; even ECMP over switches."""
    return "dimension_order" if is_lattice else "ecmp"


def routing_of(fabric: Fabric, network: Network) -> Routing:
    """What the fabric asks for; refused where the network cannot do it."""
    if fabric.routing == "auto":
        return default_routing(is_lattice=network.is_lattice)
    _check(network, fabric.routing)
    return fabric.routing


def _check(network: Network, routing: Routing) -> None:
    if routing == "dimension_order" and not network.is_lattice:
        raise InputError.at(
            "topology.routing",
            "fabric.routing",
            "got dimension_order, but {kind} has no dimensions; use one of {allowed}",
            kind=network.kind,
            allowed=", ".join(name for name in ROUTINGS if name != "dimension_order"),
        )


def can_be_walked(network: Network, flows: Flows, *, routing: Routing) -> bool:
    """Whether the distances that single paths are found by fit in memory: a row of all vertices for each target."""
    targets = len(np.unique(flows.target))
    return routing in _EVEN or targets * len(network.vertices) <= MOST_DISTANCES


def link_loads(network: Network, flows: Flows, *, routing: Routing, seed: int = 0) -> Loads:
    """What all flows put on every link; those that nothing can carry put nothing."""
    _check(network, routing)
    legs = legs_of(network, flows)
    kinds = np.array([TRAFFIC_CLASSES.index(group.traffic_class) for group in flows.groups], np.int64)
    kind_of = kinds[flows.group_of]
    cut = legs.is_cut.copy()
    if routing in _EVEN:
        on_cables = _even_loads(network, flows, legs, kind_of, cut, by_paths=routing == "minimal_adaptive")
    else:
        on_cables = _path_loads(network, flows, legs, kind_of, cut, routing, seed)
    ends = _end_loads(network, legs, np.where(cut, 0.0, flows.moved_bytes), kind_of)
    class_bytes = np.concatenate([ends, on_cables], axis=1)
    return Loads(moved_bytes=class_bytes.sum(axis=0), class_bytes=class_bytes, is_unreachable=cut)


def _end_loads(network: Network, legs: Legs, moved_bytes: Floats, kind_of: Ints) -> Floats:
    """Loads of ports and NICs by class."""
    ports, nics, kinds = network.port_count, network.nic_count, len(TRAFFIC_CLASSES)
    found = []
    for used, count in (
        (legs.port_out, ports),
        (legs.port_in, ports),
        (legs.nic_up, nics),
        (legs.nic_down, nics),
    ):
        there = used >= 0
        key = kind_of[there] * count + used[there]
        found.append(_summed(key, moved_bytes[there], kinds * count).reshape(kinds, count))
    return np.concatenate(found, axis=1)


def _even_loads(
    network: Network, flows: Flows, legs: Legs, kind_of: Ints, cut: Bools, *, by_paths: bool
) -> Floats:
    """Loads of cables by class; marks what no path is left for in `cut`."""
    symmetry, kinds = network.symmetry, len(TRAFFIC_CLASSES)
    pairs = _pairs(network, legs, ~cut)
    key = pairs.pair_of * kinds + kind_of[pairs.flows]
    volume = _summed(key, flows.moved_bytes[pairs.flows], kinds * len(pairs.source)).reshape(-1, kinds)
    unreached = np.zeros(len(pairs.source), np.bool_)
    loads = pushed(
        pairs.source,
        pairs.target,
        volume,
        symmetry.row_start,
        symmetry.head,
        symmetry.links,
        symmetry.group_size,
        by_paths,
        unreached,
    )
    cut[pairs.flows] |= unreached[pairs.pair_of]
    each = loads / symmetry.links[:, None]
    return each[symmetry.bundle_of].T


def _path_loads(
    network: Network, flows: Flows, legs: Legs, kind_of: Ints, cut: Bools, routing: Routing, seed: int
) -> Floats:
    travelling, starts, cables = _walk(network, flows, legs, cut, routing, seed)
    count, kinds = len(network.cables.tail), len(TRAFFIC_CLASSES)
    lengths = np.diff(starts)
    key = np.repeat(kind_of[travelling], lengths) * count + cables
    moved = np.repeat(flows.moved_bytes[travelling], lengths)
    return _summed(key, moved, kinds * count).reshape(kinds, count)


def _summed(key: Ints, moved_bytes: Floats, count: int) -> Floats:
    return np.bincount(key, moved_bytes, minlength=count).astype(np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pairs:
    """Distinct pairs of groups between which flows go through the network, sorted by target."""

    flows: Ints
    pair_of: Ints  # by such flow
    source: Ints
    target: Ints


def _pairs(network: Network, legs: Legs, alive: Bools) -> _Pairs:
    travelling = np.flatnonzero(alive & (legs.source_vertex != legs.target_vertex))
    group_of, groups = network.symmetry.group_of, len(network.symmetry.group_size)
    key = group_of[legs.target_vertex[travelling]] * groups + group_of[legs.source_vertex[travelling]]
    found, pair_of = _distinct(key, groups * groups)
    return _Pairs(
        flows=travelling, pair_of=pair_of, source=found % max(1, groups), target=found // max(1, groups)
    )


def _distinct(key: Ints, size: int) -> tuple[Ints, Ints]:
    """Sorted distinct keys and the place of each key among them; by a table where that is small."""
    if size > 1 << 24:
        found, place = np.unique(key, return_inverse=True)
        return found, place
    present = np.zeros(size, np.bool_)
    present[key] = True
    found = np.flatnonzero(present)
    table = np.empty(size, np.int64)
    table[found] = np.arange(len(found))
    return found, table[key]


def _walk(
    network: Network, flows: Flows, legs: Legs, cut: Bools, routing: Routing, seed: int
) -> tuple[Ints, Ints, Ints]:
    """Flows that go over cables, and those cables in rows; marks what no path is left for in `cut`."""
    cables, vertices = network.cables, len(network.vertices)
    travelling = np.flatnonzero(~cut & (legs.source_vertex != legs.target_vertex))
    rows = np.searchsorted(cables.tail, np.arange(vertices + 1))
    targets, row_of = _distinct(legs.target_vertex[travelling], vertices)
    near = single_paths.distances(targets, rows, cables.head, vertices)
    hops = near[row_of, legs.source_vertex[travelling]].astype(np.int64)
    cut[travelling[hops < 0]] = True
    starts = np.concatenate([[0], np.cumsum(np.maximum(hops, 0))])
    moved = flows.moved_bytes[travelling]
    key = stream(seed, "paths of flows").integers(0, 2**31, len(flows))[travelling]
    path = single_paths.walked(
        _CHOICE[routing],
        np.argsort(-moved, kind="stable"),
        legs.source_vertex[travelling],
        row_of,
        key,
        moved,
        near,
        rows,
        cables.head,
        cables.layer,
        _turns(network),
        cables.capacity_bytes_per_s,
        starts,
    )
    return travelling, starts, path


def _turns(network: Network) -> Ints:
    """Whether a chip goes backwards where both ways round a ring are as long: every other one does."""
    if not network.is_lattice:
        return np.zeros(len(network.vertices), np.int64)
    places = np.unravel_index(np.arange(len(network.vertices)), network.vertices.shape)
    turns: Ints = np.sum(places, axis=0) % 2
    return turns


def paths_of(network: Network, flows: Flows, *, routing: Routing, seed: int = 0) -> Paths:
    """Rows of what each flow uses, for sharing out the links among flows."""
    _check(network, routing)
    legs = legs_of(network, flows)
    cut = legs.is_cut.copy()
    row_of = np.full(len(flows), -1)
    if routing in _EVEN:
        symmetry = network.symmetry
        pairs = _pairs(network, legs, ~cut)
        starts, used, shares = spread(
            pairs.source,
            pairs.target,
            symmetry.row_start,
            symmetry.head,
            symmetry.links,
            symmetry.group_size,
            routing == "minimal_adaptive",
        )
        row_of[pairs.flows] = pairs.pair_of
        cut[pairs.flows] |= (np.diff(starts) == 0)[pairs.pair_of]
        capacity = symmetry.capacity_bytes_per_s
    else:
        travelling, starts, used = _walk(network, flows, legs, cut, routing, seed)
        row_of[travelling] = np.arange(len(travelling))
        shares, capacity = np.ones(len(used)), network.cables.capacity_bytes_per_s
    ends = np.array([0, network.port_count, network.first_nic, network.first_nic + network.nic_count])
    used_ends = np.stack([legs.port_out, legs.port_in, legs.nic_up, legs.nic_down])
    row_start, resource, share_fraction = assembled(
        used_ends, ends, row_of, starts, used + network.first_cable, shares
    )
    return Paths(
        row_start=row_start,
        resource=resource,
        share_fraction=share_fraction,
        capacity_bytes_per_s=np.concatenate([network.capacity_bytes_per_s[: network.first_cable], capacity]),
        is_unreachable=cut,
    )
