"""The resources whose doubling is asked for, and the chip figures that each is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from simcore.catalog.types import Chip

FIGURES: Final[Mapping[str, tuple[str, ...]]] = {
    "compute": ("bf16_flop_per_s", "fp8_flop_per_s", "int8_flop_per_s", "fp4_flop_per_s"),
    "hbm_bandwidth": ("hbm_bytes_per_s",),
    "hbm_capacity": ("hbm_bytes", "hbm_visible_bytes"),
    "scaleup": ("scaleup_bytes_per_s", "pcie_bytes_per_s"),
}
NOTICEABLE_RATIO: Final = 1.01


def scaled_chip(chip: Chip, resource: str, factor: float) -> Chip:
    """The chip with every figure of a resource multiplied; figures that it lacks stay absent."""
    changed = {
        name: value * factor for name in FIGURES[resource] if (value := getattr(chip, name)) is not None
    }
    return replace(chip, **changed)
