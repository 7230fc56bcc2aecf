"""Every chip of the catalog has a fabric and a collective, alone and in thousands."""

from __future__ import annotations

import pytest
from pydantic import TypeAdapter

from simcore.catalog import default_catalog
from simcore.fabric import AnyTopology, Topology, build_fabric
from simcore.fabric.collectives import collective_s, interconnect

TOPOLOGY: TypeAdapter[AnyTopology] = TypeAdapter(Topology)


@pytest.mark.parametrize("slug", sorted(default_catalog().chips))
@pytest.mark.parametrize("count", [1, 8, 72, 4096])
def test_a_chip_in_its_own_server_and_topology(slug: str, count: int) -> None:
    catalog = default_catalog()
    chip = catalog.chip(slug)
    server = catalog.server(chip.default_server)
    document = dict(chip.default_topology or server.default_topology)
    fabric = build_fabric(
        TOPOLOGY.validate_python(document),
        chip_count=count,
        server=server,
        scaleup_bytes_per_s=chip.scaleup_bytes_per_s,
    )
    assert fabric.chip_count == count
    assert fabric.island_count == 1
    over = interconnect(chip, server, catalog.calibration_for(chip), fabric=fabric)
    seconds = collective_s("all_reduce", 1e6, count, over).value
    assert seconds > 0 or count == 1
