"""Shapes of tori and whether they can be twisted, shared by `torus` and `ocs_pod`."""

from __future__ import annotations

import math
from typing import Literal

from simcore.errors import InfeasibleError, InputError

Shape = tuple[int, ...]
Twist = Literal["auto"] | bool


def is_twistable(shape: Shape, *, unit: int = 1) -> bool:
    """n × 2n, n × n × 2n and n × 2n × 2n, in any order, n a multiple of `unit`.

    >>> is_twistable((4, 4, 8)), is_twistable((4, 4, 4)), is_twistable((4, 8, 16))
    (True, False, False)
    """
    short = min(shape)
    return short > 2 and short % unit == 0 and set(shape) == {short, 2 * short}


def twistable(count: int, dimensions: int, *, unit: int = 1) -> Shape:
    """The shape that can be twisted whose chips are nearest in number; short sizes first."""
    shapes = [
        (unit * n,) * shorts + (2 * unit * n,) * (dimensions - shorts)
        for shorts in range(1, dimensions)
        for n in range(math.ceil(3 / unit), 4 + math.isqrt(count))
    ]
    return min(shapes, key=lambda shape: (abs(math.prod(shape) - count), shape))


def auto_shape(twisted: Twist, most_cubic: Shape, *, unit: int = 1) -> Shape:
    """The most cubic shape, or one of as many chips that can be twisted where a twist is asked for."""
    count = math.prod(most_cubic)
    if twisted is not True:
        return most_cubic
    nearest = twistable(count, len(most_cubic), unit=unit)
    return nearest if math.prod(nearest) == count else most_cubic


def check_shape(shape: Shape, most_cubic: Shape) -> None:
    """A shape that is given must have as many chips as the most cubic one."""
    if math.prod(shape) != math.prod(most_cubic):
        raise InputError.at(
            "topology.shape",
            "fabric.shape",
            "{shape} has {count:,} chips, hardware.chip_count is {chip_count:,}; "
            "make them equal, such as {nearest}, or use shape: auto",
            shape=_printed(shape),
            count=math.prod(shape),
            chip_count=math.prod(most_cubic),
            nearest=_printed(most_cubic),
        )


def is_twisted(twisted: Twist, shape: Shape, *, count: int, unit: int = 1) -> bool:
    """Whether the torus is twisted: as asked for, or wherever its shape allows; refused where it does not."""
    if twisted is True and not (is_twistable(shape, unit=unit) and math.prod(shape) == count):
        nearest = twistable(count, len(shape), unit=unit)
        raise InfeasibleError.at(
            "topology.twisted",
            "fabric.twist",
            "{count:,} chips as {shape} cannot be twisted: sizes must be n and 2n, such as n × n × 2n; "
            "the nearest is {nearest} with {chips:,} chips",
            count=count,
            shape=_printed(shape),
            nearest=_printed(nearest),
            chips=math.prod(nearest),
        )
    return bool(twisted) and is_twistable(shape, unit=unit)


def _printed(shape: Shape) -> str:
    return " × ".join(map(str, shape))
