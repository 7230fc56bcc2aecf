"""Blast radius and suspects, on every kind of fabric and against the full graph."""

from __future__ import annotations

import itertools
from typing import Any

import networkx as nx
import pytest
from pydantic import TypeAdapter

from simcore.catalog import default_catalog
from simcore.fabric import Fabric, Topology, build_fabric, full_graph
from simcore.reliability.blast_radius import blast_radius_term, exposure_rows, exposures, server_scale
from simcore.reliability.failures import rate_term
from simcore.reliability.suspects import (
    crossings,
    probe_count,
    suspect_rows,
    suspect_terms,
    suspects,
)
from simcore.why import evaluate

SCALE = server_scale(rate_term("llama-3"))
CATALOG = default_catalog()
FABRICS: dict[str, tuple[dict[str, Any], int]] = {
    "clos, one tier": ({"kind": "clos", "radix": 64}, 64),
    "clos, two tiers": ({"kind": "clos", "radix": 64}, 2048),
    "clos, three tiers": ({"kind": "clos", "radix": 32}, 8192),
    "rail optimized": ({"kind": "rail_optimized", "radix": 64}, 2048),
    "rail only": ({"kind": "rail_only", "radix": 128, "hb_domain_size": 256}, 32_768),
    "torus": ({"kind": "torus"}, 512),
    "pod": ({"kind": "ocs_pod"}, 4096),
    "dragonfly": ({"kind": "dragonfly", "radix": 16}, 1024),
    "slim fly": ({"kind": "slim_fly", "radix": 32}, 2048),
    "hyperx": ({"kind": "hyperx", "radix": 32}, 2048),
    "four planes": ({"kind": "clos", "radix": 64, "planes": 4}, 2048),
    "one server": ({"kind": "clos"}, 8),
}


def built(name: str) -> tuple[Fabric, int]:
    spec, chips = FABRICS[name]
    server = "tpu-v4-pod" if name in ("torus", "pod") else "dgx-h100"
    fabric = build_fabric(
        TypeAdapter(Topology).validate_python(spec), chip_count=chips, server=CATALOG.server(server)
    )
    return fabric, CATALOG.server(server).chips_per_server


@pytest.mark.parametrize("name", FABRICS)
def test_a_failure_takes_at_least_nothing_and_at_most_the_largest_class(name: str) -> None:
    fabric, per_server = built(name)
    found = exposures(fabric, chips_per_server=per_server, unit_chips=per_server, scale=SCALE)
    blast = blast_radius_term(found).value
    assert 0 < blast <= max(one.chip_count for one in found)
    rows = exposure_rows(found)
    assert sum(float(row["share_fraction"]) for row in rows) == pytest.approx(1)
    by_hand = sum(float(row["share_fraction"]) * int(row["chip_count"]) for row in rows)
    assert blast == pytest.approx(by_hand)


@pytest.mark.parametrize("name", FABRICS)
def test_visibility_is_one_over_the_suspects(name: str) -> None:
    fabric, per_server = built(name)
    found = suspects(fabric, SCALE, chips_per_server=per_server)
    terms = suspect_terms(found)
    expected = terms["reliability.expected_suspect_count"].value
    assert expected >= 1
    assert terms["analysis.fault_visibility"].value == pytest.approx(1 / expected)
    assert sum(float(row["blame_fraction"]) for row in suspect_rows(found)) == pytest.approx(1)
    assert 2 ** (probe_count(expected) - 1) <= expected <= 2 ** probe_count(expected)


def expected_suspects(name: str) -> float:
    fabric, per_server = built(name)
    found = suspects(fabric, SCALE, chips_per_server=per_server)
    return suspect_terms(found)["reliability.expected_suspect_count"].value


def test_more_paths_hide_a_fault_better() -> None:
    one, two, three = (
        expected_suspects(f"clos, {tiers}") for tiers in ("one tier", "two tiers", "three tiers")
    )
    assert one <= 2 < two < three
    assert expected_suspects("rail only") < 2
    assert expected_suspects("four planes") > two


def test_switches_that_fail_more_often_bring_their_many_peers_into_the_line_up() -> None:
    fabric, per_server = built("clos, three tiers")
    term = suspect_terms(suspects(fabric, SCALE, chips_per_server=per_server))[
        "reliability.expected_suspect_count"
    ]
    assert evaluate(term, {"switch_fit_count": 1e6}) > term.value


def test_a_higher_server_rate_makes_the_server_likelier_and_the_line_up_shorter() -> None:
    fabric, per_server = built("clos, three tiers")
    twice = server_scale(rate_term("llama-3", 7.58))
    counts = [
        suspect_terms(suspects(fabric, scale, chips_per_server=per_server))[
            "reliability.expected_suspect_count"
        ]
        for scale in (SCALE, twice)
    ]
    assert counts[1].value < counts[0].value


@pytest.mark.parametrize("radix", [4, 6, 8])
def test_the_suspects_of_a_full_fat_tree_are_those_on_its_shortest_paths(radix: int) -> None:
    fabric = build_fabric(
        TypeAdapter(Topology).validate_python(
            {"kind": "clos", "radix": radix, "tiers": 3, "hb_domain_size": 1}
        ),
        chip_count=radix**3 // 4,
        server=CATALOG.server("dgx-h100"),
    )
    graph = full_graph(fabric)
    chips = [vertex for vertex, data in graph.nodes(data=True) if data["kind"] == "chip"]
    for far in (chips[1], chips[radix // 2], chips[-1]):
        paths = list(nx.all_shortest_paths(graph, chips[0], far))
        vertices = set(itertools.chain.from_iterable(path[1:-1] for path in paths))
        edges = {frozenset(pair) for path in paths for pair in itertools.pairwise(path)}
        counted = list(crossings(fabric, len(paths[0]) - 1, chips_per_server=8))
        switches = sum(one.suspect_count for one in counted if one.component == "switch")
        links = sum(one.suspect_count for one in counted if one.component == "link")
        assert switches == len(vertices)
        assert links == len(edges)
        assert sum(one.crossed_count for one in counted if one.component == "link") == len(paths[0]) - 1


def test_dimension_order_crosses_a_chip_and_a_link_per_hop() -> None:
    fabric, per_server = built("torus")
    for hops in (1, 5, 12):
        counted = {one.name: one for one in crossings(fabric, hops, chips_per_server=per_server)}
        assert counted["link"].suspect_count == hops
        assert ("chip on the way" in counted) == (hops > 1)


def test_a_pair_inside_one_server_has_one_server_to_suspect() -> None:
    fabric, per_server = built("one server")
    assert next(crossings(fabric, 1, chips_per_server=per_server)).suspect_count == 1


def test_probes_halve_the_suspects() -> None:
    assert [probe_count(count) for count in (0.5, 1, 2, 3, 1024)] == [0, 0, 1, 2, 10]
