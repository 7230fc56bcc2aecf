"""Tiers: the nearer the faster, and a transfer is latency plus bytes over bandwidth."""

from __future__ import annotations

import pytest

from simcore.catalog import default_catalog
from simcore.memory.tiers import tiers, transfer_s

CATALOG = default_catalog()


def test_a_server_card_reaches_every_tier_and_each_is_slower_than_the_one_before() -> None:
    found = tiers(CATALOG.chip("nvidia-h100-sxm"), CATALOG.server("dgx-h100"))
    assert [tier.name for tier in found][:2] == ["hbm", "peer_hbm"]
    rates = [tier.bytes_per_s.value for tier in found]
    assert rates == sorted(rates, reverse=True)
    assert found[1].capacity_bytes.value == pytest.approx(7 * found[0].capacity_bytes.value)


def test_a_card_without_a_link_has_no_peer_tier() -> None:
    card = CATALOG.chip("nvidia-rtx-pro-6000")
    assert "peer_hbm" not in {tier.name for tier in tiers(card, CATALOG.server(card.default_server))}


def test_a_transfer_is_latency_plus_bytes_over_bandwidth() -> None:
    tier = tiers(CATALOG.chip("nvidia-h100-sxm"), CATALOG.server("dgx-h100"))[0]
    assert transfer_s(tier, 0.0).value == tier.latency_s
    assert transfer_s(tier, 3.35e12).value == pytest.approx(1 + tier.latency_s)
