"""When requests arrive: the arrival laws that a scenario may name, and how their instants are drawn.

Open laws draw inter-arrival times with mean `1 / request_per_s`: exponential for `poisson`, gamma with
coefficient of variation `cv` for `gamma` (cv 1 is Poisson, above 1 is bursty, below 1 is regular). `ramp`
and `diurnal` are Poisson with a rate that moves: unit-rate instants are sent through the inverse of the
expected count `Λ(t) = ∫ rate dt` (time rescaling), so they share their draws with `poisson`. A `preset` has
the moving rate and the bursts of a real trace (`arrival_presets.py`) at a mean rate of one's own. A
`closed_loop` keeps a fixed number of requests in flight, so its instants come from the engine. A `trace`
replays the instants and lengths of a file.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from simcore.spec import Spec
from simcore.streams import stream
from simcore.workload.arrival_presets import ArrivalFit, ArrivalPresetName, arrival_presets

TraceFormat = Literal["mooncake", "azure", "burstgpt", "csv"]
MAX_RATE_PER_S = 1e9
_TABLE_POINTS: Final = 16_385


class Poisson(Spec):
    """Independent arrivals at a constant mean rate."""

    kind: Literal["poisson"] = "poisson"
    request_per_s: float = Field(gt=0, le=MAX_RATE_PER_S)


class Gamma(Spec):
    """Renewal arrivals whose inter-arrival times have coefficient of variation `cv`."""

    kind: Literal["gamma"] = "gamma"
    request_per_s: float = Field(gt=0, le=MAX_RATE_PER_S)
    cv: float = Field(default=1.0, ge=0.01, le=100)


class Ramp(Spec):
    """Poisson arrivals whose rate goes evenly from start to end in `ramp_s`, and stays there."""

    kind: Literal["ramp"] = "ramp"
    start_request_per_s: float = Field(gt=0, le=MAX_RATE_PER_S)
    end_request_per_s: float = Field(gt=0, le=MAX_RATE_PER_S)
    ramp_s: float = Field(gt=0, le=1e9)


class Diurnal(Spec):
    """Poisson arrivals whose rate swings as a sine around its mean, rising from it at the first instant."""

    kind: Literal["diurnal"] = "diurnal"
    request_per_s: float = Field(gt=0, le=MAX_RATE_PER_S)
    peak_ratio: float = Field(default=1.5, ge=1, le=2)
    period_s: float = Field(default=86_400.0, gt=0, le=1e9)


class ArrivalPreset(Spec):
    """Arrivals fitted to a real trace, whose rate takes its course once in `period_s` (auto: the trace's own)."""

    kind: Literal["preset"] = "preset"
    name: ArrivalPresetName = "azure-conversation-2023"
    request_per_s: float = Field(gt=0, le=MAX_RATE_PER_S)
    period_s: Literal["auto"] | Annotated[float, Field(gt=0, le=1e9)] = "auto"

    @property
    def fit(self) -> ArrivalFit:
        return arrival_presets()[self.name]


class ClosedLoop(Spec):
    """A fixed number of requests in flight: one that finishes admits the next."""

    kind: Literal["closed_loop"] = "closed_loop"
    concurrency: int = Field(ge=1, le=1_000_000)


class Columns(Spec):
    """Which columns of a generic CSV file hold what; the defaults are our own names."""

    timestamp_s: str = Field(default="timestamp_s", min_length=1, max_length=200)
    input_tokens: str = Field(default="input_tokens", min_length=1, max_length=200)
    output_tokens: str = Field(default="output_tokens", min_length=1, max_length=200)


class Trace(Spec):
    """A recorded trace: a `path` on the command line, the id of an uploaded `trace` on the web.

    `time_scale` multiplies the recorded instants (0.5 doubles the load), after `window` has cut the rows
    between two instants since the first row (in recorded seconds); `limit` keeps the first rows of those.
    """

    kind: Literal["trace"] = "trace"
    path: str | None = Field(default=None, min_length=1, max_length=4096)
    trace: str | None = Field(default=None, min_length=1, max_length=128)
    format: TraceFormat = "csv"
    columns: Columns | None = None
    time_scale: float = Field(default=1.0, gt=0, le=1e6)
    limit: int | None = Field(default=None, ge=1, le=5_000_000)
    window: tuple[float, float] | None = None

    @model_validator(mode="after")
    def _one_source_and_an_ordered_window(self) -> Self:
        if (self.path is None) == (self.trace is None):
            raise ValueError(
                "a trace needs either path (a file) or trace (the id of an upload), and not both"
            )
        if self.columns is not None and self.format != "csv":
            raise ValueError(
                f"columns go with format csv; format {self.format} has its own, so remove columns"
            )
        if self.window is not None and not 0 <= self.window[0] < self.window[1]:
            raise ValueError("window must be two instants in seconds, 0 ≤ first < second")
        return self


OpenArrivals = Poisson | Gamma | Ramp | Diurnal | ArrivalPreset
Arrivals = Annotated[OpenArrivals | ClosedLoop | Trace, Field(discriminator="kind")]


def arrival_instants(arrivals: OpenArrivals, count: int, seed: int) -> NDArray[np.float64]:
    """`count` increasing instants in seconds. A rate only scales the same draws (paired comparison)."""
    draws = stream(seed, "workload", "arrivals")
    cv = _gap_cv(arrivals)
    if cv is None:
        gaps = draws.exponential(1.0, count)
    else:
        shape = 1.0 / cv**2
        gaps = draws.gamma(shape, 1.0 / shape, count)
    expected: NDArray[np.float64] = np.cumsum(gaps)
    if isinstance(arrivals, Ramp):
        return _ramp_instants(arrivals, expected)
    if isinstance(arrivals, Diurnal):
        return _diurnal_instants(arrivals, expected)
    if isinstance(arrivals, ArrivalPreset):
        return _preset_instants(arrivals, expected)
    return expected / arrivals.request_per_s


def _gap_cv(arrivals: OpenArrivals) -> float | None:
    """Of gamma gaps; None where they are exponential."""
    if isinstance(arrivals, ArrivalPreset):
        return arrivals.fit.gap_cv
    return arrivals.cv if isinstance(arrivals, Gamma) else None


def _ramp_instants(ramp: Ramp, expected: NDArray[np.float64]) -> NDArray[np.float64]:
    """Where `start t + (end - start) t² / 2 ramp_s` reaches the expected count; linear after the ramp."""
    start, end, ramp_s = ramp.start_request_per_s, ramp.end_request_per_s, ramp.ramp_s
    on_ramp = 0.5 * (start + end) * ramp_s
    inside = np.minimum(expected, on_ramp)
    # The root in the form that loses nothing where start and end are close.
    root = np.sqrt(np.maximum(start**2 + 2.0 * (end - start) / ramp_s * inside, 0.0))
    return 2.0 * inside / (start + root) + (expected - inside) / end


def _diurnal_instants(day: Diurnal, expected: NDArray[np.float64]) -> NDArray[np.float64]:
    phase = np.linspace(0.0, 1.0, _TABLE_POINTS)
    swing = (day.peak_ratio - 1.0) / (2.0 * np.pi)
    reached = phase + swing * (1.0 - np.cos(2.0 * np.pi * phase))
    return _periodic(expected / (day.request_per_s * day.period_s), day.period_s, phase, reached)


def _preset_instants(preset: ArrivalPreset, expected: NDArray[np.float64]) -> NDArray[np.float64]:
    rates = np.array(preset.fit.relative_rates)
    period_s = preset.fit.period_s if preset.period_s == "auto" else preset.period_s
    phase = np.linspace(0.0, 1.0, len(rates) + 1)
    reached = np.append(0.0, np.cumsum(rates)) / rates.sum()
    return _periodic(expected / (preset.request_per_s * period_s), period_s, phase, reached)


def _periodic(
    turns: NDArray[np.float64], period_s: float, phase: NDArray[np.float64], reached: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Where so many periods' requests are expected: whole periods, then the share that one has `reached` by a phase."""
    periods, rest = np.divmod(turns, 1.0)
    instants: NDArray[np.float64] = period_s * (periods + np.interp(rest, reached, phase))
    return instants
