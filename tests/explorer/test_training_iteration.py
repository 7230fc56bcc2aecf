"""The iteration tab of a training run: its pictures, its Why, its trace."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import translation

from explorer import actions, charts
from explorer.access import Viewer
from explorer.charts import iteration, training_iteration
from explorer.models import Run
from simcore.plan import plan
from simcore.scenario import Scenario
from simcore.simulate import simulate
from tests.explorer.conftest import run_of

TRAINING: dict[str, Any] = {
    "name": "70B trains",
    "hardware": {"chip": "nvidia-h100-sxm", "chip_count": 64},
    "model": {"name": "llama-3.1-70b"},
    "workload": {"kind": "training"},
    "training": {
        "parallelism": {"tp": 8, "pp": 4},
        "global_batch_tokens": 524_288,
        "virtual_stages": 2,
    },
}


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return simulate(plan(Scenario.parse(TRAINING))).as_dict()


@pytest.fixture
def trained(alice: User, work: Callable[[Run], Run]) -> Run:
    return work(run_of(actions.create_scenario(Viewer(user=alice), TRAINING)))


def test_the_headline_counts_micro_batches_and_stages(document: dict[str, Any]) -> None:
    shown = charts.panel("iteration", document)
    assert shown.headline.startswith("A step runs 32 micro-batches of ")
    assert "through 4 pipeline stages" in shown.headline
    assert [chart.slug for chart in shown.charts] == ["roofline", "step-split", "gantt"]


def test_it_speaks_chinese(document: dict[str, Any]) -> None:
    with translation.override("zh-hans"):
        shown = charts.panel("iteration", document)
    assert "微批次" in shown.headline
    assert all(any("一" <= letter <= "鿿" for letter in chart.title) for chart in shown.charts)


def test_forward_and_backward_stand_under_the_roofs(document: dict[str, Any]) -> None:
    chart = iteration.roofline(document)
    assert chart is not None
    phases = [point.phase for point in chart.body.points]
    assert set(phases) == {"forward", "backward"}
    assert phases == sorted(phases)  # squares below circles
    roof = next(line for line in chart.body.roofs if line.y1 == line.y2)
    assert all(roof.y2 <= point.y <= chart.body.bottom for point in chart.body.points)


def test_lanes_fill_the_step_and_no_two_passes_of_a_stage_overlap(document: dict[str, Any]) -> None:
    chart = training_iteration.gantt(document)
    assert chart is not None
    whole = chart.body[0]
    assert len(whole.lanes) == 4 + 1
    ends = [block.left + block.width for lane in whole.lanes for block in lane.blocks]
    assert max(ends) == pytest.approx(100.0, abs=0.2)
    for lane in whole.lanes[:4]:
        passes = sorted(block.left for block in lane.blocks if block.resource != "bubble")
        width = min(block.width for block in lane.blocks if block.resource != "bubble")
        assert min(b - a for a, b in itertools.pairwise(passes)) >= width - 0.01


def test_a_deep_pipeline_shows_its_ends() -> None:
    deep = {
        **TRAINING,
        "training": {**TRAINING["training"], "parallelism": {"tp": 4, "pp": 16}, "recompute": "full"},
    }
    shown = training_iteration.gantt(simulate(plan(Scenario.parse(deep))).as_dict())
    assert shown is not None
    labels = [lane.label for lane in shown.body[0].lanes]
    assert labels[0] == "Stage 1"
    assert labels[-2:] == ["Stage 16", "Once"]
    assert len(labels) == training_iteration.MOST_LANES + 1


def test_each_operator_opens_the_part_of_its_pass(as_alice: Client, trained: Run) -> None:
    found = trained.result_document
    assert found is not None
    for row in found["tables"]["operators"]:
        shown = as_alice.get(f"/runs/{trained.pk}/why/{iteration.metric_of(row)}/")
        assert shown.status_code == 200, row["term"]
        assert shown.context["value"] == pytest.approx(row["s"])


def test_the_tab_links_points_and_the_trace(as_alice: Client, trained: Run) -> None:
    page = as_alice.get(f"/s/{trained.revision.scenario_id}/iteration/").content.decode()
    assert 'data-why="training.forward_s@mlp_up_s"' in page
    assert 'data-why="training.backward_s@core_attention_s"' in page
    answer = as_alice.get(f"/runs/{trained.pk}/trace.json").json()
    assert {event.get("cat") for event in answer["traceEvents"]} >= {"forward", "backward"}
