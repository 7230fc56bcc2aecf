"""The metric ids of serving, read from records and totals: latencies, rates, SLO, KV, utilisation, regime.

Percentiles of TTFT, TPOT, end-to-end and queue time are over finished requests, exact unless there are very many
(`latencies.py`, and a warning says so); those of ITL come from the engine's histogram (bins under 0.8 %), whose mean
is exact. An id that does not apply is absent: no TPOT where every answer is one token, no offered load in a closed
loop. The regime compares offered load with capacity: within 10 % of 1, an error of 10 % in capacity flips the answer,
and a warning says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from simcore.compute.step_table import StepTimeTable
from simcore.errors import Message
from simcore.memory.allocators import Reservation
from simcore.serving.attribution import flop_per_chip, moved_bytes_per_chip, seconds_by_resource
from simcore.serving.distributions import RELATIVE_ERROR_FRACTION, Distribution, Sketch
from simcore.serving.latencies import (
    PERCENTILES,
    SKETCHED_ABOVE,
    TIMES,
    Flags,
    Limit,
    Promise,
    served,
    slo_figures,
    statistics,
)
from simcore.serving.records import Floats, Records, Totals
from simcore.serving.state import FINISHED, REJECTED

Regime = Literal["stable", "near_saturation", "overloaded"]
NEAR_FRACTION: Final = 0.1
WASTED_FRACTION: Final = 0.05
CDF_POINTS: Final = 201


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingMetrics:
    """`metrics` by id; `cdfs` by name as columns; chip-seconds by resource; what to tell the user."""

    metrics: dict[str, float | int | str]
    cdfs: dict[str, dict[str, Floats]]
    seconds: dict[str, float]
    warnings: tuple[Message, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolUse:
    """What a pool of lanes did, and on what: chips of a lane, and the peaks of one."""

    totals: Totals
    table: StepTimeTable
    chips_per_lane: int
    peak_flop_per_s: float
    hbm_bytes_per_s: float
    request_fraction: float = 1.0  # of all requests, what comes to this pool


def serving_metrics(
    records: Records,
    uses: Sequence[PoolUse],
    *,
    slo_ttft_s: Limit,
    slo_tpot_s: Limit,
    capacity_request_per_s: float,
    closed_loop: bool,
    chip_count: int,
    reservation: Reservation | None = None,
    session_count: int = 0,
) -> ServingMetrics:
    """Everything that a run says. `capacity_request_per_s` is of all replicas together; pools pass requests on.

    An SLO is one for all requests, or an array with each request's own. Of sessions, where there are any, the first
    `session_count` requests are the first turns.
    """
    totals = Totals.of_all([use.totals for use in uses])
    front_end_s = sum(use.request_fraction * use.table.front_end_s for use in uses)
    got = served(records, Promise(ttft_s=slo_ttft_s, tpot_s=slo_tpot_s, front_end_s=front_end_s))
    metrics: dict[str, float | int | str] = {}
    cdfs: dict[str, dict[str, Floats]] = {}
    for name in TIMES:
        times = got.distributions[name]
        metrics |= statistics(f"serving.{name}", times)
        if name != "queue_s" and len(times):
            cdfs[f"{name.removesuffix('_s')}_cdf"] = {name: times.at(_FRACTIONS), "fraction": _FRACTIONS}
    metrics |= _itl(totals)
    if totals.gap_count:
        cdfs["itl_cdf"] = itl_cdf(totals)
    metrics |= _rates(records, totals, records.status == FINISHED, chip_count)
    met = slo_figures(got, totals.makespan_s)
    metrics |= {f"serving.{name}": value for name, value in met.items()}
    metrics |= _pool(totals)
    metrics |= _memory(records, totals, reservation)
    metrics |= _utilisation(uses, chip_count)
    if 0 < session_count < len(records.arrival_s):
        metrics["serving.session_count"] = session_count
    load, warnings = _load(records, metrics, capacity_request_per_s, closed_loop, session_count)
    return ServingMetrics(
        metrics=metrics | load,
        cdfs=cdfs,
        seconds=_chip_seconds(uses),
        warnings=(
            *_sketched(got.distributions["e2e_s"]),
            *_rejections(totals),
            *_preemptions(totals),
            *warnings,
        ),
    )


_FRACTIONS: Final[Floats] = np.linspace(0.0, 1.0, CDF_POINTS)


def _itl(totals: Totals) -> dict[str, float]:
    """Mean exactly; percentiles by linear interpolation inside a bin."""
    if totals.gap_count == 0:
        return {}
    reached = np.append(0, np.cumsum(totals.gap_histogram)) / totals.gap_count
    used = np.flatnonzero(totals.gap_histogram)
    inside = slice(used[0], used[-1] + 2)
    values = np.interp(np.array(PERCENTILES) / 100, reached[inside], totals.gap_edges_s[inside])
    found = {"serving.itl_s.mean": totals.gap_sum_s / totals.gap_count}
    return found | {f"serving.itl_s.p{p}": float(v) for p, v in zip(PERCENTILES, values, strict=True)}


def itl_cdf(totals: Totals) -> dict[str, Floats]:
    """Share of the gaps between tokens that are at most x, as `itl_s` and `fraction`.

    Exact at the edges of the engine's bins, which are under 0.8 % wide; of neighbours between which nothing
    changes only the ends are kept.
    """
    reached = np.append(0, np.cumsum(totals.gap_histogram)) / totals.gap_count
    turns = np.diff(reached, append=1.0) + np.diff(reached, prepend=0.0) > 0
    kept = np.flatnonzero(turns)
    return {"itl_s": totals.gap_edges_s[kept], "fraction": reached[kept]}


def _rates(records: Records, totals: Totals, done: Flags, chip_count: int) -> dict[str, float | int]:
    found: dict[str, float | int] = {
        "serving.completed_count": totals.completed_count,
        "serving.rejected_count": totals.rejected_count,
        "serving.replica_count": totals.replica_count,
        "serving.makespan_s": totals.makespan_s,
    }
    if totals.makespan_s > 0:
        output_per_s = float(records.output_tokens[done].sum()) / totals.makespan_s
        found |= {
            "serving.request_per_s": totals.completed_count / totals.makespan_s,
            "serving.input_token_per_s": float(records.input_tokens[done].sum()) / totals.makespan_s,
            "serving.output_token_per_s": output_per_s,
            "serving.output_token_per_s_per_chip": output_per_s / chip_count,
        }
    return found


def _pool(totals: Totals) -> dict[str, float | int]:
    found: dict[str, float | int] = {
        "serving.preemption_count": totals.preemption_count,
        "serving.kv_usage_fraction.mean": totals.kv_usage_mean_fraction,
        "serving.kv_usage_fraction.max": totals.kv_usage_max_fraction,
    }
    if totals.iteration_count:
        found["serving.mean_batch_size"] = totals.sequence_sum / totals.iteration_count
    if totals.drafted_token_sum:
        found["serving.speculative.tokens_per_step"] = totals.drafted_token_sum / totals.decode_sequence_sum
    if totals.prompt_token_sum:  # prompts were looked up in a prefix cache
        found["memory.prefix_hit_fraction"] = totals.hit_token_sum / totals.prompt_token_sum
        found |= {
            f"memory.prefix_hit_fraction.{use.name}": use.hit_token_sum / totals.prompt_token_sum
            for use in totals.tiers
            if use.hit_token_sum is not None
        }
    if totals.swap_count is not None:
        found["memory.swap_count"] = totals.swap_count
    return found


def _memory(records: Records, totals: Totals, reservation: Reservation | None) -> dict[str, float]:
    """Shares of the KV memory that is taken, or free and of no use to the first in line; they sum to 1.

    Whoever is promised memory holds it from admission to the end, so the promises' integrals are sums over
    requests; what sequences hold is the engine's own integral.
    """
    held, taken = totals.kv_held_token_s, totals.kv_taken_token_s
    whole = taken + totals.kv_blocked_token_s
    if held <= 0:
        return {}
    reserved, internal = 0.0, taken - held
    if reservation is not None:
        done = records.status == FINISHED
        stay_s = (records.finish_s - records.scheduled_s)[done]
        final = float(stay_s @ (records.input_tokens + records.output_tokens - 1)[done])
        promised = float(stay_s @ reservation.tokens[done])
        reserved, internal = max(0.0, final - held), max(0.0, promised - final)
    return {
        "memory.kv_useful_fraction": held / whole,
        "memory.kv_reserved_waste_fraction": reserved / whole,
        "memory.kv_internal_waste_fraction": internal / whole,
        "memory.kv_external_waste_fraction": max(0.0, whole - held - reserved - internal) / whole,
    }


def _utilisation(uses: Sequence[PoolUse], chip_count: int) -> dict[str, float]:
    """Model FLOP and HBM bytes against the peaks of all owned chips over the whole makespan."""
    owned_s = uses[0].totals.makespan_s * chip_count
    if owned_s <= 0:
        return {}
    flop_s = (flop_per_chip(use.totals, use.table) * use.chips_per_lane / use.peak_flop_per_s for use in uses)
    hbm_s = (
        moved_bytes_per_chip(use.totals, use.table) * use.chips_per_lane / use.hbm_bytes_per_s for use in uses
    )
    return {"serving.mfu_fraction": sum(flop_s) / owned_s, "serving.mbu_fraction": sum(hbm_s) / owned_s}


def _chip_seconds(uses: Sequence[PoolUse]) -> dict[str, float]:
    """Of all lanes, by resource; with one pool, in proportion to its lanes."""
    found: dict[str, float] = {}
    for use in uses:
        for name, seconds in seconds_by_resource(use.totals, use.table).items():
            found[name] = found.get(name, 0.0) + seconds * use.chips_per_lane
    return found


def regime_of(load_ratio: float) -> Regime:
    """Where an offered load stands; near 1, an error of 10 % in capacity would flip the answer.

    >>> regime_of(0.7), regime_of(0.95), regime_of(1.2)
    ('stable', 'near_saturation', 'overloaded')
    """
    if load_ratio < 1 - NEAR_FRACTION:
        return "stable"
    return "near_saturation" if load_ratio < 1 + NEAR_FRACTION else "overloaded"


def _load(
    records: Records,
    metrics: Mapping[str, float | int | str],
    capacity_request_per_s: float,
    closed_loop: bool,
    session_count: int,
) -> tuple[dict[str, float | str], tuple[Message, ...]]:
    """Offered load against capacity. A closed loop offers what it is served, so it cannot be overloaded.

    Sessions offer the rate at which they begin times the turns of one, which they reach where answers take no time.
    """
    found: dict[str, float | str] = {"serving.capacity_request_per_s": capacity_request_per_s}
    if closed_loop:
        share = float(metrics.get("serving.request_per_s", 0.0)) / capacity_request_per_s
        found["serving.regime"] = "stable" if share < 1 - NEAR_FRACTION else "near_saturation"
        return found, ()
    # Who was refused at a full line offered load all the same; who fits nowhere did not.
    offered = (records.status != REJECTED) | (records.replica >= 0)
    first = slice(session_count or None)
    accepted = records.arrival_s[first][offered[first]]
    span_s = float(accepted[-1] - accepted[0]) if len(accepted) else 0.0
    if span_s <= 0:
        found["serving.regime"] = "overloaded" if len(accepted) > 1 else "stable"
        return found, ()
    turns = int(offered.sum()) / len(accepted)
    ratio = turns * (len(accepted) - 1) / span_s / capacity_request_per_s
    regime = regime_of(ratio)
    found |= {"serving.offered_load_ratio": ratio, "serving.regime": regime}
    return found, _load_warnings(ratio, regime, waits=turns > 1)


def _sketched(times: Distribution) -> Iterator[Message]:
    if isinstance(times, Sketch):
        yield Message(
            code="serving.sketched",
            template="of more than {most:,} requests the percentiles of TTFT, TPOT, E2E and queue time, and the CDFs, "
            "come from a sketch and are off by at most {error}; means, rates and SLO attainment are exact",
            params={"most": SKETCHED_ABOVE, "error": f"{RELATIVE_ERROR_FRACTION:.1%}"},
            path="workload",
        )


def _rejections(totals: Totals) -> Iterator[Message]:
    offered = totals.completed_count + totals.rejected_count
    unfit = totals.rejected_count - totals.refused_count - totals.unsent_count
    if totals.refused_count:
        yield Message(
            code="serving.refused",
            template="{refused:,} of {offered:,} requests were refused: the line of the replica that they were sent "
            "to was full; times and rates are those of the rest",
            params={"refused": totals.refused_count, "offered": offered},
            path="serving.admission.max_queue_length",
        )
    if unfit:
        yield Message(
            code="serving.rejected",
            template="{rejected:,} of {offered:,} requests were rejected: the KV cache of a replica cannot hold one "
            "of them to its end; times and rates are those of the rest",
            params={"rejected": unfit, "offered": offered},
            path="workload.lengths",
        )
    if totals.unsent_count:
        yield Message(
            code="serving.unsent",
            template="{unsent:,} of {offered:,} requests were never sent, because an earlier turn of their session was "
            "turned away; they count as rejected",
            params={"unsent": totals.unsent_count, "offered": offered},
            path="workload.sessions",
        )


def _preemptions(totals: Totals) -> tuple[Message, ...]:
    """Said where more than a twentieth of the prefill work was done again."""
    if totals.discarded_token_sum <= WASTED_FRACTION * totals.prefill_token_sum:
        return ()
    return (
        Message(
            code="serving.preempted",
            template="{count:,} preemptions threw away {share} of the prefilled tokens: the KV cache is too small for "
            "this batch, and capacity is less than estimated; lower max_num_seqs or free memory",
            params={
                "count": totals.preemption_count,
                "share": f"{totals.discarded_token_sum / totals.prefill_token_sum:.0%}",
            },
            path="serving.scheduler.max_num_seqs",
        ),
    )


def _load_warnings(ratio: float, regime: Regime, *, waits: bool) -> tuple[Message, ...]:
    """What an offered load means for what was measured; `waits`: later turns come after the answers before them."""
    if regime == "stable":
        return ()
    if regime == "near_saturation":
        said = Message(
            code="serving.near_saturation",
            template="offered load is {ratio:.2f} of capacity; an error of 10 % in capacity flips the answer between "
            "stable and overloaded, so read latencies as a range",
            params={"ratio": ratio},
            path="workload.arrivals",
        )
    elif waits:
        said = Message(
            code="serving.waits_for_answers",
            template="offered load would be {ratio:.2f} of capacity if answers took no time; users wait for theirs "
            "before they go on, so fewer turns come: as in a closed loop, latencies grow with the sessions under way; "
            "add replicas or lower the rate",
            params={"ratio": ratio},
            path="workload.arrivals",
        )
    else:
        said = Message(
            code="serving.overloaded",
            template="offered load is {ratio:.2f} of capacity: the queue grows as long as requests arrive, and "
            "latencies depend on how many there are; add replicas or lower the rate",
            params={"ratio": ratio},
            path="workload.arrivals",
        )
    return (said,)
