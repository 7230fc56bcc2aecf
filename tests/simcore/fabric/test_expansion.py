"""The graph expanded on demand: everything can be reached, nothing is counted twice, no view is too large."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.catalog import default_catalog
from simcore.errors import InfeasibleError, InputError
from simcore.fabric import Clos, Dragonfly, Fabric, OcsPod, RailOnly, RailOptimized, Torus
from simcore.fabric.expansion import VERTEX_LIMIT, expanded
from simcore.fabric.layers import layered
from tests.simcore.fabric.fabrics import built

SPECS = {
    "clos": Clos(radix=16),
    "oversubscribed": Clos(radix=16, oversubscription_ratio=3.0),
    "optimized": RailOptimized(radix=16),
    "rails": RailOnly(radix=16),
    "islands": RailOnly(radix=16, tiers=1),
    "torus": Torus(),
    "pod": OcsPod(),
    "dragonfly": Dragonfly(radix=16),
}
BIG = {
    "clos": built(Clos(radix=128, hb_domain_size=256), 32_768),
    "rails": built(RailOnly(radix=128, hb_domain_size=256), 32_768),
    "clos per rail": built(RailOnly(radix=128), 32_768),
    "large radix": built(Clos(radix=1024), 65_536),
    "torus": built(Torus(), 4096),
    "pod": built(OcsPod(), 4096, server=default_catalog().server("tpu-v4-pod")),
}


def fabric_of(name: str, count: int) -> Fabric | None:
    try:
        return built(SPECS[name], count)
    except InfeasibleError:
        return None


@given(name=st.sampled_from(sorted(SPECS)), count=st.integers(2, 1000))
@settings(max_examples=80, deadline=None)
def test_layers_have_the_counted_members_and_cables(name: str, count: int) -> None:
    fabric = fabric_of(name, count)
    if fabric is None:
        return
    found = layered(fabric)
    switches = {
        layer: found.counts[layer] for layer in found.counts if layer not in ("server", "chip", "ocs")
    }
    assert switches == {tier.name: tier.switch_count for tier in fabric.tiers}
    cables = sum(len(one.tail) for one in found.joined if one.lower != "server")
    assert cables == fabric.link_count
    for one in found.joined:
        for layer, ends in ((one.lower, one.tail), (one.upper, one.head)):
            assert not len(ends) or 0 <= ends.min() <= ends.max() < found.counts[layer]


@pytest.mark.parametrize("name", sorted(BIG))
def test_every_layer_opens_down_to_one_device_in_views_of_at_most_200(name: str) -> None:
    fabric = BIG[name]
    for layer, count in layered(fabric).counts.items():
        node, way = layer, []
        for _ in range(8):
            graph = expanded(fabric, node)
            assert graph.number_of_nodes() <= VERTEX_LIMIT
            opened = [(one, data) for one, data in graph.nodes(data=True) if data["opened"]]
            assert graph.graph["trail"] == way
            if len(opened) == 1:
                break
            way.append(node)
            node = opened[-1][0]
        assert node == f"{layer}.{count - 1}" or count == 1


@pytest.mark.parametrize("name", sorted(BIG))
def test_the_parts_of_a_layer_are_all_of_it_and_keep_all_its_cables(name: str) -> None:
    fabric = BIG[name]
    found = layered(fabric)
    for layer, count in found.counts.items():
        graph = expanded(fabric, layer)
        parts = [data for _, data in graph.nodes(data=True) if data["opened"]]
        assert sum(data["count"] for data in parts) == count
        for one in found.joined:
            if layer not in (one.lower, one.upper) or one.lower == one.upper:
                continue
            other = one.upper if one.lower == layer else one.lower
            drawn = sum(
                data["link_count"]
                for a, b, data in graph.edges(data=True)
                if {graph.nodes[a]["kind"], graph.nodes[b]["kind"]} == {layer, other}
            )
            assert drawn == len(one.tail)


@given(
    name=st.sampled_from(sorted(SPECS)), count=st.integers(16, 600), place=st.floats(0, 1, exclude_max=True)
)
@settings(max_examples=60, deadline=None)
def test_one_switch_shows_its_ports_and_no_more_than_it_has(name: str, count: int, place: float) -> None:
    fabric = fabric_of(name, count)
    if fabric is None or not fabric.tiers:
        return
    tier = fabric.tiers[0]
    node = f"{tier.name}.{int(place * tier.switch_count)}"
    graph = expanded(fabric, node)
    ports = sum(data["link_count"] for _, _, data in graph.edges(node, data=True))
    assert 0 < ports <= tier.radix
    assert all(data["count"] == 1 for _, data in graph.nodes(data=True))


def test_a_pod_shows_every_leaf_joined_to_every_spine() -> None:
    graph = expanded(BIG["clos"], "leaf.64-127")
    leaves = [one for one, data in graph.nodes(data=True) if data["kind"] == "leaf"]
    spines = [one for one, data in graph.nodes(data=True) if data["kind"] == "spine"]
    assert (len(leaves), len(spines)) == (64, 64)
    assert all(graph.has_edge(leaf, spine) for leaf in leaves for spine in spines)


def test_a_rail_has_the_same_chip_of_every_domain() -> None:
    graph = expanded(BIG["rails"], "rail.17")
    chips = {data["first"] for _, data in graph.nodes(data=True) if data["kind"] == "chip"}
    assert chips == {17 + 256 * domain for domain in range(128)}


def test_a_chip_of_a_pod_has_its_neighbours_and_the_optical_switches_of_its_faces() -> None:
    graph = expanded(BIG["pod"], "chip.64")  # a corner of its cube: three faces, three neighbours
    kinds = sorted(data["kind"] for one, data in graph.nodes(data=True) if one != "chip.64")
    assert kinds == ["chip"] * 3 + ["ocs"] * 3


@pytest.mark.parametrize(
    "node", ["", "leaf.512", "leaf.9-3", "leaf.0-5.0", "core", "leaf.-1", "leaf~0~3", "x" * 5000]
)
def test_what_is_not_there_is_refused_with_what_is(node: str) -> None:
    with pytest.raises(InputError, match="leaf 0 to 3"):
        expanded(built(Clos(radix=16), 32), node)


def test_more_chips_than_a_reader_waits_for_are_refused() -> None:
    with pytest.raises(InfeasibleError, match="not laid out"):
        expanded(built(Clos(radix=256), 400_000), "leaf")
