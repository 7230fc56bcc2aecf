"""Which vertex hangs on which: the links of counted fabrics as arrays of pairs, one pair per cable.

A folded-Clos plane is wired as it is counted: endpoints fill leaves in order; the uplinks of a pod go round its
spines, and those of all spines round the cores, so that neighbours in the order get neighbouring switches. On a
lattice a vertex is joined to the next one along each axis; a ring of two is one cable.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simcore.fabric.base import Plane
from simcore.fabric.lattice import onward

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wires:
    """Cables between two sets of vertices, each numbered from 0."""

    lower: Ints
    upper: Ints
    upper_count: int


def clos_wires(plane: Plane) -> list[Wires]:
    """Cables from each switch tier of a plane to the next; the endpoints' own are not among them."""
    found: list[Wires] = []
    below = filled(plane.endpoint_count, plane.down_port_counts[0])
    tiers = len(plane.down_port_counts)
    for level in range(1, tiers):
        pod = plane.down_port_counts[level] if level < tiers - 1 else len(below)
        uplinks = uplink_counts(below, plane.down_port_counts[level - 1], plane.up_port_counts[level - 1])
        wires = _round_robin(uplinks, pod, plane.down_port_counts[level])
        below = np.bincount(wires.upper, minlength=wires.upper_count)
        found.append(wires)
    return found


def _round_robin(uplinks: Ints, pod: int, down: int) -> Wires:
    """Join the switches of one tier to the tier above, round robin within each pod."""
    uppers: list[Ints] = []
    count = 0
    for start in range(0, len(uplinks), pod):
        links = int(uplinks[start : start + pod].sum())
        switches = math.ceil(links / down)
        uppers.append(count + np.arange(links) % max(1, switches))
        count += switches
    return Wires(
        lower=np.repeat(np.arange(len(uplinks)), uplinks), upper=np.concatenate(uppers), upper_count=count
    )


def uplink_counts(below: Ints, down: int, up: int) -> Ints:
    """Links upwards of each switch; partly filled ones together get what the closed form counts."""
    full, rest = divmod(int(below.sum()), down)
    counted = full * up + math.ceil(rest * up / down)
    found = -(-below * up // down)
    for index in reversed(range(len(found))):
        if found.sum() > counted and below[index] < down and found[index] > 1:
            found[index] -= 1
    return found


def filled(count: int, size: int) -> Ints:
    """Members of each group where groups are filled in order."""
    full, rest = divmod(count, size)
    return np.array([size] * full + [rest] * (rest > 0), np.int64)


def lattice_wires(shape: tuple[int, ...], *, wraps: bool, twisted: bool = False) -> tuple[Ints, Ints, Ints]:
    """Ends and axis of each cable of a torus, or of a mesh where nothing wraps; the last axis counts fastest."""
    place = np.arange(math.prod(shape)).reshape(shape)
    parts = []
    for axis, size in enumerate(shape):
        cables = size if wraps and size > 2 else size - 1
        ahead = onward(shape, axis, twisted=twisted)
        taken = np.arange(cables)
        ends = (np.take(place, taken, axis).ravel(), np.take(ahead, taken, axis).ravel())
        parts.append((*ends, np.full(len(ends[0]), axis)))
    lower, upper, axes = (np.concatenate(column) for column in zip(*parts, strict=True))
    return lower, upper, axes
