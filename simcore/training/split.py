"""Time by resource: terms that add up, so that a step's split and its sum are one tree."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final

from simcore.why import Term, constant, total

ZERO: Final = constant(0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """Seconds by what is waited for."""

    compute: Term = ZERO
    hbm: Term = ZERO
    scaleup: Term = ZERO
    scaleout: Term = ZERO
    bubble: Term = ZERO
    overhead: Term = ZERO

    def __add__(self, other: Split) -> Split:
        return Split(**{name: _sum(getattr(self, name), getattr(other, name)) for name in RESOURCES})

    def times(self, factor: Term | float) -> Split:
        """Every part so many times."""
        return Split(**{name: _scaled(getattr(self, name), factor) for name in RESOURCES})

    def named(self, prefix: str) -> Split:
        """Parts under names such as `forward_compute_s`, where they are not zero."""
        parts = {name: getattr(self, name) for name in RESOURCES}
        return Split(
            **{name: part.named(f"{prefix}_{name}_s") if part.value else part for name, part in parts.items()}
        )

    @property
    def parts(self) -> dict[str, Term]:
        """The parts that are not zero."""
        found = {name: getattr(self, name) for name in RESOURCES}
        return {name: part for name, part in found.items() if part.value}

    @property
    def total(self) -> Term:
        parts = list(self.parts.values())
        return parts[0] if len(parts) == 1 else total(*parts) if parts else ZERO

    @property
    def kernels(self) -> Term:
        """What runs on the chip itself: the time that collectives can hide behind."""
        return _sum(self.compute, self.hbm)


RESOURCES: Final = tuple(field.name for field in fields(Split))


def _sum(first: Term, second: Term) -> Term:
    if not first.value:
        return second
    return first + second if second.value else first


def _scaled(part: Term, factor: Term | float) -> Term:
    if not part.value or factor == 1.0:
        return part
    return factor * part
