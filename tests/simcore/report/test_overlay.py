"""Measured beside simulated: a result laid over itself agrees, and another load is said to be another."""

import pytest

from simcore.measurements import Latency, ServingMeasurement
from simcore.report.overlay import nearest, pairs, unlike
from simcore.simulate import Result
from tests.simcore.conftest import Planner

TIMES = ("ttft", "tpot", "itl", "e2e")


@pytest.fixture(scope="module")
def result(planner: Planner) -> Result:
    return planner.result()


def measured(result: Result, *, slower: float = 1.0, **others: object) -> ServingMeasurement:
    """What a benchmark of the simulated system would have said."""
    metrics = result.metrics
    times = {
        name: Latency(
            mean_s=slower * metrics[f"serving.{name}_s.mean"],
            p50_s=slower * metrics[f"serving.{name}_s.p50"],
            p99_s=slower * metrics[f"serving.{name}_s.p99"],
        )
        for name in TIMES
    }
    figures = {
        "source_tool": "vllm-bench",
        "request_per_s": metrics["serving.request_per_s"],
        "input_tokens": 256.0,
        "output_tokens": 32.0,
        "output_token_per_s": metrics["serving.output_token_per_s"],
        **times,
    }
    return ServingMeasurement(**{**figures, **others})


def test_a_result_agrees_with_itself(result: Result) -> None:
    found = pairs(measured(result), result.metrics)
    assert len(found) == 3 * len(TIMES) + 2
    assert all(pair.error_fraction == pytest.approx(0.0) for pair in found)
    assert unlike(measured(result), result.metrics) == ()


def test_what_took_longer_than_simulated_was_simulated_too_fast(result: Result) -> None:
    found = {pair.metric: pair for pair in pairs(measured(result, slower=2.0), result.metrics)}
    assert found["serving.ttft_s.p99"].error_fraction == pytest.approx(-0.5)
    row = found["serving.tpot_s.mean"].as_row()
    assert row["measured"] == pytest.approx(2 * row["simulated"])
    assert found["serving.request_per_s"].error_fraction == pytest.approx(0.0)


def test_a_figure_that_either_lacks_has_no_row(result: Result) -> None:
    bare = measured(result, itl=Latency(), e2e=Latency(mean_s=1.0), output_token_per_s=None)
    names = [pair.metric for pair in pairs(bare, result.metrics)]
    assert "serving.e2e_s.mean" in names
    assert not any("itl" in name or "output_token" in name or name == "serving.e2e_s.p50" for name in names)
    without = {name: value for name, value in result.metrics.items() if "ttft" not in name}
    assert not any("ttft" in pair.metric for pair in pairs(measured(result), without))


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"request_per_s": 60.0}, "Request rate"),
        ({"input_tokens": 300.0}, "Input, mean"),
        ({"output_tokens": 128.0}, "Output, mean"),
        ({"e2e": Latency(mean_s=50.0)}, "Users"),
    ],
)
def test_another_load_is_said(result: Result, change: dict[str, object], what: str) -> None:
    told = [message.params["what"] for message in unlike(measured(result, **change), result.metrics)]
    assert what in told


def test_of_several_load_points_the_nearest_in_proportion_is_taken(result: Result) -> None:
    rate = result.metrics["serving.request_per_s"]
    points = [measured(result, request_per_s=rate * factor) for factor in (0.1, 0.8, 1.5, 9.0)]
    assert nearest(points, result.metrics) is points[1]
    assert nearest(points, {}) is points[0]
