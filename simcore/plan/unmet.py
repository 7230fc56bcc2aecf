"""Said aloud: a topology that was chosen for work which never leaves its scale-up domains changes none of its times.

What a group of ranks meets beyond its domain is in `fabric/reach.py`; a torus is its own scale-up network.
"""

from __future__ import annotations

from collections.abc import Iterator

from simcore.errors import Message
from simcore.fabric import Fabric
from simcore.fabric.box import torus_shape
from simcore.plan.training import TrainingPlan
from simcore.plan.types import PoolPlan, ServingPlan
from simcore.scenario import Scenario


def unmet_topology(
    scenario: Scenario, fabric: Fabric, serving: ServingPlan | None, training: TrainingPlan | None
) -> Iterator[Message]:
    """A topology that was chosen for work that never leaves its scale-up domains."""
    if scenario.topology is None or not (serving or training):
        return
    if training is not None:
        together, domain = training.inputs.chip_count, training.inputs.network.domain_size
        meets = together > (1 if torus_shape(fabric) else domain)
    else:
        assert serving is not None, "one of the two runs"
        together = max(pool.parallelism.replica_chip_count for pool in serving.pools)
        domain = fabric.hb_domain_size
        meets = any(_leaves_domain(pool, fabric) for pool in serving.pools) or _sends_kv(serving)
    if not meets:
        yield Message(
            code="topology.no_effect",
            template="topology has no effect on times: the {chips:,} chips that work together exchange inside scale-up "
            "domains of {domain:,}; bill, paths and failures follow it",
            params={"chips": together, "domain": domain},
            path="topology",
        )


def _leaves_domain(pool: PoolPlan, fabric: Fabric) -> bool:
    if torus_shape(fabric):
        return pool.parallelism.expert_chip_count > 1
    return "scaleout" in (pool.collective_tier, pool.exchange_tier)


def _sends_kv(serving: ServingPlan) -> bool:
    """Over NICs, from the pool that prefills to the one that decodes."""
    return serving.prefill is not None and serving.prefill.scheduler.kv_link == "scaleout"
