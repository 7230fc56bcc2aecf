"""The Serving page says how sure its means are: over replications, and after the warm-up of one run."""

from typing import Any

from explorer import charts
from explorer.charts import serving_precision
from tests.explorer import documents


def sure(**tables: Any) -> dict[str, Any]:
    document = documents.serving()
    document["tables"] |= tables
    return document


REPLICATIONS = [
    {"metric": "serving.makespan_s", "mean": 100.0, "low": 99.0, "high": 101.0, "count": 5},
    {"metric": "serving.ttft_s.mean", "mean": 0.2, "low": 0.18, "high": 0.22, "count": 5},
]
SETTLED = {
    "metric": "serving.ttft_s", "is_steady": True, "warmup_s": 12.5, "warmup_count": 100, "batch_count": 20,
    "mean_s": 0.2, "low_s": 0.19, "high_s": 0.21, "level_fraction": 0.95,
}  # fmt: skip
NEVER = {"metric": "serving.e2e_s", "is_steady": False}


def texts(chart: Any) -> list[list[str]]:
    return [[f"{cell.text} {cell.unit}".strip() for cell in row] for row in chart.table.rows]


def test_it_shows_the_intervals_of_the_results_that_people_read() -> None:
    chart = serving_precision.replications(sure(replications=REPLICATIONS))
    assert chart.title == "Means of 5 replications"
    assert texts(chart) == [["TTFT mean", "200 ms", "180 ms", "220 ms"]]


def test_it_shows_when_a_run_settled() -> None:
    chart = serving_precision.steady_state(sure(steady_state=[SETTLED]))
    assert chart.title == "Settled after 12.5 s"
    assert texts(chart) == [["TTFT", "12.5 s", "200 ms", "190 ms", "210 ms"]]


def test_it_says_what_does_not_settle() -> None:
    chart = serving_precision.steady_state(sure(steady_state=[SETTLED, NEVER]))
    assert chart.title == "Does not settle within the run: End to end"
    assert texts(chart)[1] == ["End to end", "–", "–", "–", "–"]


def test_it_stands_on_the_serving_page_where_there_is_something_to_say() -> None:
    both = sure(replications=REPLICATIONS, steady_state=[SETTLED])
    slugs = {chart.slug for chart in charts.panel("serving", both).charts}
    assert {"replications", "steady-state"} <= slugs
    plain = {chart.slug for chart in charts.panel("serving", documents.serving()).charts}
    assert not {"replications", "steady-state"} & plain
