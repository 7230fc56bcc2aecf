"""Candidates as columns, and their figures: the queueing estimates of `serving/estimate.py` over arrays.

Each lane of `lanes.py` stands in as many candidates as there are replica counts (and, with a free rate, loads). All
are evaluated at once; the wait for a seat, Erlang C, is one recursion over the seats of all of them. In a closed loop
latencies follow from Little's law. The busy share of chips is `1 − exp(−batch)`, as in `analysis/estimate.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Final

import numpy as np
from numpy.typing import NDArray

from simcore.analysis.search.lanes import Lane
from simcore.plan.serving import offered_request_per_s
from simcore.serving.capacity import Curve, prompt_iterations_s
from simcore.serving.estimate import HIGHEST_LOAD
from simcore.serving.records import Floats, Integers
from simcore.workload.requests import Requests

LOADS: Final = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.79)  # of capacity, where the rate is free
_ALL_COUNTS: Final = 32  # beyond, counts go up by a share of themselves


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """One entry per candidate. Times are means; infinite where the load leaves no steady state."""

    origin: NDArray[np.int64]  # which of the lanes, or pairs of lanes
    replicas: NDArray[np.int64]
    prefill_replicas: NDArray[np.int64]  # 0: prompts are computed where answers are
    chip_count: NDArray[np.int64]
    offered_request_per_s: Floats
    capacity_request_per_s: Floats
    batch: Floats  # of the lane that decodes
    ttft_s: Floats
    tpot_s: Floats

    @property
    def load_ratio(self) -> Floats:
        return self.offered_request_per_s / self.capacity_request_per_s

    @property
    def served_request_per_s(self) -> Floats:
        return np.minimum(self.offered_request_per_s, self.capacity_request_per_s)

    @property
    def busy_fraction(self) -> Floats:
        found: Floats = -np.expm1(-self.batch)
        return found

    def __len__(self) -> int:
        return len(self.origin)

    def taken(self, places: NDArray[np.int64] | NDArray[np.bool_]) -> Columns:
        """Some of the candidates."""
        return Columns(**{one.name: getattr(self, one.name)[places] for one in fields(self)})


def joined(parts: Sequence[Columns]) -> Columns:
    """One after the other."""
    return Columns(
        **{one.name: np.concatenate([getattr(part, one.name) for part in parts]) for one in fields(Columns)}
    )


def replica_counts(most: int) -> NDArray[np.int64]:
    """1, 2, 3 … up to 32, then in steps of a thirty-second, and `most` itself."""
    counts, count = [], 1
    while count <= most:
        counts.append(count)
        count += max(1, count // _ALL_COUNTS)
    return np.unique([*counts, most]).astype(np.int64) if most else np.empty(0, np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seats:
    """What the wait for a seat needs, of one lane under several loads."""

    count: int
    service_s: float
    load_ratio: Floats


def together_columns(lanes: Sequence[Lane], requests: Requests, *, max_chips: int, free: bool) -> Columns:
    """Every lane at every replica count that `max_chips` hold."""
    parts, seats = [], []
    for origin, lane in enumerate(lanes):
        counts = replica_counts(max_chips // lane.cut.replica_chip_count)
        if not len(counts):
            continue
        part, own = _of_lane(origin, lane, counts, requests, free=free)
        parts.append(part)
        seats.append(own)
    if not parts:
        return empty()
    whole = joined(parts)
    if not requests.concurrency:
        spread = 0.5 * (1.0 + _variation(requests.output_tokens))
        whole.ttft_s[:] += seat_waits_s(seats) * spread
    return _without_steady_state(whole)


def _of_lane(
    origin: int, lane: Lane, counts: NDArray[np.int64], requests: Requests, *, free: bool
) -> tuple[Columns, _Seats]:
    """The candidates of one lane, and what their wait for a seat hangs on; TTFT is still without it."""
    each = lane.cut.lanes_per_replica
    capacity = lane.curve.capacity_request_per_s
    per_lane: Floats
    if free:
        counts = np.repeat(counts, len(LOADS))
        per_lane = np.tile(LOADS, len(counts) // len(LOADS)) * capacity
    elif requests.concurrency:
        per_lane = np.array([rate_of_users(lane.curve, requests.concurrency / (n * each)) for n in counts])
    else:
        per_lane = offered_request_per_s(requests) / (counts * each)
    batch = np.maximum(batches_at(lane.curve, per_lane), 0.0)
    if requests.concurrency and not free:
        ttft_s, tpot_s = _closed_loop(lane, batch, per_lane, requests.concurrency / (counts * each))
    else:
        ttft_s, tpot_s = _open(lane, batch, per_lane, requests)
    columns = Columns(
        origin=np.full(len(counts), origin, np.int64),
        replicas=counts,
        prefill_replicas=np.zeros_like(counts),
        chip_count=counts * lane.cut.replica_chip_count,
        offered_request_per_s=per_lane * counts * each,
        capacity_request_per_s=np.asarray(capacity * counts * each, np.float64),
        batch=np.maximum(batch, 1.0),
        ttft_s=ttft_s,
        tpot_s=tpot_s,
    )
    return columns, seats_of(lane.curve, per_lane / capacity)


def _open(lane: Lane, batch: Floats, per_lane: Floats, requests: Requests) -> tuple[Floats, Floats]:
    """TTFT without the wait for a seat, and TPOT: `serving.estimate.latency_terms` over arrays."""
    mix, table = lane.curve.mix, lane.table
    if mix.decode_steps == 0:
        return np.full_like(batch, np.inf), np.full_like(batch, np.inf)
    step_s = iterations_s(lane.curve, batch)
    prompt_s, share_s = prompt_iterations_s(table, lane.scheduler, mix, batch)
    ahead_s = prompts_ahead_s(per_lane, share_s, requests.input_tokens)
    rest_s = -np.expm1(-batch) * 0.5 * step_s
    ttft_s = rest_s + ahead_s + prompt_s + table.front_end_s
    return ttft_s, step_s * mix.iterations_per_token + ahead_s * per_answer(requests.output_tokens)


def _closed_loop(lane: Lane, batch: Floats, per_lane: Floats, users: Floats) -> tuple[Floats, Floats]:
    """Little's law: users over rate is the time of a request, of which decoding takes its iterations."""
    step_s = iterations_s(lane.curve, batch)
    prompt_s, _ = prompt_iterations_s(lane.table, lane.scheduler, lane.curve.mix, batch)
    ttft_s = np.maximum(prompt_s, users / per_lane - lane.curve.mix.iterations * step_s)
    return ttft_s + lane.table.front_end_s, step_s * lane.curve.mix.iterations_per_token


