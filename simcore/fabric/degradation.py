"""What is left of a damaged fabric: shares of the capacity of cables and NICs.

A link is named by its ends, `leaf 3 → spine 1` or `chip 5 → leaf 0`; all parallel cables between the two are meant,
in both directions and in every plane, as when a bundle is cut. A switch takes all its cables with it, and the NICs
below it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simcore.errors import InputError
from simcore.fabric.laying import Laid
from simcore.fabric.specs import Degraded

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """Shares of capacity that are left: by cable, and by NIC."""

    cable_fraction: Floats
    nic_fraction: Floats


def damage_of(degraded: Sequence[Degraded], ends: Laid) -> Damage:
    """Every entry applied in turn; one that names nothing is refused with the names that there are."""
    damage = Damage(cable_fraction=np.ones(len(ends.lower)), nic_fraction=np.ones(len(ends.vertex_of)))
    if degraded:
        numbers = {ends.vertices.name(vertex): vertex for vertex in range(len(ends.vertices))}
        for index, entry in enumerate(degraded):
            _apply(damage, entry, ends, numbers, path=f"topology.degraded.{index}")
    return damage


def _apply(damage: Damage, entry: Degraded, ends: Laid, numbers: dict[str, int], *, path: str) -> None:
    fraction = entry.capacity_fraction
    if entry.switch is not None:
        vertex = numbers.get(entry.switch.strip())
        if vertex is None:
            raise _unknown(f"{path}.switch", entry.switch, ends)
        damage.cable_fraction[(ends.lower == vertex) | (ends.upper == vertex)] *= fraction
        damage.nic_fraction[ends.vertex_of == vertex] *= fraction
        return
    names = [name.strip() for name in (entry.link or "").replace("->", "→").split("→")]
    found = _cables(names, ends, numbers)
    nics = _nics(names, ends, numbers)
    if not (found.any() or nics.any()):
        raise _unknown(f"{path}.link", entry.link or "", ends)
    damage.cable_fraction[found] *= fraction
    damage.nic_fraction[nics] *= fraction


def _cables(names: list[str], ends: Laid, numbers: dict[str, int]) -> NDArray[np.bool_]:
    first, second = (numbers.get(name, -1) for name in (names[0], names[-1]))
    forward: NDArray[np.bool_] = (ends.lower == first) & (ends.upper == second)
    backward: NDArray[np.bool_] = (ends.lower == second) & (ends.upper == first)
    return forward | backward


def _nics(names: list[str], ends: Laid, numbers: dict[str, int]) -> NDArray[np.bool_]:
    """The NIC of `chip 5`, whichever end it is named at."""
    found = np.zeros(len(ends.vertex_of), np.bool_)
    for name, other in ((names[0], names[-1]), (names[-1], names[0])):
        kind, _, number = name.partition(" ")
        if kind == "chip" and number.isdecimal() and int(number) // ends.chips_per_nic < len(found):
            endpoint = int(number) // ends.chips_per_nic
            found[endpoint] = ends.vertex_of[endpoint] == numbers.get(other, -1)
    return found


def _unknown(path: str, got: str, ends: Laid) -> InputError:
    if ends.vertices.shape:
        names = f"chip (0, 0, …) to {ends.vertices.name(len(ends.vertices) - 1)}"
    else:
        counts = np.bincount(ends.vertices.tier_of, minlength=len(ends.vertices.tier_names))
        names = ", ".join(
            f"{name} 0 to {name} {count - 1}"
            for name, count in zip(ends.vertices.tier_names, counts, strict=True)
        )
    return InputError.at(
        path,
        "fabric.degraded_unknown",
        "got {got}; this fabric has no such part. Its switches are {names}; links join two of them, or a chip "
        "to its switch, such as {example}",
        got=repr(got),
        names=names,
        example=_example(ends),
    )


def _example(ends: Laid) -> str:
    name = ends.vertices.name
    if len(ends.lower):
        return f"{name(int(ends.lower[0]))} → {name(int(ends.upper[0]))}"
    return f"chip 0 → {name(int(ends.vertex_of[0]))}" if len(ends.vertex_of) else "none"
