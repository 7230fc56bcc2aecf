"""Replicas by load, from the scenario to the result."""

from functools import cache
from typing import Any

import pytest

from simcore.errors import InputError
from simcore.plan import Plan, plan
from simcore.report.engine_command import vllm_command
from simcore.scenario import Scenario
from simcore.simulate import Result, simulate

PEAK = 4
BY_LOAD = {
    "kind": "outstanding_per_replica",
    "target": 12,
    "interval_s": 10,
    "startup_s": 30,
    "scale_down_stabilization_s": 60,
}


def planned(autoscaling: dict[str, Any] | None, *, chip_count: int = PEAK, **serving: Any) -> Plan:
    return plan(
        Scenario.parse(
            {
                "name": "by load",
                "hardware": {"chip_count": chip_count},
                "workload": {
                    "arrivals": {
                        "kind": "diurnal",
                        "request_per_s": 6.0,
                        "peak_ratio": 1.9,
                        "period_s": 900.0,
                    },
                    "request_count": 4_000,
                    "slo": {"ttft_s": 0.2, "tpot_s": 0.01},
                },
                "serving": {
                    "parallelism": {"tp": 1},
                    "router": {"kind": "least_outstanding"},
                    "autoscaling": autoscaling,
                }
                | serving,
            }
        )
    )


@cache
def by_load() -> Result:
    return simulate(planned(BY_LOAD))


@cache
def at_most() -> Result:
    return simulate(planned(None))


def test_a_day_is_served_in_fewer_replica_hours_and_keeps_its_promise_no_better() -> None:
    scaled, static = by_load().metrics, at_most().metrics
    assert scaled["serving.autoscaling.replica_s"] < 0.8 * PEAK * static["serving.makespan_s"]
    assert 1 < scaled["serving.autoscaling.ready_replica_count.mean"] < PEAK
    assert scaled["serving.slo_attainment_fraction"] <= static["serving.slo_attainment_fraction"]
    assert scaled["serving.completed_count"] == static["serving.completed_count"] == 4_000
    assert scaled["serving.autoscaling.used_fraction"] == pytest.approx(
        scaled["serving.autoscaling.replica_s"] / (PEAK * scaled["serving.makespan_s"])
    )
    assert scaled["serving.autoscaling.scale_up_count"] > 0
    assert scaled["serving.autoscaling.scale_down_count"] > 0


def test_the_replicas_of_the_series_are_those_of_the_metrics() -> None:
    columns, metrics = by_load().series["serving"], by_load().metrics
    assert columns["replicas"].min() >= 1
    assert columns["replicas"].max() == metrics["serving.autoscaling.ready_replica_count.max"]
    assert (columns["replicas"] + columns["replicas_starting"]).max() <= PEAK


def test_as_many_at_least_as_at_most_is_the_static_plan() -> None:
    fixed = simulate(planned(BY_LOAD | {"min_replica_count": 3, "max_replica_count": 3})).metrics
    static = simulate(planned(None, replica_count=3)).metrics
    estimated = {name for name in static if name.startswith("serving.estimate.")}
    assert {name: fixed[name] for name in static if name not in estimated} == {
        name: value for name, value in static.items() if name not in estimated
    }
    assert fixed["serving.autoscaling.used_fraction"] == pytest.approx(1.0)
    assert fixed["serving.autoscaling.scale_up_count"] == 0


def test_the_money_is_that_of_owned_chips() -> None:
    scaled, static = by_load(), at_most()
    for name in ("cost.capex_usd", "serving.capacity_request_per_s", "serving.replica_count"):
        assert scaled.metrics[name] == static.metrics[name]
    assert "autoscaling.owned" in [warning.code for warning in scaled.warnings]
    assert "autoscaling.owned" not in [warning.code for warning in static.warnings]


def test_closed_forms_of_a_fixed_number_of_replicas_are_left_out() -> None:
    scaled, static = by_load(), at_most()
    assert {"serving.estimate.ttft_s", "serving.estimate.tpot_s"} <= static.metrics.keys()
    assert not any(name.startswith("serving.estimate.") for name in scaled.metrics)
    assert "steady_state" in static.tables
    assert "steady_state" not in scaled.tables


@pytest.mark.parametrize(
    ("autoscaling", "path", "words"),
    [
        ({"max_replica_count": 5}, "max_replica_count", "use at most 4"),
        ({"min_replica_count": 5}, "min_replica_count", "4 replicas at most"),
        ({"min_replica_count": 3, "max_replica_count": 2}, "min_replica_count", "2 replicas at most"),
        ({"kind": "kv_usage", "target": 1.5}, "target", "1"),
    ],
)
def test_what_cannot_be_is_refused_at_its_field(autoscaling: dict[str, Any], path: str, words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        planned({"kind": "outstanding_per_replica"} | autoscaling)
    assert [message.path for message in caught.value.messages] == [f"serving.autoscaling.{path}"]


def test_prefill_and_decode_apart_are_not_scaled() -> None:
    with pytest.raises(InputError, match=r"another serving\.scheduler\.kind") as caught:
        planned(BY_LOAD, scheduler={"kind": "disaggregated"})
    assert caught.value.messages[0].path == "serving.autoscaling"


def test_unlike_replicas_are_not_scaled_together() -> None:
    document = planned(BY_LOAD).scenario.model_dump(mode="json")
    document["hardware"]["pools"] = [{"name": "more", "chip": "nvidia-a100-80gb-sxm", "chip_count": 2}]
    with pytest.raises(InputError, match="remove hardware"):
        plan(Scenario.parse(document))


def test_the_most_replaces_the_number_of_replicas_which_is_said() -> None:
    both = planned(BY_LOAD | {"max_replica_count": 2}, replica_count=3)
    assert both.serving is not None
    assert both.serving.replica_count == 2
    unused = [warning.path for warning in both.warnings if warning.code == "input.no_effect"]
    assert unused == ["serving.replica_count"]


def test_replicas_that_come_and_go_are_servers_of_their_own() -> None:
    assert "--data-parallel-size 4" in vllm_command(planned(None))
    line = vllm_command(planned(BY_LOAD))
    assert "--data-parallel-size" not in line
    assert "one of 4 replicas" in line


def test_a_scenario_without_it_keeps_its_digest() -> None:
    assert planned(None).digest != planned(BY_LOAD).digest
    document = planned(None).scenario.model_dump(mode="json")
    del document["serving"]["autoscaling"]
    assert plan(Scenario.parse(document)).digest == planned(None).digest
