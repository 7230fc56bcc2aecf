"""Tori and cubes behind optical switches."""

from __future__ import annotations

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
