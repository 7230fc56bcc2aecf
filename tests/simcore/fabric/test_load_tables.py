"""Tables of loads count every link and name the hottest."""

from __future__ import annotations

import pytest

from simcore.fabric.load_tables import busiest_s, load_tables
from simcore.fabric.routing import link_loads
from tests.simcore.fabric.networks import SPECS, all_to_all, flows, network, random_flows


@pytest.mark.parametrize("name", SPECS)
def test_the_histogram_counts_every_link_once(name: str) -> None:
    found = network(name)
    loads = link_loads(found, random_flows(found.chip_count, 100, 1), routing="ecmp")
    rows = load_tables(found, loads, 1e-3)["link_loads"]
    assert sum(row["link_count"] for row in rows) == len(found)


def test_the_hottest_links_say_how_many_are_alike() -> None:
    """Each chip sends 120 MB to other servers in 10 ms: 24 % of its NIC."""
    found = network("two tiers")
    rows = load_tables(found, link_loads(found, all_to_all(128), routing="ecmp"), 1e-2)["hottest_links"]
    first = rows[0]
    assert first["load_fraction"] == pytest.approx(120e6 / 50e9 / 1e-2)
    assert {row["layer"]: row["alike_count"] for row in rows} == {
        "chip → leaf": 128,
        "leaf → chip": 128,
        "leaf → spine": 128,
        "spine → leaf": 128,
        "chip → scale-up": 128,
        "scale-up → chip": 128,
    }
    assert first["core_bytes"] == first["moved_bytes"]


def test_the_busiest_link_bounds_the_time() -> None:
    found = network("two tiers")
    assert busiest_s(found, link_loads(found, flows((0, 9, 5e9)), routing="hashed")) == pytest.approx(0.1)


def test_without_flows_every_link_is_idle() -> None:
    found = network("two tiers")
    tables = load_tables(found, link_loads(found, flows(), routing="ecmp"), 1.0)
    assert tables["hottest_links"] == []
    assert all(row["high_fraction"] == 0 for row in tables["link_loads"])
