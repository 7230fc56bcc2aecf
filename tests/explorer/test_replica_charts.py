"""Replicas ready and starting over simulated time on the Serving page."""

from typing import Any

import pytest

from explorer.charts import panels, replicas
from explorer.forms import changes, outline
from tests.explorer import documents


def result(ready: list[float], starting: list[float], **metrics: float) -> dict[str, Any]:
    found = documents.serving()
    columns = {name: list(values)[: len(ready)] for name, values in found["series"]["serving"].items()}
    columns |= {"replicas": ready, "replicas_starting": starting}
    return found | {
        "series": found["series"] | {"serving": columns},
        "metrics": found["metrics"] | metrics,
    }


def test_those_that_start_stand_on_those_that_are_ready() -> None:
    scaled = result(
        [1.0, 1.0, 3.0], [0.0, 2.0, 0.0], **{"serving.autoscaling.ready_replica_count.mean": 1.75}
    )
    chart = replicas.over_time(scaled)
    assert chart is not None
    assert [trace["y"] for trace in chart.body["data"]] == [[1.0, 1.0, 3.0], [0.0, 2.0, 0.0]]
    assert {trace["stackgroup"] for trace in chart.body["data"]} == {"replicas"}
    assert chart.title == "From 1 to 3 replicas are ready, 1.8 in the mean"
    assert "replicas" in [chart.slug for chart in panels.panel("serving", scaled).charts]


def test_a_number_that_stays_is_said() -> None:
    chart = replicas.over_time(result([2.0, 2.0], [0.0, 0.0]))
    assert chart is not None
    assert chart.title == "The load never asks for more or fewer than 2 ready replicas"


@pytest.mark.parametrize("one", [None, documents.serving()])
def test_without_an_autoscaler_there_is_no_chart(one: dict[str, Any] | None) -> None:
    assert replicas.over_time(one) is None


def test_the_form_offers_it_off_and_turns_it_on_and_off_again() -> None:
    plain: dict[str, Any] = {"name": "plain"}
    paths = [field.path for field in outline(plain).fields]
    assert "serving.autoscaling.kind" in paths
    assert "serving.autoscaling.target" not in paths
    choice = next(field for field in outline(plain).fields if field.path == "serving.autoscaling.kind")
    assert choice.choices[0] == ("", "off")
    on = {"serving": {"autoscaling": {"kind": "kv_usage", "target": 0.5}}}
    written = {field.path: field.value for field in outline(plain | on).fields}
    assert written["serving.autoscaling.target"] == "0.5"
    assert changes(plain | on, written) == {}
    assert changes(plain | on, written | {"serving.autoscaling.kind": ""}) == {"serving.autoscaling.kind": ""}
