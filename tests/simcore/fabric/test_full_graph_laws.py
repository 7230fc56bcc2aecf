"""What a topology's closed forms say is what its full graph has: counts, ports, distances, paths, cuts."""

from __future__ import annotations

from typing import Any, get_args

import networkx as nx
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from simcore.errors import InfeasibleError
from simcore.fabric import (
    AnyTopology,
    Clos,
    Dragonfly,
    Fabric,
    HyperX,
    NetworkSpec,
    RailOptimized,
    SlimFly,
    full_graph,
)
from tests.simcore.fabric.fabrics import SERVER, built

KINDS: tuple[type[AnyTopology], ...] = get_args(AnyTopology)
DIRECT = [Dragonfly, SlimFly, HyperX]
UNHURRIED = settings(deadline=None, max_examples=40)


COUNTS = st.integers(SERVER.chips_per_server + 1, 400)


@st.composite
def specs(draw: st.DrawFn, kinds: list[type[AnyTopology]]) -> AnyTopology:
    """Small switches, each chip a scale-up domain of its own where the kind has domains."""
    kind = draw(st.sampled_from(kinds))
    if not issubclass(kind, NetworkSpec):
        return kind()
    return kind(radix=2 * draw(st.integers(2, 8)), hb_domain_size=1)


def tried(spec: AnyTopology, count: int) -> Fabric:
    try:
        return built(spec, count)
    except InfeasibleError:
        assume(False)
        raise


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
@given(specs([kind for kind in KINDS if kind.__name__ != "OcsPod"]), COUNTS)
def test_vertices_links_and_ports_are_those_counted(spec: AnyTopology, count: int) -> None:
    fabric = tried(spec, count)
    graph = full_graph(fabric)
    assert nx.is_connected(graph)
    assert graph.number_of_nodes() == fabric.endpoint_count + fabric.switch_count
    assert sum(data["link_count"] for _, _, data in graph.edges(data=True)) == fabric.link_count
    for vertex, ports in graph.degree(weight="link_count"):
        if fabric.tiers:
            assert ports <= (1 if is_chip(graph, vertex) else fabric.tiers[0].radix)


@UNHURRIED
@given(specs(list(DIRECT)), COUNTS)
def test_hops_of_a_direct_network_are_those_of_its_graph(spec: AnyTopology, count: int) -> None:
    fabric = tried(spec, count)
    assert dict(fabric.hop_histogram) == pytest.approx(hops_of(full_graph(fabric)))


@pytest.mark.parametrize(("kind", "radix", "count"), [(Clos, 8, 128), (Clos, 8, 32), (RailOptimized, 6, 54)])
def test_hops_of_a_full_tree_are_those_of_its_graph(kind: type[Any], radix: int, count: int) -> None:
    fabric = built(kind(radix=radix, hb_domain_size=1), count)
    assert dict(fabric.hop_histogram) == pytest.approx(hops_of(full_graph(fabric)))


@UNHURRIED
@given(specs(list(DIRECT)), COUNTS)
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
