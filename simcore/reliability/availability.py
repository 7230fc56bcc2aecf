"""Slice goodput: the share of a pod's chips that whole, healthy slices hold at once.

A cube (4×4×4 = 64 chips on 16 hosts) is up with `A = a^16`, a the availability of a host. With n cubes and
slices of s cubes:
- reconfigurable (optical switches join any healthy cubes): `s·floor(H/s)/n`, H ~ Binomial(n, A);
- static (aligned partition, wired once): floor(n/s) places, each up with `A^s`.
With k cubes held back as spares at most floor((n−k)/s) slices run, re-wired or not; a spare replaces any cube
of a re-wired slice, so the promise of that many slices is kept with `P(H ≥ s·floor((n−k)/s))`, in a static
partition with `A^(s·floor((n−k)/s))`.
Mean, and the quantile q: the largest goodput that is reached with probability ≥ q (0.97).
A slice smaller than a cube lives inside one, so both systems give what its own hosts allow. A slice of
part cubes takes whole cubes. Limits: hosts fail independently; switches and fibres do not fail.
The rise from 2,048 to 3,072 chips is real quantisation: with one of 64 cubes down, only one slice of 32
cubes still fits (50 % of the chips), and one of 48 fits as well (75 %).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

SPARE_STEPS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceSystem:
    """A pod of equal cubes of hosts."""

    chip_count: int = 4096
    chips_per_cube: int = 64
    chips_per_host: int = 4
    host_availability_fraction: float
    spare_cube_count: int = 0  # held back, to take the place of failed ones

    @property
    def cube_count(self) -> int:
        return self.chip_count // self.chips_per_cube

    @property
    def used_cube_count(self) -> int:
        """Cubes that may hold slices at one time."""
        return max(0, self.cube_count - self.spare_cube_count)

    @property
    def hosts_per_cube(self) -> int:
        return max(1, self.chips_per_cube // self.chips_per_host)

    @property
    def cube_availability_fraction(self) -> float:
        return float(self.host_availability_fraction**self.hosts_per_cube)

    def cubes_per_slice(self, slice_chips: int) -> int:
        return math.ceil(slice_chips / self.chips_per_cube)


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceGoodput:
    """Goodput of both systems for one slice size."""

    slice_chips: int
    ocs_mean_fraction: float
    ocs_q97_fraction: float
    static_mean_fraction: float
    static_q97_fraction: float


@lru_cache(maxsize=256)
def binomial(count: int, probability: float) -> NDArray[np.float64]:
    """P(k successes of count), k = 0 … count; not to be written to (a curve asks for the same one often).

    >>> [round(float(p), 3) for p in binomial(2, 0.5)]
    [0.25, 0.5, 0.25]
    """
    if probability <= 0 or probability >= 1:
        chances = np.zeros(count + 1)
        chances[count if probability >= 1 else 0] = 1.0
        return chances
    successes = np.arange(count + 1)
    factorials = np.append(0.0, np.cumsum(np.log(np.arange(1, count + 1))))
    logs = factorials[count] - factorials - factorials[::-1]
    logs += successes * math.log(probability) + (count - successes) * math.log1p(-probability)
    np.exp(logs, out=logs)
    return np.asarray(logs, dtype=np.float64)


def slice_goodput(system: SliceSystem, slice_chips: int, *, quantile: float = 0.97) -> SliceGoodput:
    """Mean and quantile for slices of this size, reconfigurable and static."""
    if slice_chips < system.chips_per_cube:
        return _inside_a_cube(system, slice_chips, quantile)
    cubes, size = system.cube_count, system.cubes_per_slice(slice_chips)
    share = slice_chips / system.chip_count
    healthy = np.arange(cubes + 1)
    places = system.used_cube_count // size
    ocs = np.asarray(np.minimum(healthy // size, places) * share, dtype=np.float64)
    ocs_chances = binomial(cubes, system.cube_availability_fraction)
    static = np.asarray(np.arange(places + 1) * share, dtype=np.float64)
    static_chances = binomial(places, system.cube_availability_fraction**size)
    return SliceGoodput(
        slice_chips=slice_chips,
        ocs_mean_fraction=float(ocs @ ocs_chances),
        ocs_q97_fraction=_reached(ocs, ocs_chances, quantile),
        static_mean_fraction=float(static @ static_chances),
        static_q97_fraction=_reached(static, static_chances, quantile),
    )


def _inside_a_cube(system: SliceSystem, slice_chips: int, quantile: float) -> SliceGoodput:
    hosts = math.ceil(slice_chips / system.chips_per_host)
    places = system.used_cube_count * (system.hosts_per_cube // hosts)
    share = np.asarray(np.arange(places + 1) * (slice_chips / system.chip_count), dtype=np.float64)
    chances = binomial(places, system.host_availability_fraction**hosts)
    mean, reached = float(share @ chances), _reached(share, chances, quantile)
    return SliceGoodput(
        slice_chips=slice_chips,
        ocs_mean_fraction=mean,
        ocs_q97_fraction=reached,
        static_mean_fraction=mean,
        static_q97_fraction=reached,
    )


def _reached(goodput: NDArray[np.float64], chances: NDArray[np.float64], quantile: float) -> float:
    """The largest value reached with at least this probability; goodput must not fall along the axis."""
    at_least = np.cumsum(chances[::-1])[::-1]
    holds = goodput[at_least >= quantile - 1e-12]
    return float(holds.max()) if holds.size else 0.0


def kept_fraction(system: SliceSystem, slice_chips: int) -> tuple[float, float]:
    """Share of time that all slices that the cubes in use can hold are up: re-wired, and static.

    >>> pod = SliceSystem(host_availability_fraction=0.99579, chip_count=9216, spare_cube_count=14)
    >>> round(kept_fraction(pod, 64)[0], 2)
    0.95
    """
    needed = (
        system.used_cube_count // system.cubes_per_slice(slice_chips) * system.cubes_per_slice(slice_chips)
    )
    chances = binomial(system.cube_count, system.cube_availability_fraction)
    return float(chances[needed:].sum()), float(system.cube_availability_fraction**needed)


def needed_cube_availability(cube_count: int, needed: int, *, quantile: float = 0.95) -> float:
    """The least availability of a cube with which `needed` of all are up with this probability, by bisection.

    >>> round(needed_cube_availability(144, 130), 4)
    0.9347
    """
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        reached = binomial(cube_count, middle)[needed:].sum() >= quantile
        low, high = (low, middle) if reached else (middle, high)
    return high


def spares_series(system: SliceSystem, slice_chips: int) -> Mapping[str, list[float]]:
    """What holding cubes back costs and buys: the chips promised in whole slices, and how often all are there.

    From no spare to a quarter of the cubes, in at most 64 steps.
    """
    size = system.cubes_per_slice(slice_chips)
    most = system.cube_count // 4
    columns: dict[str, list[float]] = {
        "spare_cubes": [], "promised_fraction": [], "ocs_kept_fraction": [], "static_kept_fraction": []
    }  # fmt: skip
    for spares in sorted({round(most * step / SPARE_STEPS) for step in range(SPARE_STEPS + 1)}):
        held = replace(system, spare_cube_count=spares)
        promised = held.used_cube_count // size * slice_chips / system.chip_count
        found = (float(spares), promised, *kept_fraction(held, slice_chips))
        for column, value in zip(columns.values(), found, strict=True):
            column.append(value)
    return columns
