"""The requests of a run as arrays, drawn once before the engine: instants, input and output tokens.

Everything random about a workload happens here, from named streams, so two scenarios with one seed share
their arrivals and lengths whatever else differs. A request longer than `max_model_len` is clipped, input
first (one token is left for the answer), and counted. Of sessions (`sessions.py`) the first turns have instants;
a later one comes some time after the answer before it, which only the engine knows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from simcore.errors import InputError
from simcore.workload.arrivals import ClosedLoop, OpenArrivals, Trace, arrival_instants
from simcore.workload.block_hashes import Chains
from simcore.workload.classes import RequestClass, draw_classes, draw_lengths_of_classes
from simcore.workload.lengths import AnyLengths, draw_lengths
from simcore.workload.sessions import Sessions, Turns, draw_sessions
from simcore.workload.traces import TraceTable


@dataclass(frozen=True, slots=True, kw_only=True)
class Requests:
    """Aligned by request. `concurrency` is 0 for open arrivals; a closed loop has no instants of its own.

    Nor has a later turn of a session: its instant is NaN.
    """

    arrival_s: NDArray[np.float64]
    input_tokens: NDArray[np.int64]
    output_tokens: NDArray[np.int64]
    concurrency: int = 0
    clipped_count: int = 0
    chains: Chains | None = None  # block hashes of the prompts, as offsets and hashes
    class_of: NDArray[np.int64] | None = None  # place in the scenario's classes; None without any
    turns: Turns | None = None  # None where each request stands by itself

    def __len__(self) -> int:
        return len(self.arrival_s)

    @property
    def start_count(self) -> int:
        """Requests that wait for no other: the first so many are the first turns of sessions."""
        return len(self) if self.turns is None else self.turns.session_count


def draw_requests(
    arrivals: OpenArrivals | ClosedLoop | Trace,
    lengths: AnyLengths,
    *,
    request_count: int,
    seed: int,
    trace: TraceTable | None = None,
    max_model_len: int,
    classes: Sequence[RequestClass] = (),
    sessions: Sessions | None = None,
) -> Requests:
    """The requests that a scenario describes. A trace brings its own count and lengths, and has no sessions."""
    if sessions is not None and not isinstance(arrivals, Trace):
        return _of_sessions(
            arrivals,
            lengths,
            sessions,
            request_count=request_count,
            seed=seed,
            max_model_len=max_model_len,
            classes=classes,
        )
    concurrency, chains, class_of = 0, None, None
    if isinstance(arrivals, Trace):
        if trace is None:
            raise InputError.at(
                "workload.arrivals",
                "trace.not_read",
                "the trace {trace!r} was not found; upload it, or give the path of a file",
                trace=arrivals.trace or arrivals.path,
            )
        instants, inputs, outputs = trace.timestamp_s, trace.input_tokens, trace.output_tokens
        chains = trace.block_chains
        class_of = draw_classes(classes, len(trace), seed) if classes else None
    else:
        if classes:
            class_of = draw_classes(classes, request_count, seed)
            inputs, outputs = draw_lengths_of_classes(classes, class_of, lengths, seed)
        else:
            inputs, outputs = draw_lengths(lengths, request_count, seed)
        instants, concurrency = _starts(arrivals, request_count, seed)
    drawn = _clipped(instants, inputs, outputs, concurrency, max_model_len)
    return replace(drawn, chains=chains, class_of=class_of)


def _of_sessions(
    arrivals: OpenArrivals | ClosedLoop,
    lengths: AnyLengths,
    sessions: Sessions,
    *,
    request_count: int,
    seed: int,
    max_model_len: int,
    classes: Sequence[RequestClass],
) -> Requests:
    drawn = draw_sessions(
        sessions,
        lengths,
        request_count=request_count,
        seed=seed,
        max_model_len=max_model_len,
        classes=classes,
    )
    starts = drawn.turns.session_count
    instants = np.full(request_count, np.nan)
    instants[:starts], concurrency = _starts(arrivals, starts, seed)
    return Requests(
        arrival_s=instants,
        input_tokens=drawn.input_tokens,
        output_tokens=drawn.output_tokens,
        concurrency=concurrency,
        clipped_count=drawn.clipped_count,
        class_of=drawn.class_of,
        turns=drawn.turns,
    )


def _starts(arrivals: OpenArrivals | ClosedLoop, count: int, seed: int) -> tuple[NDArray[np.float64], int]:
    """Instants of what waits for no other, and users of a closed loop."""
    if isinstance(arrivals, ClosedLoop):
        return np.zeros(count), arrivals.concurrency
    return arrival_instants(arrivals, count, seed), 0


def _clipped(
    instants: NDArray[np.float64],
    inputs: NDArray[np.int64],
    outputs: NDArray[np.int64],
    concurrency: int,
    max_model_len: int,
) -> Requests:
    shown = np.clip(inputs, 1, max(1, max_model_len - 1))
    answered = np.clip(outputs, 1, np.maximum(1, max_model_len - shown))
    return Requests(
        arrival_s=instants,
        input_tokens=shown,
        output_tokens=answered,
        concurrency=concurrency,
        clipped_count=int(np.count_nonzero((shown != inputs) | (answered != outputs))),
    )
