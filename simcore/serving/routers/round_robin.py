"""Requests go to the replicas in turn, whatever they are doing: what nginx or a Kubernetes service does by default."""

from __future__ import annotations

from typing import Any, Literal

from simcore.compiled import compiled_in_place
from simcore.spec import Spec


class RoundRobin(Spec):
    """Requests go to the replicas in turn."""

    kind: Literal["round_robin"] = "round_robin"


@compiled_in_place
def choose(clock: Any, setup: Any) -> int:
    """Request after request, lane after lane."""
    lane: int = clock.turn % setup.replica_count
    return lane
