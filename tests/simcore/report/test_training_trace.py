"""The Chrome trace of a training iteration: every stage a thread, as long as the step."""

import json

import pytest

from simcore.plan import plan
from simcore.report.training_trace import iteration_trace, training_iteration
from simcore.scenario import Scenario, apply_overrides

BASE = {
    "name": "trains",
    "hardware": {"chip": "nvidia-h100-sxm", "chip_count": 64},
    "model": {"name": "llama-3.1-70b"},
    "workload": {"kind": "training"},
    "training": {
        "parallelism": {"tp": 8, "pp": 4},
        "global_batch_tokens": 524_288,
        "virtual_stages": 2,
    },
}


def planned(**overrides):
    document, _ = apply_overrides(BASE, {key.replace("__", "."): value for key, value in overrides.items()})
    return plan(Scenario.parse(document))


@pytest.fixture(scope="module")
def trained():
    return planned()


@pytest.mark.parametrize("pieces", [1, 2, 5])
def test_an_iteration_lasts_as_long_as_its_step(pieces):
    found = planned(training__virtual_stages=pieces)
    step = training_iteration(found.tables["pipeline"][0], found.tables["operators"])
    assert step.s == pytest.approx(found.metrics["training.step_s"], rel=1e-9)


def test_every_pass_of_every_stage_is_an_event(trained):
    trace = json.loads(json.dumps(iteration_trace(trained.tables, name="trains")))
    passes = [event for event in trace["traceEvents"] if event.get("cat") in ("forward", "backward")]
    row = trained.tables["pipeline"][0]
    assert len(passes) == 2 * row["stages"] * row["pieces"] * row["micro_batches"]
    assert {event["tid"] for event in passes} == {1, 2, 3, 4}
    ends_s = max(event["ts"] + event["dur"] for event in trace["traceEvents"] if event["ph"] == "X") / 1e6
    assert ends_s == pytest.approx(trained.metrics["training.step_s"], rel=1e-9)


def test_a_micro_batch_is_there_by_operator(trained):
    events = [event for event in iteration_trace(trained.tables)["traceEvents"] if event["pid"] == 2]
    seconds = sum(event["dur"] for event in events if event["ph"] == "X") / 1e6
    found = trained.metrics
    assert seconds == pytest.approx(found["training.forward_s"] + found["training.backward_s"], rel=1e-9)
    assert {"core_attention", "mlp_up", "tensor_collectives"} <= {event["name"] for event in events}


def test_a_long_schedule_is_cut_and_says_so():
    found = planned(training__global_batch_tokens=134_217_728, training__virtual_stages=1)
    trace = iteration_trace(found.tables)
    assert trace["otherData"]["drawn_micro_batches"] < trace["otherData"]["micro_batches"] == 8192


def test_what_serves_has_the_trace_of_its_steps_and_a_fabric_none():
    serving = plan(
        Scenario.parse(
            {
                "name": "serves",
                "hardware": {"chip": "nvidia-h100-sxm", "chip_count": 1},
                "model": {"name": "llama-3.1-8b"},
            }
        )
    )
    names = {event["args"].get("name") for event in iteration_trace(serving.tables)["traceEvents"]}
    assert "decode step" in names
    assert iteration_trace({}) is None
