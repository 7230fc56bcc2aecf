"""The fabric as a networkx graph: the quotient (layers with counts) and, when small, every vertex.

The quotient has one vertex per layer, `{id, label, kind, count, tier}`, and one edge per segment,
`{link_count, medium}`; switches that are joined to their like have an edge to themselves. The full graph is
wired as counted: endpoints fill leaves in order, each pod's uplinks go round its spines, all spines' uplinks
go round the cores; parallel links add to an edge's `link_count`. Above 5,000 vertices it is refused: look at
the quotient.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import networkx as nx

from simcore.errors import InfeasibleError
from simcore.fabric.base import TIER_NAMES, Fabric, Plane
from simcore.fabric.direct import check_wired
from simcore.fabric.lattice import best_shape
from simcore.fabric.wiring import lattice_wires

FULL_GRAPH_LIMIT = 5_000


def quotient_graph(fabric: Fabric) -> nx.Graph[Any]:
    """Layers as vertices, bottom up."""
    graph: nx.Graph[Any] = nx.Graph()
    graph.add_node("chip", label="chips", kind="chip", count=fabric.chip_count, tier=0)
    if fabric.hb_domain_size > 1:
        domains = math.ceil(fabric.chip_count / fabric.hb_domain_size)
        label = f"scale-up domains of {fabric.hb_domain_size}"
        graph.add_node("server", label=label, kind="server", count=domains, tier=0)
        graph.add_edge("chip", "server", link_count=fabric.chip_count, medium="scaleup")
    for level, tier in enumerate(fabric.tiers, start=1):
        label = "switches" if tier.name == "switch" else f"{tier.name} switches"
        graph.add_node(tier.name, label=label, kind=tier.name, count=tier.switch_count, tier=level)
    if fabric.ocs_count:
        graph.add_node("ocs", label="optical circuit switches", kind="ocs", count=fabric.ocs_count, tier=1)
    for segment in fabric.segments:
        before = graph.get_edge_data(segment.lower, segment.upper, {"link_count": 0})["link_count"]
        links = before + segment.link_count
        graph.add_edge(segment.lower, segment.upper, link_count=links, medium=segment.medium)
    return graph


def vertex_count(fabric: Fabric) -> int:
    return fabric.endpoint_count + fabric.switch_count


def full_graph(fabric: Fabric) -> nx.Graph[Any]:
    """Every endpoint and switch; refused above 5,000 vertices."""
    count = vertex_count(fabric)
    if count > FULL_GRAPH_LIMIT:
        raise InfeasibleError.at(
            "topology",
            "fabric.graph_too_large",
            "the full graph has {count:,} vertices; it is drawn up to {limit:,}, use the quotient graph",
            count=count,
            limit=FULL_GRAPH_LIMIT,
        )
    if fabric.endpoints_per_switch:
        return _direct_graph(fabric)
    if fabric.shape or fabric.kind == "ocs_pod":
        return _lattice_graph(fabric)
    graph: nx.Graph[Any] = nx.Graph()
    planes = [plane for plane in fabric.planes for _ in range(plane.count)]
    by_rail = fabric.kind == "rail_only"
    for index, plane in enumerate(_shared(planes) if by_rail else [[p] for p in planes]):
        _wire(graph, index, plane, chips=f"{index}-" if by_rail else "")
    return graph


def _shared(planes: list[Plane]) -> list[list[Plane]]:
    """Small one-tier rails share a switch: as many as its ports hold of the longest."""
    if not planes or len(planes[0].down_port_counts) > 1:
        return [[plane] for plane in planes]
    full = [plane for plane in planes if plane.endpoint_count == plane.down_port_counts[0]]
    rest = [plane for plane in planes if plane.endpoint_count < plane.down_port_counts[0]]
    if not rest:
        return [[plane] for plane in full]
    per_switch = rest[0].down_port_counts[0] // max(plane.endpoint_count for plane in rest)
    packed = [rest[start : start + per_switch] for start in range(0, len(rest), per_switch)]
    return [*([plane] for plane in full), *packed]


def _wire(graph: nx.Graph[Any], index: int, planes: list[Plane], *, chips: str) -> None:
    """One folded Clos; several one-tier planes of a list share its only switch.

    `chips` tells apart the chips of rails; those of a multi-plane fabric hang on all its planes.
    """
    plane = planes[0]
    tiers = len(plane.down_port_counts)
    for rail, member in enumerate(planes):
        for endpoint in range(member.endpoint_count):
            leaf = endpoint // plane.down_port_counts[0]
            vertex = f"chip-{chips}{rail}-{endpoint}"
            graph.add_node(vertex, kind="chip")
            _link(graph, vertex, f"{index}-0-{leaf}", TIER_NAMES[0])
    below = _filled(plane.endpoint_count, plane.down_port_counts[0])
    group = math.inf if tiers <= 2 else plane.down_port_counts[1]
    for level in range(1, tiers):
        below = _climb(graph, plane, index, level, below, group if level < tiers - 1 else math.inf)


def _climb(
    graph: nx.Graph[Any], plane: Plane, index: int, level: int, below: list[int], pod_size: float
) -> list[int]:
    """Join the switches of one tier to the tier above, round robin within each pod."""
    down = plane.down_port_counts
    uplinks = _uplinks(below, down[level - 1], plane.up_port_counts[level - 1])
    pods = [uplinks] if pod_size is math.inf else _chunks(uplinks, int(pod_size))
    above: list[int] = []
    lower = 0
    for pod in pods:
        uppers = math.ceil(sum(pod) / down[level])
        loads = [0] * uppers
        turn = itertools.cycle(range(uppers))
        for links in pod:
            for upper in itertools.islice(turn, links):
                loads[upper] += 1
                _link(
                    graph,
                    f"{index}-{level - 1}-{lower}",
                    f"{index}-{level}-{len(above) + upper}",
                    TIER_NAMES[level],
                )
            lower += 1
        above += loads
    return above


def _uplinks(below: list[int], down: int, up: int) -> list[int]:
    """Links upwards of each switch; partly filled ones together get what the closed form counts."""
    full, rest = divmod(sum(below), down)
    counted = full * up + math.ceil(rest * up / down)
    found = [math.ceil(links * up / down) for links in below]
    for index in reversed(range(len(found))):
        if sum(found) > counted and below[index] < down and found[index] > 1:
            found[index] -= 1
    return found


def _filled(count: int, size: int) -> list[int]:
    full, rest = divmod(count, size)
    return [size] * full + ([rest] if rest else [])


def _chunks(values: list[int], size: int) -> list[list[int]]:
    return [values[start : start + size] for start in range(0, len(values), size)]


def _link(graph: nx.Graph[Any], lower: str, upper: str, kind: str) -> None:
    if upper not in graph:
        graph.add_node(upper, kind=kind)
    if graph.has_edge(lower, upper):
        graph[lower][upper]["link_count"] += 1
    else:
        graph.add_edge(lower, upper, link_count=1)


def _direct_graph(fabric: Fabric) -> nx.Graph[Any]:
    check_wired(fabric)
    graph: nx.Graph[Any] = nx.Graph()
    graph.add_nodes_from((f"switch-{index}" for index in range(fabric.switch_count)), kind="switch")
    for endpoint in range(fabric.endpoint_count):
        graph.add_node(f"chip-{endpoint}", kind="chip")
        graph.add_edge(f"chip-{endpoint}", f"switch-{endpoint // fabric.endpoints_per_switch}", link_count=1)
    for (near, far), links in zip(
        fabric.switch_edges.tolist(), fabric.switch_edge_links.tolist(), strict=True
    ):
        graph.add_edge(f"switch-{near}", f"switch-{far}", link_count=links)
    return graph


def _lattice_graph(fabric: Fabric) -> nx.Graph[Any]:
    """Chips at their places; fewer than a cube do not close into rings."""
    shape = fabric.shape or best_shape(fabric.chip_count, 3)
    lower, upper, _ = lattice_wires(shape, wraps=bool(fabric.shape), twisted=fabric.is_twisted)
    places = list(itertools.product(*(range(size) for size in shape)))
    graph: nx.Graph[Any] = nx.Graph()
    graph.add_nodes_from(places, kind="chip")
    for near, far in zip(lower.tolist(), upper.tolist(), strict=True):
        graph.add_edge(places[near], places[far], link_count=1)
    return graph
