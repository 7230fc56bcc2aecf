"""What failures leave: slice goodput as trees and as a series, checkpointing, replica availability.

Checkpointing (write time C, mean time between failures M): Young's interval `sqrt(2·C·M)`; Daly's
`sqrt(2CM)·(1 + sqrt(C/2M)/3 + (C/2M)/9) − C`; the share lost at interval τ with restart time R is
`C/τ + (τ/2 + R)/M`, at Young's optimum `sqrt(2C/M)` plus R/M. Limit: first order, for C ≪ M.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

from simcore.errors import InfeasibleError
from simcore.reliability.availability import SliceSystem, slice_goodput
from simcore.why import Term, constant, leaf, minimum, product, total

SERIES_POINTS = 64
# Above this many cubes the sum over healthy cubes is shown as one computed leaf, not term by term.
TREE_CUBES = 160
GRID_AVAILABILITIES = (0.99, 0.995, 0.999)


def slice_goodput_terms(system: SliceSystem, slice_chips: int, host: Term | None = None) -> dict[str, Term]:
    """The four headline numbers, each with its derivation; `host` is that of a host's availability."""
    if system.cube_count < 1 or slice_chips > system.cube_count * system.chips_per_cube:
        raise InfeasibleError.at(
            "reliability.slice_chips",
            "reliability.slice_too_large",
            "a slice of {slice_chips:,} chips does not fit in {cubes:,} cubes of {size} chips; "
            "use at most {limit:,}",
            slice_chips=slice_chips,
            cubes=system.cube_count,
            size=system.chips_per_cube,
            limit=system.cube_count * system.chips_per_cube,
        )
    found = slice_goodput(system, slice_chips)
    static_mean, ocs_mean = _mean_terms(system, slice_chips, host or _host(system.host_availability_fraction))
    quantile = "largest goodput reached 97 % of the time, binomial over cubes"
    return {
        "reliability.slice_goodput_fraction.mean": ocs_mean.named("slice_goodput_fraction"),
        "reliability.slice_goodput_fraction.q97": _leaf(found.ocs_q97_fraction, quantile),
        "reliability.static_goodput_fraction.mean": static_mean.named("static_goodput_fraction"),
        "reliability.static_goodput_fraction.q97": _leaf(found.static_q97_fraction, quantile),
    }


def _leaf(value: float, source: str) -> Term:
    return leaf(value, "goodput_fraction", kind="derived", source=source)


def _host(availability_fraction: float) -> Term:
    name = "host_availability_fraction"
    return leaf(availability_fraction, name, path=f"reliability.{name}")


