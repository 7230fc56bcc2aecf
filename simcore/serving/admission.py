"""Who is let in: a bound on the line of a replica, beyond which a request is refused at once.

The line is what waits beyond the seats that are free, unless the scheduler left somebody waiting beside a free seat
when it last looked: then whoever waits is in line. A bound of 0 lets in only who finds a seat, so `k` seats lose
requests as M/M/k/k does. A refused request counts as rejected; in a closed loop its client sends the next one at
once.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from simcore.compiled import compiled_in_place, inlined
from simcore.spec import Spec


class Admission(Spec):
    """How many requests may wait in line at a replica; no bound where it is null."""

    max_queue_length: Annotated[int, Field(ge=0, le=100_000_000)] | None = None


@inlined
def in_line(lane: Any, setup: Any) -> int:
    """Requests in the line of a lane; negative where seats would be left over."""
    return int(lane.waiting if lane.left > 0 else lane.waiting + lane.running - setup.max_num_seqs)


@compiled_in_place
def is_full(lanes: Any, setup: Any, index: int) -> bool:
    """Whether a newcomer would have to join the line of a replica that is as long as it may be.

    The lanes of a replica, one for each batch in flight, share its line.
    """
    if in_line(lanes[index], setup) < 0:
        return False
    first = index - (index - setup.first_lane) % setup.lanes_per_replica
    length = 0
    for other in range(first, min(first + setup.lanes_per_replica, setup.first_lane + setup.lane_count)):
        length += max(0, in_line(lanes[other], setup))
    return bool(length >= setup.max_queue_length)
