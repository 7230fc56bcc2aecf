"""A catalog chip as a scenario whose figures are one's own: they start as the datasheet has them."""

from __future__ import annotations

from typing import Any, Final

from simcore.catalog import Chip
from simcore.units import dimension_of, printed, quantity

CLONED: Final = (
    "bf16_flop_per_s",
    "fp8_flop_per_s",
    "hbm_bytes",
    "hbm_bytes_per_s",
    "scaleup_bytes_per_s",
    "tdp_w",
)


def chip_clone(chip: Chip, *, name: str) -> dict[str, Any]:
    """The document, with every figure that people edit written out."""
    figures = {key: value for key in CLONED if (value := getattr(chip, key))}
    overrides = {key: _as_typed(value, key) for key, value in figures.items()}
    return {"name": name, "hardware": {"chip": chip.slug, "chip_overrides": overrides}}


def _as_typed(value: float, name: str) -> float | str:
    """3.35e12 -> "3.35 TB/s", where that says exactly the same."""
    dimension = dimension_of(name)
    for digits in (3, 4, 5):
        number, unit = printed(value, dimension, digits=digits)
        text = f"{number} {unit}"
        if unit and quantity(text, dimension) == value:
            return text
    return value
