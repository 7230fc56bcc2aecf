"""The replica with the fewest requests outstanding, running or in line; ties go to the next one in turn.

Join the shortest queue, as nginx's `least_conn` and most inference gateways do it. The router knows what it sent
and what came back, at every instant.
"""

from __future__ import annotations

from typing import Any, Literal

from simcore.compiled import compiled_in_place
from simcore.serving.routers.loads import least_loaded
from simcore.spec import Spec


class LeastOutstanding(Spec):
    """The replica with the fewest requests outstanding; ties in turn."""

    kind: Literal["least_outstanding"] = "least_outstanding"


@compiled_in_place
def choose(clock: Any, setup: Any, routing: Any) -> int:
    """In O(log n) of the number of lanes."""
    following = clock.last_lane + 1
    return least_loaded(routing.loads, following if following < setup.replica_count else 0)
