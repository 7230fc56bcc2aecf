"""Sessions in a scenario: what the plan expects of them, what the run makes of it, and what is said aloud."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simcore.errors import InputError
from simcore.plan import Plan, plan
from simcore.plan.requests import is_drawn
from simcore.report.records import record_columns
from simcore.scenario import Scenario, apply_overrides
from simcore.simulate import Result, simulate

BASE = {
    "hardware.chip_count": 2,
    "model.name": "llama-3.1-8b",
    "serving.parallelism.tp": 1,
    "serving.max_model_len": 32_768,
    "workload.arrivals.request_per_s": 1.0,
    "workload.lengths.input_mean_tokens": 300,
    "workload.lengths.output_mean_tokens": 100,
    "workload.request_count": 3_000,
}
TALK = {"workload.sessions.turns_mean": 4, "workload.sessions.shared_system_prompt_tokens": 200}
KEPT = {"serving.kv.enable_prefix_caching": "true"}


def scenario(overrides: dict[str, Any]) -> Scenario:
    document, _ = apply_overrides({"name": "test"}, BASE | overrides)
    return Scenario.parse(document)


def planned(overrides: dict[str, Any]) -> Plan:
    return plan(scenario(overrides))


def run(overrides: dict[str, Any]) -> Result:
    return simulate(planned(overrides))


def codes(result: Plan | Result) -> set[str]:
    return {message.code for message in result.warnings}


def test_a_scenario_without_sessions_has_the_digest_and_the_figures_that_it_had() -> None:
    """Sessions of one turn draw the same requests, and are another scenario all the same."""
    off, none, alone = (
        run(overrides) for overrides in ({}, {"workload.sessions": None}, {"workload.sessions.turns_mean": 1})
    )
    assert off.digest == none.digest != alone.digest
    assert alone.metrics == off.metrics


def test_the_offered_rate_is_that_of_sessions_times_their_turns() -> None:
    on = run(TALK)
    serving = planned(TALK).serving
    assert serving is not None
    point = serving.pool.operating_point
    assert point.offered_request_per_s == pytest.approx(4.0, rel=0.08)
    assert on.metrics["serving.offered_load_ratio"] == pytest.approx(
        point.offered_request_per_s / point.capacity_request_per_s
    )
    assert on.metrics["serving.session_count"] == serving.inputs.requests.start_count
    assert on.metrics["serving.completed_count"] == 3_000
    # Long enough that users who think slow it down little.
    assert on.metrics["serving.request_per_s"] == pytest.approx(4.0, rel=0.12)


@pytest.mark.parametrize("router", ["round_robin", "session"])
def test_the_hit_fraction_is_met_and_counts_in_capacity(router: str) -> None:
    from simcore.plan.prefixes import expected_hit_fraction
    from simcore.plan.serving import lane_block_count

    overrides = TALK | KEPT | {"serving.router.kind": router}
    on, off = planned(overrides), planned(TALK | {"serving.router.kind": router})
    assert on.serving is not None
    pool = on.serving.pool
    expected = expected_hit_fraction(on.serving.inputs, lane_block_count(pool.kv, pool.parallelism))
    assert simulate(on).metrics["memory.prefix_hit_fraction"] == pytest.approx(expected, abs=0.02)
    capacity = "serving.capacity_request_per_s"
    assert on.metrics[capacity] > 1.1 * off.metrics[capacity]


def test_a_cache_that_is_too_small_is_expected_to_find_less() -> None:
    from simcore.plan.prefixes import expected_hit_fraction

    serving = planned(TALK | KEPT).serving
    assert serving is not None
    shares = [expected_hit_fraction(serving.inputs, blocks) for blocks in (200, 2_000, 20_000, 2_000_000)]
    assert shares == sorted(shares)
    assert shares[0] < 0.5 * shares[-1]


def test_any_block_size_will_do_where_no_hash_stands_for_a_number_of_tokens() -> None:
    found = run(TALK | KEPT | {"serving.kv.block_size": 48, "workload.request_count": 300})
    assert 0.3 < found.metrics["memory.prefix_hit_fraction"] < 1


def test_users_of_a_closed_loop_who_think_keep_fewer_sequences_running() -> None:
    loop = {"workload.arrivals.kind": "closed_loop", "workload.arrivals.concurrency": 40}
    batches = []
    for think_s in (0.0, 5.0, 60.0):
        overrides = TALK | loop | {"workload.sessions.think_time_mean_s": think_s}
        serving = planned(overrides).serving
        assert serving is not None
        batches.append(serving.pool.operating_point.batch)
    assert batches[0] == 20
    assert batches[0] > 1.5 * batches[1] > 2 * batches[2]
    thought = run(TALK | loop | {"workload.sessions.think_time_mean_s": 5.0})
    series = thought.series["serving"]
    middle = slice(len(series["running"]) // 4, len(series["running"]) // 2)
    assert np.mean(series["running"][middle]) / 2 == pytest.approx(batches[1], rel=0.25)


@pytest.mark.parametrize(
    ("overrides", "code"),
    [
        (TALK | {"serving.max_model_len": 900}, "sessions.cut_short"),
        (TALK | {"workload.sessions.think_time_mean_s": 500}, "sessions.short_run"),
        ({"serving.router.kind": "session"}, "router.no_sessions"),
        (TALK | {"serving.router.kind": "session"}, "router.no_prefix_cache"),
        (TALK | {"workload.arrivals.request_per_s": 100}, "serving.waits_for_answers"),
        (
            TALK | {"serving.admission.max_queue_length": 0, "serving.scheduler.max_num_seqs": 2},
            "serving.unsent",
        ),
    ],
)
def test_what_may_surprise_is_said(overrides: dict[str, Any], code: str) -> None:
    assert code in codes(run(overrides))
    assert code not in codes(run(TALK | KEPT | {"serving.router.kind": "session"}))


def test_prefixes_of_sessions_have_names() -> None:
    assert "prefix.no_hashes" in codes(planned(KEPT))
    assert "prefix.no_hashes" not in codes(planned(TALK | KEPT))
    affinity = {"serving.router.kind": "prefix_affinity"}
    assert "router.no_prefixes" in codes(planned(TALK | affinity))
    assert "router.no_prefixes" not in codes(planned(TALK | KEPT | affinity))


def test_a_trace_has_no_sessions_drawn_over_it() -> None:
    with pytest.raises(InputError, match="remove sessions, or use arrivals of another kind") as caught:
        scenario(TALK | {"workload.arrivals": '{"kind": "trace", "trace": "a"}'})
    assert caught.value.message.path == "workload.sessions"


def test_turns_and_think_times_are_drawn() -> None:
    same = {
        "workload.arrivals.kind": "closed_loop",
        "workload.arrivals.concurrency": 3,
        "workload.lengths": '{"kind": "constant", "input_tokens": 9, "output_tokens": 9}',
    }
    fixed = {"workload.sessions.turns_law": "constant", "workload.sessions.think_time_cv": 0}
    assert not is_drawn(scenario(same))
    assert not is_drawn(scenario(same | {"workload.sessions.turns_mean": 1}))
    assert not is_drawn(scenario(same | TALK | fixed))
    assert is_drawn(scenario(same | TALK))
    assert is_drawn(scenario(same | TALK | fixed | {"workload.sessions.think_time_cv": 1}))


def test_records_say_whose_turn_it_is_and_nothing_arrived_that_was_not_sent() -> None:
    refusing = TALK | {"serving.admission.max_queue_length": 0, "serving.scheduler.max_num_seqs": 2}
    made = planned(refusing)
    result = simulate(made)
    assert made.serving is not None
    assert result.records is not None
    columns = record_columns(result.records, front_end_s=0.0, turns=made.serving.inputs.requests.turns)
    assert columns["turn"].min() == 1
    unsent = np.ma.getmaskarray(columns["arrival_s"])
    assert unsent.any()
    assert (columns["turn"][unsent] > 1).all()
    assert (columns["status"][unsent] == "rejected").all()


def test_the_steady_state_is_read_in_order_of_time() -> None:
    """Prompts grow from turn to turn: by number of request, times would never settle."""
    rows = run(TALK | {"workload.sessions.think_time_mean_s": 1.0}).tables["steady_state"]
    assert all(row["is_steady"] for row in rows)
