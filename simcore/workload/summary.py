"""What a trace is like: its span and rate, the lengths of its requests, and how bursty it is.

Burstiness is the coefficient of variation of the gaps between arrivals (1 for Poisson), and the index of
dispersion: variance over mean of the arrivals per window of a sixtieth of the span (1 for Poisson). The
first sees clumps of a few requests, the second waves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from simcore.workload.traces import TraceTable

_PERCENTILES: Final = {"p50": 50, "p90": 90, "p99": 99}
_WINDOWS: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceSummary:
    """Figures of a trace; None where it has too few rows to say."""

    row_count: int
    skipped_count: int
    span_s: float
    mean_request_per_s: float | None
    gap_cv_ratio: float | None
    dispersion_ratio: float | None
    input_tokens: dict[str, float]
    output_tokens: dict[str, float]
    content_sha256: str

    def as_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


def summarise(table: TraceTable) -> TraceSummary:
    """The figures of the rows that were kept."""
    instants = table.timestamp_s
    span_s = float(instants[-1] - instants[0])
    gaps_s = np.diff(instants)
    spread = bool(span_s > 0 and len(gaps_s) > 1)
    return TraceSummary(
        row_count=len(table),
        skipped_count=table.skipped_count,
        span_s=span_s,
        mean_request_per_s=len(gaps_s) / span_s if span_s > 0 else None,
        gap_cv_ratio=float(gaps_s.std() / gaps_s.mean()) if spread else None,
        dispersion_ratio=_dispersion(instants) if spread else None,
        input_tokens=_lengths(table.input_tokens),
        output_tokens=_lengths(table.output_tokens),
        content_sha256=table.content_sha256,
    )


def _dispersion(instants: NDArray[np.float64]) -> float:
    counts, _ = np.histogram(instants, bins=_WINDOWS)
    return float(counts.var() / counts.mean())


def _lengths(tokens: NDArray[np.int64]) -> dict[str, float]:
    found = {name: float(np.percentile(tokens, share)) for name, share in _PERCENTILES.items()}
    mean = float(tokens.mean())
    return {"mean": mean, "cv": float(tokens.std()) / mean, **found, "max": float(tokens.max())}
