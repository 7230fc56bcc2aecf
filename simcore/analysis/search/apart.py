"""Prefill and decode on replicas of their own: every pair of cuts of one chip, in every ratio that the chips allow.

A pair is a lane that prefills and one that decodes, on the same site and in the same formats. Counts of each go over
a short ladder; KV passes from each prefill chip to its decode chips over the scale-out links. The latencies are those
of `serving.estimate.apart_latency_terms`. Pruned before they are counted: cuts whose capacity per chip and whose
alone time are both beaten by another of the same role.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from simcore.analysis.search.columns import (
    LOADS,
    Columns,
    _Seats,
    _variation,
    batches_at,
    empty,
    iterations_s,
    joined,
    prompts_ahead_s,
    seat_waits_s,
    seats_of,
)
from simcore.analysis.search.lanes import Lane
from simcore.plan.disaggregated import KV_LATENCY_S
from simcore.plan.kv_tiers import kv_bytes_per_token_per_chip
from simcore.plan.serving import offered_request_per_s
from simcore.serving.records import Floats
from simcore.serving.step_means import prompts_s
from simcore.workload.requests import Requests

_LADDER: Final = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64, 96, 128, 192, 256)
_KEPT: Final = 6  # lanes of a role that stay after pruning, per site and format


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A lane that prefills, one that decodes, and the link between them."""

    prefill: Lane
    decode: Lane
    transfer_s: float  # of a mean prompt, nobody else sending
    prefill_sent_per_s: float  # requests whose KV a prefill lane's end of the link sends
    decode_taken_per_s: float


def pairs(prefills: Sequence[Lane], decodes: Sequence[Lane], requests: Requests) -> Iterator[Pair]:
    """Every pair of one site and one pair of formats that pruning leaves."""
    mean = float(requests.input_tokens.mean())
    for key in dict.fromkeys(_key(one) for one in prefills):
        firsts = _pruned([one for one in prefills if _key(one) == key])
        seconds = _pruned([one for one in decodes if _key(one) == key])
        for first in firsts:
            for second in seconds:
                ends = [_end_s_per_token(lane) for lane in (first, second)]
                yield Pair(
                    prefill=first,
                    decode=second,
                    transfer_s=mean * max(ends) + KV_LATENCY_S,
                    prefill_sent_per_s=1.0 / (mean * ends[0]),
                    decode_taken_per_s=1.0 / (mean * ends[1]),
                )


def _key(lane: Lane) -> tuple[str, str, str, str]:
    return lane.site.chip, lane.site.fabric_kind, lane.weights_dtype, lane.kv_dtype


def _pruned(lanes: Sequence[Lane]) -> list[Lane]:
    """Those that none beats in both capacity per chip and the time that a request takes alone."""
    scored = sorted(
        ((-_capacity_per_chip(lane), _alone_s(lane), place) for place, lane in enumerate(lanes)),
    )
    kept, quickest = [], np.inf
    for _, alone_s, place in scored:
        if alone_s < quickest:
            kept.append(lanes[place])
            quickest = alone_s
    return kept[:_KEPT]


def _capacity_per_chip(lane: Lane) -> float:
    cut = lane.cut
    return lane.curve.capacity_request_per_s * cut.lanes_per_replica / cut.replica_chip_count


def _alone_s(lane: Lane) -> float:
    if lane.role == "prefill":
        return float(prompts_s(lane.table, lane.curve.mix, np.ones(1))[0])
    return float(iterations_s(lane.curve, np.ones(1))[0])


def _end_s_per_token(lane: Lane) -> float:
    return kv_bytes_per_token_per_chip(lane.kv).value / lane.link_bytes_per_s * lane.cut.pp


def apart_columns(found: Sequence[Pair], requests: Requests, *, max_chips: int, free: bool) -> Columns:
    """Every pair at every ratio of replicas that `max_chips` hold."""
    if requests.concurrency and not free:
        return empty()  # a closed loop has no closed form over two pools
    parts: list[Columns] = []
    seats: list[_Seats] = []
    for origin, pair in enumerate(found):
        firsts, seconds = _ratios(pair, max_chips)
        if len(firsts):
            part, own = _of_pair(origin, pair, firsts, seconds, requests, free=free)
            parts.append(part)
            seats.append(own)
    if not parts:
        return empty()
    whole = joined(parts)
    whole.ttft_s[:] += seat_waits_s(seats) * 0.5 * (1.0 + _variation(requests.output_tokens))
    beyond = whole.load_ratio > 1.0
    whole.ttft_s[beyond] = whole.tpot_s[beyond] = np.inf
    return whole


def _ratios(pair: Pair, max_chips: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    ladder = np.array(_LADDER, np.int64)
    firsts, seconds = (grid.ravel() for grid in np.meshgrid(ladder, ladder, indexing="ij"))
    used = firsts * pair.prefill.cut.replica_chip_count + seconds * pair.decode.cut.replica_chip_count
    return firsts[used <= max_chips], seconds[used <= max_chips]


def _of_pair(
    origin: int,
    pair: Pair,
    firsts: NDArray[np.int64],
    seconds: NDArray[np.int64],
    requests: Requests,
    *,
    free: bool,
) -> tuple[Columns, _Seats]:
    before, after = pair.prefill, pair.decode
    lanes = [firsts * before.cut.lanes_per_replica, seconds * after.cut.lanes_per_replica]
    capacity = np.minimum.reduce(
        [
            lanes[0] * min(before.curve.capacity_request_per_s, pair.prefill_sent_per_s),
            lanes[1] * min(after.curve.capacity_request_per_s, pair.decode_taken_per_s),
        ]
    )
    if free:
        offered = np.tile(LOADS, len(firsts)) * np.repeat(capacity, len(LOADS))
        firsts, seconds, capacity, *lanes = (
            np.repeat(one, len(LOADS)) for one in (firsts, seconds, capacity, *lanes)
        )
    else:
        offered = np.full(len(firsts), offered_request_per_s(requests))
    batch = batches_at(after.curve, offered / lanes[1])
    step_s = iterations_s(after.curve, batch)
    ttft_s = _first_tokens_s(pair, offered / lanes[0], batch, step_s, requests)
    columns = Columns(
        origin=np.full(len(firsts), origin, np.int64),
        replicas=seconds,
        prefill_replicas=firsts,
        chip_count=firsts * before.cut.replica_chip_count + seconds * after.cut.replica_chip_count,
        offered_request_per_s=offered,
        capacity_request_per_s=capacity,
        batch=np.maximum(batch, 1.0),
        ttft_s=ttft_s,
        tpot_s=step_s * after.curve.mix.iterations_per_token,
    )
    return columns, seats_of(after.curve, offered / lanes[1] / after.curve.capacity_request_per_s)


def _first_tokens_s(
    pair: Pair, prompts_per_s: Floats, batch: Floats, step_s: Floats, requests: Requests
) -> Floats:
    """TTFT, still without the wait for a seat."""
    prompt_s = prompts_s(pair.prefill.table, pair.prefill.curve.mix, np.ones(1))
    found: Floats = (
        prompts_ahead_s(prompts_per_s, prompt_s, requests.input_tokens)
        + prompt_s
        + pair.transfer_s
        + -np.expm1(-batch) * 0.5 * step_s
        + step_s
        + pair.prefill.table.front_end_s
        + pair.decode.table.front_end_s
    )
    return found
