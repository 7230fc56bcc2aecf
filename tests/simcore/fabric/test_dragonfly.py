"""Dragonfly: published counts, limits, and links that are spread evenly."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.errors import InfeasibleError
from simcore.fabric import Dragonfly
from simcore.fabric.dragonfly import algebraic_connectivity, wiring
from tests.simcore.fabric.fabrics import built


def test_the_textbook_example() -> None:
    fabric = built(Dragonfly(radix=7), 72)
    assert dict(fabric.chosen) == {"p": 2, "a": 4, "h": 2, "g": 9}
    assert (fabric.switch_count, fabric.tiers[0].spare_port_count) == (36, 0)
    assert fabric.diameter_hops == 5
    assert [(s.name, s.link_count) for s in fabric.segments] == [("", 72), ("local", 54), ("global", 36)]


@settings(deadline=None, max_examples=80)
@given(a=st.integers(1, 9), h=st.integers(1, 6), g=st.integers(1, 40))
def test_global_links_fill_the_ports_and_join_every_pair_of_groups(a: int, h: int, g: int) -> None:
    g = min(g, a * h + 1)
    edges, links = wiring(a, h, g)
    groups = edges // a
    across = groups[:, 0] != groups[:, 1]
    ports = np.zeros(a * g, int)
    np.add.at(ports, edges[across].ravel(), np.repeat(links[across], 2))
    spare = 1 if g % 2 and a * h % 2 else 0
    assert ports.max(initial=0) <= h
    if g > 1:
        assert (ports.reshape(g, a).sum(axis=1) == a * h - spare).all()
        trunks = np.zeros((g, g), int)
        np.add.at(trunks, tuple(groups[across].T), links[across])
        pairs = (trunks + trunks.T)[~np.eye(g, dtype=bool)]
        assert pairs.min() == (a * h - spare) // (g - 1)
        assert pairs.max() - pairs.min() <= 1


def test_links_of_one_pair_of_groups_leave_and_reach_different_switches() -> None:
    edges, links = wiring(32, 16, 2)
    across = edges[:, 0] // 32 != edges[:, 1] // 32
    assert links[across].max() == 1


@pytest.mark.parametrize(
    ("spec", "chips", "said"),
    [
        (Dragonfly(radix=7), 73, "= 72; use at most 72 endpoints"),
        (Dragonfly(radix=2), 64, "p . a − 1 . h ≤ radix ports, but 3 > 2"),
        (Dragonfly(radix=16, p=8, a=8, h=2), 64, "but 17 > 16"),
        (Dragonfly(radix=7, g=10), 72, "g ≤ a × h . 1 = 9"),
        (Dragonfly(radix=7, g=8), 72, "N ≤ p × a × g = 64"),
    ],
)
def test_beyond_its_limits_it_says_which_inequality_fails(spec: Dragonfly, chips: int, said: str) -> None:
    with pytest.raises(InfeasibleError, match=said.replace("(", r"\(")):
        built(spec, chips)


def test_a_small_cluster_is_one_full_mesh_that_carries_even_traffic_to_all() -> None:
    fabric = built(Dragonfly(hb_domain_size=1), 64)
    assert (fabric.chosen["g"], fabric.switch_count) == (1, 8)
    spent = fabric.endpoint_count * (fabric.mean_hops - 2)
    assert spent / (2 * fabric.routing_adjacency_count) < 1.02


@pytest.mark.parametrize("size", [(4, 2, 9), (4, 2, 8), (3, 3, 4), (5, 1, 2), (1, 4, 5), (6, 2, 1)])
def test_the_algebraic_connectivity_is_an_eigenvalue_of_the_whole_graph(size: tuple[int, int, int]) -> None:
    edges, links = wiring(*size)
    joined = np.zeros((size[0] * size[2],) * 2)
    joined[tuple(edges.T)] = links
    joined += joined.T
    laplacian = np.diag(joined.sum(axis=0)) - joined
    assert algebraic_connectivity(*size) == pytest.approx(np.linalg.eigvalsh(laplacian)[1])
