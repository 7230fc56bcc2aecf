"""The replica of a session's first turn takes all its turns; first turns go where the fewest are outstanding.

Sticky sessions, as gateways keep them by cookie or header (nginx's `sticky`, the session policy of vLLM's production
stack): later turns find the KV of earlier ones without anybody knowing what a replica has cached. The load of the
session's replica is not looked at again. Without sessions each request is one of its own, and the router is
`least_outstanding`.
"""

from __future__ import annotations

from typing import Any, Literal

from simcore.compiled import compiled_in_place
from simcore.serving.routers.loads import least_loaded
from simcore.spec import Spec


class Session(Spec):
    """The replica of the session's first turn; ties of first turns in turn."""

    kind: Literal["session"] = "session"


@compiled_in_place
def choose(clock: Any, lanes: Any, setup: Any, routing: Any, request: int) -> int:
    """Where the session is, or the least loaded lane."""
    home: int = routing.homes[routing.sessions[request]]
    if home >= 0 and lanes[home].shut == 0:
        return home
    following = clock.last_lane + 1
    return least_loaded(routing.loads, following if following < setup.replica_count else 0)


@compiled_in_place
def keep(routing: Any, request: int, index: int) -> None:
    """From now on the session is there."""
    routing.homes[routing.sessions[request]] = index
