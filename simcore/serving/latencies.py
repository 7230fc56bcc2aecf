"""The times of finished requests as a client sees them, their statistics, and how many met what was promised.

TTFT and end-to-end times hold the front end's time of a request, which the engine's records do not. An answer
of one token has no time per output token. Up to `SKETCHED_ABOVE` requests every statistic is exact; of more, times are
read in parts and their distributions sketched (`distributions.py`), so that they take no memory beside the records.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal, Self

import numpy as np
from numpy.typing import NDArray

from simcore.serving.distributions import Distribution, Ordered, Sketch
from simcore.serving.records import Floats, Records
from simcore.serving.state import FINISHED, REJECTED

Flags = NDArray[np.bool_]
Limit = float | Floats  # of all requests, or one each
TimeName = Literal["ttft_s", "tpot_s", "e2e_s", "queue_s"]
TIMES: Final[tuple[TimeName, ...]] = ("ttft_s", "tpot_s", "e2e_s", "queue_s")
PERCENTILES: Final = (50, 90, 95, 99)
SKETCHED_ABOVE: Final = 1_000_000
_PART: Final = 250_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Latencies:
    """`ttft_s`, `e2e_s`, `queue_s` of the finished requests; `tpot_s` of those `answered` with more than one token.

    The two sets of flags are over all requests.
    """

    done: Flags
    answered: Flags
    ttft_s: Floats
    e2e_s: Floats
    queue_s: Floats
    tpot_s: Floats

    @classmethod
    def of(cls, records: Records, front_end_s: float) -> Self:
        """Read from records, which a client sees later by the front end's time."""
        ttft_s, done = time_of(records, "ttft_s", front_end_s)
        tpot_s, answered = time_of(records, "tpot_s", front_end_s)
        e2e_s, _ = time_of(records, "e2e_s", front_end_s)
        queue_s, _ = time_of(records, "queue_s", front_end_s)
        return cls(done=done, answered=answered, ttft_s=ttft_s, e2e_s=e2e_s, queue_s=queue_s, tpot_s=tpot_s)


def time_of(records: Records, name: TimeName, front_end_s: float) -> tuple[Floats, Flags]:
    """One time of the finished requests that have it, and which those are."""
    done = records.status == FINISHED
    if name == "tpot_s":
        return _tpot_s(records, done)
    values: Floats = getattr(records, name)
    if name != "queue_s":
        values += front_end_s
    return (values if done.all() else values[done]), done


def _tpot_s(records: Records, done: Flags) -> tuple[Floats, Flags]:
    answered = done & (records.output_tokens > 1)
    spread = records.finish_s - records.first_token_s
    if answered.all():
        return spread / (records.output_tokens - 1), answered
    return spread[answered] / (records.output_tokens[answered] - 1), answered


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """What counts as met, in seconds, and the front end's time, which is part of it."""

    ttft_s: Limit
    tpot_s: Limit
    front_end_s: float

    def to(self, some: Flags | slice) -> Promise:
        """What was promised to some of the requests."""
        return Promise(
            ttft_s=_of(self.ttft_s, some), tpot_s=_of(self.tpot_s, some), front_end_s=self.front_end_s
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """What requests got: the distributions of their times, and how many met both times that were promised."""

    distributions: Mapping[TimeName, Distribution]
    met_count: int
    rejected_count: int

    @property
    def finished_count(self) -> int:
        return len(self.distributions["e2e_s"])


def served(records: Records, promise: Promise, *, only: Flags | None = None) -> Served:
    """What all requests of a run got, or some `only`: exactly, or by sketches where the run has too many."""
    if len(records.status) > SKETCHED_ABOVE:
        return _sketched(records, promise, only)
    if only is not None:
        records, promise = records.where(only), promise.to(only)
    times = Latencies.of(records, promise.front_end_s)
    met_count = _met_count(times, promise)
    for name in TIMES:
        getattr(times, name).sort()  # in place: nobody else has these arrays, and they are long
    return Served(
        distributions={name: Ordered(times_s=getattr(times, name)) for name in TIMES},
        met_count=met_count,
        rejected_count=_rejected_count(records),
    )


def _sketched(records: Records, promise: Promise, only: Flags | None) -> Served:
    sketches = dict.fromkeys(TIMES, Sketch.of(np.empty(0)))
    met = rejected = 0
    for part in _parts(len(records.status)):
        own, promised = records.where(part), promise.to(part)
        if only is not None:
            own, promised = own.where(only[part]), promised.to(only[part])
        times = Latencies.of(own, promise.front_end_s)
        sketches = {name: sketch + Sketch.of(getattr(times, name)) for name, sketch in sketches.items()}
        met += _met_count(times, promised)
        rejected += _rejected_count(own)
    return Served(distributions=sketches, met_count=met, rejected_count=rejected)


def _parts(count: int) -> Iterator[slice]:
    return (slice(begin, begin + _PART) for begin in range(0, count, _PART))


def statistics(name: str, times: Distribution) -> dict[str, float]:
    """Mean and percentiles as `name.mean`, `name.p50`, …; none of no values."""
    if len(times) == 0:
        return {}
    values = times.at(np.array(PERCENTILES) / 100)
    found = {f"{name}.mean": times.mean_s}
    return found | {f"{name}.p{p}": float(value) for p, value in zip(PERCENTILES, values, strict=True)}


def slo_figures(got: Served, makespan_s: float) -> dict[str, float]:
    """Share of the offered requests that met both times, and how many of them a second.

    A rejected request has missed its SLO; an answer of one token has no TPOT to miss.
    """
    offered = got.finished_count + got.rejected_count
    found = {"slo_attainment_fraction": got.met_count / offered} if offered else {}
    if makespan_s > 0:
        found["slo_goodput_request_per_s"] = got.met_count / makespan_s
    return found


def _met_count(times: Latencies, promise: Promise) -> int:
    late = times.ttft_s > _of(promise.ttft_s, times.done)
    answered = times.answered[times.done]
    slow = times.tpot_s > _of(promise.tpot_s, times.answered)
    return len(times.ttft_s) - int(np.count_nonzero(late)) - int(np.count_nonzero(slow & ~late[answered]))


def met(records: Records, promise: Promise) -> Flags:
    """Which requests met both times that were promised; one that was turned away has not."""
    tokens = np.maximum(1, records.output_tokens - 1)
    quick = records.ttft_s + promise.front_end_s <= promise.ttft_s
    steady = (records.output_tokens <= 1) | (
        (records.finish_s - records.first_token_s) / tokens <= promise.tpot_s
    )
    found: Flags = (records.status == FINISHED) & quick & steady
    return found


def _rejected_count(records: Records) -> int:
    return int(np.count_nonzero(records.status == REJECTED))


def _of(limit: Limit, some: Flags | slice) -> Limit:
    return limit[some] if isinstance(limit, np.ndarray) else limit
