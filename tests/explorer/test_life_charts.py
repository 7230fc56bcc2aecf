"""A cluster's life on the Reliability page: the pictures say what the simulation found."""

from typing import Any

import pytest

from explorer.charts import life, life_policies
from explorer.charts.panels import panel
from explorer.forms import changes
from explorer.forms.outline import outline
from simcore.plan import plan
from simcore.scenario import Scenario
from simcore.simulate import simulate

POD = {
    "name": "pod",
    "hardware": {"chip": "tpu-v4", "chip_count": 4096},
    "workload": {"kind": "none"},
    "reliability": {
        "host_availability_fraction": 0.999,
        "slice_chips": 3840,
        "life": {"kind": "always_full", "duration_s": "60 d"},
    },
}


@pytest.fixture(scope="module")
def result() -> dict[str, Any]:
    return simulate(plan(Scenario.parse(POD))).as_dict() | {"scenario": POD}


def test_the_picture_stacks_all_chips_above_the_interruptions(result: dict[str, Any]) -> None:
    chart = life.timeline(result)
    assert chart is not None
    *stacked, bars = chart.body["data"]
    assert {trace["stackgroup"] for trace in stacked} == {"chips"}
    assert [sum(values) for values in zip(*(trace["y"] for trace in stacked), strict=True)] == pytest.approx(
        [4096.0] * 400
    )
    assert sum(bars["y"]) == result["metrics"]["reliability.life.interruption_count"]
    useful = result["metrics"]["reliability.life.goodput_fraction"]
    assert f"{useful:.1%}".replace("%", " %") in chart.title


def test_the_bars_of_chip_time_sum_to_all_of_it(result: dict[str, Any]) -> None:
    chart = life.chip_time(result)
    assert chart is not None
    assert chart.table is not None
    assert [cell.text for cell in chart.table.total] == ["Sum", "100 %"]
    assert chart.body[0].label == "useful work"
    assert len(chart.body) == len(chart.table.rows)


def test_the_title_of_spares_names_how_many_recover_most(result: dict[str, Any]) -> None:
    chart = life_policies.spares(result)
    assert chart is not None
    assert chart.title.startswith("2 spares bring jobs from ")
    assert chart.body["data"][0]["x"] == ["0", "1", "2", "4", "8"]


def test_spares_that_bring_nothing_are_said_to(result: dict[str, Any]) -> None:
    rows = [{**row, "job_time_fraction": 0.9} for row in result["tables"]["life_spares"]]
    chart = life_policies.spares({**result, "tables": {**result["tables"], "life_spares": rows}})
    assert chart is not None
    assert chart.title == "Spares bring nothing: no job waits for a healthy unit"


def test_places_and_scopes_of_restart_stand_in_one_picture(result: dict[str, Any]) -> None:
    chart = life_policies.policies(result)
    assert chart is not None
    assert chart.body["data"][0]["y"] == [
        "fixed places",
        "re-wired places",
        "all hosts restart",
        "the failed one restarts",
        "the failed one, state from a peer",
    ]
    assert chart.title.startswith("Re-wiring takes useful time from ")


def test_the_first_events_are_told_in_words(result: dict[str, Any]) -> None:
    chart = life.events(result)
    assert chart is not None
    assert chart.table is not None
    assert [cell.text for cell in chart.table.rows[0]] == ["0 s", "job starts", "", "", "1"]
    assert len(chart.table.rows) == 12


def test_without_a_life_there_is_no_picture_of_one(result: dict[str, Any]) -> None:
    bare = {**result, "series": {}, "tables": {}}
    assert life.timeline(bare) is life.chip_time(bare) is life.events(bare) is None
    assert life_policies.spares(bare) is life_policies.policies(bare) is None


def test_the_tab_begins_with_the_life(result: dict[str, Any]) -> None:
    shown = panel("reliability", result)
    assert [chart.slug for chart in shown.charts[:4]] == ["life", "life-time", "life-spares", "life-policies"]
    assert shown.kpis[0].metric == "reliability.life.goodput_fraction"


def test_a_life_is_switched_on_and_off_in_the_form() -> None:
    plain = {"name": "x"}
    fields = {field.path: field for field in outline(plain).fields}
    assert [key for key, _label in fields["reliability.life.kind"].choices] == ["", "always_full", "queue"]
    assert "reliability.life.duration_s" not in fields
    on = {"reliability": {"life": {"kind": "queue"}}}
    paths = {field.path for field in outline(plain | on).fields}
    assert {"reliability.life.duration_s", "reliability.life.interarrival_s"} <= paths
    written = {field.path: field.value for field in outline(plain | on).fields}
    assert changes(plain | on, written | {"reliability.life.kind": ""}) == {"reliability.life.kind": ""}
