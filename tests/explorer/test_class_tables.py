"""The Serving page shows what each class of requests got, where the scenario parts its requests, and when."""

from typing import Any

from explorer import charts
from explorer.charts import class_curves, latency_cdf, serving_classes
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
    assert "objective" in latency_cdf.cdf("ttft", documents.serving()).title
    assert "objective" not in latency_cdf.cdf("ttft", parted()).title


def over_time(count: int = 2, *, waiting: float = 3.0) -> dict[str, Any]:
    """A result whose classes are followed for four slices; the last class waits longest."""
    document = parted()
    names = [f"class {place}" for place in range(count)]
    document["tables"]["classes"] = [
        {"class": name, "completed_count": 1, "rejected_count": 0} for name in names
    ]
    columns: dict[str, list[float | None]] = {"time_s": [0.0, 1.0, 2.0, 3.0]}
    for place, name in enumerate(names):
        columns |= {
            f"{name}.waiting": [0.0, 0.5, waiting * (place + 1), 0.0],
            f"{name}.running": [1.0, 2.0, 2.0, 1.0],
            f"{name}.ttft_s.p50": [0.1, 0.2, 0.3, None],
            f"{name}.ttft_s.p99": [0.2, 0.4, 0.9, None],
        }
    document["series"]["serving_classes"] = columns
    return document


def test_it_draws_each_class_over_time_and_names_the_longest_line() -> None:
    chart = class_curves.over_time(over_time())
    assert chart.title == "Of class 1, up to 6 requests wait"
    lines = [(line["name"], line["yaxis"], line["y"][2]) for line in chart.body["data"]]
    assert lines == [
        ("class 0", "y", 3.0), ("class 0", "y2", 2.0), ("class 0", "y3", 0.9),
        ("class 1", "y", 6.0), ("class 1", "y2", 2.0), ("class 1", "y3", 0.9),
    ]  # fmt: skip
    assert texts(chart)[-1] == ["3 s", "class 1", "0.0", "1.0", "–", "–"]
    assert "class-over-time" in {found.slug for found in charts.panel("serving", over_time()).charts}


def test_it_draws_of_many_classes_those_that_wait_most() -> None:
    chart = class_curves.over_time(over_time(9))
    drawn = {line["name"] for line in chart.body["data"]}
    assert drawn == {f"class {place}" for place in range(4, 9)}


def test_it_says_where_no_class_waits_and_draws_nothing_before_there_is_something() -> None:
    assert class_curves.over_time(over_time(waiting=0.1)).title == "Hardly a request of any class waits"
    assert class_curves.over_time(parted()) is None
    assert class_curves.over_time(None) is None
