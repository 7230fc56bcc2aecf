"""The shock test on the Reliability tab: goodput through a shock, its marks, and what each ability bought."""

from functools import cache
from typing import Any

import plotly.graph_objects as go
import pytest
from django.utils import translation

from explorer import charts
from explorer.charts import shocks
from explorer.charts.style import Chart
from simcore.analysis import analyse
from simcore.plan import plan
from simcore.scenario import Scenario
from simcore.simulate import simulate
from tests.explorer.test_charts import without_variables

HOST = {"kind": "host_failure", "at_s": 30, "duration_s": 30}
BURST = {"kind": "load", "at_s": 30, "duration_s": 20, "rate_ratio": 20}


@cache
def ran(*, burst: bool = False, quiet: bool = False) -> dict[str, Any]:
    scenario = {
        "name": "fleet",
        "hardware": {"chip_count": 32},
        "workload": {
            "request_count": 24_000,
            "arrivals": {"kind": "poisson", "request_per_s": 400},
            "lengths": {"kind": "constant", "input_tokens": 256, "output_tokens": 32},
            "slo": {"ttft_s": 0.5, "tpot_s": 0.05},
        },
        "reliability": {"spares": 1, "shocks": [] if quiet else [BURST if burst else HOST]},
    }
    planned = plan(Scenario.parse(scenario))
    result = simulate(planned)
    return result.with_findings(analyse(planned, result)).as_dict() | {"scenario": scenario}


def shown(slug: str, **changes: Any) -> Chart:
    panel = charts.panel("reliability", ran(**changes))
    return next(chart for chart in panel.charts if chart.slug == slug)


@pytest.mark.parametrize("burst", [False, True])
def test_goodput_has_a_line_for_the_calm_run_and_for_each_set(burst: bool) -> None:
    chart = shown("shocks", burst=burst)
    figure = go.Figure(without_variables(chart.body)).to_plotly_json()
    assert len(figure["data"]) == 6
    assert "#" not in repr(chart.body)
    assert chart.body["data"][0]["name"] == "without the shocks"
    assert chart.body["layout"]["shapes"][0]["x0"] == 30
    assert chart.table is not None
    assert len(chart.table.columns) == 7


def test_the_titles_state_what_was_lost_and_who_bought_it_back() -> None:
    lost = ran()["metrics"]["reliability.shock.lost_goodput_fraction"]
    assert f"{lost:.2%}"[:3] in shown("shocks").title
    assert "Re-route requests buys most back" in shown("shock-abilities").title
    assert "No ability" in shown("shock-abilities", burst=True).title
    assert "without any ability" not in shown("shocks", burst=True).title


def test_every_set_of_abilities_has_a_row() -> None:
    table = shown("shock-abilities").table
    assert table is not None
    assert len(table.rows) == 8
    assert table.rows[0][0].text == "no ability"
    assert table.rows[-1][0].text.count(" + ") == 2


def test_the_tab_has_its_figures_above_the_charts() -> None:
    told = {tile.metric for tile in charts.panel("reliability", ran()).kpis}
    assert set(shocks.KPIS) <= told


def test_without_shocks_there_is_no_chart() -> None:
    slugs = {chart.slug for chart in charts.panel("reliability", ran(quiet=True)).charts}
    assert not slugs & {"shocks", "shock-abilities"}


@pytest.mark.parametrize("slug", ["shocks", "shock-abilities"])
def test_it_speaks_chinese(slug: str) -> None:
    english = shown(slug)
    with translation.override("zh-hans"):
        chinese = shown(slug)
    assert english.title != chinese.title
    assert english.summary != chinese.summary


@cache
def trained() -> dict[str, Any]:
    scenario = {
        "name": "run",
        "hardware": {"chip": "nvidia-h100-sxm", "chip_count": 64},
        "model": {"name": "llama-3.1-8b"},
        "workload": {"kind": "training"},
        "reliability": {
            "spares": 1,
            "shocks": [
                {"kind": "host_failure", "at_s": 600, "duration_s": 7200, "count": 2},
                {"kind": "load"},
            ],
        },
    }
    planned = plan(Scenario.parse(scenario))
    result = simulate(planned)
    return result.with_findings(analyse(planned, result)).as_dict() | {"scenario": scenario}


def of_training(slug: str) -> Chart:
    return next(chart for chart in charts.panel("reliability", trained()).charts if chart.slug == slug)


def test_a_training_job_is_shown_in_tokens_with_words_of_its_own() -> None:
    chart = of_training("shocks")
    names = [line["name"] for line in chart.body["data"]]
    assert {"shrink the job", "keep state elsewhere"} <= set(names)
    assert not {"keep KV elsewhere", "re-route requests"} & set(names)
    assert "tokens" in chart.axis
    assert "nothing is simulated" in chart.source
    assert "dip 100 %" in {note["text"] for note in chart.body["layout"]["annotations"]}
    assert "load burst" not in {note["text"] for note in chart.body["layout"]["annotations"]}
    go.Figure(without_variables(chart.body))


def test_what_the_abilities_bought_a_training_job_is_in_its_words_in_chinese_too() -> None:
    assert "keep state elsewhere" in of_training("shock-abilities").summary
    with translation.override("zh-hans"):
        assert "异地保留状态" in of_training("shock-abilities").summary
