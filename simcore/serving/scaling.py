"""What an autoscaler says beside everybody's metrics: replicas, what they were used for, and what starts cost."""

from __future__ import annotations

from typing import Final

import numpy as np

from simcore.errors import Message
from simcore.serving.latencies import Promise, served, slo_figures
from simcore.serving.records import Floats, Records, Replicas

_FEWEST: Final = 50  # requests on either side, below which their shares say little
_WORSE_FRACTION: Final = 0.05


def scaling_metrics(use: Replicas, *, replica_count: int, makespan_s: float) -> dict[str, float | int]:
    """`replica_count` is the most that there may be; what is used of their time counts starts and drains too."""
    whole_s = replica_count * makespan_s
    return {
        "serving.autoscaling.ready_replica_count.mean": use.ready_mean,
        "serving.autoscaling.ready_replica_count.max": use.ready_max,
        "serving.autoscaling.replica_s": use.used_s,
        "serving.autoscaling.used_fraction": use.used_s / whole_s if whole_s > 0 else 0.0,
        "serving.autoscaling.scale_up_count": use.up_count,
        "serving.autoscaling.scale_down_count": use.down_count,
    }


def slow_starts(records: Records, starting: Floats, promise: Promise) -> tuple[Message, ...]:
    """A warning where requests that arrive while replicas start keep their SLO less often than the others.

    `starting` are the replicas that start at each arrival.
    """
    during = starting > 0
    if min(np.count_nonzero(during), np.count_nonzero(~during)) < _FEWEST:
        return ()
    starts, rest = (
        slo_figures(served(records, promise, only=some), 0.0)["slo_attainment_fraction"]
        for some in (during, ~during)
    )
    if starts > rest - _WORSE_FRACTION:
        return ()
    return (
        Message(
            code="autoscaling.slow_start",
            template="of requests that arrive while replicas start, {starts:.0%} meet the SLO, of the others "
            "{rest:.0%}: load grows faster than replicas start; lower serving.autoscaling.target or startup_s, or "
            "raise min_replica_count",
            params={"starts": starts, "rest": rest},
            path="serving.autoscaling.startup_s",
        ),
    )
