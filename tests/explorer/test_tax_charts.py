"""Taxes and losses as pictures: what the KPI row, the waterfall and the table of taxes say."""

import pytest
from django.template.loader import render_to_string
from django.utils import translation

from explorer.charts import taxes
from explorer.charts.panels import panel
from simcore.analysis import analyse
from simcore.plan import plan
from simcore.scenario import Scenario
from simcore.simulate import simulate

DOCUMENT = {
    "name": "x",
    "hardware": {"chip_count": 64},
    "workload": {"request_count": 200},
    "economics": {"alternatives": [{"name": "Torus", "probability_fraction": 0.2, "cost_usd": 1e6}]},
}


@pytest.fixture(scope="module")
def result():
    planned = plan(Scenario.parse(DOCUMENT))
    found = simulate(planned)
    return found.with_findings(analyse(planned, found)).as_dict() | {"scenario": DOCUMENT}


def test_the_row_of_taxes_goes_from_the_largest_down_and_each_opens_its_why(result):
    bars = taxes.tax_bars(result)
    assert [bar.label for bar in bars][:2] == ["Waiting tax", "Change tax"]
    assert bars[0].width == 100
    assert [bar.width for bar in bars] == sorted((bar.width for bar in bars), reverse=True)
    assert {bar.metric for bar in bars} <= set(result["metrics"])
    page = render_to_string("explorer/_charts.html", {"panel": panel("overview", result)})
    assert "Four taxes, in a year" in page
    assert page.count("f-hair") >= 4


def test_a_tax_has_its_share_of_all_cost_beside_it(result):
    bars = {bar.metric: bar for bar in taxes.tax_bars(result)}
    waiting = bars["analysis.tax.waiting_usd_per_year"]
    fraction = sum(row["tco_fraction"] for row in result["tables"]["taxes"] if row["tax"] == "waiting")
    assert waiting.share == f"{100 * fraction:.0f} %"


def test_unknown_taxes_keep_their_lines(result):
    known = {"cost.tco_usd_per_year": 1000.0, "analysis.tax.change_usd_per_year": 40.0}
    early = taxes.tax_bars({"metrics": known, "tables": {}})
    assert [bar.metric for bar in early] == ["analysis.tax.change_usd_per_year", "", "", ""]
    assert [str(bar.number) for bar in early[1:]] == ["–"] * 3
    assert len(early) == len(taxes.tax_bars(result))


def test_the_waterfall_ends_at_the_metric(result):
    chart = taxes.losses(result)
    effective = result["metrics"]["analysis.effective_utilisation_fraction"]
    assert chart.body[-1].text == f"{100 * effective:.1f} %"
    assert chart.body[0].width == 50
    assert chart.title.startswith(f"{100 * effective:.1f} % of the owned peak does useful work")


def test_the_table_says_what_each_tax_is_for(result):
    chart = taxes.taxes(result)
    said = {(row[0].text, row[1].text) for row in chart.table.rows}
    assert ("Change tax", "Torus") in said
    assert ("Understanding tax", "Labour") in said
    assert any(name == "Connection tax" and "of tier leaf" in what for name, what in said)


def test_it_says_it_in_chinese(result):
    with translation.override("zh-hans"):
        assert "等待税" in taxes.taxes(result).title
        assert "在做有用功" in taxes.losses(result).title


def test_nothing_is_drawn_before_findings_are_there():
    assert taxes.losses({"metrics": {}, "tables": {}}) is None
    assert taxes.taxes(None) is None
    assert taxes.tax_bars(None) == ()
