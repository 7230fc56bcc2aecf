"""How a cluster is wired: its fabric alone, and tables beside the fabric's counts (operations, scale-up domains)."""

from __future__ import annotations

from typing import Any

from simcore.catalog import Catalog, default_catalog
from simcore.fabric import Fabric, build_fabric
from simcore.fabric.domains import domain_rows
from simcore.fabric.operations import operation_rows
from simcore.fabric.rail import RailOnly
from simcore.fabric.scaleup import scaleup_rows
from simcore.plan.resolve import Hardware, resolve_hardware
from simcore.scenario import Scenario


def fabric_of(scenario: Scenario, catalog: Catalog | None = None) -> Fabric:
    """The fabric of a scenario, without its workload and its money."""
    return built(resolve_hardware(scenario, catalog or default_catalog()))


def built(hardware: Hardware) -> Fabric:
    """One fabric for all chips, shaped by the main server."""
    return build_fabric(
        hardware.topology,
        chip_count=hardware.chip_count,
        server=hardware.server,
        scaleup_bytes_per_s=hardware.chip.scaleup_bytes_per_s,
    )


def wiring_tables(hardware: Hardware, fabric: Fabric) -> dict[str, Any]:
    """Tables of the Fabric page that need no price and no workload."""
    spec = hardware.topology
    return {
        "operations": operation_rows(fabric),
        "scaleup": scaleup_rows(fabric, hardware.scaleup_domain),
        "scaleup_domains": domain_rows(spec, fabric, hardware.server) if isinstance(spec, RailOnly) else [],
    }
