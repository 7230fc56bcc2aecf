"""The network of a built fabric: its cables laid as counted, less what is degraded.

Folded Clos from its planes, rails plane by plane, tori and optical pods from their shape, direct topologies from
their switch graph. Planes of a multi-plane fabric are alike: one is built, with each cable as often as there are
planes. `symmetry` groups vertices that no sender can tell apart, so that routing over equal paths visits some
hundred groups instead of every cable. Limits: switches themselves never block; cables that are dead are left out.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from simcore.fabric.attachment import switches_of_endpoints
from simcore.fabric.base import Degraded, Fabric, Medium, Plane
from simcore.fabric.degradation import Ends, damage_of
from simcore.fabric.lattice import best_shape
from simcore.fabric.links import SCALEUP, Cables, Forwarding, Layer, Network, Vertices
from simcore.fabric.symmetry import symmetry_of
from simcore.fabric.wiring import clos_wires, filled, lattice_wires

__all__ = ["Network", "network_of"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
_FORWARDING: Final[dict[str, Forwarding]] = {"rail_only": "off_rail", "rail_optimized": "same_leaf"}
_AXES: Final = "xyz"
_NONE: Final = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wired:
    """Vertices and cables before both directions are made of each."""

    vertices: Vertices
    vertex_of: Ints
    lower: Ints
    upper: Ints
    segment: Ints
    layers: tuple[tuple[str, str], ...]  # two per segment: up and down


def network_of(fabric: Fabric, *, degraded: Sequence[Degraded] = ()) -> Network:
    """The links of a built fabric, less what is degraded; names that do not exist are refused."""
    wired = _wired(fabric)
    has_nics = bool(len(wired.vertex_of)) and not wired.vertices.shape
    ends = Ends(
        vertices=wired.vertices,
        lower=wired.lower,
        upper=wired.upper,
        vertex_of=wired.vertex_of,
        chips_per_nic=fabric.chips_per_nic,
    )
    damage = damage_of(degraded, ends)
    blocks = _blocks(fabric, wired, damage.nic_fraction if has_nics else np.zeros(0))
    cables, layers = _both_ways(fabric, wired, damage.cable_fraction, len(blocks))
    sizes = [len(capacity) for _, capacity in blocks]
    return Network(
        kind=fabric.kind,
        chip_count=fabric.chip_count,
        port_count=sizes[0],
        nic_count=sizes[2],
        domain_chip_count=_domain(fabric, wired),
        chips_per_nic=fabric.chips_per_nic,
        forwarding=_FORWARDING.get(fabric.kind, "never"),
        vertex_of=wired.vertex_of,
        vertices=wired.vertices,
        cables=cables,
        symmetry=symmetry_of(
            len(wired.vertices), wired.vertex_of, cables.tail, cables.head, cables.capacity_bytes_per_s
        ),
        capacity_bytes_per_s=np.concatenate(
            [*(capacity for _, capacity in blocks), cables.capacity_bytes_per_s]
        ),
        layer_of=np.concatenate([np.repeat(np.arange(len(blocks)), sizes), cables.layer]),
        layers=(*(layer for layer, _ in blocks), *layers),
    )


def _domain(fabric: Fabric, wired: _Wired) -> int:
    """Chips that reach each other over scale-up ports alone: all where there is no network."""
    if wired.vertices.shape:
        return 1
    return max(1, fabric.hb_domain_size) if len(wired.vertex_of) else fabric.chip_count


def _blocks(fabric: Fabric, wired: _Wired, nic_fraction: Floats) -> list[tuple[Layer, Floats]]:
    """Ports and NICs of the chips, outwards and inwards."""
    rate = fabric.scaleup_bytes_per_s or fabric.link_bytes_per_s
    ports = np.full(0 if wired.vertices.shape else fabric.chip_count, rate)
    nics = nic_fraction * fabric.link_bytes_per_s * _plane_count(fabric)
    leaf = wired.vertices.tier_names[0] if wired.vertices.tier_names else SCALEUP
    medium = fabric.segments[0].medium if fabric.segments else "scaleup"
    return [
        (Layer(lower="chip", upper=SCALEUP, medium="scaleup"), ports),
        (Layer(lower=SCALEUP, upper="chip", medium="scaleup"), ports),
        (Layer(lower="chip", upper=leaf, medium=medium), nics),
        (Layer(lower=leaf, upper="chip", medium=medium), nics),
    ]


def _both_ways(
    fabric: Fabric, wired: _Wired, fraction: Floats, first: int
) -> tuple[Cables, tuple[Layer, ...]]:
    """Each cable that is not dead in both directions; layers number from `first`, up before down."""
    alive = np.repeat(np.flatnonzero(fraction > 0), 1 if wired.vertices.shape else _plane_count(fabric))
    lower, upper = wired.lower[alive], wired.upper[alive]
    tail, head = np.concatenate([lower, upper]), np.concatenate([upper, lower])
    layer = np.concatenate([2 * wired.segment[alive], 2 * wired.segment[alive] + 1])
    order = np.lexsort((head, layer, tail))
    cables = Cables(
        tail=tail[order],
        head=head[order],
        layer=layer[order] + first,
        capacity_bytes_per_s=np.concatenate([fraction[alive]] * 2)[order] * fabric.link_bytes_per_s,
    )
    return cables, tuple(
        Layer(lower=lower, upper=upper, medium=_medium(fabric, {lower, upper}))
        for lower, upper in wired.layers
    )


def _medium(fabric: Fabric, ends: set[str]) -> Medium:
    found = [segment.medium for segment in fabric.segments if {segment.lower, segment.upper} == ends]
    return found[0] if found else "scaleup"


def _plane_count(fabric: Fabric) -> int:
    """Planes that all endpoints hang on: 1, or as many as each NIC's rate is divided over."""
    if fabric.kind == "rail_only":
        return 1
    return max(1, sum(plane.count for plane in fabric.planes))


