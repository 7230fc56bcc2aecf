"""What a plan's traffic does to its fabric: loads of links, the time that its flows take, and where they stay.

`fabric.max_link_load_fraction` is the bytes of the busiest link over what it can carry in the period: a training step
as long as the step's closed form, or a second of serving. `fabric.completion_s` is when the last flow of the period
ends if all start at once and share links max-min fairly, `fabric.core_completion_s` that of the flows on the critical
path. Limits: bytes without order in time, so a link that is idle on average may still be waited for in a phase.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from simcore.errors import Message
from simcore.fabric.flows import Completion, completion, sharing_of
from simcore.fabric.idle_links import idle_link_rows
from simcore.fabric.links import Network
from simcore.fabric.load_tables import load_tables
from simcore.fabric.locality import Placement, by_place, views
from simcore.fabric.network import network_of
from simcore.fabric.routing import Loads, Routing, can_be_walked, link_loads, routing_of
from simcore.fabric.specs import ClassSharing
from simcore.fabric.traffic import Flows
from simcore.plan.traffic import Traffic, traffic_of
from simcore.plan.types import Plan
from simcore.why import Term, leaf

_SHARES: Final[dict[ClassSharing, str]] = {
    "max_min": "max-min fair shares of all links",
    "strict": "max-min fair shares of all links, by strict priority of classes",
    "weighted": "weighted max-min fair shares of all links",
}
MOST_FLOWS: Final = 1_000_000  # beyond, loads are counted and no completion is found


@dataclass(frozen=True, slots=True, kw_only=True)
class FabricLoad:
    """Metrics as trees, tables, and what is wrong."""

    terms: Mapping[str, Term]
    tables: Mapping[str, Any]
    warnings: tuple[Message, ...]


def fabric_load(plan: Plan) -> FabricLoad | None:
    """None where nothing moves between chips, or where no graph of the fabric is known."""
    traffic = traffic_of(plan)
    if traffic is None or not plan.fabric.is_wired:
        return None
    network = network_of(plan.fabric)
    routing = routing_of(plan.fabric, network)
    if not can_be_walked(network, traffic.flows, routing=routing):
        return FabricLoad(terms={}, tables={}, warnings=(_too_many(plan.fabric.chip_count),))
    loads = link_loads(network, traffic.flows, routing=routing, seed=plan.seed)
    ends = None
    if len(traffic.flows) <= MOST_FLOWS:
        sharing = sharing_of(plan.fabric)
        ends = completion(network, traffic.flows, routing=routing, sharing=sharing, seed=plan.seed)
    terms = _terms(plan, traffic, network, loads, routing) | _completion_terms(plan, ends, routing)
    return FabricLoad(
        terms=terms,
        tables={
            "traffic_groups": _groups(plan, traffic.flows, network, ends),
            "traffic_matrix": views(
                placement_of(plan), traffic.flows.source, traffic.flows.target, traffic.flows.moved_bytes
            ),
            "traffic_period": [{"per": traffic.per, "s": traffic.period_s, "routing": routing}],
            **load_tables(network, loads, traffic.period_s),
            "idle_links": idle_link_rows(
                network,
                loads,
                traffic.period_s,
                threshold_fraction=plan.scenario.economics.connection_load_threshold_fraction,
            ),
        },
        warnings=_warnings(traffic, loads, terms["fabric.max_link_load_fraction"].value),
    )


def placement_of(plan: Plan) -> Placement:
    fabric = plan.fabric
    return Placement(
        rank_count=fabric.chip_count,
        domain_size=min(fabric.chip_count, max(1, plan.server.scaleup_domain_chip_count))
        if fabric.shape
        else max(1, fabric.hb_domain_size),
        chips_per_nic=fabric.chips_per_nic,
    )


def _terms(plan: Plan, traffic: Traffic, network: Network, loads: Loads, routing: Routing) -> dict[str, Term]:
    """The busiest link by time; its bytes are counted, its rate and the period have trees or sources of their own."""
    able = network.capacity_bytes_per_s > 0
    busy_s = np.divide(loads.moved_bytes, network.capacity_bytes_per_s, out=np.zeros(len(able)), where=able)
    busiest = int(busy_s.argmax())
    moved = leaf(
        float(loads.moved_bytes[busiest]),
        "busiest_link_bytes",
        kind="derived",
        source=f"{network.link_name(busiest)}, all flows of the period routed by {routing}",
    )
    rate = leaf(
        float(network.capacity_bytes_per_s[busiest]),
        "link_bytes_per_s",
        kind="derived",
        source="rate of that link in the fabric",
    )
    if plan.training is not None:
        period = plan.training.step.step_s
    else:
        period = leaf(traffic.period_s, "traffic_period_s", kind="assumption", source="one second of serving")
    return {"fabric.max_link_load_fraction": (moved / rate / period).named("fabric.max_link_load_fraction")}


def _completion_terms(plan: Plan, ends: Completion | None, routing: Routing) -> dict[str, Term]:
    if ends is None:
        return {}
    times = {"fabric.completion_s": ends.makespan_s, "fabric.core_completion_s": ends.class_s["core"]}
    source = f"{_SHARES[plan.fabric.class_sharing]}, routed by {routing}"
    return {name: leaf(value, name, kind="derived", source=source) for name, value in times.items() if value}


def _groups(plan: Plan, flows: Flows, network: Network, ends: Completion | None) -> list[dict[str, Any]]:
    placement, total = placement_of(plan), flows.total_bytes
    found = []
    for index, group in enumerate(flows.groups):
        own = flows.group_of == index
        source, target, moved = flows.source[own], flows.target[own], flows.moved_bytes[own]
        places = by_place(placement, source, target, moved)
        whole = float(places.sum())
        found.append(
            {
                "group": group.name,
                "traffic_class": group.traffic_class,
                "flow_count": int(own.sum()),
                "bytes": whole,
                "share_fraction": whole / total,
                "domain_fraction": float(places[0]) / whole,
                "rail_fraction": float(places[1]) / whole,
                "leaf_fraction": _same_leaf(network, source, target, moved),
                "completion_s": None if ends is None else ends.group_s[group.name],
            }
        )
    return found


def _same_leaf(network: Network, source: Any, target: Any, moved: Any) -> float | None:
    """Share of bytes between chips that hang on one switch; None where there is none."""
    if not network.nic_count:
        return None
    leaf_of = network.vertex_of
    same = leaf_of[source // network.chips_per_nic] == leaf_of[target // network.chips_per_nic]
    return float(moved[same].sum() / moved.sum())


def _too_many(chip_count: int) -> Message:
    return Message(
        code="fabric.too_many_paths",
        template="the paths of {chips:,} chips that all talk over single links are too many to walk, so loads of links "
        "are left out; look at one pod of them, or at a fabric of switches",
        params={"chips": chip_count},
        path="hardware.chip_count",
    )


def _warnings(traffic: Traffic, loads: Loads, busiest_fraction: float) -> tuple[Message, ...]:
    found = []
    lost = np.flatnonzero(loads.is_unreachable)
    if len(lost):
        found.append(
            Message(
                code="fabric.unreachable_flows",
                template="{count:,} of {total:,} flows have no path: chips {source:,} and {target:,}, for one, "
                "cannot reach each other; join the islands or keep each job inside one",
                params={
                    "count": len(lost),
                    "total": len(traffic.flows),
                    "source": int(traffic.flows.source[lost[0]]),
                    "target": int(traffic.flows.target[lost[0]]),
                },
                path="topology",
            )
        )
    if busiest_fraction > 1:
        found.append(
            Message(
                code="fabric.overloaded",
                template="the busiest link is asked for {ratio:.1f} times what it carries: this traffic cannot flow "
                "at this pace",
                params={"ratio": busiest_fraction},
                path="topology",
            )
        )
    return tuple(found)
