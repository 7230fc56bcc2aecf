"""The network of a built fabric: all its links, less what is degraded.

Planes of a multi-plane fabric are alike: one is built, with each cable as often as there are planes, and each NIC
with the rate of all of them. `symmetry` groups vertices that no sender can tell apart, so that routing over equal
paths visits some hundred groups instead of every cable. Limits: switches themselves never block; dead cables are
left out, dead NICs stay with capacity 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from simcore.fabric.base import Fabric
from simcore.fabric.degradation import damage_of
from simcore.fabric.laying import Laid, laid
from simcore.fabric.links import SCALEUP, Cables, Forwarding, Layer, Network
from simcore.fabric.specs import Degraded
from simcore.fabric.symmetry import symmetry_of

__all__ = ["Network", "network_of"]

Floats = NDArray[np.float64]
_FORWARDING: Final[dict[str, Forwarding]] = {"rail_only": "off_rail", "rail_optimized": "same_leaf"}


def network_of(fabric: Fabric, *, degraded: Sequence[Degraded] = ()) -> Network:
    """The links of a built fabric, less what it and `degraded` say is damaged; unknown names are refused."""
    found = laid(fabric)
    damage = damage_of((*fabric.degraded, *degraded), found)
    has_nics = bool(len(found.vertex_of)) and not found.is_lattice
    blocks = _blocks(fabric, found, damage.nic_fraction if has_nics else np.zeros(0))
    cables = _both_ways(fabric, found, damage.cable_fraction, len(blocks))
    sizes = [len(capacity) for _, capacity in blocks]
    return Network(
        kind=fabric.kind,
        chip_count=fabric.chip_count,
        port_count=sizes[0],
        nic_count=sizes[2],
        domain_chip_count=_domain(fabric, found),
        chips_per_nic=fabric.chips_per_nic,
        forwarding=_FORWARDING.get(fabric.kind, "never"),
        vertex_of=found.vertex_of,
        vertices=found.vertices,
        cables=cables,
        symmetry=symmetry_of(
            len(found.vertices), found.vertex_of, cables.tail, cables.head, cables.capacity_bytes_per_s
        ),
        capacity_bytes_per_s=np.concatenate(
            [*(capacity for _, capacity in blocks), cables.capacity_bytes_per_s]
        ),
        layer_of=np.concatenate([np.repeat(np.arange(len(blocks)), sizes), cables.layer]),
        layers=(*(layer for layer, _ in blocks), *found.layers),
    )


def _domain(fabric: Fabric, found: Laid) -> int:
    """Chips that reach each other over scale-up ports alone: all where there is no network."""
    if found.is_lattice:
        return 1
    return max(1, fabric.hb_domain_size) if len(found.vertex_of) else fabric.chip_count


def _blocks(fabric: Fabric, found: Laid, nic_fraction: Floats) -> list[tuple[Layer, Floats]]:
    """Ports and NICs of the chips, outwards and inwards."""
    rate = fabric.scaleup_bytes_per_s or fabric.link_bytes_per_s
    ports = np.full(0 if found.is_lattice else fabric.chip_count, rate)
    nics = nic_fraction * fabric.link_bytes_per_s * _plane_count(fabric)
    first = found.vertices.tier_names[0] if found.vertices.tier_names else SCALEUP
    medium = fabric.segments[0].medium if fabric.segments else "scaleup"
    return [
        (Layer(name=f"chip → {SCALEUP}", medium="scaleup"), ports),
        (Layer(name=f"{SCALEUP} → chip", medium="scaleup"), ports),
        (Layer(name=f"chip → {first}", medium=medium), nics),
        (Layer(name=f"{first} → chip", medium=medium), nics),
    ]


def _both_ways(fabric: Fabric, found: Laid, fraction: Floats, first: int) -> Cables:
    """Each cable that is not dead, in both directions; layers number from `first`."""
    alive = np.repeat(np.flatnonzero(fraction > 0), 1 if found.is_lattice else _plane_count(fabric))
    lower, upper = found.lower[alive], found.upper[alive]
    tail, head = np.concatenate([lower, upper]), np.concatenate([upper, lower])
    layer = np.concatenate([found.up_layer[alive], found.down_layer[alive]])
    order = np.lexsort((head, layer, tail))
    return Cables(
        tail=tail[order],
        head=head[order],
        layer=layer[order] + first,
        capacity_bytes_per_s=np.concatenate([fraction[alive]] * 2)[order] * fabric.link_bytes_per_s,
    )


def _plane_count(fabric: Fabric) -> int:
    """Planes that all endpoints hang on: 1, or as many as each NIC's rate is divided over."""
    if fabric.kind == "rail_only":
        return 1
    return max(1, sum(plane.count for plane in fabric.planes))
