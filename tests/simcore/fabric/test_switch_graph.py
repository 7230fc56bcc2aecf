"""Distances and shortest paths on arrays are those of networkx."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.fabric.switch_graph import disjoint_paths, distances, merged, shortest_paths


@st.composite
def graphs(draw: st.DrawFn) -> nx.Graph:  # type: ignore[type-arg]
    count = draw(st.integers(2, 90))
    graph = nx.connected_watts_strogatz_graph(count, min(4, count), 0.5, seed=draw(st.integers(0, 999)))
    assert isinstance(graph, nx.Graph)
    return graph


@settings(deadline=None, max_examples=40)
@given(graphs())
def test_hops_and_paths_are_those_of_networkx(graph: nx.Graph) -> None:  # type: ignore[type-arg]
    count = graph.number_of_nodes()
    edges, links = merged(np.array(graph.edges()))
    found = distances(edges, count, np.arange(count))
    expected = dict(nx.all_pairs_shortest_path_length(graph))
    assert all(found[a, b] == expected[a][b] for a in range(count) for b in range(count))
    hops, paths = shortest_paths(edges, links, count, 0)
    assert (hops == found[0]).all()
    far = int(np.argmax(hops))
    listed = list(nx.all_shortest_paths(graph, 0, far))
    assert paths[far] == len(listed)
    only = nx.DiGraph()
    for path in listed:
        nx.add_path(only, path)
    assert disjoint_paths(edges, links, count, source=0, target=far) == nx.edge_connectivity(only, 0, far)


def test_parallel_links_are_paths_of_their_own() -> None:
    edges, links = merged(np.array([[0, 1], [1, 0], [1, 2], [2, 1], [1, 2]]))
    assert (edges.tolist(), links.tolist()) == ([[0, 1], [1, 2]], [2, 3])
    assert shortest_paths(edges, links, 3, 0)[1].tolist() == [1, 2, 6]
    assert disjoint_paths(edges, links, 3, source=0, target=2) == 2


def test_a_switch_alone_is_no_way_from_itself() -> None:
    edges, links = merged(np.zeros((0, 2), np.int64))
    assert distances(edges, 1, np.array([0])).tolist() == [[0]]
    assert shortest_paths(edges, links, 1, 0)[1] == pytest.approx([1])
