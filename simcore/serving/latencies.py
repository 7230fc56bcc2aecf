"""The times of finished requests as a client sees them, their statistics, and how many met what was promised.

TTFT and end-to-end times hold the front end's time of a request, which the engine's records do not. An answer
of one token has no time per output token.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from simcore.serving.records import Floats, Records
from simcore.serving.state import FINISHED, REJECTED

Flags = NDArray[np.bool_]
Limit = float | Floats  # of all requests, or one each
PERCENTILES: Final = (50, 90, 95, 99)


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
        done = records.status == FINISHED
        every = bool(done.all())
        seen = (records.ttft_s + front_end_s, records.e2e_s + front_end_s, records.queue_s)
        ttft_s, e2e_s, queue_s = (values if every else values[done] for values in seen)
        tpot_s, answered = _tpot_s(records, done)
        return cls(done=done, answered=answered, ttft_s=ttft_s, e2e_s=e2e_s, queue_s=queue_s, tpot_s=tpot_s)


def _tpot_s(records: Records, done: Flags) -> tuple[Floats, Flags]:
    """Time per output token after the first, of finished requests with more than one; and which those are."""
    answered = done & (records.output_tokens > 1)
    spread = records.finish_s - records.first_token_s
    if answered.all():
        return spread / (records.output_tokens - 1), answered
    return spread[answered] / (records.output_tokens[answered] - 1), answered


def at(ordered: Floats, fractions: Floats | float) -> Floats:
    """Quantiles of sorted values, linear between order statistics."""
    place = np.asarray(fractions) * (len(ordered) - 1)
    low = np.floor(place).astype(np.int64)
    high = np.minimum(low + 1, len(ordered) - 1)
    quantiles: Floats = ordered[low] + (place - low) * (ordered[high] - ordered[low])
    return quantiles


def statistics(name: str, ordered: Floats) -> dict[str, float]:
    """Mean and percentiles of sorted values as `name.mean`, `name.p50`, …; none of no values."""
    if len(ordered) == 0:
        return {}
    values = at(ordered, np.array(PERCENTILES) / 100)
    found = {f"{name}.mean": float(ordered.mean())}
    return found | {f"{name}.p{p}": float(value) for p, value in zip(PERCENTILES, values, strict=True)}


def slo_figures(
    records: Records, times: Latencies, *, slo_ttft_s: Limit, slo_tpot_s: Limit, makespan_s: float
) -> dict[str, float]:
    """Share of the offered requests that met both times, and how many of them a second.

    A rejected request has missed its SLO; an answer of one token has no TPOT to miss.
    """
    late = times.ttft_s > _of(slo_ttft_s, times.done)
    answered = times.answered[times.done]
    slow = times.tpot_s > _of(slo_tpot_s, times.answered)
    missed = int(np.count_nonzero(late)) + int(np.count_nonzero(slow & ~late[answered]))
    met = len(times.ttft_s) - missed
    offered = len(times.ttft_s) + int(np.count_nonzero(records.status == REJECTED))
    found = {"slo_attainment_fraction": met / offered} if offered else {}
    if makespan_s > 0:
        found["slo_goodput_request_per_s"] = met / makespan_s
    return found


def _of(limit: Limit, flags: Flags) -> Limit:
    return limit[flags] if isinstance(limit, np.ndarray) else limit
