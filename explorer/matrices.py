"""Topologies for a scenario's own traffic: the flows that its chips send each other, on every kind of fabric."""

from typing import Any

from explorer import actions
from explorer.access import viewer_owning
from explorer.models import SavedScenario
from simcore.analysis.topologies import Candidate, rank_topologies
from simcore.catalog import default_catalog
from simcore.fabric.traffic import Flows
from simcore.plan import Plan
from simcore.plan.traffic import traffic_of


def ranked(scenario: SavedScenario) -> tuple[Plan | None, list[Candidate]]:
    """The plan, and the topologies for what it sends; none where nothing is sent or the scenario cannot be.

    Raises InputError where the document is wrong.
    """
    plan = actions.plan_for(viewer_owning(scenario), scenario.document).plan
    traffic = traffic_of(plan) if plan else None
    if plan is None or traffic is None or not _is_work(traffic.flows):
        return plan, []
    found = rank_topologies(
        traffic.flows,
        chip=plan.chip,
        server=plan.server,
        chip_count=plan.fabric.chip_count,
        catalog=default_catalog(),
        given=_given(plan),
        economics=plan.scenario.economics,
    )
    return plan, found


def _is_work(flows: Flows) -> bool:
    return any(group.traffic_class != "management" for group in flows.groups)


def _given(plan: Plan) -> dict[str, Any]:
    """What the scenario says of its topology, for every kind that has such a key."""
    topology = plan.scenario.topology
    return {} if topology is None else topology.model_dump(exclude_unset=True, exclude={"kind"})
