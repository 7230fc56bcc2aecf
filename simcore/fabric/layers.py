"""A fabric as numbered layers and the cables between them: what its graph is expanded from.

Layers stand bottom up: scale-up domains (`server`), chips, switch tiers, or optical circuit switches. A cable is
a pair of numbers, one per parallel link, as `simcore.fabric.network` lays it; on an optical pod the chips are
numbered cube by cube, their copper stays inside a cube and their fibres go to the optical switch of their face
and place. `units` says how members of a layer belong together (planes, pods, leaves, cubes, rows), the largest
first. Of a multi-plane fabric one plane is laid out: the others are alike.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from simcore.fabric.base import Fabric
from simcore.fabric.network import Network, network_of
from simcore.fabric.ocs_pod import CUBE_CHIPS, EDGE, FACE_LINKS
from simcore.fabric.wiring import lattice_wires

Ints = NDArray[np.int64]
_PORT_BLOCKS: Final = 4  # of a network's layers, before those of cables: up and down in turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """Cables between two layers, or within one: the member at either end of each."""

    lower: str
    upper: str
    tail: Ints
    head: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Layered:
    """Members by layer, bottom up, and the cables between them."""

    counts: Mapping[str, int]
    joined: tuple[Joined, ...]
    units: Mapping[str, tuple[int, ...]]
    shape: tuple[int, ...] = ()  # of a lattice, whose chips are places


def layered(fabric: Fabric) -> Layered:
    """The layers of a built fabric."""
    if fabric.ocs_count:
        return _pod(fabric)
    if fabric.endpoints_per_switch:
        return _with_domains(fabric, *_direct(fabric))
    network = network_of(fabric)
    if network.is_lattice:
        ahead = (network.cables.layer - _PORT_BLOCKS) % 2 == 0
        ends = network.cables.tail[ahead], network.cables.head[ahead]
        shape = network.vertices.shape
        return Layered(
            counts={"chip": fabric.chip_count},
            joined=(Joined(lower="chip", upper="chip", tail=ends[0], head=ends[1]),),
            units={"chip": tuple(math.prod(shape[axis:]) for axis in range(1, len(shape)))},
            shape=shape,
        )
    return _with_domains(fabric, *_tiers(fabric, network))


def _tiers(fabric: Fabric, network: Network) -> tuple[dict[str, int], list[Joined]]:
    """A folded Clos or rails, from the network that its loads are counted on."""
    names, tier_of, number_of = (
        network.vertices.tier_names,
        network.vertices.tier_of,
        network.vertices.number_of,
    )
    counts = {"chip": fabric.chip_count}
    counts |= {name: int((tier_of == tier).sum()) for tier, name in enumerate(names)}
    if not names:
        return counts, []
    chips = np.arange(len(network.vertex_of)) * fabric.chips_per_nic
    joined = [Joined(lower="chip", upper=names[0], tail=chips, head=number_of[network.vertex_of])]
    tail, head = network.cables.tail, network.cables.head
    for tier in range(1, len(names)):
        mine = (tier_of[head] == tier) & (tier_of[tail] == tier - 1)
        ends = number_of[tail[mine]], number_of[head[mine]]
        joined.append(Joined(lower=names[tier - 1], upper=names[tier], tail=ends[0], head=ends[1]))
    return counts, joined


def _direct(fabric: Fabric) -> tuple[dict[str, int], list[Joined]]:
    """Switches joined to switches, endpoints filled in order."""
    tier = fabric.tiers[0]
    endpoints = np.arange(fabric.endpoint_count)
    edges = np.repeat(fabric.switch_edges, fabric.switch_edge_links, axis=0)
    return {"chip": fabric.chip_count, tier.name: tier.switch_count}, [
        Joined(
            lower="chip",
            upper=tier.name,
            tail=endpoints * fabric.chips_per_nic,
            head=endpoints // fabric.endpoints_per_switch,
        ),
        Joined(lower=tier.name, upper=tier.name, tail=edges[:, 0], head=edges[:, 1]),
    ]


def _with_domains(fabric: Fabric, counts: dict[str, int], joined: list[Joined]) -> Layered:
    """The scale-up domains below the chips, where there are several."""
    size = fabric.hb_domain_size
    if 1 < size < fabric.chip_count:
        chips = np.arange(fabric.chip_count)
        joined.insert(0, Joined(lower="server", upper="chip", tail=chips // size, head=chips))
        counts = {"server": math.ceil(fabric.chip_count / size), **counts}
    return Layered(counts=counts, joined=tuple(joined), units=_units(fabric, counts))


def _units(fabric: Fabric, counts: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
    """Runs of neighbours that belong together."""
    domain = max(1, fabric.hb_domain_size)
    if fabric.endpoints_per_switch:
        group = fabric.chosen.get("a", 1)
        below = fabric.endpoints_per_switch * fabric.chips_per_nic
        return {fabric.tiers[0].name: (group,), "chip": (group * below, below, domain)}
    if not fabric.planes:
        return {"chip": (domain,)}
    plane = fabric.planes[0]
    planes = sum(one.count for one in fabric.planes) if fabric.kind == "rail_only" else 1
    found: dict[str, tuple[int, ...]] = {
        name: (max(1, counts[name] // planes),) for name in counts if name not in ("chip", "server")
    }
    below = plane.down_port_counts[0] * fabric.chips_per_nic
    if fabric.kind == "rail_only":
        return found | {"chip": (domain * below, domain)}
    if len(plane.down_port_counts) > 2:
        pod = plane.down_port_counts[1]
        found |= {"leaf": (*found["leaf"], pod), "spine": (*found["spine"], plane.up_port_counts[0])}
        return found | {"chip": (pod * below, below, domain)}
    return found | {"chip": (below, domain)}


def _pod(fabric: Fabric) -> Layered:
    """Cubes: copper inside them, and from each face a fibre per place to one of 48 switches."""
    cubes = fabric.endpoint_count // CUBE_CHIPS
    start = np.arange(cubes)[:, None] * CUBE_CHIPS
    tail, head, _ = lattice_wires((EDGE, EDGE, EDGE), wraps=False)
    place = np.arange(CUBE_CHIPS).reshape(EDGE, EDGE, EDGE)
    faces = [np.take(place, side, axis).ravel() for axis in range(3) for side in (0, EDGE - 1)]
    switches = [axis * FACE_LINKS + np.arange(FACE_LINKS) for axis in range(3) for _ in range(2)]
    chips, ocs = np.concatenate(faces), np.concatenate(switches)
    return Layered(
        counts={"chip": fabric.endpoint_count, "ocs": fabric.ocs_count},
        joined=(
            Joined(lower="chip", upper="chip", tail=(start + tail).ravel(), head=(start + head).ravel()),
            Joined(
                lower="chip",
                upper="ocs",
                tail=(start + chips).ravel(),
                head=np.tile(ocs, cubes),
            ),
        ),
        units={"chip": (CUBE_CHIPS, FACE_LINKS), "ocs": (FACE_LINKS,)},
    )
