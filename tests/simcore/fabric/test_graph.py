"""The full graph is wired as counted, and the quotient carries the counts."""

from __future__ import annotations

import math

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.errors import InfeasibleError
from simcore.fabric import Clos, OcsPod, RailOnly, full_graph, quotient_graph
from tests.simcore.fabric.fabrics import built


@given(
    radix=st.sampled_from([4, 6, 8, 16]),
    ratio=st.sampled_from([1.0, 1.5, 2.0, 3.0]),
    count=st.integers(9, 300),
)
@settings(max_examples=60, deadline=None)
def test_a_clos_is_wired_as_counted(radix: int, ratio: float, count: int) -> None:
    try:
        fabric = built(Clos(radix=radix, oversubscription_ratio=ratio), count)
    except InfeasibleError:
        return
    graph = full_graph(fabric)
    links = sum(data["link_count"] for _, _, data in graph.edges(data=True))
    assert links == fabric.link_count
    assert graph.number_of_nodes() == fabric.endpoint_count + fabric.switch_count
    for vertex, kind in graph.nodes(data="kind"):
        if kind != "chip":
            ports = sum(data["link_count"] for _, _, data in graph.edges(vertex, data=True))
            assert ports <= radix
    assert nx.is_connected(graph)


def test_hops_of_a_full_clos_are_those_of_its_graph() -> None:
    fabric = built(Clos(radix=8, hb_domain_size=1), 128)
    graph = full_graph(fabric)
    chips = [vertex for vertex, kind in graph.nodes(data="kind") if kind == "chip"]
    found: dict[int, int] = {}
    for chip in chips:
        for other, hops in nx.single_source_shortest_path_length(graph, chip).items():
            if other != chip and str(other).startswith("chip"):
                found[hops] = found.get(hops, 0) + 1
    total = sum(found.values())
    assert dict(fabric.hop_histogram) == pytest.approx({hops: count / total for hops, count in found.items()})


@pytest.mark.parametrize("count", [64, 100, 500, 600, 1100])
def test_rails_are_wired_as_counted(count: int) -> None:
    fabric = built(RailOnly(radix=64, tiers=1), count)
    graph = full_graph(fabric)
    switches = [vertex for vertex, kind in graph.nodes(data="kind") if kind != "chip"]
    assert len(switches) == fabric.switch_count
    assert graph.number_of_edges() == fabric.link_count
    assert max(graph.degree(vertex) for vertex in switches) <= 64


def test_a_large_graph_is_refused() -> None:
    with pytest.raises(InfeasibleError, match="use the quotient graph"):
        full_graph(built(Clos(radix=128), 32_768))


def test_the_quotient_has_one_vertex_per_layer() -> None:
    graph = quotient_graph(built(Clos(radix=128), 32_768))
    assert {name: data["count"] for name, data in graph.nodes(data=True)} == {
        "chip": 32_768,
        "server": 4096,
        "leaf": 512,
        "spine": 512,
        "core": 256,
    }
    assert graph["leaf"]["spine"]["link_count"] == 32_768
    pod = quotient_graph(built(OcsPod(), 4096))
    assert pod.nodes["ocs"]["count"] == 48
    assert math.isclose(pod["chip"]["ocs"]["link_count"], 6144)
