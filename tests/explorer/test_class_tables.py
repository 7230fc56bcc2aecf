"""The Serving page shows what each class of requests got, where the scenario parts its requests."""

from typing import Any

from explorer import charts
from explorer.charts import serving, serving_classes
from tests.explorer import documents


def parted(*, chat_share: float = 0.91) -> dict[str, Any]:
    """A result with two classes, one of which finished no request."""
    document = documents.serving()
    document["scenario"]["workload"]["classes"] = [
        {"name": "chat", "share_fraction": 0.999, "slo": {"ttft_s": 0.5}},
        {"name": "batch", "share_fraction": 0.001},
    ]
    chat = {f"{time}.{mark}": 0.25 for time in ("ttft_s", "e2e_s") for mark in serving_classes.MARKS}
    document["tables"]["classes"] = [
        {
            "class": "chat", "completed_count": 1000, "rejected_count": 0, "slo_ttft_s": 0.5, "slo_tpot_s": 0.05,
            "slo_attainment_fraction": chat_share, "slo_goodput_request_per_s": 7.28, **chat,
        },
        {
            "class": "batch", "completed_count": 0, "rejected_count": 0, "slo_ttft_s": 2.0, "slo_tpot_s": 0.05,
            "slo_goodput_request_per_s": 0.0,
        },
    ]  # fmt: skip
    return document


def texts(chart: Any) -> list[list[str]]:
    return [[cell.text for cell in row] for row in chart.table.rows]


def test_it_shows_each_class_against_its_own_slo() -> None:
    chart = serving_classes.attainment(parted())
    assert chart.title == "chat meets its SLO least often: 91.0 % of its requests"
    assert texts(chart) == [
        ["chat", "1,000", "0", "500", "50", "91", "7.28"],
        ["batch", "0", "0", "2", "50", "–", "0"],
    ]


def test_it_lists_the_times_of_the_classes_that_finished_any() -> None:
    chart = serving_classes.times(parted())
    assert [row[:2] for row in texts(chart)] == [["chat", "TTFT"], ["chat", "End to end"]]


def test_it_says_what_changed_since_the_baseline() -> None:
    chart = serving_classes.attainment(parted(), parted(chat_share=0.81))
    change = chart.table.rows[0][5].delta
    assert (change.text, change.quality) == ("10.0 pt", "better")


def test_it_stands_on_the_serving_page_of_a_scenario_with_classes_only() -> None:
    slugs = {chart.slug for chart in charts.panel("serving", parted()).charts}
    assert {"classes", "class-times"} <= slugs
    assert not {"classes", "class-times"} & {
        chart.slug for chart in charts.panel("serving", documents.serving()).charts
    }


def test_it_marks_no_common_objective_where_each_class_has_its_own() -> None:
    assert "objective" in serving.cdf("ttft", documents.serving()).title
    assert "objective" not in serving.cdf("ttft", parted()).title
