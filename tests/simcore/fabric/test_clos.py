"""Folded Clos: counts, tiers, oversubscription, refusals."""

from __future__ import annotations

import itertools
import math

import networkx as nx
import pytest
from pydantic import ValidationError

from simcore.errors import InfeasibleError, InputError
from simcore.fabric import Clos, full_graph
from tests.simcore.fabric.fabrics import built


@pytest.mark.parametrize(
    ("count", "tiers", "switches"), [(64, 1, 1), (65, 2, 5), (2048, 2, 96), (65536, 3, 5120)]
)
def test_auto_takes_the_fewest_tiers(count: int, tiers: int, switches: int) -> None:
    fabric = built(Clos(radix=64), count)
    assert (len(fabric.tiers), fabric.switch_count) == (tiers, switches)


def test_three_tiers_of_128_ports_at_32768_chips() -> None:
    fabric = built(Clos(radix=128), 32_768)
    assert [tier.switch_count for tier in fabric.tiers] == [512, 512, 256]
    assert fabric.link_count == 98_304
    assert fabric.transceiver_count == 196_608
    assert fabric.diameter_hops == 6


def test_tiers_may_be_more_than_needed() -> None:
    assert len(built(Clos(radix=64, tiers=3), 1024).tiers) == 3


def test_oversubscription_takes_uplinks_away() -> None:
    fabric = built(Clos(radix=64, oversubscription_ratio=3.0), 1536)
    leaf, spine = fabric.tiers
    assert (leaf.switch_count, leaf.down_port_count, leaf.up_port_count) == (32, 1536, 512)
    assert spine.switch_count == 8


def test_oversubscription_may_differ_by_tier() -> None:
    fabric = built(Clos(radix=64, tiers=3, oversubscription_ratio=(1.0, 3.0)), 4096)
    leaf, spine, core = fabric.tiers
    assert leaf.up_port_count == 4096
    assert spine.up_port_count < 4096 / 2
    assert core.down_port_count == spine.up_port_count


def test_bisection_is_half_the_scarcest_layer() -> None:
    assert built(Clos(radix=64), 2048).bisection_bytes_per_s == 1024 * 50e9
    narrow = built(Clos(radix=64, oversubscription_ratio=3.0), 1536)
    assert narrow.bisection_bytes_per_s == 256 * 50e9


def test_one_server_needs_no_network() -> None:
    fabric = built(Clos(radix=64), 8)
    assert fabric.switch_count == fabric.link_count == fabric.transceiver_count == 0
    assert fabric.notes[0].code == "fabric.none_needed"


def test_an_odd_radix_is_refused_with_the_next_even_one() -> None:
    with pytest.raises(
        ValidationError,
        match="127 is odd; a folded Clos splits each switch's ports evenly, so use an even radix such as 128",
    ):
        Clos(radix=127)


def test_too_many_endpoints_are_infeasible_with_the_inequality() -> None:
    with pytest.raises(InfeasibleError, match="N ≤ radix × down_ports = 2,048; use at most 2,048"):
        built(Clos(radix=64, tiers=2), 2049)
    with pytest.raises(InfeasibleError, match="65,536"):
        built(Clos(radix=64), 65_537)


def test_an_oversubscription_without_uplinks_is_refused() -> None:
    with pytest.raises(InputError, match="leaves no uplink"):
        built(Clos(radix=4, oversubscription_ratio=8.0), 12)
    with pytest.raises(ValidationError, match="allowed are 1 to 64"):
        Clos(oversubscription_ratio=0.5)


@pytest.mark.parametrize("size", [0, -8, "abc", 1.5])
def test_a_wrong_domain_size_gets_one_message(size: object) -> None:
    with pytest.raises(ValidationError, match="allowed are auto and 1 to 1,048,576") as caught:
        Clos.model_validate({"hb_domain_size": size})
    assert caught.value.error_count() == 1


def test_planes_split_each_nic_over_equal_networks() -> None:
    """Eight planes of switches with eight times the ports, each of an eighth of the rate: the same metal."""
    one, eight = built(Clos(radix=64, tiers=2), 2048), built(Clos(radix=512, planes=8), 16_384)
    assert eight.switch_count == 8 * one.switch_count
    assert eight.link_bytes_per_s == one.link_bytes_per_s / 8
    assert eight.bisection_bytes_per_s == 8 * one.bisection_bytes_per_s
    assert [domain.chip_count for domain in eight.failure_domains] == [8, 0, 0, 0]
    assert "1/8" in eight.notes[0].text


@pytest.mark.parametrize("planes", [1, 3])
@pytest.mark.parametrize(("radix", "count"), [(8, 32), (8, 128), (12, 72), (8, 16)])
def test_paths_between_far_endpoints_are_those_of_the_graph(radix: int, count: int, planes: int) -> None:
    fabric = built(Clos(radix=radix, hb_domain_size=1, planes=planes), count)
    graph = full_graph(fabric)
    first, last = "chip-0-0", f"chip-0-{fabric.endpoint_count - 1}"
    paths = sum(
        math.prod(graph[a][b]["link_count"] for a, b in itertools.pairwise(path))
        for path in nx.all_shortest_paths(graph, first, last)
    )
    assert paths == fabric.terms["fabric.path_count"].value
    between = graph.subgraph(vertex for vertex in graph if graph.nodes[vertex]["kind"] != "chip")
    leaves = [(edge[1], other[1]) for edge, other in zip(graph.edges(first), graph.edges(last), strict=True)]
    disjoint = sum(
        nx.maximum_flow_value(between, a, b, capacity="link_count") if a != b else 1 for a, b in leaves
    )
    assert disjoint == fabric.terms["fabric.disjoint_path_count"].value
