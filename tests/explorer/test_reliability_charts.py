"""The Reliability tab of a pod: boxes, spares, circuits, blast radius and suspects, from a real run."""

from functools import cache
from typing import Any

import plotly.graph_objects as go
import pytest
from django.utils import translation

from explorer import charts
from explorer.charts import circuits, faults, reliability
from explorer.charts.style import Chart
from simcore.plan import plan
from simcore.scenario import Scenario
from simcore.simulate import simulate
from tests.explorer.test_charts import without_variables

SLUGS = [
    "slice-goodput", "slice-grid", "slice-spares", "circuit-map", "circuit-switches", "blast-radius", "suspects",
    "failure-causes",
]  # fmt: skip


@cache
def ran(chip: str = "tpu-v4", chip_count: int = 4096, slice_chips: int = 1024) -> dict[str, Any]:
    scenario = {
        "name": "pod",
        "hardware": {"chip": chip, "chip_count": chip_count},
        "workload": {"kind": "none"},
        "reliability": {"slice_chips": slice_chips},
    }
    return simulate(plan(Scenario.parse(scenario))).as_dict() | {"scenario": scenario}


def shown(slug: str, **changes: Any) -> Chart:
    panel = charts.panel("reliability", ran(**changes))
    return next(chart for chart in panel.charts if chart.slug == slug)


def test_the_tab_has_a_chart_per_question() -> None:
    slugs = [chart.slug for chart in charts.panel("reliability", ran()).charts]
    assert [slug for slug in slugs if slug in SLUGS] == SLUGS


@pytest.mark.parametrize("slug", SLUGS)
def test_each_has_a_title_a_table_and_a_figure_that_plotly_takes(slug: str) -> None:
    chart = shown(slug)
    assert chart.title
    assert chart.axis
    assert chart.table is not None
    assert all(len(row) == len(chart.table.columns) for row in chart.table.rows)
    if chart.draw == "plot":
        assert go.Figure(without_variables(chart.body)).to_plotly_json()["data"]
        assert "#" not in repr(chart.body)


@pytest.mark.parametrize("slug", SLUGS)
def test_it_speaks_chinese(slug: str) -> None:
    english = shown(slug).title
    with translation.override("zh-hans"):
        assert shown(slug).title != english


def test_the_story_stands_in_the_grid() -> None:
    """1,024, 2,048 and 3,072 chips at 99.0, 99.5 and 99.9 %: first the re-wired, then the fixed ones."""
    table = shown("slice-grid").table
    assert table is not None
    rows = {row[0].text: [cell.text for cell in row[1:]] for row in table.rows}
    assert rows["1,024"] == ["74.7 %", "75.1 %", "84.0 %", "7.6 %", "27.7 %", "77.4 %"]
    assert rows["2,048"][:3] == ["50.0 %", "50.3 %", "67.9 %"]
    assert rows["3,072"][:3] == ["74.2 %", "75.0 %", "75.0 %"]


def test_the_step_from_2048_to_3072_chips_is_explained() -> None:
    notes = reliability.quantisation(ran())
    assert len(notes) == 1
    assert "2,048 chips keep 50.3 % and 3,072 chips keep 75.0 %" in notes[0].text


def test_any_box_has_a_line_with_its_interval() -> None:
    chart = shown("slice-goodput")
    line = next(trace for trace in chart.body["data"] if trace["name"] == "static, any box")
    assert len(line["error_y"]["array"]) == len(line["x"])
    assert min(line["error_y"]["array"]) >= 0
    assert "4,000 draws, seed 1" in chart.source


def test_the_map_shows_what_a_failed_cube_moves() -> None:
    chart = shown("circuit-map")
    assert chart.title == "Cube 0 fails, cube 48 takes its place: 96 of 2,304 circuits move, in 30.0 s"
    before, after = ([text for line in trace["text"] for text in line] for trace in chart.body["data"])
    assert before[0] == "1"
    assert after[0] == "✕"
    assert after[48] == "1"
    assert chart.table is not None
    assert chart.table.rows[0][-1].text == "1–15, 48"


def test_the_ports_of_every_switch_are_named_once() -> None:
    chart = shown("circuit-switches")
    assert chart.title.startswith("96 of 128 ports")
    assert chart.table is not None
    for column in (2, 3, 4):
        ports = [port for row in chart.table.rows for port in row[column].text.split(" → ")]
        assert len(set(ports)) == len(ports) == 96


def test_a_pod_of_one_job_has_nothing_to_swap() -> None:
    chart = shown("circuit-map", slice_chips=4096)
    assert chart.title == "The jobs take every cube: one that fails is waited for"
    assert len(chart.body["data"]) == 1


def test_servers_have_no_circuits_and_name_their_tiers() -> None:
    result = ran(chip="nvidia-h100-sxm", chip_count=4096)
    assert circuits.cubes(result) is None
    assert circuits.switches(result) is None
    chart = faults.blast_radius(result)
    assert chart is not None
    assert {"leaf switch", "chip–leaf link", "server"} <= {bar.label for bar in chart.body}


def test_without_a_result_nothing_is_drawn() -> None:
    assert reliability.quantisation(None) == ()
    drawn = (
        reliability.grid,
        reliability.spares,
        circuits.cubes,
        circuits.switches,
        faults.suspects,
        faults.causes,
    )
    assert [draw(None) for draw in drawn] == [None] * 6