def rate_of_users(curve: Curve, users: float) -> float:
    return curve.rate_at(curve.batch_of_users(users, 0.0))


def batches_at(curve: Curve, rates: Floats) -> Floats:
    """`Curve.batch_at` of several rates."""
    best = int(curve.request_per_s.argmax())
    rising = np.maximum.accumulate(curve.request_per_s[: best + 1])
    found: Floats = np.interp(rates, np.append(0.0, rising), np.append(0.0, curve.batch[: best + 1]))
    return found


def iterations_s(curve: Curve, batch: Floats) -> Floats:
    """`LaneLoad.iteration_s` of several batches."""
    found: Floats = np.interp(
        batch, curve.batch, curve.batch / (max(curve.mix.iterations, 1e-9) * curve.request_per_s)
    )
    return found


def prompts_ahead_s(request_per_s: Floats, prompt_s: Floats, input_tokens: Integers) -> Floats:
    """M/G/1 on the prefill work (Pollaczek-Khinchine)."""
    busy = np.minimum(request_per_s * prompt_s, HIGHEST_LOAD)
    found: Floats = 0.5 * busy * prompt_s * (1.0 + _variation(input_tokens)) / (1.0 - busy)
    return found


def seats_of(curve: Curve, load_ratio: Floats) -> _Seats:
    best = int(curve.request_per_s.argmax())
    count = max(1, round(float(curve.batch[best])))
    return _Seats(
        count=count,
        service_s=count / curve.capacity_request_per_s,
        load_ratio=np.minimum(load_ratio, HIGHEST_LOAD),
    )


def seat_waits_s(seats: Sequence[_Seats]) -> Floats:
    """M/M/c waits of all candidates: Erlang B by its recursion, of all at once, the many-seated ones longest."""
    sizes = [len(one.load_ratio) for one in seats]
    count = np.repeat([float(one.count) for one in seats], sizes)
    service_s = np.repeat([one.service_s for one in seats], sizes)
    load = np.concatenate([one.load_ratio for one in seats])
    order = np.argsort(-count, kind="stable")
    offered, blocked = (load * count)[order], np.ones(len(order))
    descending = count[order]
    for server in range(1, int(descending[0]) + 1):
        still = int(np.searchsorted(-descending, -server, side="right"))
        part = offered[:still] * blocked[:still]
        blocked[:still] = part / (server + part)
    waits = np.empty(len(order))
    waits[order] = blocked / (1.0 - load[order] * (1.0 - blocked))
    found: Floats = waits * service_s / (count * (1.0 - load))
    return found


def per_answer(output_tokens: Integers) -> float:
    """Mean of 1 / (output - 1) over answers of more than one token; nothing is decoded where there is none."""
    steps = output_tokens[output_tokens > 1] - 1
    return float((1.0 / steps).mean()) if len(steps) else math.inf


def _variation(tokens: Integers) -> float:
    return float(tokens.var() / tokens.mean() ** 2)


def _without_steady_state(columns: Columns) -> Columns:
    """Beyond the highest load of the estimates a wait depends on how long the run is."""
    beyond = columns.load_ratio > 1.0
    columns.ttft_s[beyond] = columns.tpot_s[beyond] = np.inf
    return columns


def empty() -> Columns:
    whole = {"origin", "replicas", "prefill_replicas", "chip_count"}
    return Columns(
        **{
            one.name: np.empty(0, np.int64 if one.name in whole else np.float64)  # type: ignore[arg-type]
            for one in fields(Columns)
        }
    )
