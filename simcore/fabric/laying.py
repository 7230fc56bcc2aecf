"""Vertices and cables of a built fabric, one array entry per cable, before both directions are made of each.

Folded Clos from its planes, rails plane by plane, tori and optical pods from their shape, direct topologies from
their switch graph. Planes that all endpoints hang on are alike: one is laid.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from simcore.fabric.attachment import switches_of_endpoints
from simcore.fabric.base import Fabric, Medium
from simcore.fabric.direct import check_wired
from simcore.fabric.lattice import best_shape
from simcore.fabric.links import Layer, Vertices
from simcore.fabric.wiring import clos_wires, filled, lattice_wires

Ints = NDArray[np.int64]
_AXES: Final = "xyz"
_NONE: Final = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Laid:
    """Both ends of each cable, and the layer that each of its directions belongs to."""

    vertices: Vertices
    vertex_of: Ints  # where each endpoint hangs
    chips_per_nic: int
    lower: Ints
    upper: Ints
    up_layer: Ints
    down_layer: Ints
    layers: tuple[Layer, ...]

    @property
    def is_lattice(self) -> bool:
        return bool(self.vertices.shape)


def laid(fabric: Fabric) -> Laid:
    """The cables of any fabric; none where one scale-up domain or server holds all chips."""
    if fabric.planes:
        return _clos(fabric)
    if fabric.endpoints_per_switch:
        return _direct(fabric)
    if fabric.shape:
        return _lattice(fabric.shape, wraps=True, twisted=fabric.is_twisted)
    if fabric.kind == "ocs_pod":
        return _lattice(best_shape(fabric.chip_count, 3), wraps=False)  # fewer chips than a cube
    return Laid(
        vertices=Vertices(tier_names=(), tier_of=_NONE, number_of=_NONE),
        vertex_of=_NONE,
        chips_per_nic=1,
        lower=_NONE,
        upper=_NONE,
        up_layer=_NONE,
        down_layer=_NONE,
        layers=(),
    )


def _clos(fabric: Fabric) -> Laid:
    """Vertices tier by tier, within a tier plane by plane."""
    planes = [fabric.planes[0]]
    if fabric.kind == "rail_only":
        planes = [plane for plane in fabric.planes for _ in range(plane.count)]
    tiers = len(fabric.tiers)
    wires = {plane: clos_wires(plane) for plane in set(planes)}
    leaves = [len(filled(plane.endpoint_count, plane.down_port_counts[0])) for plane in planes]
    counts = np.array([[n, *(w.upper_count for w in wires[p])] for n, p in zip(leaves, planes, strict=True)])
    totals = counts.sum(axis=0) if tiers > 1 else np.array([fabric.switch_count])
    start = np.concatenate([[0], np.cumsum(totals)])
    before = np.cumsum(counts, axis=0) - counts + start[:-1]  # first vertex by plane and tier
    lower, upper, segment = [_NONE], [_NONE], [_NONE]
    for index, plane in enumerate(planes):
        for level, wire in enumerate(wires[plane]):
            lower.append(wire.lower + before[index, level])
            upper.append(wire.upper + before[index, level + 1])
            segment.append(np.full(len(wire.lower), level))
    names = tuple(tier.name for tier in fabric.tiers)
    segments = np.concatenate(segment)
    return Laid(
        vertices=Vertices(
            tier_names=names,
            tier_of=np.repeat(np.arange(tiers), totals),
            number_of=np.concatenate([np.arange(total) for total in totals]),
        ),
        vertex_of=switches_of_endpoints(fabric),
        chips_per_nic=fabric.chips_per_nic,
        lower=np.concatenate(lower),
        upper=np.concatenate(upper),
        up_layer=2 * segments,
        down_layer=2 * segments + 1,
        layers=tuple(
            Layer(name=f"{one} → {other}", medium=_medium(fabric, {one, other}))
            for lower, upper in itertools.pairwise(names)
            for one, other in ((lower, upper), (upper, lower))
        ),
    )


def _medium(fabric: Fabric, ends: set[str]) -> Medium:
    return next(s.medium for s in fabric.segments if {s.lower, s.upper} == ends)


def _direct(fabric: Fabric) -> Laid:
    """Switches side by side; both directions of a cable are of one layer, local or global where groups are."""
    check_wired(fabric)
    near, far = np.repeat(fabric.switch_edges, fabric.switch_edge_links, axis=0).T
    group = fabric.chosen.get("a", 0) if fabric.kind == "dragonfly" else 0
    crosses = (near // group != far // group).astype(np.int64) if group else np.zeros_like(near)
    names = ("local link", "global link") if group else ("switch → switch",)
    name = fabric.tiers[0].name
    switches = np.arange(fabric.switch_count)
    return Laid(
        vertices=Vertices(tier_names=(name,), tier_of=np.zeros_like(switches), number_of=switches),
        vertex_of=np.arange(fabric.endpoint_count) // fabric.endpoints_per_switch,
        chips_per_nic=fabric.chips_per_nic,
        lower=near,
        upper=far,
        up_layer=crosses,
        down_layer=crosses,
        layers=tuple(Layer(name=layer, medium="optical") for layer in names),
    )


def _lattice(shape: tuple[int, ...], *, wraps: bool, twisted: bool = False) -> Laid:
    """Chips that are vertices; each axis has two layers."""
    lower, upper, axis = lattice_wires(shape, wraps=wraps, twisted=twisted)
    chips = np.arange(math.prod(shape))
    return Laid(
        vertices=Vertices(tier_names=("chip",), tier_of=np.zeros_like(chips), number_of=chips, shape=shape),
        vertex_of=chips,
        chips_per_nic=1,
        lower=lower,
        upper=upper,
        up_layer=2 * axis,
        down_layer=2 * axis + 1,
        layers=tuple(
            Layer(name=f"chip → {sign}{_AXES[index]}", medium="scaleup")
            for index in range(len(shape))
            for sign in "+−"
        ),
    )