def _mean_terms(system: SliceSystem, slice_chips: int, host: Term) -> tuple[Term, Term]:
    chips = leaf(slice_chips, "slice_chips", path="reliability.slice_chips")
    pod = leaf(system.chip_count, "chip_count", path="hardware.chip_count")
    if slice_chips < system.chips_per_cube:
        hosts = math.ceil(slice_chips / system.chips_per_host)
        places = system.used_cube_count * (system.hosts_per_cube // hosts)
        mean = places * chips / pod * _power(host, hosts)
        return mean, mean
    cube = _power(host, system.hosts_per_cube).named("cube_availability_fraction")
    size = system.cubes_per_slice(slice_chips)
    places = system.used_cube_count // size
    static = places * chips / pod * _power(cube, size)
    return static, _expected_slices(system, size, cube) * chips / pod


def _expected_slices(system: SliceSystem, size: int, cube: Term) -> Term:
    """E[min(floor(H / s), floor((n − k) / s))] over the binomial number of healthy cubes H; k are held back."""
    cubes, places = system.cube_count, system.used_cube_count // size
    if cubes > TREE_CUBES:
        mean = slice_goodput(system, size * system.chips_per_cube).ocs_mean_fraction
        slices = mean * system.chip_count / (size * system.chips_per_cube)
        return leaf(slices, "expected_slice_count", kind="derived", source=f"binomial over {cubes:,} cubes")
    down = 1 - cube
    terms = [
        product(
            constant(
                min(healthy // size, places) * math.comb(cubes, healthy),
                f"{min(healthy // size, places)}·C({cubes}, {healthy})",
            ),
            _power(cube, healthy),
            _power(down, cubes - healthy),
        )
        for healthy in range(size, cubes + 1)
    ]
    return total(*terms).named("expected_slice_count")


def _power(base: Term, exponent: int) -> Term:
    return Term(base.value**exponent, op="pow", args=(base, constant(exponent)))


def slice_goodput_series(system: SliceSystem) -> Mapping[str, list[float]]:
    """Both systems over slice sizes: every whole number of cubes, thinned to 64 points in large pods."""
    cubes = max(1, system.cube_count)
    points = min(cubes, SERIES_POINTS)
    sizes = sorted({max(1, round(cubes ** (i / max(1, points - 1)))) for i in range(points)})
    if cubes <= SERIES_POINTS:
        sizes = list(range(1, cubes + 1))
    found = [slice_goodput(system, size * system.chips_per_cube) for size in sizes]
    return {
        "slice_chips": [float(point.slice_chips) for point in found],
        "ocs_mean": [point.ocs_mean_fraction for point in found],
        "ocs_q97": [point.ocs_q97_fraction for point in found],
        "static_mean": [point.static_mean_fraction for point in found],
        "static_q97": [point.static_q97_fraction for point in found],
    }


def slice_goodput_grid(system: SliceSystem, slice_chips: int) -> list[dict[str, float]]:
    """The means for quarters of the machine, and the chosen slice, at three availabilities and the chosen one."""
    quarters = {system.cube_count * part // 4 * system.chips_per_cube for part in (1, 2, 3, 4)}
    availabilities = sorted({*GRID_AVAILABILITIES, system.host_availability_fraction})
    sizes = sorted({slice_chips, *quarters} - {0})
    rows = []
    for size, availability in itertools.product(sizes, availabilities):
        found = slice_goodput(replace(system, host_availability_fraction=availability), size)
        rows.append(
            {
                "slice_chips": size,
                "host_availability_fraction": availability,
                "ocs_mean_fraction": found.ocs_mean_fraction,
                "static_mean_fraction": found.static_mean_fraction,
            }
        )
    return rows


def young_interval_s(write_s: float, mtbf_s: float) -> float:
    """Young's optimum.

    >>> round(young_interval_s(30, 7200), 1)
    657.3
    """
    return math.sqrt(2 * write_s * mtbf_s)


def daly_interval_s(write_s: float, mtbf_s: float) -> float:
    """Daly's higher-order optimum; the time between failures where writing takes longer than that.

    >>> round(daly_interval_s(30, 7200), 1)
    637.4
    """
    if write_s >= 2 * mtbf_s:
        return mtbf_s
    ratio = write_s / (2 * mtbf_s)
    return young_interval_s(write_s, mtbf_s) * (1 + math.sqrt(ratio) / 3 + ratio / 9) - write_s


def waste_fraction(interval_s: float, write_s: float, mtbf_s: float, restart_s: float = 0.0) -> float:
    """Share of time lost to writing, redoing and restarting, at most 1.

    >>> round(waste_fraction(657.27, 30, 7200), 4)
    0.0913
    """
    return min(1.0, write_s / interval_s + (interval_s / 2 + restart_s) / mtbf_s)


def checkpoint_interval_term(interval_s: Literal["auto"] | float, *, write_s: float, mtbf: Term) -> Term:
    if interval_s != "auto":
        return leaf(interval_s, "checkpoint_interval_s", path="reliability.checkpoint_interval_s")
    best_s = daly_interval_s(write_s, mtbf.value)
    source = f"Daly 2006, for writes of {write_s:g} s and {mtbf.value:,.0f} s between failures"
    return leaf(best_s, "checkpoint_interval_s", kind="derived", source=source)


def goodput_term(*, interval: Term, write_s: float, restart_s: float, mtbf: Term) -> Term:
    """Share of time that makes progress under checkpoint and restart."""
    write = leaf(write_s, "checkpoint_write_s", path="reliability.checkpoint_write_s")
    restart = leaf(restart_s, "restart_s", path="reliability.restart_s")
    lost = write / interval + (interval / 2 + restart) / mtbf
    return (1 - minimum(1, lost)).named("goodput_fraction")


def replica_availability_term(host: Term, *, hosts_per_replica: int) -> Term:
    """Share of time that all hosts of one serving replica are healthy."""
    return _power(host, hosts_per_replica).named("availability_fraction")
