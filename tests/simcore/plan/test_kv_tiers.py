"""Tiers in a scenario: where their figures come from, what is refused, and when swapping pays."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from simcore.errors import InputError
from simcore.memory.offload import break_even_bytes_per_s
from simcore.memory.tiers import OffloadTier, tiers
from simcore.plan import Plan, plan
from simcore.plan.kv_tiers import kv_bytes_per_token_per_chip, offload_tiers
from simcore.plan.offload import recompute_cost
from simcore.scenario import Scenario, apply_overrides
from simcore.scenario.schema import KvCache
from simcore.simulate import Result, simulate
from simcore.workload.traces import read_trace
from tests.simcore.plan.test_prefixes import OPTIONS as TRACED
from tests.simcore.plan.test_prefixes import trace

TIGHT = {
    "hardware.chip_count": 1,
    "workload.request_count": 300,
    "workload.arrivals": json.dumps({"kind": "closed_loop", "concurrency": 64}),
    "workload.lengths": json.dumps({"kind": "constant", "input_tokens": 900, "output_tokens": 700}),
    "serving.num_gpu_blocks_override": 1_200,
}
SWAP = {"serving.kv.preemption": "swap"}
CACHED = {"serving.kv.enable_prefix_caching": "true", "serving.num_gpu_blocks_override": 1_000}
CACHED |= {"serving.max_model_len": 12_000, "serving.replica_count": 1}


def offload(*tiers: dict[str, Any]) -> dict[str, Any]:
    return {"serving.kv.offload": json.dumps(tiers)}


def planned(overrides: dict[str, Any]) -> Plan:
    document, _ = apply_overrides({"name": "test"}, overrides)
    return plan(Scenario.parse(document), traces=lambda spec: read_trace(trace(True), format=spec.format))


def run(overrides: dict[str, Any]) -> Result:
    return simulate(planned(overrides))


def test_swapping_without_a_tier_takes_the_servers_memory() -> None:
    found = planned(TIGHT | SWAP)
    assert found.serving is not None
    pool = found.serving.pool
    assert pool.tiers is not None
    (tier,) = pool.tiers.tiers
    block_bytes = kv_bytes_per_token_per_chip(pool.kv).value * pool.kv.block_size_tokens
    share = found.server.host_memory_bytes / found.server.chips_per_server
    assert found.chip.pcie_bytes_per_s is not None
    assert tier.name == "host_dram"
    assert tier.capacity_blocks == int(share / block_bytes)
    assert tier.s_per_token * found.chip.pcie_bytes_per_s == pytest.approx(131_072, rel=1e-3)
    assert planned(TIGHT).serving.pool.tiers is None  # type: ignore[union-attr]


def test_pipeline_lanes_share_the_capacity_and_not_the_bandwidth() -> None:
    whole = planned(SWAP | {"hardware.chip_count": 2, "serving.parallelism.tp": 1})
    staged = planned(SWAP | {"hardware.chip_count": 2, "serving.parallelism": '{"tp": 1, "pp": 2}'})
    (one,), (two,) = (found.serving.pool.tiers.tiers for found in (whole, staged))  # type: ignore[union-attr]
    assert two.capacity_blocks == pytest.approx(
        one.capacity_blocks, rel=0.02
    )  # half the layers, half the tier
    assert two.s_per_token == pytest.approx(one.s_per_token / 2, rel=0.02)


def test_a_scenarios_own_figures_win_and_take_units() -> None:
    given = {"tier": "nvme", "capacity_bytes": "2 TB", "bytes_per_s": "8 GB/s", "latency_s": "50 us"}
    found = planned(TIGHT | SWAP | offload({"tier": "host_dram"}, given))
    rows = {row["tier"]: row for row in found.tables["kv_tiers"]}
    assert list(rows)[-1] == "nvme"
    assert rows["nvme"]["bytes_per_s"] == 8e9
    assert rows["nvme"]["latency_s"] == pytest.approx(50e-6)
    assert rows["host_dram"]["bytes_per_s"] == found.chip.pcie_bytes_per_s


def test_a_chip_without_a_link_to_its_host_swaps_only_to_a_named_tier() -> None:
    found = planned(TIGHT)
    alone = replace(found.chip, pcie_bytes_per_s=None)
    kv = KvCache(preemption="swap")
    with pytest.raises(InputError, match="no link from nvidia-h100-sxm to its host") as caught:
        offload_tiers(kv, alone, found.server)
    assert caught.value.message.path == "serving.kv.preemption"
    named = OffloadTier(tier="host_dram", capacity_bytes=1e12, bytes_per_s=1e10)
    (tier,) = offload_tiers(kv.model_copy(update={"offload": (named,)}), alone, found.server)
    assert tier.bytes_per_s.value == 1e10


@pytest.mark.parametrize(
    ("overrides", "path", "said"),
    [
        (
            SWAP | offload({"tier": "nvme"}),
            "serving.kv.offload",
            "no capacity_bytes, bytes_per_s of nvme",
        ),
        (
            SWAP | offload({"tier": "remote"}, {"tier": "remote"}),
            "serving.kv.offload",
            "remote is named twice",
        ),
        (offload({"tier": "disk"}), "serving.kv.offload.0.tier", "nvme"),
        (offload({"tier": "nvme", "bytes_per_s": "fast"}), "serving.kv.offload.0.bytes_per_s", "3.35 TB/s"),
        (offload(*[{"tier": "nvme"}] * 4), "serving.kv.offload", "at most 3"),
    ],
)
def test_what_cannot_be_is_refused_at_its_place(overrides: dict[str, Any], path: str, said: str) -> None:
    with pytest.raises(InputError, match=said) as caught:
        planned(overrides)
    assert caught.value.message.path.startswith(path)


@pytest.mark.parametrize(
    ("overrides", "path"),
    [
        (offload({"tier": "host_dram"}), "serving.kv.offload"),
        (SWAP | {"serving.kv.allocator": "contiguous_max"}, "serving.kv.preemption"),
    ],
)
def test_what_changes_nothing_is_said_and_changes_nothing(overrides: dict[str, Any], path: str) -> None:
    found, without = (
        run(overrides | {"workload.request_count": 50}),
        run(
            {key: value for key, value in overrides.items() if "allocator" in key}
            | {"workload.request_count": 50}
        ),
    )
    said = [message.path for message in found.warnings if message.code == "input.no_effect"]
    assert said == [path]
    assert found.metrics == without.metrics


def test_swapping_beats_computing_again_exactly_where_the_closed_form_says_so() -> None:
    """Out and back is twice what the closed form brings back, so its bandwidths meet at half."""
    again, free = run(TIGHT), run(TIGHT | SWAP | offload({"tier": "host_dram", "bytes_per_s": 1e15}))
    assert again.metrics["serving.preemption_count"] > 0
    assert "memory.swap_count" not in again.metrics
    assert free.metrics["memory.swap_count"] == free.metrics["serving.preemption_count"]
    found = planned(TIGHT)
    assert found.serving is not None
    pool = found.serving.pool
    (host,) = [tier for tier in tiers(pool.chip, found.server) if tier.name == "host_dram"]
    meets = break_even_bytes_per_s(
        recompute_cost(found.serving), host, 1_250.0, kv_bytes_per_token_per_chip(pool.kv)
    )
    assert meets is not None
    makespans = {}
    for factor in (4.0, 0.25):
        rate = 2 * meets.value * factor
        result = run(TIGHT | SWAP | offload({"tier": "host_dram", "bytes_per_s": rate}))
        makespans[factor] = result.metrics["serving.makespan_s"]
        assert result.metrics["analysis.waiting.host_fraction"] > 0
        assert sum(
            value for name, value in result.metrics.items() if name.startswith("analysis.waiting.")
        ) + result.metrics["analysis.busy_fraction"] == pytest.approx(1.0)
    assert makespans[4.0] < again.metrics["serving.makespan_s"] < makespans[0.25]


def test_turns_that_left_a_small_pool_are_found_in_the_servers_memory() -> None:
    base = TRACED | CACHED
    alone, behind = run(base), run(base | offload({"tier": "host_dram"}))
    endless = run(base | {"serving.num_gpu_blocks_override": 20_000})
    hits = "memory.prefix_hit_fraction"
    assert alone.metrics[hits] < behind.metrics[hits] == pytest.approx(endless.metrics[hits])
    assert 0 < behind.metrics[f"{hits}.host_dram"] <= behind.metrics[hits]
    assert behind.metrics["serving.ttft_s.mean"] < alone.metrics["serving.ttft_s.mean"]
    (row,) = [row for row in behind.tables["kv_tiers"] if row["tier"] == "host_dram"]
    assert row["hit_fraction"] == behind.metrics[f"{hits}.host_dram"]
    moved = behind.metrics["compute.moved_bytes_per_output_token.host_dram"]
    assert row["read_bytes"] + row["written_bytes"] == pytest.approx(moved * 60 * 20)
    capacity = "serving.capacity_request_per_s"
    assert behind.metrics[capacity] > alone.metrics[capacity]
