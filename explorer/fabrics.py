"""The fabric of a stored document, built again to be looked into or written as a graph.

A fabric depends on chips, servers and topology alone: the document's calibration may be its owner's own and its
trace private, so neither is read.
"""

from collections.abc import Mapping
from typing import Any

from simcore.fabric import Fabric, full_graph, quotient_graph
from simcore.plan.wiring import fabric_of
from simcore.report.graph_file import WRITERS
from simcore.scenario import Scenario


def fabric_in(document: Mapping[str, Any]) -> Fabric:
    """Raises what a plan of the document would, where it has no fabric."""
    hardware = {**document.get("hardware", {}), "calibration": "auto"}
    kept = {name: document[name] for name in ("schema_version", "topology") if name in document}
    return fabric_of(
        Scenario.parse({"name": "fabric", "workload": {"kind": "none"}, **kept, "hardware": hardware})
    )


def graph_text(document: Mapping[str, Any], suffix: str, *, full: bool) -> str:
    """The graph in a format of WRITERS: all vertices where they are few enough, else the layers."""
    fabric = fabric_in(document)
    return WRITERS[suffix](full_graph(fabric) if full else quotient_graph(fabric))
