"""Which ports, NIC and pair of switches each flow uses, before its way through the network is chosen.

Inside one scale-up domain a flow takes two ports. Between domains it takes the NICs of both endpoints and the
cables between their switches. By rail (NCCL's PXN) it crosses a domain first where that saves or makes the way:
`rail_only` always off rail, `rail_optimized` where the chip of the right rail hangs on the target's own leaf. The
crossing is in the sender's domain, or in the receiver's where the sender's is short of that rail.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simcore.fabric.links import Network
from simcore.fabric.traffic import Flows

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Legs:
    """By flow; -1 where it uses none of that kind."""

    port_out: Ints  # chip that sends over its scale-up port
    port_in: Ints
    nic_up: Ints  # endpoint
    nic_down: Ints
    source_vertex: Ints
    target_vertex: Ints
    is_cut: Bools  # a NIC on the way is dead


def legs_of(network: Network, flows: Flows) -> Legs:
    """The legs of every flow; one from a chip to itself has none."""
    source, target = flows.source, flows.target
    inside = (source // network.domain_chip_count == target // network.domain_chip_count) & (source != target)
    outside = (source != target) & ~inside
    sender, receiver = _forwarded(network, source, target, outside)
    up, down = sender // network.chips_per_nic, receiver // network.chips_per_nic
    has_nics = outside & (network.nic_count > 0)
    before, after = sender != source, receiver != target
    return Legs(
        port_out=np.select([inside | before, after], [source, receiver], -1),
        port_in=np.select([inside | after, before], [target, sender], -1),
        nic_up=np.where(has_nics, up, -1),
        nic_down=np.where(has_nics, down, -1),
        source_vertex=_at(network.vertex_of, up, outside),
        target_vertex=_at(network.vertex_of, down, outside),
        is_cut=_dead(network, up, down, has_nics),
    )


def _at(values: Ints, index: Ints, where: Bools) -> Ints:
    found = np.full(len(index), -1)
    found[where] = values[index[where]]
    return found


def _dead(network: Network, up: Ints, down: Ints, where: Bools) -> Bools:
    found = np.zeros(len(up), np.bool_)
    nics = network.capacity_bytes_per_s[network.first_nic : network.first_nic + network.nic_count] <= 0
    found[where] = nics[up[where]] | nics[down[where]]
    return found


def _forwarded(network: Network, source: Ints, target: Ints, outside: Bools) -> tuple[Ints, Ints]:
    """The chips whose NICs a flow leaves and enters by."""
    if network.forwarding == "never" or network.domain_chip_count == 1:
        return source, target
    size = network.domain_chip_count
    here = source - source % size + target % size
    there = target - target % size + source % size
    share = network.chips_per_nic
    other_rail = outside & (source % size // share != target % size // share)
    if network.forwarding == "off_rail":
        fits = here < network.chip_count
        return np.where(other_rail & fits, here, source), np.where(other_rail & ~fits, there, target)
    leaf = network.vertex_of
    nearer = np.zeros(len(source), np.bool_)
    chosen = np.flatnonzero(other_rail & (here < network.chip_count))
    goal = leaf[target[chosen] // share]
    nearer[chosen] = (leaf[here[chosen] // share] == goal) & (leaf[source[chosen] // share] != goal)
    return np.where(nearer, here, source), target
