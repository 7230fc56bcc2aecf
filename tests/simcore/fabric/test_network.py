"""The network has the links that the bill counts, and damage finds what it names."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from pydantic import ValidationError

from simcore.errors import InputError
from simcore.fabric import full_graph
from simcore.fabric.network import Network
from simcore.fabric.specs import Degraded
from tests.simcore.fabric.fabrics import built
from tests.simcore.fabric.networks import SPECS, network


def graph_of(found: Network) -> nx.MultiDiGraph[int]:
    graph: nx.MultiDiGraph[int] = nx.MultiDiGraph()
    graph.add_nodes_from(range(len(found.vertices)))
    graph.add_edges_from(zip(found.cables.tail.tolist(), found.cables.head.tolist(), strict=True))
    return graph


@pytest.mark.parametrize("name", SPECS)
def test_every_link_of_the_bill_is_there_in_both_directions(name: str) -> None:
    spec, chips = SPECS[name]
    fabric, found = built(spec, chips), network(name)
    fibres = sum(segment.link_count for segment in fabric.segments if segment.upper == "ocs")
    planes = fabric.planes[0].count if name == "two planes" else 1
    further = (planes - 1) * fabric.endpoint_count  # a NIC's links to all planes are one
    assert len(found) - found.first_nic == 2 * (
        fabric.link_count - further - fibres // 2
    )  # two fibres join two chips
    assert len(found.capacity_bytes_per_s) == len(found.layer_of)
    assert (found.capacity_bytes_per_s > 0).all()


@pytest.mark.parametrize(
    "name", ["two tiers, part-filled", "three tiers, oversubscribed", "rails alone", "torus"]
)
def test_the_wiring_is_that_of_the_full_graph(name: str) -> None:
    spec, chips = SPECS[name]
    drawn = full_graph(built(spec, chips))
    switches = drawn.subgraph(v for v, kind in drawn.nodes(data="kind") if kind != "chip" or name == "torus")
    degrees = sorted(d for _, d in switches.degree(weight="link_count"))
    assert degrees == sorted(d // 2 for _, d in graph_of(network(name)).degree())


def test_a_leaf_of_a_rail_fabric_holds_one_rail() -> None:
    found = network("rails of one Clos")
    for leaf in range(16):
        rails = np.flatnonzero(found.vertex_of == leaf) % 8
        assert len(set(rails.tolist())) == 1


def test_alike_vertices_are_one_group() -> None:
    symmetry = network("three tiers").symmetry
    assert sorted(symmetry.group_size.tolist()) == [1] * 32 + [4] * 8 + [16]


def test_a_failed_cable_tells_apart_what_it_touches_only() -> None:
    found = network("two tiers", Degraded(link="leaf 3 → spine 1"))
    assert sorted(found.symmetry.group_size.tolist()) == [1] * 17 + [7]


def test_links_have_names_that_people_use() -> None:
    found = network("two tiers")
    names = {found.link_name(link) for link in range(len(found))}
    assert {"chip 5 → scale-up", "scale-up → chip 5", "chip 9 → leaf 1", "leaf 1 → chip 9"} < names
    assert {"leaf 3 → spine 7", "spine 7 → leaf 3"} < names
    assert len(names) == len(found)
    assert network("torus").link_name(0) == "chip (0, 0, 0) → chip (1, 0, 0)"


def test_a_degraded_link_keeps_its_share_both_ways() -> None:
    found, whole = (
        network("two tiers", Degraded(link="spine 1 -> leaf 3", capacity_fraction=0.5)),
        network("two tiers"),
    )
    changed = np.flatnonzero(found.capacity_bytes_per_s != whole.capacity_bytes_per_s)
    assert {found.link_name(link) for link in changed} == {"leaf 3 → spine 1", "spine 1 → leaf 3"}
    assert found.capacity_bytes_per_s[changed] == pytest.approx(0.5 * whole.capacity_bytes_per_s[changed])


def test_a_failed_switch_takes_its_cables_and_the_nics_below_it() -> None:
    found = network("two tiers", Degraded(switch="leaf 2"))
    assert 2 not in found.cables.tail
    assert 2 not in found.cables.head
    dead = np.flatnonzero(found.capacity_bytes_per_s == 0)
    assert {found.link_name(link) for link in dead} == {
        name for chip in range(16, 24) for name in (f"chip {chip} → leaf 2", f"leaf 2 → chip {chip}")
    }


@pytest.mark.parametrize(
    ("entry", "path"),
    [
        (Degraded(switch="spine 99"), "topology.degraded.0.switch"),
        (Degraded(link="leaf 0 → leaf 1"), "topology.degraded.0.link"),
        (Degraded(link="chip 0 → leaf 5"), "topology.degraded.0.link"),
    ],
)
def test_a_part_that_does_not_exist_is_refused_with_those_that_do(entry: Degraded, path: str) -> None:
    with pytest.raises(
        InputError, match=r"leaf 0 to leaf 15, spine 0 to spine 7.*leaf 0 → spine 0"
    ) as caught:
        network("two tiers", entry)
    assert caught.value.message.path == path


def test_a_degraded_entry_names_one_thing() -> None:
    with pytest.raises(ValidationError, match="name either a link"):
        Degraded()
