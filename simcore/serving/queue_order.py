"""In which order requests leave a lane's line: a rank per request, the lowest first; equal ranks as they arrived.

`fcfs` ranks nobody. `priority` takes the class's own (lower is sooner), and preempts the lowest priority of those who
run, which waits again in its turn, as vLLM does. `shortest_predicted` takes the answer's predicted length, the true
one times a lognormal error of mean 1 and coefficient of variation `prediction_cv`, drawn from a stream of its own:
no scheduler ever reads the true length.

`fair` shares each lane among the classes by their weights, with start-time fair queueing (`waiting.py`): while two
have somebody in line, what is admitted of each, over its weight, differs by one request of each at most, whatever
else arrives (Goyal, Vin and Cheng 1996). A request costs the tokens of its prompt and of its class's mean answer.
The Virtual Token Counter (Sheng et al. 2024) counts tokens as they are generated instead, which corrects a wrong
guess of an answer and costs work at every iteration; a class whose answers are on the average what is known of it
gets the same share.

In all but `priority`, the last admitted is preempted and returns ahead of the line whatever its rank; in a fair one
it pays nothing for that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from simcore.errors import Message
from simcore.serving.records import Floats, Integers, Records
from simcore.streams import stream
from simcore.workload.classes import RequestClass
from simcore.workload.requests import Requests

QueueKind = Literal["fcfs", "priority", "shortest_predicted", "fair"]
STARVED_RATIO: Final = 10.0  # p99 of the wait over its mean; 4.6 where waits are exponential
_STARVE_NOBODY: Final = frozenset[QueueKind]({"fcfs", "fair"})
_FEWEST: Final = 1000  # requests of which a p99 says something


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """Ranks by request; with `flows`, whose share each takes, they are costs over weights instead."""

    ranks: Floats
    flows: Integers | None = None
    preempts_lowest: bool = False

    @property
    def flow_count(self) -> int:
        return 0 if self.flows is None else int(self.flows.max(initial=0)) + 1


def waiting_line(
    queue: QueueKind,
    requests: Requests,
    *,
    classes: Sequence[RequestClass] = (),
    prediction_cv: float = 0.0,
    seed: int = 1,
) -> Line | None:
    """The order of these requests, None for first come first served.

    >>> one = np.ones(3, np.int64)
    >>> requests = Requests(arrival_s=np.zeros(3), input_tokens=one, output_tokens=7 * one)
    >>> waiting_line("shortest_predicted", requests).ranks, waiting_line("fair", requests).ranks
    (array([7., 7., 7.]), array([8., 8., 8.]))
    """
    if queue == "fcfs":
        return None
    if queue == "fair":
        return _fair(requests, classes)
    if queue == "priority":
        if requests.class_of is None:
            return Line(ranks=np.zeros(len(requests)), preempts_lowest=True)
        ranks = np.array([one.priority for one in classes], np.float64)[requests.class_of]
        return Line(ranks=ranks, preempts_lowest=True)
    spread = math.sqrt(math.log1p(prediction_cv**2))
    drawn = stream(seed, "serving", "predicted_length").standard_normal(len(requests))
    guess = np.exp(spread * drawn - 0.5 * spread**2)
    return Line(ranks=requests.output_tokens.astype(np.float64) * guess)


def _fair(requests: Requests, classes: Sequence[RequestClass]) -> Line:
    """What each request costs its class: a prompt and a mean answer, over the weight."""
    count = len(requests)
    flows = np.zeros(count, np.int64) if requests.class_of is None else requests.class_of
    answers = np.bincount(flows, requests.output_tokens) / np.maximum(1, np.bincount(flows))
    weights = np.array([one.weight for one in classes] or [1.0])
    return Line(ranks=(requests.input_tokens + answers[flows]) / weights[flows], flows=flows)


def starvation(queue: QueueKind, records: Records, *, slo_ttft_s: float) -> tuple[Message, ...]:
    """A warning where the order of the line makes a few wait far longer than the rest, and than was promised."""
    if queue in _STARVE_NOBODY:
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
