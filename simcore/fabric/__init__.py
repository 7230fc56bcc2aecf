"""Fabrics: which switches, links and optics join the chips, how far apart they are, what collectives cost.

`Topology` is the registry: one frozen spec per kind, told apart by `kind`. A new topology is one module
with its spec and builder, and one line in each of the two tables below.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from pydantic import Field

from simcore.catalog.types import Server
from simcore.fabric import clos, dragonfly, hyperx, ocs_pod, rail, slim_fly, torus
from simcore.fabric.base import Fabric, Site
from simcore.fabric.clos import Clos
from simcore.fabric.dragonfly import Dragonfly
from simcore.fabric.graph import full_graph, quotient_graph
from simcore.fabric.hyperx import HyperX
from simcore.fabric.network import network_of
from simcore.fabric.ocs_pod import OcsPod
from simcore.fabric.rail import RailOnly, RailOptimized
from simcore.fabric.routing import routing_of
from simcore.fabric.slim_fly import SlimFly
from simcore.fabric.specs import NetworkSpec, SwitchedSpec, TransceiverConvention
from simcore.fabric.torus import Torus

AnyTopology = Clos | RailOptimized | RailOnly | Torus | OcsPod | Dragonfly | SlimFly | HyperX
Topology = Annotated[AnyTopology, Field(discriminator="kind")]

__all__ = [
    "AnyTopology",
    "Clos",
    "Dragonfly",
    "Fabric",
    "HyperX",
    "NetworkSpec",
    "OcsPod",
    "RailOnly",
    "RailOptimized",
    "Site",
    "SlimFly",
    "SwitchedSpec",
    "Topology",
    "Torus",
    "TransceiverConvention",
    "build_fabric",
    "full_graph",
    "network_of",
    "quotient_graph",
]


def build_fabric(
    spec: AnyTopology, *, chip_count: int, server: Server, scaleup_bytes_per_s: float | None = None
) -> Fabric:
    """The fabric of `chip_count` chips in such servers; refuses what the topology cannot hold."""
    domain = spec.hb_domain_size if isinstance(spec, NetworkSpec) else "auto"
    site = Site.of(
        server, chip_count=chip_count, hb_domain_size=domain, scaleup_bytes_per_s=scaleup_bytes_per_s
    )
    found = replace(
        _built(spec, site),
        chips_per_nic=site.chips_per_nic,
        scaleup_bytes_per_s=scaleup_bytes_per_s or 0.0,
        degraded=spec.degraded,
        routing=spec.routing,
        class_sharing=spec.class_sharing,
        class_weight_ratio=spec.class_weight_ratio,
    )
    if spec.degraded or spec.routing == "dimension_order":
        routing_of(found, network_of(found))  # refuses names and dimensions that this fabric does not have
    return found


def _built(spec: AnyTopology, site: Site) -> Fabric:
    match spec:
        case Clos():
            return clos.build(spec, site)
        case RailOptimized():
            return rail.build_optimized(spec, site)
        case RailOnly():
            return rail.build_rail_only(spec, site)
        case Torus():
            return torus.build(spec, site)
        case OcsPod():
            return ocs_pod.build(spec, site)
        case Dragonfly():
            return dragonfly.build(spec, site)
        case SlimFly():
            return slim_fly.build(spec, site)
        case HyperX():
            return hyperx.build(spec, site)
