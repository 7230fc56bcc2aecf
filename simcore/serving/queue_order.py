"""In which order requests leave a lane's line: a rank per request, the lowest first; equal ranks as they arrived.

`fcfs` ranks nobody. `priority` takes the class's own (lower is sooner, as in vLLM). `shortest_predicted` takes the
answer's predicted length, the true one times a lognormal error of mean 1 and coefficient of variation
`prediction_cv`, drawn from a stream of its own: no scheduler ever reads the true length.

A preempted sequence returns ahead of the line whatever its rank, and the latest admitted is preempted whatever
its rank: vLLM's priority policy preempts the lowest priority instead.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, Literal

import numpy as np

from simcore.errors import Message
from simcore.serving.records import Floats, Records
from simcore.streams import stream
from simcore.workload.classes import RequestClass
from simcore.workload.requests import Requests

QueueKind = Literal["fcfs", "priority", "shortest_predicted"]
STARVED_RATIO: Final = 10.0  # p99 of the wait over its mean; 4.6 where waits are exponential
_FEWEST: Final = 1000  # requests of which a p99 says something


def ranks(
    queue: QueueKind,
    requests: Requests,
    *,
    classes: Sequence[RequestClass] = (),
    prediction_cv: float = 0.0,
    seed: int = 1,
) -> Floats | None:
    """One rank per request, None for first come first served.

    >>> one = np.ones(3, np.int64)
    >>> ranks("shortest_predicted", Requests(arrival_s=np.zeros(3), input_tokens=one, output_tokens=7 * one))
    array([7., 7., 7.])
    """
    if queue == "fcfs":
        return None
    if queue == "priority":
        if requests.class_of is None:
            return np.zeros(len(requests))
        return np.array([one.priority for one in classes], np.float64)[requests.class_of]
    spread = math.sqrt(math.log1p(prediction_cv**2))
    drawn = stream(seed, "serving", "predicted_length").standard_normal(len(requests))
    return requests.output_tokens.astype(np.float64) * np.exp(spread * drawn - 0.5 * spread**2)


def starvation(queue: QueueKind, records: Records, *, slo_ttft_s: float) -> tuple[Message, ...]:
    """A warning where the order of the line makes a few wait far longer than the rest, and than was promised."""
    if queue == "fcfs":
        return ()
    waits = records.queue_s[~np.isnan(records.queue_s)]
    if len(waits) < _FEWEST or waits.mean() <= 0:
        return ()
    longest_s = float(np.quantile(waits, 0.99))
    ratio = longest_s / float(waits.mean())
    if ratio <= STARVED_RATIO or longest_s <= slo_ttft_s:
        return ()
    return (
        Message(
            code="serving.starvation",
            template="one request in a hundred waits {longest_s:.3g} s or more, {ratio:.0f} times the mean: this order "
            "starves whom it ranks last; lower the load, or use fcfs",
            params={"longest_s": longest_s, "ratio": ratio},
            path="serving.scheduler.queue",
        ),
    )
