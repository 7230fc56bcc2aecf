"""Two replicas are drawn at random and the one with fewer requests outstanding takes the request.

Two looks instead of one cut the longest queue from log n to log log n (Mitzenmacher 2001, "The power of two
choices in randomized load balancing"); Envoy and vLLM's router have it. The draws are made as for `random`,
and the first of the two is the very replica that `random` takes.
"""

from __future__ import annotations

from typing import Any, Literal

from simcore.compiled import compiled_in_place
from simcore.spec import Spec


class PowerOfTwo(Spec):
    """The less loaded of two replicas drawn at random."""

    kind: Literal["power_of_two"] = "power_of_two"


@compiled_in_place
def choose(lanes: Any, setup: Any, routing: Any, request: int) -> int:
    """The first of two different lanes, or the second where it has less to do."""
    count = setup.replica_count
    first = int(routing.picks[request, 0] * count)
    if count == 1:
        return first
    second = first + 1 + int(routing.picks[request, 1] * (count - 1))
    second -= count if second >= count else 0
    one, other = lanes[first], lanes[second]
    if one.shut + other.shut == 1:
        return second if one.shut == 1 else first
    return second if other.running + other.waiting < one.running + one.waiting else first
