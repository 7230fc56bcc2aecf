"""Networks and flows that the tests of routing share."""

from __future__ import annotations

import numpy as np

from simcore.fabric import (
    AnyTopology,
    Clos,
    Dragonfly,
    HyperX,
    OcsPod,
    RailOnly,
    RailOptimized,
    SlimFly,
    Torus,
)
from simcore.fabric.network import Network, network_of
from simcore.fabric.specs import Degraded
from simcore.fabric.traffic import TRAFFIC_CLASSES, FlowGroup, Flows
from tests.simcore.fabric.fabrics import built

# One of each kind, of every wiring: two and three tiers, full and part-filled, planes by rail, islands, mesh.
SPECS: dict[str, tuple[AnyTopology, int]] = {
    "two tiers": (Clos(radix=16), 128),
    "two tiers, part-filled": (Clos(radix=16), 88),
    "three tiers": (Clos(radix=8), 128),
    "three tiers, oversubscribed": (Clos(radix=16, oversubscription_ratio=3.0, tiers=3), 200),
    "rails of one Clos": (RailOptimized(radix=16), 128),
    "rails alone": (RailOnly(radix=16), 128),
    "rails of two tiers": (RailOnly(radix=4), 64),
    "torus": (Torus(shape=(3, 4, 5)), 60),
    "flat torus": (Torus(shape=(2, 6)), 12),
    "twisted torus": (Torus(shape=(3, 6, 6), twisted=True), 108),
    "two planes": (Clos(radix=16, planes=2), 88),
    "cubes": (OcsPod(), 128),
    "part of a cube": (OcsPod(), 24),
    "dragonfly": (Dragonfly(radix=7), 72),
    "trunked dragonfly": (Dragonfly(radix=16, p=4, a=4, h=5, g=3), 40),
    "slim fly": (SlimFly(), 100),
    "hyperx": (HyperX(sizes=(3, 4), p=4, radix=16, links_per_pair=2), 46),
    "one server": (Clos(), 8),
}
GROUPS = tuple(FlowGroup(name=name, traffic_class=name) for name in TRAFFIC_CLASSES)


def network(name: str, *degraded: Degraded) -> Network:
    spec, chips = SPECS[name]
    return network_of(built(spec, chips), degraded=degraded)


def flows(*triples: tuple[int, int, float], group: int = 0) -> Flows:
    """Flows (source, target, bytes) of one class."""
    return Flows(
        source=np.array([source for source, _, _ in triples], np.int64),
        target=np.array([target for _, target, _ in triples], np.int64),
        moved_bytes=np.array([moved for _, _, moved in triples], np.float64),
        group_of=np.full(len(triples), group),
        groups=GROUPS,
    )


def random_flows(chips: int, count: int, seed: int) -> Flows:
    draw = np.random.default_rng(seed)
    return Flows(
        source=draw.integers(0, chips, count),
        target=draw.integers(0, chips, count),
        moved_bytes=draw.integers(1, 1000, count) * 1e6,
        group_of=draw.integers(0, len(GROUPS), count),
        groups=GROUPS,
    )


def all_to_all(chips: int, moved_bytes: float = 1e6) -> Flows:
    return flows(*((a, b, moved_bytes) for a in range(chips) for b in range(chips) if a != b))
