"""Graphs as files that other tools read back."""

from __future__ import annotations

import io

import networkx as nx
import pytest

from simcore.cli import main
from simcore.fabric import AnyTopology, Clos, OcsPod, RailOnly, Torus, full_graph, quotient_graph
from simcore.report.graph_file import dot, graphml
from tests.simcore.fabric.fabrics import built

SPECS = (Clos(radix=16), RailOnly(radix=16), Torus(), OcsPod())


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.kind)
def test_graphml_comes_back_as_the_same_graph(spec: AnyTopology) -> None:
    for graph in (quotient_graph(built(spec, 128)), full_graph(built(spec, 128))):
        again = nx.read_graphml(io.BytesIO(graphml(graph).encode()))
        assert again.number_of_nodes() == graph.number_of_nodes()
        links = [sum(data["link_count"] for *_, data in one.edges(data=True)) for one in (graph, again)]
        assert links[0] == links[1]
        assert {data["kind"] for _, data in again.nodes(data=True)} == {
            data["kind"] for _, data in graph.nodes(data=True)
        }


def test_dot_names_every_vertex_and_edge_and_quotes_what_it_is_given() -> None:
    graph = nx.Graph()
    graph.add_node('a"b', kind="chip")
    graph.add_edge('a"b', (0, 1), link_count=2)
    assert dot(graph).splitlines() == [
        "graph fabric {",
        '  "a\\"b" [kind="chip"];',
        '  "chip-0-1";',
        '  "a\\"b" -- "chip-0-1" [link_count="2"];',
        "}",
    ]


def test_the_command_writes_quotient_full_graph_and_one_node(tmp_path, capsys) -> None:
    scenario = tmp_path / "s.yaml"
    scenario.write_text(
        "{name: x, hardware: {chip_count: 128}, topology: {kind: clos, radix: 16}, workload: {kind: none}}"
    )
    assert main(["graph", str(scenario)]) == 0
    assert 'id="leaf"' in capsys.readouterr().out
    out = tmp_path / "full.dot"
    assert main(["graph", str(scenario), "--full", "--format", "dot", "-o", str(out)]) == 0
    assert out.read_text().count(" -- ") > 128
    assert main(["graph", str(scenario), "--node", "leaf.3"]) == 0
    assert 'id="leaf.3"' in capsys.readouterr().out
    assert main(["graph", str(scenario), "--node", "leaf.99"]) == 2
    assert (
        main(
            [
                "graph",
                str(scenario),
                "--full",
                "--set",
                "hardware.chip_count=32768",
                "--set",
                "topology.radix=128",
            ]
        )
        == 3
    )
