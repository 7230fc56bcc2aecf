"""Measurements in one form, whichever tool made them, and their CSV.

Times are seconds. TPOT is (E2E − TTFT) / (output tokens − 1) of a request, averaged over requests; ITL is
the gap between two streamed outputs, averaged over gaps. Tools use both words for both, and for E2E / output
tokens: the readers map each tool's figures by definition, not by name, and `note` says what was done. The
achieved concurrency is Little's law, completed requests per second × mean time in the system: tools may hold
more or fewer requests in flight than they were set to. None is "the file does not say".
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Mean, median and 99th percentile of a time."""

    mean_s: float | None = None
    p50_s: float | None = None
    p99_s: float | None = None

    def columns(self, name: str) -> dict[str, float | None]:
        return {f"{name}_s_mean": self.mean_s, f"{name}_s_p50": self.p50_s, f"{name}_s_p99": self.p99_s}


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingMeasurement:
    """One load point of a serving benchmark; token counts are means over its requests."""

    source_tool: str
    model: str = ""
    gpu: str = ""
    tp: int | None = None
    concurrency: int | None = None  # as set; None: open loop, or not said
    request_per_s: float
    input_tokens: float | None = None
    output_tokens: float | None = None
    ttft: Latency
    tpot: Latency
    itl: Latency
    e2e: Latency
    output_token_per_s: float | None = None
    note: str = ""

    @property
    def achieved_concurrency(self) -> float | None:
        """Little's law: requests per second × mean time in the system."""
        return None if self.e2e.mean_s is None else self.request_per_s * self.e2e.mean_s

    def as_row(self) -> dict[str, Any]:
        return {
            "source_tool": self.source_tool,
            "model": self.model,
            "gpu": self.gpu,
            "tp": self.tp,
            "concurrency": self.concurrency,
            "request_per_s": self.request_per_s,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            **self.ttft.columns("ttft"),
            **self.tpot.columns("tpot"),
            **self.itl.columns("itl"),
            **self.e2e.columns("e2e"),
            "output_token_per_s": self.output_token_per_s,
            "achieved_concurrency": self.achieved_concurrency,
            "note": self.note,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveMeasurement:
    """One line of nccl-tests: `algbw` is bytes over time, `busbw` what each link carried."""

    source_tool: str = "nccl-tests"
    operation: str
    gpu: str
    ranks: int
    bytes: int
    time_s: float
    algbw_bytes_per_s: float
    busbw_bytes_per_s: float
    in_place: bool

    def as_row(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


def as_csv(rows: Sequence[ServingMeasurement | CollectiveMeasurement]) -> str:
    """The rows as CSV; numbers to nine digits, an empty cell where the file does not say."""
    plain = [row.as_row() for row in rows]
    out = io.StringIO()
    writer = csv.DictWriter(out, list(plain[0]) if plain else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _cell(value) for name, value in row.items()} for row in plain)
    return out.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.9g}"
    # A text that a spreadsheet would run as a formula is kept a text.
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@") else value
