"""What a topology's closed forms say is what its full graph has: counts, ports, distances, paths, cuts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

import networkx as nx
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from simcore.errors import InfeasibleError
from simcore.fabric import (
    AnyTopology,
    Clos,
    Dragonfly,
    Fabric,
    HyperX,
    NetworkSpec,
    OcsPod,
    RailOptimized,
    SlimFly,
    Torus,
    full_graph,
)
from tests.simcore.fabric.fabrics import SERVER, built

KINDS: tuple[type[AnyTopology], ...] = get_args(AnyTopology)
DIRECT: tuple[type[AnyTopology], ...] = (Dragonfly, SlimFly, HyperX)
LATTICES: tuple[type[AnyTopology], ...] = (Torus, OcsPod)
# Keys drawn at random rarely hold the chips drawn beside them: what cannot be is passed over.
UNHURRIED = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.filter_too_much])
COUNTS = st.integers(SERVER.chips_per_server + 1, 300)
AUTO_OR = {limit: st.one_of(st.just("auto"), st.integers(1, limit)) for limit in (3, 4, 6, 12)}
OWN: dict[type[AnyTopology], dict[str, st.SearchStrategy[Any]]] = {
    Clos: {"planes": st.integers(1, 3)},
    RailOptimized: {"planes": st.integers(1, 3)},
    Dragonfly: {"p": AUTO_OR[4], "a": AUTO_OR[6], "h": AUTO_OR[3], "g": AUTO_OR[12]},
    SlimFly: {"q": st.sampled_from(["auto", 3, 4, 5, 7, 9]), "p": AUTO_OR[6]},
    HyperX: {
        "sizes": st.one_of(st.just("auto"), st.lists(st.integers(1, 6), min_size=1, max_size=4)),
        "links_per_pair": st.integers(1, 3),
    },
}


@st.composite
def specs(draw: st.DrawFn, kinds: Sequence[type[AnyTopology]]) -> AnyTopology:
    """Small switches, each chip a scale-up domain of its own where the kind has domains."""
    kind = draw(st.sampled_from(kinds))
    if not issubclass(kind, NetworkSpec):
        return kind(twisted="auto")
    own = {key: draw(values) for key, values in OWN.get(kind, {}).items()}
    return kind(radix=2 * draw(st.integers(2, 12)), hb_domain_size=1, **own)


def tried(spec: AnyTopology, count: int) -> Fabric:
    try:
        fabric = built(spec, count)
    except InfeasibleError:
        assume(False)
        raise
    assume(fabric.endpoint_count + fabric.switch_count < 1500)
    return fabric


def is_chip(graph: nx.Graph[Any], vertex: Any) -> bool:
    return bool(graph.nodes[vertex]["kind"] == "chip")


def hops_of(graph: nx.Graph[Any]) -> dict[int, float]:
    """Shares of ordered pairs of chips by the links between them."""
    found: dict[int, int] = {}
    chips = [vertex for vertex in graph if is_chip(graph, vertex)]
    for chip in chips:
        for other, hops in nx.single_source_shortest_path_length(graph, chip).items():
            if hops and is_chip(graph, other):
                found[hops] = found.get(hops, 0) + 1
    everything = sum(found.values())
    return {hops: count / everything for hops, count in found.items()}


@UNHURRIED
@given(specs(KINDS), COUNTS)
def test_vertices_links_and_ports_are_those_counted(spec: AnyTopology, count: int) -> None:
    fabric = tried(spec, count)
    graph = full_graph(fabric)
    assert nx.is_connected(graph)
    assert graph.number_of_nodes() == fabric.endpoint_count + fabric.switch_count
    fibres = sum(segment.link_count for segment in fabric.segments if segment.upper == "ocs")
    links = fabric.link_count - fibres // 2  # two fibres join two chips
    assert sum(data["link_count"] for _, _, data in graph.edges(data=True)) == links
    for vertex, ports in graph.degree(weight="link_count"):
        if fabric.tiers:
            assert ports <= (getattr(spec, "planes", 1) if is_chip(graph, vertex) else fabric.tiers[0].radix)


@UNHURRIED
@given(specs((*DIRECT, *LATTICES)), COUNTS)
def test_hops_are_those_of_the_graph(spec: AnyTopology, count: int) -> None:
    fabric = tried(spec, count)
    assert dict(fabric.hop_histogram) == pytest.approx(hops_of(full_graph(fabric)))


@pytest.mark.parametrize(("kind", "radix", "count"), [(Clos, 8, 128), (Clos, 8, 32), (RailOptimized, 6, 54)])
def test_hops_of_a_full_tree_are_those_of_its_graph(kind: type[Any], radix: int, count: int) -> None:
    fabric = built(kind(radix=radix, hb_domain_size=1), count)
    assert dict(fabric.hop_histogram) == pytest.approx(hops_of(full_graph(fabric)))


@UNHURRIED
@given(specs(DIRECT), COUNTS)
def test_far_endpoints_have_the_paths_that_are_counted(spec: AnyTopology, count: int) -> None:
    """Of all switches that are the farthest from the first, the one with the fewest paths has those counted."""
    fabric = tried(spec, count)
    graph = nx.Graph()
    graph.add_nodes_from(range(fabric.switch_count))
    for (near, far), links in zip(
        fabric.switch_edges.tolist(), fabric.switch_edge_links.tolist(), strict=True
    ):
        graph.add_edge(near, far, links=links)
    hops = nx.single_source_shortest_path_length(graph, 0)
    ways = {0: 1}
    for vertex in sorted(hops, key=hops.__getitem__)[1:]:
        nearer = [other for other in graph[vertex] if hops[other] == hops[vertex] - 1]
        ways[vertex] = sum(ways[other] * graph[vertex][other]["links"] for other in nearer)
    fewest = min(ways[vertex] for vertex in hops if hops[vertex] == max(hops.values()))
    assert fewest == fabric.terms["fabric.path_count"].value
    assert 1 <= fabric.terms["fabric.disjoint_path_count"].value <= fewest


@UNHURRIED
@given(specs(DIRECT), st.integers(SERVER.chips_per_server + 1, 60))
def test_no_balanced_cut_is_found_that_meets_fewer_links_than_the_bisection(
    spec: AnyTopology, count: int
) -> None:
    some = tried(spec, count)
    fabric = tried(spec, some.switch_count * some.endpoints_per_switch)
    assume(fabric.switch_count % 2 == 0)
    graph = nx.Graph()
    graph.add_nodes_from(range(fabric.switch_count))
    for (near, far), links in zip(fabric.switch_edges, fabric.switch_edge_links, strict=True):
        graph.add_edge(near, far, weight=links)
    claimed = fabric.bisection_bytes_per_s / fabric.link_bytes_per_s
    for seed in range(5):
        left, _ = nx.algorithms.community.kernighan_lin_bisection(graph, max_iter=20, seed=seed)
        assert min(fabric.endpoint_count / 2, nx.cut_size(graph, left, weight="weight")) >= claimed - 1e-9
