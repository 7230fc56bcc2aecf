"""The replica that was last sent the longest known prefix of the prompt, unless it has too much to do.

The router remembers, by block hash, where a prompt with that hash went last, as SGLang's cache-aware router does
with its tree of prompts; it does not see what a replica has evicted. A replica with more than `imbalance_ratio`
times (1 + the mean number outstanding) is passed over, and the replica with the fewest outstanding takes the
request, as it does where no prefix is known. Without a prefix cache it is `least_outstanding` altogether.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from simcore.compiled import compiled_in_place
from simcore.serving.routers.loads import least_loaded
from simcore.spec import Spec


class PrefixAffinity(Spec):
    """Where the longest prefix went last, within a bound on the load."""

    kind: Literal["prefix_affinity"] = "prefix_affinity"
    imbalance_ratio: float = Field(default=2.0, ge=1, le=1_000)


@compiled_in_place
def choose(clock: Any, lanes: Any, setup: Any, prefix: Any, routing: Any, request: int) -> int:
    """The home of the longest known prefix, or the least loaded lane."""
    index = -1
    if setup.caching == 1:
        for place in range(prefix.offsets[request], prefix.ends[request]):
            home = routing.homes[prefix.entries[place]]
            if home < 0:
                break
            index = home
    if 0 <= index < setup.replica_count and lanes[index].shut == 0:  # it is ready
        lane = lanes[index]
        outstanding = clock.turn - clock.completed - clock.refused
        if lane.running + lane.waiting <= setup.most_load + setup.most_load_per_request * outstanding:
            return index
    following = clock.last_lane + 1
    return least_loaded(routing.loads, following if following < setup.replica_count else 0)


@compiled_in_place
def remember(prefix: Any, routing: Any, request: int, index: int) -> None:
    """From now on these prefixes are at home there."""
    for place in range(prefix.offsets[request], prefix.ends[request]):
        routing.homes[prefix.entries[place]] = index
