"""Slim Fly: the graphs of all small prime powers, and counting where none is known."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from pydantic import ValidationError

from simcore.errors import InfeasibleError
from simcore.fabric import SlimFly, full_graph
from simcore.fabric.galois import field, prime_power
from simcore.fabric.slim_fly import wiring
from simcore.fabric.switch_graph import distances, shortest_paths
from tests.simcore.fabric.fabrics import built

PRIME_POWERS = [3, 4, 5, 7, 8, 9, 11, 13, 16, 17, 25, 27]


def test_the_smallest_of_degree_seven_is_the_graph_of_hoffman_and_singleton() -> None:
    edges, _ = wiring(5)
    assert nx.is_isomorphic(nx.Graph(edges.tolist()), nx.hoffman_singleton_graph())


@pytest.mark.parametrize("q", PRIME_POWERS)
def test_every_switch_has_the_degree_and_reaches_all_in_two_hops(q: int) -> None:
    edges, links = wiring(q)
    count = 2 * q * q
    degree = (3 * q - {3: -1, 0: 0, 1: 1}[q % 4]) // 2
    assert (np.bincount(edges.ravel()) == degree).all()
    assert (links == 1).all()
    assert distances(edges, count, np.arange(min(count, 200))).max() == 2
    hops, paths = shortest_paths(edges, links, count, 0)
    assert paths[hops == 2].min() == 1


@pytest.mark.parametrize("q", [3, 4, 5, 7, 8, 9])
def test_the_algebraic_connectivity_is_q(q: int) -> None:
    joined = nx.to_numpy_array(nx.Graph(wiring(q)[0].tolist()))
    laplacian = np.diag(joined.sum(axis=0)) - joined
    assert np.linalg.eigvalsh(laplacian)[1] == pytest.approx(q)


@pytest.mark.parametrize("q", PRIME_POWERS)
def test_fields_are_fields(q: int) -> None:
    numbers = field(q)
    assert sorted(numbers.powers) == list(range(1, q))
    for table, elements in ((numbers.sums, range(q)), (numbers.products[1:, 1:], range(1, q))):
        assert (table == table.T).all()
        assert all(sorted(row) == list(elements) for row in table.tolist())
    x, y, z = (part.ravel() for part in np.meshgrid(*[np.arange(q)] * 3))
    left = numbers.products[x, numbers.sums[y, z]]
    assert (left == numbers.sums[numbers.products[x, y], numbers.products[x, z]]).all()


def test_prime_powers_are_told_from_other_numbers() -> None:
    assert [q for q in range(2, 33) if prime_power(q)] == [
        2, 3, 4, 5, 7, 8, 9, 11, 13, 16, 17, 19, 23, 25, 27, 29, 31, 32,
    ]  # fmt: skip


def test_where_no_graph_is_known_it_counts_and_says_so() -> None:
    fabric = built(SlimFly(q=28), 32_928)
    assert (fabric.switch_count, fabric.routing_adjacency_count) == (1568, 32_928)
    assert "27 and 29" in fabric.notes[0].text
    assert fabric.diameter_hops == 4
    with pytest.raises(InfeasibleError, match="counted by formula"):
        full_graph(built(SlimFly(q=12, radix=32), 64))


def test_beyond_its_limits_it_says_which_inequality_fails() -> None:
    with pytest.raises(InfeasibleError, match="2q² × p = 30,618; use at most 30,618"):
        built(SlimFly(), 32_768)
    with pytest.raises(InfeasibleError, match="ports, but 8 > 6"):
        built(SlimFly(radix=6), 64)
    with pytest.raises(ValidationError, match="such as 5 or 7"):
        SlimFly(q=6)
