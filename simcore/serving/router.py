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


def share_of_replicas(router: Router, request_count: int, replica_count: int) -> tuple[int, int]:
    """How many replicas get a request at all, and how many requests one of them gets at most; at least 1 each.

    >>> share_of_replicas(RoundRobin(), 10, 4), share_of_replicas(RoundRobin(), 10, 65_536)
    ((4, 3), (10, 1))
    """
    return max(1, min(replica_count, request_count)), max(1, -(-request_count // replica_count))


@compiled_in_place
def choose(code: int, turn: int, replica_count: int) -> int:
    """The replica for the `turn`-th accepted request (`code` selects the policy)."""
    return turn % replica_count
