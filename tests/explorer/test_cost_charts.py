"""The cost page: every number of it is a row of the result, and titles say what follows from them."""

from itertools import pairwise
from typing import Any

import pytest
from django.utils import translation

from explorer import charts
from explorer.charts import cost_offers, cost_swings, cost_year
from explorer.charts.style import Chart
from simcore import Scenario, analyse, plan, simulate
from tests.simcore.analysis.test_money import STANDS, TPU
from tests.simcore.cost.test_offers import SERVES


def ran(document: dict[str, Any]) -> dict[str, Any]:
    """A result with its findings, as a run stores it."""
    planned = plan(Scenario.parse(document))
    result = simulate(planned)
    found = analyse(planned, result)
    stored = result.as_dict()
    return stored | {
        "metrics": {**stored["metrics"], **found.metrics},
        "tables": {**stored["tables"], **found.tables},
    }


@pytest.fixture(scope="module")
def serves() -> dict[str, Any]:
    return ran(SERVES)


@pytest.fixture(scope="module")
def pod() -> dict[str, Any]:
    return ran(TPU)


def shown(chart: Chart | None) -> Chart:
    assert chart is not None
    return chart


def test_a_year_ends_at_the_tco(serves: dict[str, Any]) -> None:
    steps = shown(cost_year.year(serves)).body
    assert steps[-1].kind == "total"
    assert steps[-2].end == pytest.approx(steps[-1].end, abs=0.02)
    for before, after in pairwise(steps[:-1]):
        assert before.end == pytest.approx(after.left, abs=0.01)


def test_what_has_no_price_is_hatched_and_the_total_partial(pod: dict[str, Any]) -> None:
    chart = shown(cost_year.year(pod))
    assert [step.kind for step in chart.body[:2]] == ["loss", "loss"]
    assert "no price" in chart.title
    assert "partial" in chart.body[-1].text
    assert cost_offers.break_even(pod) is None


def test_lines_cross_where_the_point_stands(serves: dict[str, Any]) -> None:
    chart = shown(cost_offers.break_even(serves))
    met = serves["metrics"]["cost.cloud_break_even_fraction"]
    points = [trace for trace in chart.body["data"] if trace["mode"] == "markers+text"]
    assert points[0]["x"] == [met]
    assert f"{met:.0%}".replace("%", " %") in chart.title


@pytest.mark.parametrize(
    ("metrics", "said"),
    [
        ({"cloud": 0.4, "api": 0.6}, "Owning beats a cloud above 40 % utilisation and an API above 60 %"),
        ({"cloud": 0.4}, "Owning beats a cloud above 40 % utilisation, and an API never"),
        ({"api": 0.6}, "Owning beats an API above 60 % of the capacity"),
        ({}, "Owning is dearer than what others ask, at any utilisation"),
    ],
)
def test_the_title_names_who_is_beaten(metrics: dict[str, float], said: str) -> None:
    rows = [
        {"per": "million_tokens", "utilisation_fraction": 1.0, "own_usd": 1, "cloud_usd": 2, "api_usd": 3}
    ]
    found = {f"cost.{name}_break_even_fraction": value for name, value in metrics.items()}
    assert cost_offers.title_of({"metrics": found, "tables": {"break_even": rows}}) == said


def test_the_widest_swing_is_named_and_on_top(serves: dict[str, Any]) -> None:
    chart = shown(cost_swings.tornado(serves))
    first = serves["tables"]["cost_swings"][0]
    assert chart.body["data"][0]["y"][-1].lower() in chart.title
    low = chart.body["data"][0]
    assert low["base"][-1] + low["x"][-1] == pytest.approx(first["at_low"])


def test_the_network_has_its_share_of_the_capital() -> None:
    result = ran(STANDS)
    share = result["metrics"]["fabric.fabric_capex_usd"] / result["metrics"]["cost.capex_usd"]
    assert f"{share * 100:.0f} %" in shown(cost_year.capital(result)).title.replace("\u00a0", " ")


def test_the_page_speaks_chinese(serves: dict[str, Any]) -> None:
    with translation.override("zh-hans"):
        panel = charts.panel("cost", serves)
    assert "自有" in panel.headline
    assert [chart.slug for chart in panel.charts][:4] == ["tco", "break-even", "cost-swings", "token-prices"]
