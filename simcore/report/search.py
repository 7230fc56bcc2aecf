"""A search's answer as text: what is said of it, then a row per design, simulated beside closed form."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from simcore.analysis.search import Answer
from simcore.analysis.search.answer import design_text


def search_text(found: Answer) -> str:
    """Sentences, the rows, and the best of each kind of chip."""
    head = f"{found.candidate_count:,} candidates, {found.feasible_count:,} within the limits"
    lines = [head, *(message.text for message in found.messages)]
    if found.rows:
        lines += [
            "",
            _line(("design", "objective", "simulated", "TTFT ms", "TPOT ms", "token/s/chip", "SLO kept")),
        ]
        lines += [_line(_cells(row)) for row in found.rows]
    if found.by_chip:
        lines += ["", "the best of each chip, by closed forms:"]
        lines += [
            f"  {row['chip']:<22} "
            + (f"{design_text(row)}: {row['objective']:.4g}" if "cut" in row else "none within the limits")
            for row in found.by_chip
        ]
    return "\n".join(lines)


def set_lines(overrides: Mapping[str, Any]) -> list[str]:
    """`--set path=value` for each, quoted for a shell."""
    return [f"--set {shlex.quote(f'{path}={_value(value)}')}" for path, value in overrides.items()]


def _value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _cells(row: Mapping[str, Any]) -> Sequence[str]:
    simulated, kept = row.get("simulated", {}), row.get("serving.slo_attainment_fraction")
    return (
        design_text(dict(row)),
        f"{row['objective']:.4g}",
        f"{row['objective_simulated']:.4g}" if "objective_simulated" in row else "-",
        _pair(row["ttft_s"], simulated.get("ttft_s"), 1e3),
        _pair(row["tpot_s"], simulated.get("tpot_s"), 1e3),
        _pair(row["output_token_per_s_per_chip"], simulated.get("output_token_per_s_per_chip")),
        "-" if kept is None else f"{kept:.1%}",
    )


def _pair(expected: float | None, got: float | None, scale: float = 1.0) -> str:
    """Closed form, then what the simulation said of it."""
    first = "-" if expected is None else f"{scale * expected:.4g}"
    return first if got is None else f"{first} → {scale * got:.4g}"


def _line(cells: Sequence[str]) -> str:
    widths = (46, 10, 10, 18, 18, 18, 9)
    return "  ".join(f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=True)).rstrip()
