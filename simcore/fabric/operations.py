"""What a fabric asks of the people who run it: hours to deploy it, to watch it for a year, to upgrade it once.

`hours = Σ devices × hours of one device`, over switches, optical modules, cables, NIC ports, optical circuit
switches and routing sessions (single-hop eBGP, one per link between switches: RFC 7938). The hours of one
device are assumptions: nobody publishes them, and each says what it covers. Hours are of one person, without
travel; repairs are not counted here (they follow from failure rates).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from simcore.fabric.base import Fabric, sum_of
from simcore.fabric.media import link_layers
from simcore.why import Term, constant, leaf

Device = Literal["switch", "optic", "cable", "nic_port", "ocs", "adjacency"]
Work = Literal["deploy_hours", "monitor_hours_per_year", "upgrade_hours"]
WORKS: Final[tuple[Work, ...]] = ("deploy_hours", "monitor_hours_per_year", "upgrade_hours")


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """Hours of one person for one device."""

    deploy_hours: float
    monitor_hours_per_year: float
    upgrade_hours: float
    source: str  # what the hours are for: the source that Why prints


EFFORTS: Final[Mapping[Device, Effort]] = {
    "switch": Effort(
        deploy_hours=2.0,
        monitor_hours_per_year=4.0,
        upgrade_hours=0.5,
        source="a switch: rack, power, configure, test; its alarms; one software upgrade with its check",
    ),
    "optic": Effort(
        deploy_hours=0.05,
        monitor_hours_per_year=0.02,
        upgrade_hours=0.01,
        source="an optical module: clean, insert, read levels; drifting levels; firmware",
    ),
    "cable": Effort(
        deploy_hours=0.2,
        monitor_hours_per_year=0.01,
        upgrade_hours=0.0,
        source="a cable: pull, label, test; error counters; nothing to upgrade",
    ),
    "nic_port": Effort(
        deploy_hours=0.05,
        monitor_hours_per_year=0.02,
        upgrade_hours=0.05,
        source="a NIC port: address and check; counters; driver and firmware",
    ),
    "ocs": Effort(
        deploy_hours=8.0,
        monitor_hours_per_year=6.0,
        upgrade_hours=1.0,
        source="an optical circuit switch: rack and map its fibres; mirror health; control software",
    ),
    "adjacency": Effort(
        deploy_hours=0.01,
        monitor_hours_per_year=0.01,
        upgrade_hours=0.002,
        source="a routing session: generated configuration and its check; flaps; drain and return",
    ),
}
# The fabric's own counts, by device; the endpoints' ports are counted beside them.
_COUNTED: Final[Mapping[Device, str]] = {
    "switch": "fabric.switch_count",
    "optic": "fabric.transceiver_count",
    "cable": "fabric.link_count",
    "ocs": "fabric.ocs_count",
    "adjacency": "fabric.routing_adjacency_count",
}


def operation_terms(fabric: Fabric) -> dict[str, Term]:
    """The three sums as metrics, each over the devices that the fabric has."""
    counts = {
        device: term for device, name in _COUNTED.items() if (term := fabric.terms.get(name)) is not None
    }
    if fabric.tiers:
        ports = leaf(
            fabric.endpoint_count, "endpoint_count", kind="derived", source=f"{fabric.kind}, counted"
        )
        counts["nic_port"] = ports
    return {f"fabric.{work}": _sum(counts, work).named(work) for work in WORKS}


def _sum(counts: Mapping[Device, Term], work: Work) -> Term:
    parts = [
        count * _rate(device, work)
        for device, count in counts.items()
        if count.value and getattr(EFFORTS[device], work)
    ]
    return sum_of(parts) if parts else constant(0, "nothing to run")


def _rate(device: Device, work: Work) -> Term:
    effort = EFFORTS[device]
    return leaf(getattr(effort, work), f"{device}_{work}", kind="assumption", source=effort.source)


def operation_rows(fabric: Fabric) -> list[dict[str, Any]]:
    """The result's `operations` table: devices by tier, their number and hours; its columns sum to the metrics."""
    switches = {tier.name: tier.switch_count for tier in fabric.tiers}
    devices: list[tuple[str, Device, int]] = []
    if fabric.tiers:
        devices.append(("chip", "nic_port", fabric.endpoint_count))
    for layer in link_layers(fabric):
        tier = layer.tier
        devices += [(tier, "cable", layer.link_count), (tier, "optic", layer.module_count)]
        if layer.lower in switches and layer.upper in switches:
            devices.append((tier, "adjacency", layer.link_count))
    devices += [(name, "switch", count) for name, count in switches.items()]
    devices.append(("ocs", "ocs", fabric.ocs_count))
    counts: dict[tuple[str, Device], int] = {}
    for tier, device, count in devices:  # a tier may have several kinds of link below it
        counts[tier, device] = counts.get((tier, device), 0) + count
    return [_row(tier, device, count) for (tier, device), count in counts.items() if count]


def _row(tier: str, device: Device, count: int) -> dict[str, Any]:
    hours: dict[str, float] = {work: count * getattr(EFFORTS[device], work) for work in WORKS}
    return {"tier": tier, "device": device, "count": count, **hours}
