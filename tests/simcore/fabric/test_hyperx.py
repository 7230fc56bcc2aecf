"""HyperX: sizes that are found, links that are counted, limits."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.errors import InfeasibleError
from simcore.fabric import HyperX
from simcore.fabric.hyperx import wiring
from simcore.fabric.switch_graph import disjoint_paths, shortest_paths
from tests.simcore.fabric.fabrics import built

SIZES = st.lists(st.integers(1, 5), min_size=1, max_size=4).map(tuple)


def test_a_flattened_butterfly() -> None:
    fabric = built(HyperX(sizes=(8, 8), p=8, radix=22), 512)
    assert (fabric.switch_count, fabric.routing_adjacency_count) == (64, 2 * 8 * 28)
    assert (fabric.diameter_hops, fabric.tiers[0].spare_port_count) == (4, 0)


def test_sizes_are_the_fewest_and_smallest_that_hold_the_endpoints() -> None:
    assert built(HyperX(), 64).sizes == (8,)
    assert built(HyperX(), 10_648).sizes == (22, 22)
    assert built(HyperX(), 32_768).sizes == (13, 13, 14)


@settings(deadline=None, max_examples=60)
@given(sizes=SIZES, links_per_pair=st.integers(1, 3))
def test_paths_between_opposite_switches_are_those_counted(
    sizes: tuple[int, ...], links_per_pair: int
) -> None:
    count = math.prod(sizes)
    if count == 1:
        return
    fabric = built(HyperX(sizes=sizes, p=9, radix=80, links_per_pair=links_per_pair), 9 * count)
    edges = wiring(sizes)
    assert (edges == fabric.switch_edges).all()
    hops, paths = shortest_paths(edges, fabric.switch_edge_links, count, 0)
    far = count - 1
    assert hops[far] == hops.max() == fabric.diameter_hops - 2
    assert paths[far] == fabric.terms["fabric.path_count"].value
    disjoint = disjoint_paths(edges, fabric.switch_edge_links, count, source=0, target=far)
    assert disjoint == fabric.terms["fabric.disjoint_path_count"].value


def test_a_balanced_one_carries_even_traffic_to_all() -> None:
    fabric = built(HyperX(hb_domain_size=1), 10_648)
    spent = fabric.endpoint_count * (fabric.mean_hops - 2)
    assert spent / (2 * fabric.routing_adjacency_count) == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize(
    ("spec", "chips", "said"),
    [
        (HyperX(radix=8), 1000, "N ≤ p × switches = 32; use at most 32"),
        (HyperX(sizes=(8, 8), p=20, radix=32), 64, "ports, but 34 > 32"),
        (HyperX(sizes=(4, 4), p=2), 33, "= 32; use at most 32"),
        (HyperX(sizes=(4000, 4), p=1, radix=4096), 64, "pairs of switches would be joined"),
    ],
)
def test_beyond_its_limits_it_says_which_inequality_fails(spec: HyperX, chips: int, said: str) -> None:
    with pytest.raises(InfeasibleError, match=said):
        built(spec, chips)
