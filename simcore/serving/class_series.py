"""How each class waited and ran over simulated time, and how long its first tokens took, read from the records.

The time from the first arrival to the last finish is cut into even slices. Waiting and running are means over a slice,
and exact: the integral of a count up to t is Σ (t - instant) over those who came by then, less that over those who
left. TTFT is of the requests that arrived in the slice. Limits: a preempted request counts as running until it
finishes; rejected ones count nowhere.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from simcore.serving.latencies import Flags, time_of
from simcore.serving.records import Floats, Integers, Records
from simcore.serving.state import FINISHED
from simcore.workload.classes import RequestClass

SLICES: Final = 100
_PERCENTILES: Final = (50, 99)
Columns = dict[str, list[float | None]]


def class_series(
    records: Records, *, classes: Sequence[RequestClass], class_of: Integers, front_end_s: float
) -> Columns:
    """`time_s`, where each slice begins, and of each class `NAME.waiting`, `.running`, `.ttft_s.p50`, `.ttft_s.p99`.

    A percentile is None where nobody of the class arrived. Nothing where no request finished.
    """
    done = records.status == FINISHED
    if not done.any():
        return {}
    begin_s, end_s = float(records.arrival_s[done].min()), float(records.finish_s[done].max())
    edges = np.linspace(begin_s, end_s, SLICES + 1)
    found: Columns = {"time_s": edges[:-1].tolist()}
    for place, one in enumerate(classes):
        own = records.where(done & (class_of == place))
        came, began, left = (
            _presence(instants, edges) for instants in (own.arrival_s, own.scheduled_s, own.finish_s)
        )
        found[f"{one.name}.waiting"] = (came - began).tolist()
        found[f"{one.name}.running"] = (began - left).tolist()
        found |= {f"{one.name}.{name}": values for name, values in _ttft(own, edges, front_end_s).items()}
    return found


def _presence(instants: Floats, edges: Floats) -> Floats:
    """Mean over each slice of how many of these instants have passed."""
    ordered = np.sort(instants)
    passed = np.searchsorted(ordered, edges)
    sums = np.append(0.0, np.cumsum(ordered - edges[0]))
    integral = passed * (edges - edges[0]) - sums[passed]
    mean: Floats = np.diff(integral) / np.diff(edges)
    return mean


def _ttft(own: Records, edges: Floats, front_end_s: float) -> Columns:
    """Percentiles by slice of arrival, linear between order statistics."""
    ttft_s, _ = time_of(own, "ttft_s", front_end_s)
    places = np.searchsorted(edges[1:-1], own.arrival_s, side="right")
    ordered = ttft_s[np.lexsort((ttft_s, places))]
    counts = np.bincount(places, minlength=SLICES)
    starts = np.cumsum(counts) - counts
    some = counts > 0
    return {
        f"ttft_s.p{percentile}": _spread(some, _at(ordered, starts[some], counts[some], percentile / 100))
        for percentile in _PERCENTILES
    }


def _at(ordered: Floats, starts: Integers, counts: Integers, fraction: float) -> Floats:
    place = fraction * (counts - 1)
    low = np.floor(place).astype(np.int64)
    below, above = ordered[starts + low], ordered[starts + np.minimum(low + 1, counts - 1)]
    quantiles: Floats = below + (place - low) * (above - below)
    return quantiles


def _spread(some: Flags, values: Floats) -> list[float | None]:
    """The values where there are some, None elsewhere."""
    spread = np.full(len(some), math.nan)
    spread[some] = values
    return [None if math.isnan(value) else value for value in spread.tolist()]
