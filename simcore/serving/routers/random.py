"""Each request goes to a replica drawn at random, so each replica sees its own thinned arrival process.

The draws are made before the engine runs, one per request by its number, so that two scenarios with one seed
share them whatever else differs.
"""

from __future__ import annotations

from typing import Any, Literal

from simcore.compiled import compiled_in_place
from simcore.spec import Spec


class Random(Spec):
    """A replica drawn at random, each as likely as the others."""

    kind: Literal["random"] = "random"


@compiled_in_place
def choose(setup: Any, routing: Any, request: int) -> int:
    """The lane that this request's draw falls on."""
    return int(routing.picks[request, 0] * setup.replica_count)
