"""Fabrics by rail: one tier, islands, a Clos per rail, packing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simcore.errors import InfeasibleError
from simcore.fabric import Clos, RailOnly, RailOptimized, build_fabric
from tests.simcore.fabric.fabrics import SERVER, built


def test_rail_optimised_buys_what_a_clos_buys_and_is_nearer() -> None:
    clos, rails = built(Clos(radix=64), 4096), built(RailOptimized(radix=64), 4096)
    assert [tier.switch_count for tier in rails.tiers] == [tier.switch_count for tier in clos.tiers]
    assert rails.transceivers == clos.transceivers
    assert rails.mean_hops < clos.mean_hops


def test_one_tier_with_a_small_domain_falls_into_islands() -> None:
    fabric = built(RailOnly(radix=128, tiers=1, hb_domain_size=8), 32_768)
    assert (fabric.switch_count, fabric.transceiver_count) == (256, 65_536)
    assert (fabric.island_count, fabric.island_size) == (32, 1024)
    assert fabric.bisection_bytes_per_s == 0
    assert fabric.reachable_fraction == pytest.approx(1023 / 32_767)
    (warning,) = fabric.warnings
    assert warning.code == "fabric.islands"
    assert "N ≤ hb_domain_size × radix" in warning.text
    assert "hb_domain_size: 256 makes one island" in warning.text


def test_the_nearest_domain_named_in_the_warning_holds() -> None:
    spec = RailOnly(radix=128, tiers=1, hb_domain_size=8)
    nearest = built(spec, 32_768).warnings[0].params["nearest"]
    assert built(spec.model_copy(update={"hb_domain_size": nearest}), 32_768).island_count == 1


def test_auto_puts_a_clos_on_each_rail_instead() -> None:
    fabric = built(RailOnly(radix=128, hb_domain_size=8), 32_768)
    assert (fabric.switch_count, fabric.transceiver_count, fabric.island_count) == (768, 131_072, 1)
    assert not fabric.warnings


def test_a_domain_that_does_not_divide_the_chips() -> None:
    fabric = built(RailOnly(radix=128, hb_domain_size=72), 32_768)
    assert fabric.switch_count == 864
    assert sum(plane.count * plane.endpoint_count for plane in fabric.planes) == 32_768


def test_small_rails_share_switches() -> None:
    assert built(RailOnly(radix=256, hb_domain_size=256), 32_768).switch_count == 128
    assert built(RailOnly(radix=64), 64).switch_count == 1


def test_off_rail_paths_cross_the_domain_once_more() -> None:
    fabric = built(RailOnly(radix=64), 512)
    assert fabric.diameter_hops == 3
    assert dict(fabric.hop_histogram)[1] == pytest.approx(7 / 511)
    assert dict(fabric.hop_histogram)[2] == pytest.approx(63 / 511)


def test_all_to_all_pays_nic_over_scaleup() -> None:
    assert built(RailOnly(radix=64), 512).all_to_all_slowdown_ratio == pytest.approx(50 / 450)
    assert built(Clos(radix=64), 512).all_to_all_slowdown_ratio == 0


def test_two_tiers_beyond_their_limit_are_infeasible() -> None:
    with pytest.raises(InfeasibleError, match="N ≤ hb_domain_size × radix × down_ports"):
        built(RailOnly(radix=16, tiers=2), 8 * 16 * 8 + 8)


def test_the_guard_rail_is_always_beside_a_single_tier() -> None:
    assert built(RailOnly(radix=128, hb_domain_size=256), 32_768).notes[0].code == "fabric.guard_rail"


def test_servers_with_fewer_nics_share_them() -> None:
    server = replace(SERVER, nic_count=2)
    fabric = built(RailOnly(radix=64), 64, server=server)
    assert fabric.endpoint_count == 16
    assert fabric.link_count == 16


def test_cards_without_a_scale_up_link_that_share_a_nic_are_one_rail() -> None:
    card = replace(SERVER, scaleup_domain_chip_count=1, scaleup_kind="pcie", nic_count=1)
    fabric = build_fabric(RailOnly(radix=32), chip_count=96, server=card, scaleup_bytes_per_s=None)
    assert fabric.island_count == 1
    assert [tier.switch_count for tier in fabric.tiers] == [1]
