"""Directed links of a fabric: what each can carry and between which two ends it lies.

Links are numbered in five blocks: the port of each chip into its scale-up domain and out of it, the NIC of each
endpoint towards the network and from it, and both directions of every cable between vertices. Vertices are
switches, or the chips themselves on a torus, whose links are all cables. A scale-up domain lets each chip send and
receive at the chip's scale-up rate at the same time, whoever it talks to (NVSwitch).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from simcore.fabric.base import Medium
from simcore.fabric.symmetry import Symmetry

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Forwarding = Literal["never", "off_rail", "same_leaf"]
SCALEUP: Final = "scale-up"


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """All links of one direction between two kinds of vertex, or along one axis."""

    name: str
    medium: Medium


@dataclass(frozen=True, slots=True, kw_only=True)
class Vertices:
    """Names of the vertices: a tier and a number in it, or a place on a lattice."""

    tier_names: tuple[str, ...]
    tier_of: Ints
    number_of: Ints
    shape: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.tier_of)

    def name(self, vertex: int) -> str:
        if self.shape:
            return f"chip {tuple(map(int, np.unravel_index(vertex, self.shape)))}"
        return f"{self.tier_names[self.tier_of[vertex]]} {self.number_of[vertex]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cables:
    """Cables between vertices, each in both directions, sorted by where they start, then by layer."""

    tail: Ints
    head: Ints
    layer: Ints  # of a lattice: two by axis, forwards before backwards
    capacity_bytes_per_s: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """Directed links in five blocks: ports out, ports in, NICs up, NICs down, cables."""

    kind: str
    chip_count: int
    port_count: int  # chips with a scale-up port: all, or none on a torus
    nic_count: int  # endpoints with a NIC: all, or none on a torus and where one domain holds all
    domain_chip_count: int
    chips_per_nic: int
    forwarding: Forwarding
    vertex_of: Ints  # where each endpoint hangs
    vertices: Vertices
    cables: Cables
    symmetry: Symmetry
    capacity_bytes_per_s: Floats
    layer_of: Ints
    layers: tuple[Layer, ...]

    @property
    def first_nic(self) -> int:
        return 2 * self.port_count

    @property
    def first_cable(self) -> int:
        return self.first_nic + 2 * self.nic_count

    @property
    def is_lattice(self) -> bool:
        return bool(self.vertices.shape)

    def __len__(self) -> int:
        return len(self.capacity_bytes_per_s)

    def link_name(self, link: int) -> str:
        """`leaf 12 → spine 3`, `chip 5 → leaf 0`, `chip 5 → scale-up`, `chip (0, 3, 1) → chip (0, 0, 1)`."""
        if link >= self.first_cable:
            cable = link - self.first_cable
            ends = (self.cables.tail[cable], self.cables.head[cable])
            return " → ".join(self.vertices.name(int(vertex)) for vertex in ends)
        if link >= self.first_nic:
            is_down, endpoint = divmod(link - self.first_nic, self.nic_count)
            names = [
                f"chip {endpoint * self.chips_per_nic}",
                self.vertices.name(int(self.vertex_of[endpoint])),
            ]
        else:
            is_down, chip = divmod(link, self.port_count)
            names = [f"chip {chip}", SCALEUP]
        return " → ".join(reversed(names) if is_down else names)
