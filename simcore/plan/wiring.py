"""Tables about how a cluster is wired, beside its counts: operations, scale-up domains and what their size does."""

from __future__ import annotations

from typing import Any

from simcore.fabric import Fabric
from simcore.fabric.domains import domain_rows
from simcore.fabric.operations import operation_rows
from simcore.fabric.rail import RailOnly
from simcore.fabric.scaleup import scaleup_rows
from simcore.plan.resolve import Hardware


def wiring_tables(hardware: Hardware, fabric: Fabric) -> dict[str, Any]:
    """Tables of the Fabric page that need no price and no workload."""
    spec = hardware.topology
    return {
        "operations": operation_rows(fabric),
        "scaleup": scaleup_rows(fabric, hardware.scaleup_domain),
        "scaleup_domains": domain_rows(spec, fabric, hardware.server) if isinstance(spec, RailOnly) else [],
    }
