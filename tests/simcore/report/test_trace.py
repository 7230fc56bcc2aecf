"""The time line of an iteration: whole, in order, and readable by trace viewers."""

import itertools
import json

import pytest

from simcore.plan import plan
from simcore.report.trace import chrome_trace, iterations
from simcore.scenario import Scenario


@pytest.fixture(scope="module")
def planned():
    return plan(
        Scenario.parse(
            {
                "name": "traced",
                "hardware": {"chip": "nvidia-h100-sxm", "chip_count": 4},
                "model": {"name": "llama-3.1-8b"},
                "serving": {"parallelism": {"tp": 2, "pp": 2}},
            }
        )
    )


def test_an_iteration_lasts_as_long_as_its_step(planned):
    steps = {step.phase: step for step in iterations(planned.tables["operators"])}
    assert list(steps) == ["decode", "prefill"]
    for phase, step in steps.items():
        assert step.layer_count == 32
        assert step.s == pytest.approx(planned.metrics[f"compute.{phase}_step_s"])


def test_each_half_of_a_layer_ends_with_its_collective(planned):
    layer = [event.operator for event in iterations(planned.tables["operators"])[0].layer]
    assert layer.count("all_reduce") == 2
    assert layer[layer.index("attention_output") + 1] == "all_reduce"
    assert layer[-2:] == ["all_reduce", "rank_wait"]


def test_the_trace_is_json_whose_events_follow_each_other(planned):
    trace = json.loads(json.dumps(chrome_trace(planned.tables["operators"], name="traced")))
    events = [event for event in trace["traceEvents"] if event["ph"] == "X" and event["pid"] == 1]
    assert len(events) > 32 * 8
    for one, following in itertools.pairwise(events):
        assert following["ts"] == pytest.approx(one["ts"] + one["dur"], abs=1e-6)
    end = (events[-1]["ts"] + events[-1]["dur"]) * 1e-6
    assert end == pytest.approx(planned.metrics["compute.decode_step_s"])
    assert {event["args"].get("layer") for event in events} == {*range(32), None}
