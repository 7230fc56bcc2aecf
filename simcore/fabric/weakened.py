"""What degraded links and switches leave to groups that use the whole fabric: the weakest place sets the pace.

A collective waits for its slowest member. So of NICs the slowest that still works counts, and of each layer the
switch that has least of its links upwards left: traffic spreads evenly over those. What is dead altogether takes part
in no collective; that its chips are lost is in the failures, not here.
Limits: tori are left as wired; what single flows meet is in `flows.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simcore.fabric.base import Fabric
from simcore.fabric.degradation import damage_of
from simcore.fabric.laying import Laid, laid
from simcore.remembered import remembered

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """Shares of capacity: of the slowest NIC, and of each layer above it at its weakest switch."""

    nic_fraction: float = 1.0
    layers_fraction: tuple[float, ...] = ()

    def of_layer(self, index: int) -> float:
        return self.layers_fraction[index] if index < len(self.layers_fraction) else 1.0


@remembered
def left_of(fabric: Fabric) -> Left:
    """All of it where nothing is degraded."""
    found = laid(fabric) if fabric.degraded else None
    if found is None or found.is_lattice:
        return Left()
    damage = damage_of(fabric.degraded, found)
    levels = range(len(found.layers) // 2)
    if fabric.planes:
        layers = [
            _weakest(found.lower, damage.cable_fraction, found.up_layer == 2 * level) for level in levels
        ]
    else:
        layers = [_weakest_of_both_ends(found, damage.cable_fraction)]
    return Left(nic_fraction=_least(damage.nic_fraction), layers_fraction=tuple(layers))


def _weakest(ends: NDArray[np.int64], fraction: Floats, chosen: NDArray[np.bool_]) -> float:
    """Least mean share of the cables of one switch, of those that have any left."""
    switches = ends[chosen]
    if not len(switches):
        return 1.0
    cables = np.bincount(switches)
    left = np.bincount(switches, weights=fraction[chosen])
    return _least(left[cables > 0] / cables[cables > 0])


def _weakest_of_both_ends(found: Laid, fraction: Floats) -> float:
    ends = np.concatenate([found.lower, found.upper])
    return _weakest(ends, np.concatenate([fraction, fraction]), np.ones(len(ends), np.bool_))


def _least(fractions: Floats) -> float:
    working = fractions[fractions > 0]
    return float(working.min()) if len(working) else 1.0
