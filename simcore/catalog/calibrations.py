"""A user's own calibration: a file that `trimtab calibrate` wrote, used instead of the one that ships.

The file is untrusted: whatever is wrong with it is an InputError at the place that named it. Its hash is kept, so
that results of two files are two results even where only their sources differ.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, Final

from simcore.catalog.loader import load_calibration
from simcore.catalog.types import Calibration
from simcore.errors import InputError

MAX_BYTES: Final = 1_000_000
_DIVISORS: Final = (
    "compute_fraction", "memory_fraction", "bus_bytes_per_s", "overlap_exponent", "tile_rows", "tile_columns",
    "split_tokens", "resident_speedup_ratio",
)  # fmt: skip


def is_file(name: str) -> bool:
    """Whether `hardware.calibration` names a file.

    >>> is_file("./my.yaml"), is_file("nvidia-h100-sxm")
    (True, False)
    """
    return name.endswith((".yaml", ".yml"))


def own_calibration(text: str, *, slug: str, path: str = "hardware.calibration") -> Calibration:
    """The calibration in a file's text, under the name by which it was asked for."""
    if len(text) > MAX_BYTES:
        raise InputError.at(
            path,
            "calibration.too_large",
            "got {got:,} characters; a calibration has at most {allowed:,}",
            got=len(text),
            allowed=MAX_BYTES,
        )
    try:
        found = load_calibration(text, slug=slug, path=path)
        _check_numbers(found)
    except (TypeError, ValueError, AttributeError, KeyError, RecursionError) as error:
        raise InputError.at(
            path,
            "calibration.unreadable",
            "this is no calibration ({reason}); write one with `trimtab calibrate ROWS.csv --chip SLUG -o F.yaml`",
            reason=str(error)[:120],
        ) from None
    return replace(found, content_sha256=hashlib.sha256(text.encode()).hexdigest())


def _check_numbers(record: Any, where: str = "") -> None:
    """Every number finite, and what is divided by positive."""
    if isinstance(record, Mapping):
        for key, item in record.items():
            _check_numbers(item, f"{where} {key}".strip())
    elif is_dataclass(record) and not isinstance(record, type):
        for item in fields(record):
            _check_numbers(getattr(record, item.name), f"{where} {item.name}".strip())
    elif isinstance(record, int | float) and (
        not math.isfinite(record) or (where.endswith(_DIVISORS) and record <= 0)
    ):
        raise ValueError(f"{where} is {record}")
