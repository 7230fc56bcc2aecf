"""Which replica takes a request. One frozen spec per policy, one name in the union, one branch in `choose`.

`round_robin` hands request i to replica i modulo the replica count. It reads nothing of the replicas'
state, as nginx or a Kubernetes service does by default.
"""

from __future__ import annotations

from typing import Final, Literal

from simcore.compiled import compiled_in_place
from simcore.spec import Spec


class RoundRobin(Spec):
    """Requests go to the replicas in turn."""

    kind: Literal["round_robin"] = "round_robin"


Router = RoundRobin  # a discriminated union as soon as there is a second policy
ROUTER_CODES: Final = {"round_robin": 0}


def most_of_one_replica(router: Router, request_count: int, replica_count: int) -> int:
    """How many requests one replica can get at most, at least 1.

    >>> most_of_one_replica(RoundRobin(), 10, 4)
    3
    """
    return max(1, -(-request_count // replica_count))


@compiled_in_place
def choose(code: int, turn: int, replica_count: int) -> int:
    """The replica for the `turn`-th accepted request (`code` selects the policy)."""
    return turn % replica_count