def _wired(fabric: Fabric) -> _Wired:
    if fabric.planes:
        return _clos(fabric)
    if fabric.shape:
        return _lattice(fabric.shape, wraps=True)
    if fabric.kind == "ocs_pod":
        return _lattice(best_shape(fabric.chip_count, 3), wraps=False)  # fewer chips than a cube
    nothing = Vertices(tier_names=(), tier_of=_NONE, number_of=_NONE)
    return _Wired(
        vertices=nothing,
        vertex_of=_NONE,
        lower=_NONE,
        upper=_NONE,
        segment=_NONE,
        layers=(),
    )


def _clos(fabric: Fabric) -> _Wired:
    """Vertices tier by tier, within a tier plane by plane."""
    planes = [fabric.planes[0]] if fabric.kind != "rail_only" else _each_plane(fabric)
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
    return _Wired(
        vertices=Vertices(
            tier_names=names,
            tier_of=np.repeat(np.arange(tiers), totals),
            number_of=np.concatenate([np.arange(total) for total in totals]),
        ),
        vertex_of=switches_of_endpoints(fabric),
        lower=np.concatenate(lower),
        upper=np.concatenate(upper),
        segment=np.concatenate(segment),
        layers=tuple(pair for up in itertools.pairwise(names) for pair in (up, up[::-1])),
    )


def _each_plane(fabric: Fabric) -> list[Plane]:
    return [plane for plane in fabric.planes for _ in range(plane.count)]


def _lattice(shape: tuple[int, ...], *, wraps: bool) -> _Wired:
    """Chips that are vertices; each axis is a segment."""
    lower, upper, axis = lattice_wires(shape, wraps=wraps)
    chips = np.arange(math.prod(shape))
    return _Wired(
        vertices=Vertices(tier_names=("chip",), tier_of=np.zeros_like(chips), number_of=chips, shape=shape),
        vertex_of=chips,
        lower=lower,
        upper=upper,
        segment=axis,
        layers=tuple(("chip", f"{sign}{_AXES[index]}") for index in range(len(shape)) for sign in "+−"),
    )
