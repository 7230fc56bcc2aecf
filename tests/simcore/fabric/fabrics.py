"""Servers and fabrics that the tests of this folder share."""

from __future__ import annotations

from simcore.catalog.types import Server
from simcore.fabric import AnyTopology, Fabric, build_fabric

SERVER = Server(
    slug="eight",
    name="eight chips, eight NICs",
    chips_per_server=8,
    scaleup_domain_chip_count=8,
    scaleup_kind="nvswitch",
    nic_count=8,
    nic_bytes_per_s=50e9,
    host_memory_bytes=1e12,
    host_power_w=3000.0,
)


def built(spec: AnyTopology, chip_count: int, *, server: Server = SERVER) -> Fabric:
    return build_fabric(spec, chip_count=chip_count, server=server, scaleup_bytes_per_s=450e9)
