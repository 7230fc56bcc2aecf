"""Tori and cubes behind optical switches."""

from __future__ import annotations

import math
from collections import Counter

import networkx as nx
import pytest
from pydantic import ValidationError

from simcore.errors import InfeasibleError, InputError
from simcore.fabric import OcsPod, Torus, full_graph
from tests.simcore.fabric.fabrics import built


def test_a_cubic_torus() -> None:
    fabric = built(Torus(), 4096)
    assert fabric.shape == (16, 16, 16)
    assert fabric.link_count == 3 * 4096
    assert fabric.diameter_hops == 24
    assert fabric.bisection_bytes_per_s == 512 * 450e9 / 6


@pytest.mark.parametrize("shape", [(4, 4, 4), (2, 3, 5), (1, 2, 7), (6, 6)])
def test_links_and_distances_are_those_of_the_graph(shape: tuple[int, ...]) -> None:
    count = 1
    for size in shape:
        count *= size
    fabric = built(Torus(shape=shape), count)
    graph = full_graph(fabric)
    assert graph.number_of_edges() == fabric.link_count
    assert nx.diameter(graph) == fabric.diameter_hops
    assert nx.average_shortest_path_length(graph) == pytest.approx(fabric.mean_hops)


def test_a_shape_must_hold_the_chips() -> None:
    with pytest.raises(InputError, match="4 × 4 × 4 has 64 chips"):
        built(Torus(shape=(4, 4, 4)), 65)
    with pytest.raises(ValidationError, match="two or three sizes"):
        Torus(shape=(4,))


def test_a_full_pod_of_cubes() -> None:
    fabric = built(OcsPod(), 4096)
    assert (fabric.ocs_count, fabric.transceiver_count) == (48, 6144)
    assert fabric.transceiver_count / fabric.chip_count == 1.5
    assert fabric.diameter_hops == 24


def test_fewer_chips_than_a_cube_are_a_mesh() -> None:
    fabric = built(OcsPod(), 16)
    assert (fabric.ocs_count, fabric.transceiver_count, fabric.link_count) == (0, 0, 28)
    mesh = nx.grid_graph((2, 2, 4))
    assert nx.diameter(mesh) == fabric.diameter_hops
    assert nx.average_shortest_path_length(mesh) == pytest.approx(fabric.mean_hops)


def test_more_cubes_than_ports_are_infeasible() -> None:
    with pytest.raises(InfeasibleError, match="use at most 4,096 chips"):
        built(OcsPod(ocs_usable_ports=128), 4160)
    assert built(OcsPod(), 9216).ocs_count == 48


TWISTABLE = [(3, 6), (4, 8), (4, 4, 8), (4, 8, 4), (3, 3, 6), (3, 6, 6), (8, 4, 8)]


@pytest.mark.parametrize("shape", TWISTABLE)
def test_a_twisted_torus_looks_alike_from_every_chip(shape: tuple[int, ...]) -> None:
    fabric = built(Torus(shape=shape, twisted=True), math.prod(shape))
    graph = full_graph(fabric)
    assert {degree for _, degree in graph.degree()} == {2 * len(shape)}
    assert graph.number_of_edges() == fabric.link_count
    for place in list(graph)[:: max(1, len(graph) // 7)]:
        found = Counter(nx.single_source_shortest_path_length(graph, place).values())
        assert {hops: count / (len(graph) - 1) for hops, count in found.items() if hops} == pytest.approx(
            dict(fabric.hop_histogram)
        )


@pytest.mark.parametrize("shape", [(4, 8), (4, 4, 8), (3, 6, 6)])
def test_a_twist_shortens_paths_and_no_smaller_cut_is_found(shape: tuple[int, ...]) -> None:
    plain, twisted = (built(Torus(shape=shape, twisted=on), math.prod(shape)) for on in (False, True))
    assert twisted.diameter_hops < plain.diameter_hops
    assert twisted.mean_hops < plain.mean_hops
    for fabric in (plain, twisted):
        graph = full_graph(fabric)
        for seed in range(5):
            left, _ = nx.algorithms.community.kernighan_lin_bisection(graph, seed=seed)
            assert nx.cut_size(graph, left) >= fabric.bisection_bytes_per_s / fabric.link_bytes_per_s


@pytest.mark.parametrize(
    "spec",
    [
        *(Torus(shape=shape, twisted=twisted) for shape in TWISTABLE for twisted in (False, True)),
        Torus(shape=(2, 3, 5)),
    ],
    ids=str,
)
def test_paths_between_far_chips_are_those_of_the_graph(spec: Torus) -> None:
    assert spec.shape != "auto"
    fabric = built(spec, math.prod(spec.shape))
    graph = full_graph(fabric)
    first = (0,) * len(spec.shape)
    hops = nx.single_source_shortest_path_length(graph, first)
    far = [place for place, length in hops.items() if length == fabric.diameter_hops]
    listed = min((list(nx.all_shortest_paths(graph, first, place)) for place in far), key=len)
    assert len(listed) == fabric.terms["fabric.path_count"].value
    only: nx.DiGraph[tuple[int, ...]] = nx.DiGraph()
    for path in listed:
        nx.add_path(only, path)
    assert (
        nx.edge_connectivity(only, first, listed[0][-1]) == fabric.terms["fabric.disjoint_path_count"].value
    )


def test_a_twist_is_made_where_the_shape_allows_and_refused_where_not() -> None:
    assert built(Torus(twisted="auto"), 128).is_twisted
    assert not built(Torus(twisted="auto"), 64).is_twisted
    assert built(Torus(twisted=True), 256).shape == (4, 8, 8)
    assert built(OcsPod(twisted=True), 256).shape == (4, 8, 8)
    assert not built(Torus(), 128).is_twisted
    with pytest.raises(InfeasibleError, match="the nearest is 3 × 3 × 6 with 54 chips"):
        built(Torus(twisted=True), 64)
    with pytest.raises(InfeasibleError, match="the nearest is 4 × 8 × 8 with 256 chips"):
        built(OcsPod(shape=(4, 4, 16), twisted=True), 256)


def test_a_generation_says_how_large_a_pod_and_a_slice_may_be() -> None:
    assert built(OcsPod(generation="tpu-8t"), 9600).chosen["cubes"] == 150
    with pytest.raises(InfeasibleError, match="tpu-v4 has 64; use at most 4,096 chips"):
        built(OcsPod(generation="tpu-v4"), 4160)
    assert not built(OcsPod(generation="tpu-v5p"), 6144).warnings
    assert "at most 6,144 chips" in built(OcsPod(generation="tpu-v5p"), 8960).warnings[0].text
    with pytest.raises(InputError, match="make them equal, such as 8 × 8 × 8"):
        built(OcsPod(shape=(4, 4, 4)), 512)
    with pytest.raises(ValidationError, match="multiples of 4"):
        OcsPod(shape=(4, 4, 6))
