"""A fabric's graph as a file: GraphML for Gephi, yEd, networkx; DOT for Graphviz.

Vertices keep their kind, label and count, edges their number of parallel links and their medium.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

import networkx as nx


def graphml(graph: nx.Graph[Any]) -> str:
    return "\n".join(nx.generate_graphml(_plain(graph))) + "\n"


def dot(graph: nx.Graph[Any]) -> str:
    plain = _plain(graph)
    lines = [f"  {_quoted(vertex)}{_listed(data)};" for vertex, data in plain.nodes(data=True)]
    lines += [f"  {_quoted(a)} -- {_quoted(b)}{_listed(data)};" for a, b, data in plain.edges(data=True)]
    return "\n".join(["graph fabric {", *lines, "}"]) + "\n"


WRITERS: Final[Mapping[str, Callable[[nx.Graph[Any]], str]]] = {"graphml": graphml, "dot": dot}


def _plain(graph: nx.Graph[Any]) -> nx.Graph[Any]:
    """Names as text (places of a lattice are tuples), no data of the whole graph."""
    copy: nx.Graph[Any] = nx.Graph()
    copy.add_nodes_from((_name(vertex), data) for vertex, data in graph.nodes(data=True))
    copy.add_edges_from((_name(a), _name(b), data) for a, b, data in graph.edges(data=True))
    return copy


def _name(vertex: object) -> str:
    return "-".join(map(str, ("chip", *vertex))) if isinstance(vertex, tuple) else str(vertex)


def _listed(data: Mapping[str, Any]) -> str:
    pairs = ", ".join(f"{name}={_quoted(value)}" for name, value in data.items())
    return f" [{pairs}]" if pairs else ""


def _quoted(value: object) -> str:
    return json.dumps(str(value), ensure_ascii=False)
