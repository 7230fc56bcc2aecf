"""A calibration as the text of a catalog file, one fit a line, and the report of what was fitted.

What was not fitted anew is written as the present file has it; `loader.load_calibration` reads the whole back.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import MISSING, asdict, fields
from typing import Any, Final

import yaml

from simcore.catalog.kernels import Kernels
from simcore.catalog.types import Calibration, Source
from simcore.units import UNITS, dimension_of
from simcore.validation.calibrate import Outcome

_HEADER: Final = """\
# Plain rooflines: t = max(flop / (compute_fraction × peak), bytes / (memory_fraction × HBM bandwidth)) + launch_s
# `moe_<dtype>`: the fused expert layer. `kernels`: the richer forms of compute/kernels.py, which steps use.
# Collectives: t = alpha_s + sqrt_s_per_sqrt_byte × sqrt(w) + w / bus_bytes_per_s, w = bytes × bus-bandwidth factor
# `residuals`: measured ÷ predicted over rows that were not fitted; error bands are read from them.
"""
_KERNEL_TABLES: Final = tuple(item.name for item in fields(Kernels))
_PRINTED: Final = {"s": ("us", 1e-6), "bytes_per_s": ("GB/s", 1e9), "tokens": ("token", 1.0)}


def calibration_text(calibration: Calibration) -> str:
    """The file's text."""
    keys = _source_keys(calibration)
    lines = [_HEADER.rstrip(), f"name: {_plain_or_quoted(calibration.name)}"]
    if calibration.chip:
        lines.append(f"chip: {_quoted(calibration.chip)}")
    if calibration.is_class_default:
        lines.append("is_class_default: true")
    if calibration.fitted_on:
        lines.append(f"fitted_on: {_quoted(calibration.fitted_on)}")
    for table in ("gemm", "attention_prefill", "attention_decode"):
        lines += _section(table, getattr(calibration, table), keys)
    lines += ["kernels:"] if any(getattr(calibration.kernels, table) for table in _KERNEL_TABLES) else []
    for table in _KERNEL_TABLES:
        lines += _section(table, getattr(calibration.kernels, table), keys, indent="  ")
    lines += _collectives(calibration, keys)
    lines.append(f"step_overhead: {_flow(calibration.step_overhead, keys)}")
    lines += _section("engine_overheads", calibration.engine_overheads, keys)
    if calibration.step_range is not None:
        reach = calibration.step_range
        parts = (f"{item.name}: {getattr(reach, item.name):g}" for item in fields(reach))
        lines.append("step_range: {" + ", ".join(parts) + "}")
    lines += _section("residuals", calibration.residuals, keys)
    lines.append("sources:")
    lines += [f"  {key}: {_source_text(source)}" for source, key in keys.items()]
    return "\n".join(lines) + "\n"


def outcome_text(outcome: Outcome) -> str:
    """The report as lines: errors before and after, on rows seen and not, and what was left out."""
    rows: list[tuple[str, ...]] = [
        ("regime", "source", "fitted", "held out", "before", "after", "held out", "median", "")
    ]
    for regime in outcome.regimes:
        numbers = (
            regime.before_fraction,
            regime.fitted_mape_fraction,
            regime.held_out_mape_fraction,
            regime.held_out_median_fraction,
        )
        errors = ["–" if math.isnan(number) else f"{number:.1%}" for number in numbers]
        kept = "" if regime.is_kept else "not taken: the plain roofline is closer"
        counts = (str(regime.fitted_rows), str(regime.held_out_rows))
        rows.append((regime.name, regime.source, *counts, *errors, kept))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
    left_out = [f"{count:>7,} rows left out: {reason}" for reason, count in outcome.rejected.items()]
    return "\n".join([*lines, *left_out])


def outcome_dict(outcome: Outcome) -> dict[str, Any]:
    """The report for programs."""
    return {
        "calibration": outcome.calibration.slug,
        "fitted_on": outcome.calibration.fitted_on,
        "regimes": [
            {
                name: None if value != value else value
                for name, value in asdict(regime).items()
                if name != "points_s"
            }
            for regime in outcome.regimes
        ],
        "rejected": dict(outcome.rejected),
    }


def _section(
    name: str, records: Mapping[str, Any], keys: Mapping[Source, str], indent: str = ""
) -> list[str]:
    if not records:
        return []
    return [
        f"{indent}{name}:",
        *(f"{indent}  {_quoted(key)}: {_flow(record, keys)}" for key, record in records.items()),
    ]


def _collectives(calibration: Calibration, keys: Mapping[Source, str]) -> list[str]:
    lines = ["collectives:"] if calibration.collectives else []
    operations = dict.fromkeys(operation for operation, _ in calibration.collectives)
    for operation in operations:
        lines.append(f"  {operation}:")
        for (name, ranks), fit in sorted(calibration.collectives.items()):
            if name == operation:
                lines.append(f"    {ranks}: {_flow(fit, keys)}")
    return lines


def _flow(record: Any, keys: Mapping[Source, str]) -> str:
    """A record on one line, with its source last; values at their defaults are left out."""
    parts = []
    for item in fields(record):
        value = getattr(record, item.name)
        if item.name != "source" and (item.default is MISSING or value != item.default):
            parts.append(f"{item.name}: {_figure(item.name, value)}")
    return "{" + ", ".join([*parts, f"source: {keys[record.source]}"]) + "}"


def _figure(name: str, value: float) -> str:
    if isinstance(value, int):
        return str(value)
    if name == "sqrt_s_per_sqrt_byte":
        return f"{value * 1e9:.4g} ns"
    dimension = dimension_of(name)
    if dimension not in UNITS or dimension == "fraction":
        return f"{value:.4g}"
    if dimension == "s" and value >= 0.01:
        return f"{value * 1e3:.4g} ms"
    unit, factor = _PRINTED[dimension]
    return f"{value / factor:.4g} {unit}"


def _source_keys(calibration: Calibration) -> dict[Source, str]:
    """A short key for each source, in the order of their first use."""
    records = [
        *calibration.gemm.values(),
        *calibration.attention_prefill.values(),
        *calibration.attention_decode.values(),
        *(record for table in _KERNEL_TABLES for record in getattr(calibration.kernels, table).values()),
        *calibration.collectives.values(),
        calibration.step_overhead,
        *calibration.engine_overheads.values(),
        *calibration.residuals.values(),
    ]
    found = dict.fromkeys(record.source for record in records)
    return {source: f"s{number}" for number, source in enumerate(found, start=1)}


def _source_text(source: Source) -> str:
    parts = [f"title: {_quoted(source.title)}", f"kind: {source.kind}"]
    parts += [
        f"{name}: {_quoted(text)}" for name in ("url", "read_on", "note") if (text := getattr(source, name))
    ]
    return "{" + ", ".join(parts) + "}"


def _plain_or_quoted(text: str) -> str:
    """A value of its own line: plain where YAML reads it back as it is."""
    try:
        is_plain = yaml.safe_load(text) == text
    except yaml.YAMLError:
        is_plain = False
    return text if is_plain else _in_quotes(text)


def _quoted(text: str) -> str:
    plain = text.replace("_", "").isalnum() and not text[0].isdigit()
    return text if plain else _in_quotes(text)


def _in_quotes(text: str) -> str:
    """Double quotes; what cannot be printed, and YAML refuses, is a space."""
    return json.dumps("".join(letter if letter.isprintable() else " " for letter in text), ensure_ascii=False)
