"""The replica whose KV cache has the fewest blocks in use, those of the prompts in its line included.

Blocks in use are what engines export (vLLM's `kv_cache_usage_perc`) and gateways score by; counting the line as
well, as NVIDIA Dynamo does, keeps a burst from piling up on one replica before its usage shows. Usage is that
of the step under way, and cached prefixes that nobody holds are not in use. Ties go to the next one in turn.

Limit: every replica is looked at for every request, so the number of replicas is bounded.
"""

from __future__ import annotations

from typing import Any, Literal

from simcore.compiled import compiled_in_place
from simcore.memory.kv_pool import run_blocks
from simcore.serving.runs import steps_until
from simcore.serving.speculation import later_blocks
from simcore.spec import Spec


class LeastKv(Spec):
    """The replica with the fewest KV blocks in use or asked for; ties in turn."""

    kind: Literal["least_kv"] = "least_kv"


@compiled_in_place
def choose(clock: Any, lanes: Any, phases: Any, setups: Any, now: float) -> int:
    """One look at each lane."""
    index: int = clock.last_lane
    best, fewest = 0, -1
    lane_count = setups[0].replica_count
    for _ in range(lane_count):
        index = index + 1 if index + 1 < lane_count else 0
        lane = lanes[index]
        if lane.shut == 1:
            continue
        blocks = lane.line_blocks + taken_blocks(lane, phases, setups[lane.pool], now)
        if fewest < 0 or blocks < fewest:
            best, fewest = index, blocks
            if blocks == 0:
                break
    return best


@compiled_in_place
def taken_blocks(lane: Any, phases: Any, setup: Any, now: float) -> int:
    """Blocks that the lane has in use now."""
    blocks: int = setup.block_count - lane.free_blocks
    if lane.steps > 1:
        begun = steps_until(lane.rate_s, lane.slope_s, now - lane.start_s - lane.moved_s, lane.steps)
        if setup.drafts > 0:
            return blocks + int(later_blocks(lane, phases, setup, begun))
        blocks += run_blocks(
            phases,
            lane.phase_base,
            setup.block_size,
            setup.block_shift,
            lane.step + 1,
            lane.decodes * setup.pages,
            begun - 1,
        )
    return blocks
