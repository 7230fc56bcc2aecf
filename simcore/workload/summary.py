"""What a trace is like: its rates, the lengths of its requests, how bursty it is, how much its prompts share.

Burstiness is the coefficient of variation of the gaps between arrivals (1 for Poisson), and the index of
dispersion: variance over mean of the arrivals per window of a sixtieth of the span (1 for Poisson). The
first sees clumps of a few requests, the second waves; where many arrivals share an instant (recorders round),
the first sees the rounding.

The shared share is of prompt tokens in blocks whose hash an earlier block of the trace had: what a prefix
cache without end would hit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from simcore.workload.block_hashes import BLOCK_TOKENS
from simcore.workload.traces import TraceTable

_PERCENTILES: Final = {"p50": 50, "p90": 90, "p95": 95, "p99": 99}
_WINDOWS: Final = 60
_MINUTE_S: Final = 60.0
_CURVE_WINDOWS: Final = 120
_CURVE_POINTS: Final = 101


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceSummary:
    """Figures of a trace; None where it has too few rows to say, or no hashes of prompts."""

    row_count: int
    skipped_count: int
    span_s: float
    mean_request_per_s: float | None
    peak_minute_count: int  # most arrivals within any minute
    gap_cv_ratio: float | None
    tied_gap_fraction: float | None  # of the gaps, those of no length
    least_gap_s: float | None  # of the others; a recorder that rounds leaves none below its step
    dispersion_ratio: float | None
    input_tokens: dict[str, float]
    output_tokens: dict[str, float]
    shared_prompt_fraction: float | None
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
        peak_minute_count=_peak_minute(instants),
        gap_cv_ratio=float(gaps_s.std() / gaps_s.mean()) if spread else None,
        tied_gap_fraction=float((gaps_s == 0).mean()) if spread else None,
        least_gap_s=float(gaps_s[gaps_s > 0].min()) if spread else None,
        dispersion_ratio=_dispersion(instants) if spread else None,
        input_tokens=_lengths(table.input_tokens),
        output_tokens=_lengths(table.output_tokens),
        shared_prompt_fraction=_shared_fraction(table),
        content_sha256=table.content_sha256,
    )


def curves(table: TraceTable) -> dict[str, dict[str, NDArray[np.float64]]]:
    """Columns to draw: arrivals per minute by window of a hundred-and-twentieth of the span, and quantiles of
    lengths.
    """
    span_s = max(float(table.timestamp_s[-1]), 1e-9)
    counts, edges_s = np.histogram(table.timestamp_s, bins=_CURVE_WINDOWS, range=(0.0, span_s))
    fractions = np.linspace(0.0, 1.0, _CURVE_POINTS)
    return {
        "arrivals": {
            "time_s": edges_s[:-1],
            "request_per_min": counts * (_MINUTE_S * _CURVE_WINDOWS / span_s),
        },
        "lengths": {
            "fraction": fractions,
            "input_tokens": np.quantile(table.input_tokens, fractions),
            "output_tokens": np.quantile(table.output_tokens, fractions),
        },
    }


def _peak_minute(instants: NDArray[np.float64]) -> int:
    ends = np.searchsorted(instants, instants + _MINUTE_S, side="left")
    return int((ends - np.arange(len(instants))).max())


def _dispersion(instants: NDArray[np.float64]) -> float:
    counts, _ = np.histogram(instants, bins=_WINDOWS)
    return float(counts.var() / counts.mean())


def _lengths(tokens: NDArray[np.int64]) -> dict[str, float]:
    found = {name: float(np.percentile(tokens, share)) for name, share in _PERCENTILES.items()}
    mean = float(tokens.mean())
    return {"mean": mean, "cv": float(tokens.std()) / mean, **found, "max": float(tokens.max())}


def _shared_fraction(table: TraceTable) -> float | None:
    """A block holds 512 tokens, the last one of a prompt what is left of it."""
    if table.block_chains is None:
        return None
    offsets, hashes = table.block_chains
    lengths = np.diff(offsets)
    place = np.arange(len(hashes)) - np.repeat(offsets[:-1], lengths)
    left = np.repeat(table.input_tokens, lengths) - place * BLOCK_TOKENS
    first = np.zeros(len(hashes), np.bool_)
    first[np.unique(hashes, return_index=True)[1]] = True
    shared = np.clip(left, 0, BLOCK_TOKENS)[~first].sum()
    return float(shared / table.input_tokens.sum())
