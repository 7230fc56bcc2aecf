"""Prefix caching in a scenario: what it finds, what it changes, and what is said where it can find nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from simcore.errors import InputError
from simcore.plan import Plan, plan
from simcore.scenario import Scenario, apply_overrides
from simcore.simulate import Result, simulate
from simcore.workload.traces import read_trace

TRACE = {"kind": "trace", "trace": "a", "format": "mooncake"}
OPTIONS = {"hardware.chip_count": 2, "serving.parallelism.tp": 1, "workload.arrivals": json.dumps(TRACE)}


def trace(hashes: bool) -> bytes:
    """Three conversations of ever longer turns, 20 s between two requests; every turn ends a KV block."""
    lines = []
    for row in range(60):
        turn, who = row // 3, row % 3
        length = 512 * (turn + 1)
        line: dict[str, Any] = {"timestamp": row * 20_000, "input_length": length, "output_length": 20}
        if hashes:
            line["hash_ids"] = [who * 1_000 + place for place in range(turn + 1)]
        lines.append(json.dumps(line))
    return "\n".join(lines).encode()


def planned(overrides: dict[str, Any], *, hashes: bool = True) -> Plan:
    document, _ = apply_overrides({"name": "test"}, OPTIONS | overrides)
    return plan(Scenario.parse(document), traces=lambda spec: read_trace(trace(hashes), format=spec.format))


def run(overrides: dict[str, Any], *, hashes: bool = True) -> Result:
    return simulate(planned(overrides, hashes=hashes))


ON = {"serving.kv.enable_prefix_caching": "true"}


def test_turns_find_what_their_replica_has_seen_and_answer_sooner() -> None:
    """Requests go to two replicas in turn: a conversation's turns alternate, each finds the one before the last."""
    off, on = run({}), run(ON)
    blocks = sum(turn + 1 for turn in range(20)) * 3
    found = sum(max(0, turn - 1) for turn in range(20)) * 3
    assert on.metrics["memory.prefix_hit_fraction"] == pytest.approx(found / blocks)
    assert on.why["memory.prefix_hit_fraction"].kind == "simulated"
    assert on.metrics["serving.ttft_s.mean"] < 0.7 * off.metrics["serving.ttft_s.mean"]
    assert "memory.prefix_hit_fraction" not in off.metrics
    assert max(on.series["serving"]["kv_cached_fraction"]) > 0


def test_one_replica_finds_all_but_the_last_block_of_each_turn() -> None:
    on = run(ON | {"serving.replica_count": 1})
    assert on.metrics["memory.prefix_hit_fraction"] == pytest.approx(190 / 210)


def test_capacity_counts_what_need_not_be_computed() -> None:
    capacity = "serving.capacity_request_per_s"
    assert planned(ON).metrics[capacity] > 1.2 * planned({}).metrics[capacity]


def test_without_hashes_nothing_is_found_and_it_is_said() -> None:
    off, on = run({}, hashes=False), run(ON, hashes=False)
    assert on.metrics["memory.prefix_hit_fraction"] == 0
    assert {name: value for name, value in on.metrics.items() if name in off.metrics} == dict(off.metrics)
    said = [message for message in on.warnings if message.code == "prefix.no_hashes"]
    assert [message.path for message in said] == ["serving.kv.enable_prefix_caching"]
    assert not [message for message in run(ON).warnings if message.code == "prefix.no_hashes"]


@pytest.mark.parametrize(
    ("overrides", "path", "said"),
    [
        ({"serving.kv.allocator": "contiguous_max"}, "serving.kv.enable_prefix_caching", "=paged or turn"),
        ({"serving.kv.block_size": 48}, "serving.kv.block_size", "use 16 or 32"),
    ],
)
def test_where_prefixes_cannot_be_shared_it_is_refused(
    overrides: dict[str, Any], path: str, said: str
) -> None:
    with pytest.raises(InputError, match=said) as caught:
        planned(ON | overrides)
    assert caught.value.message.path == path


HOME = {"serving.router.kind": "prefix_affinity"}


def test_a_router_that_knows_prefixes_sends_each_conversation_home() -> None:
    """Two replicas find what one alone does; the closed form expects more prefill work to be saved too."""
    on = run(ON | HOME)
    assert on.metrics["memory.prefix_hit_fraction"] == pytest.approx(190 / 210)
    dealt = run(ON)
    assert (
        on.metrics["serving.capacity_request_per_s"] > 1.02 * dealt.metrics["serving.capacity_request_per_s"]
    )


@pytest.mark.parametrize(("overrides", "hashes"), [(HOME, True), (HOME | ON, False)])
def test_a_router_that_looks_for_prefixes_in_vain_says_so(overrides: dict[str, Any], hashes: bool) -> None:
    found = [
        message
        for message in planned(overrides, hashes=hashes).warnings
        if message.code == "router.no_prefixes"
    ]
    assert [message.path for message in found] == ["serving.router.kind"]
    assert not any(message.code == "router.no_prefixes" for message in planned(HOME | ON).warnings)
