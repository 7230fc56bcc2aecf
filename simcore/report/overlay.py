"""Measured beside simulated: one load point of a benchmark against the metrics of a result.

A benchmark says nothing of a simulation at another load, so what the two served is compared first: requests per
second, tokens in and out of a request, and requests in flight by Little's law. A file with several load points is read
at the one whose request rate is nearest in proportion.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from simcore.errors import Message
from simcore.measurements import Latency, ServingMeasurement

UNLIKE_FRACTION: Final = 0.1
Metrics = Mapping[str, float | int | str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One metric, in its own unit: what was measured and what was simulated."""

    metric: str
    measured: float
    simulated: float

    @property
    def error_fraction(self) -> float:
        """How much more was simulated than measured, of what was measured."""
        return self.simulated / self.measured - 1.0

    def as_row(self) -> dict[str, Any]:
        return {
            "metric": self.metric,
            "measured": self.measured,
            "simulated": self.simulated,
            "error_fraction": self.error_fraction,
        }


def nearest(points: Sequence[ServingMeasurement], metrics: Metrics) -> ServingMeasurement:
    """The load point that is most like the simulated load."""
    rate = _number(metrics, "serving.request_per_s")
    if rate is None:
        return points[0]
    return min(points, key=lambda point: abs(math.log(point.request_per_s / rate)))


def pairs(measured: ServingMeasurement, metrics: Metrics) -> tuple[Pair, ...]:
    """Every figure that both have, by metric id."""
    figures = {
        **_latency("serving.ttft_s", measured.ttft),
        **_latency("serving.tpot_s", measured.tpot),
        **_latency("serving.itl_s", measured.itl),
        **_latency("serving.e2e_s", measured.e2e),
        "serving.request_per_s": measured.request_per_s,
        "serving.output_token_per_s": measured.output_token_per_s,
    }
    found = ((metric, figure, _number(metrics, metric)) for metric, figure in figures.items())
    return tuple(
        Pair(metric=metric, measured=figure, simulated=value)
        for metric, figure, value in found
        if figure and value is not None
    )


def unlike(measured: ServingMeasurement, metrics: Metrics) -> tuple[Message, ...]:
    """What was served otherwise than it is simulated, by more than a tenth."""
    return tuple(
        Message(
            code="overlay.unlike",
            template="{what}: {measured:,.4g} in the benchmark, {simulated:,.4g} here; the two are not of one load, so "
            "their times say little of each other: set the scenario like the benchmark",
            params={"what": what, "measured": figure, "simulated": value},
            path="workload",
        )
        for what, figure, value in _loads(measured, metrics)
        if not 1 - UNLIKE_FRACTION <= value / figure <= 1 + UNLIKE_FRACTION
    )


def _loads(measured: ServingMeasurement, metrics: Metrics) -> Iterator[tuple[str, float, float]]:
    """The label of what was offered: measured and simulated, where both are known."""
    rate = _number(metrics, "serving.request_per_s")
    if not rate:
        return
    stay_s = _number(metrics, "serving.e2e_s.mean")
    tokens = (_number(metrics, f"serving.{way}_token_per_s") for way in ("input", "output"))
    sent, answered = (None if token is None else token / rate for token in tokens)
    for what, figure, value in (
        ("Request rate", measured.request_per_s, rate),
        ("Input, mean", measured.input_tokens, sent),
        ("Output, mean", measured.output_tokens, answered),
        ("Users", measured.achieved_concurrency, None if stay_s is None else rate * stay_s),
    ):
        if figure and value is not None:
            yield what, figure, value


def _latency(name: str, times: Latency) -> dict[str, float | None]:
    return {f"{name}.mean": times.mean_s, f"{name}.p50": times.p50_s, f"{name}.p99": times.p99_s}


def _number(metrics: Metrics, name: str) -> float | None:
    value = metrics.get(name)
    return None if value is None or isinstance(value, str) else float(value)
