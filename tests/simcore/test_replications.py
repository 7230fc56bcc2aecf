"""Replications: seeds of their own, means with intervals, and one run that says how sure it is by itself."""

import numpy as np
import pytest

from simcore.plan import Plan
from simcore.plan.requests import replications
from simcore.simulate import Result, simulate
from tests.simcore.conftest import Planner

BUSY = {
    "workload.arrivals.request_per_s": 20,
    "workload.request_count": 400,
    "workload.lengths": {
        "kind": "lognormal",
        "input_mean_tokens": 500,
        "output_mean_tokens": 60,
    },
}


def planned(planner: Planner, count: int, **overrides: object) -> Plan:
    return planner.plan({**BUSY, **overrides, "run.replications": count})


@pytest.fixture(scope="module")
def five(planner: Planner) -> Result:
    return planner.result({**BUSY, "run.replications": 5})


def test_each_replication_draws_for_itself_and_more_go_on_from_fewer(planner: Planner) -> None:
    def instants(count: int) -> list[float]:
        plan = planned(planner, count)
        return [one.serving.inputs.requests.arrival_s[0] for one in (plan, *replications(plan))]

    assert len(set(instants(6))) == 6
    assert instants(6)[:3] == instants(3)


def test_metrics_are_the_means_of_the_runs(planner: Planner, five: Result) -> None:
    plan = planned(planner, 5)
    alone = [simulate(planned(planner, 1)), *map(one_run, replications(plan))]
    for name in ("serving.ttft_s.p95", "serving.slo_attainment_fraction", "analysis.busy_fraction"):
        values = np.array([one.metrics[name] for one in alone])
        assert len(set(values)) > 1 or name == "serving.slo_attainment_fraction"
        assert five.metrics[name] == pytest.approx(values.mean())
        row = next(row for row in five.tables["replications"] if row["metric"] == name)
        assert row["mean"] == five.metrics[name]
        assert row["standard_deviation"] == pytest.approx(values.std(ddof=1))
        assert row["high"] - row["mean"] == pytest.approx(2.776 * values.std(ddof=1) / 5**0.5)


def one_run(plan: Plan) -> Result:
    """A replication's plan simulated alone."""
    scenario = plan.scenario.model_copy(
        update={"run": plan.scenario.run.model_copy(update={"replications": 1})}
    )
    fields = {name: getattr(plan, name) for name in Plan.__dataclass_fields__}
    return simulate(Plan(**{**fields, "scenario": scenario}))


def test_shares_of_time_still_sum_to_one_and_the_table_is_of_the_means(five: Result) -> None:
    rows = five.tables["where_time_goes"]
    assert sum(row["fraction"] for row in rows) == pytest.approx(1.0)
    assert rows[0]["fraction"] == five.metrics["analysis.busy_fraction"]


def test_every_number_of_a_run_has_its_interval_and_its_formula_its_value(five: Result) -> None:
    assert {"serving.tpot_s.mean", "serving.request_per_s"} <= {
        row["metric"] for row in five.tables["replications"]
    }
    for row in five.tables["replications"]:
        assert row["low"] <= row["mean"] <= row["high"]
    for name, term in five.why.items():
        if name in five.metrics:
            assert term.value == pytest.approx(float(five.metrics[name])), name


def test_one_replication_says_nothing_of_others(planner: Planner) -> None:
    result = planner.result(BUSY)
    assert "replications" not in result.tables
    assert {row["metric"] for row in result.tables["steady_state"]} == {
        "serving.ttft_s",
        "serving.tpot_s",
        "serving.e2e_s",
    }


def test_classes_are_averaged_like_the_whole(planner: Planner) -> None:
    classes = [{"name": "a", "share_fraction": 0.5}, {"name": "b", "share_fraction": 0.5}]
    result = planner.result({**BUSY, "workload.classes": classes, "run.replications": 3})
    assert sum(row["completed_count"] for row in result.tables["classes"]) == pytest.approx(400)


@pytest.mark.parametrize(
    "overrides",
    [
        {"workload.kind": "none"},
        {
            "workload.arrivals": {"kind": "closed_loop", "concurrency": 4},
            "workload.lengths": {"kind": "constant", "input_tokens": 100, "output_tokens": 10},
        },
    ],
)
def test_replications_that_change_nothing_are_said_to(planner: Planner, overrides: dict) -> None:
    plan = planner.plan({**BUSY, **overrides, "run.replications": 3})
    assert [w.path for w in plan.warnings if w.code == "input.no_effect"] == ["run.replications"]
    assert list(replications(plan)) == []


def test_a_router_that_draws_is_repeated_on_the_same_requests(planner: Planner) -> None:
    closed = {
        "workload.arrivals": {"kind": "closed_loop", "concurrency": 4},
        "workload.lengths": {"kind": "constant", "input_tokens": 100, "output_tokens": 10},
        "serving.router": {"kind": "random"},
        "hardware.chip_count": 2,
        "serving.parallelism.tp": 1,
    }
    plan = planner.plan({**BUSY, **closed, "run.replications": 3})
    others = list(replications(plan))
    assert all(one.serving is plan.serving for one in others)
    assert len({one_run(one).metrics["serving.e2e_s.mean"] for one in (plan, *others)}) == 3


def test_a_stage_is_told_after_each_replication(planner: Planner) -> None:
    stages = []
    simulate(
        planned(planner, 3),
        lambda kind, payload: stages.append(payload["stage"]) if kind == "stage" else None,
    )
    assert stages == ["closed_forms", "replication", "replication", "serving"]


# ---- a single long run


def steady(planner: Planner, request_per_s: float, count: int = 4000) -> dict[str, dict]:
    result = planner.result(
        {
            **BUSY,
            "workload.arrivals.request_per_s": request_per_s,
            "workload.request_count": count,
        }
    )
    return {row["metric"]: row for row in result.tables["steady_state"]}


def test_a_stable_run_settles_and_its_interval_holds_the_mean_of_a_far_longer_one(planner: Planner) -> None:
    rows = steady(planner, 20)
    long = planner.result({**BUSY, "workload.request_count": 60_000}).metrics
    for metric, row in rows.items():
        assert row["is_steady"]
        slack = row["high_s"] - row["low_s"]  # an interval misses once in twenty, by less than its width
        assert row["low_s"] - slack < long[f"{metric}.mean"] < row["high_s"] + slack


def test_an_overloaded_run_never_settles(planner: Planner) -> None:
    rows = steady(planner, 2000)
    assert not rows["serving.ttft_s"]["is_steady"]
    assert "mean_s" not in rows["serving.ttft_s"]


def test_a_short_run_has_no_steady_state_to_show(planner: Planner) -> None:
    assert "steady_state" not in planner.result({**BUSY, "workload.request_count": 99}).tables
