"""Scale-up domains: what the machines are built of, and what their size does to a rail-only fabric."""

from __future__ import annotations

import pytest

from simcore.catalog import default_catalog
from simcore.catalog.types import ScaleupDomain
from simcore.fabric import RailOnly
from simcore.fabric.domains import domain_rows
from simcore.fabric.scaleup import scaleup_rows, scaleup_terms
from tests.simcore.fabric.fabrics import SERVER, built

DOMAINS = default_catalog().scaleup_domains


@pytest.mark.parametrize("domain", DOMAINS.values(), ids=list(DOMAINS))
def test_switches_have_a_port_for_every_link_and_links_make_the_chips_bandwidth(
    domain: ScaleupDomain,
) -> None:
    catalog = default_catalog()
    if domain.switch_count:
        assert domain.chip_count * domain.links_per_chip <= domain.switch_count * domain.switch_port_count
    for slug in domain.servers:
        assert catalog.server(slug).scaleup_domain_chip_count == domain.chip_count
    chips = [chip for chip in catalog.chips.values() if chip.default_server in domain.servers]
    assert chips
    for chip in chips:
        assert chip.scaleup_bytes_per_s == domain.links_per_chip * domain.link_bytes_per_s


def test_each_server_stands_in_one_domain_at_most() -> None:
    servers = [slug for domain in DOMAINS.values() for slug in domain.servers]
    assert len(servers) == len(set(servers))


def test_a_domain_of_the_machines_own_size_is_billed() -> None:
    fabric = built(RailOnly(radix=128), 1024)
    terms = scaleup_terms(fabric, DOMAINS["hgx-h100-8"])
    assert {name: term.value for name, term in terms.items()} == {
        "fabric.scaleup_switch_count": 512,
        "fabric.scaleup_link_count": 18_432,
    }
    mesh = scaleup_terms(fabric, DOMAINS["dgx-v100"])
    assert {name: term.value for name, term in mesh.items()} == {"fabric.scaleup_link_count": 1024 * 6 / 2}


def test_a_domain_that_no_machine_has_is_said_to_be_unknown() -> None:
    fabric = built(RailOnly(radix=128, hb_domain_size=256), 32_768)
    assert scaleup_rows(fabric, DOMAINS["hgx-h100-8"]) == [
        {"domain_count": 128, "chip_count": 256, "is_known": False}
    ]


def test_the_guard_rail_in_numbers() -> None:
    spec = RailOnly(radix=128, hb_domain_size=256)
    rows = {row["hb_domain_size"]: row for row in domain_rows(spec, built(spec, 32_768), SERVER)}
    assert (rows[8]["one_tier_island_count"], rows[8]["one_tier_island_size"]) == (32, 1024)
    assert (rows[8]["joined_switch_count"], rows[8]["joined_transceiver_count"]) == (768, 131_072)
    assert (rows[72]["one_tier_island_count"], rows[72]["joined_switch_count"]) == (4, 864)
    assert (rows[256]["one_tier_island_count"], rows[256]["one_tier_switch_count"]) == (1, 256)
    assert [size for size, row in rows.items() if row["is_own"]] == [256]


def test_a_rail_that_three_tiers_do_not_hold_has_no_numbers() -> None:
    spec = RailOnly(radix=4, tiers=1)
    row = next(row for row in domain_rows(spec, built(spec, 1024), SERVER) if row["hb_domain_size"] == 8)
    assert row["joined_switch_count"] is None
    assert row["one_tier_island_count"] == 32
