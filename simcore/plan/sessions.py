"""What a plan has to say of sessions: how many end early, and how far their arrivals depend on how they are served."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from simcore.errors import Message
from simcore.scenario.schema import Serving
from simcore.workload.requests import Requests
from simcore.workload.sessions import Turns

_LONG_FRACTION: Final = 0.5  # of the time in which sessions begin: how long one may think in all


def session_warnings(spec: Serving, requests: Requests) -> Iterator[Message]:
    """Said of sessions that end early, of runs too short for them, and of routers that keep together what is not."""
    if spec.router.kind == "session":
        yield from _kept_in_vain(spec, requests)
    turns = requests.turns
    if turns is None:
        return
    if turns.cut_short_count:
        yield Message(
            code="sessions.cut_short",
            template="{count:,} of {total:,} sessions end early, because their next turn would be longer than the "
            "model's length",
            params={"count": turns.cut_short_count, "total": turns.session_count},
            path="workload.sessions",
        )
    yield from _too_short(requests, turns)


def _kept_in_vain(spec: Serving, requests: Requests) -> Iterator[Message]:
    if requests.turns is None:
        yield Message(
            code="router.no_sessions",
            template="each request is a session of its own, so the router goes by requests outstanding alone; set "
            "workload.sessions",
            path="serving.router.kind",
        )
    elif not spec.kv.enable_prefix_caching:
        yield Message(
            code="router.no_prefix_cache",
            template="no replica keeps what a session said before, so it gains nothing from staying there; set "
            "serving.kv.enable_prefix_caching",
            path="serving.router.kind",
        )


def _too_short(requests: Requests, turns: Turns) -> Iterator[Message]:
    """Where users think so long that most of an open run is the first and the last turns of its sessions."""
    starts = requests.arrival_s[: turns.session_count]
    span_s = float(starts[-1] - starts[0])
    thinking_s = float(turns.think_s.sum()) / turns.session_count
    if requests.concurrency or len(starts) < 2 or thinking_s <= _LONG_FRACTION * span_s:
        return
    yield Message(
        code="sessions.short_run",
        template="all {count:,} sessions begin within {span_s:.3g} s, and the user of one thinks for {thinking_s:.3g} "
        "s in the mean: the rate of requests rises and falls over the whole run and stays below what it would come to; "
        "raise workload.request_count",
        params={"count": turns.session_count, "span_s": span_s, "thinking_s": thinking_s},
        path="workload.request_count",
    )
