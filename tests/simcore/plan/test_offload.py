"""The tiers behind HBM in a plan: their bandwidths are the catalog's, and the map meets the closed forms."""

from __future__ import annotations

from typing import Any

import pytest

from simcore.memory.offload import recompute_s, swap_s
from simcore.memory.tiers import tiers
from simcore.plan import Plan, plan
from simcore.plan.kv_tiers import kv_bytes_per_token_per_chip
from simcore.plan.offload import recompute_cost
from simcore.scenario import Scenario, apply_overrides


def planned(**overrides: Any) -> Plan:
    dotted = {path.replace("__", "."): value for path, value in overrides.items()}
    document, _ = apply_overrides({"name": "test"}, {"workload.request_count": 50} | dotted)
    return plan(Scenario.parse(document))


def rows_of(found: Plan) -> dict[str, dict[str, Any]]:
    return {row["tier"]: row for row in found.tables["kv_tiers"]}


def test_tiers_have_the_bandwidth_of_chip_and_server() -> None:
    found = planned()
    rows = rows_of(found)
    assert set(rows) == {"peer_hbm", "host_dram", "remote"}
    assert rows["host_dram"]["bytes_per_s"] == found.chip.pcie_bytes_per_s
    assert rows["peer_hbm"]["bytes_per_s"] == found.chip.scaleup_bytes_per_s
    assert rows["remote"]["capacity_tokens"] is None
    host = found.server.host_memory_bytes / found.server.chips_per_server
    assert rows["host_dram"]["capacity_tokens"] == pytest.approx(
        host / 131_072, rel=1e-4
    )  # but for the rest of a block


def test_both_times_meet_at_the_break_even_length() -> None:
    found = planned(hardware__chip_overrides__pcie_bytes_per_s="4 GB/s")
    assert found.serving is not None
    pool = found.serving.pool
    cost, kv = recompute_cost(found.serving), kv_bytes_per_token_per_chip(pool.kv)
    met = 0
    for tier in tiers(pool.chip, found.server)[1:]:
        length = rows_of(found)[tier.name]["break_even_tokens"]
        if length:
            met += 1
            assert swap_s(tier, length, kv).value == pytest.approx(recompute_s(cost, length).value, rel=1e-6)
    assert met


def test_the_map_falls_with_bandwidth_and_is_one_where_times_are_equal() -> None:
    rows = planned().tables["swap_or_recompute"]
    by_length: dict[int, list[float]] = {}
    for row in rows:
        by_length.setdefault(row["prompt_tokens"], []).append(row["swap_to_recompute_ratio"])
    assert list(by_length) == [512, 2_048, 8_192, 32_768, 131_072]
    for ratios in by_length.values():
        assert ratios == sorted(ratios, reverse=True)
        assert ratios[0] == pytest.approx(256 * ratios[-1])  # no latency: in proportion to bandwidth


def test_recomputing_takes_what_the_step_table_says_of_a_full_budget() -> None:
    found = planned()
    assert found.serving is not None
    pool = found.serving.pool
    table, tokens = pool.step_table, len(pool.step_table.linear_s) - 1
    expected_s = (
        table.linear_s[-1]
        + table.comm_s[-1]
        + table.overhead_s
        + table.prefill_attention_s
        + table.prefill_attention_s_per_token_context * tokens**2 / 2
    )
    assert recompute_s(recompute_cost(found.serving), tokens).value == pytest.approx(expected_s)


def test_a_faster_link_brings_the_break_even_down() -> None:
    slow = rows_of(planned())["host_dram"]
    fast = rows_of(planned(hardware__chip_overrides__pcie_bytes_per_s="x4"))["host_dram"]
    assert fast["swap_s"] < slow["swap_s"]
    assert fast["recompute_s"] == slow["recompute_s"]
