"""What a plan's chips send each other: the flows of a training step, or of a second of serving.

Chips are numbered pool after pool, the main one first. Nothing of it is simulated: flows follow from the cut, the
placement and the payloads, and how long they take from the fabric (`fabric/flows.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

from simcore.fabric.traffic import Flows
from simcore.plan.serving_traffic import serving_flows
from simcore.plan.training_traffic import training_flows
from simcore.plan.types import Plan
from simcore.serving.schedulers.disaggregated import MAIN_POOL


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Flows of a period."""

    flows: Flows
    period_s: float
    per: Literal["step", "second"]


def traffic_of(plan: Plan) -> Traffic | None:
    """The flows of what the plan runs; None where it runs nothing or nothing moves."""
    if plan.training is not None:
        flows = training_flows(plan.training, plan.scenario.reliability, plan.server)
        found = Traffic(flows=flows, period_s=plan.training.step.step_s.value, per="step")
    elif plan.serving is not None:
        found = Traffic(flows=serving_flows(plan.serving, _first_chips(plan)), period_s=1.0, per="second")
    else:
        return None
    return found if len(found.flows) else None


def _first_chips(plan: Plan) -> dict[str, int]:
    """The number of each pool's first chip."""
    hardware = plan.scenario.hardware
    names = [MAIN_POOL, *(pool.name for pool in hardware.pools)]
    counts = [hardware.chip_count, *(pool.chip_count for pool in hardware.pools)]
    return dict(zip(names, accumulate(counts, initial=0), strict=False))
