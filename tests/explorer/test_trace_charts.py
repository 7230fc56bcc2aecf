"""What is said of a trace in words and pictures."""

from typing import Any

import pytest

from explorer.charts import trace

LENGTHS = {
    "mean": 1000.0,
    "cv": 1.0,
    "p50": 700.0,
    "p90": 2000.0,
    "p95": 3000.0,
    "p99": 5000.0,
    "max": 8000.0,
}


def figures(**changed: Any) -> dict[str, Any]:
    return {
        "row_count": 20_000,
        "skipped_count": 0,
        "span_s": 3600.0,
        "mean_request_per_s": 5.5,
        "peak_minute_count": 480,
        "gap_cv_ratio": 1.0,
        "tied_gap_fraction": 0.0,
        "least_gap_s": 1e-4,
        "dispersion_ratio": 1.1,
        "input_tokens": LENGTHS,
        "output_tokens": LENGTHS,
        "shared_prompt_fraction": None,
        "content_sha256": "0" * 64,
    } | changed


def described(**changed: Any) -> dict[str, Any]:
    series = {
        "arrivals": {"time_s": [0.0, 1800.0], "request_per_min": [300.0, 360.0]},
        "lengths": {"fraction": [0.0, 1.0], "input_tokens": [1.0, 8000.0], "output_tokens": [2.0, 900.0]},
    }
    return {"figures": figures(**changed), "series": series}


@pytest.mark.parametrize(
    ("cv", "said"),
    [
        (1.05, "as random as a Poisson process"),
        (2.0, "a Gamma process with cv = 2.00 (shape 0.25) is as bursty"),
        (0.5, "a Gamma process with cv = 0.50 (shape 4) is as regular"),
        (None, "too few requests"),
    ],
)
def test_burstiness_is_told_beside_poisson_and_gamma(cv: float | None, said: str) -> None:
    assert said in trace.burstiness(figures(gap_cv_ratio=cv, tied_gap_fraction=0.0))


def test_a_recorder_that_rounds_is_not_called_a_bursty_process() -> None:
    said = trace.burstiness(figures(gap_cv_ratio=2.4, tied_gap_fraction=0.6, least_gap_s=1.0))
    assert "60 % of the gaps" in said
    assert "Gamma" not in said
    assert "Gamma" in trace.burstiness(figures(gap_cv_ratio=6.0, tied_gap_fraction=0.4, least_gap_s=1e-9))


def test_waves_are_told_apart_from_clumps() -> None:
    assert "comes in waves" in trace.waves(figures(dispersion_ratio=14.0))[0]
    assert trace.waves(figures(dispersion_ratio=1.2)) == ()
    assert (
        trace.waves(figures(dispersion_ratio=4.0, gap_cv_ratio=2.0)) == ()
    )  # what such gaps give by themselves


def test_prefixes_are_told_where_the_trace_has_hashes() -> None:
    assert "37.0 % of the prompt tokens" in trace.prefixes(figures(shared_prompt_fraction=0.37))
    assert "no block hashes" in trace.prefixes(figures())


def test_the_headline_states_rates() -> None:
    headline = trace.panel(described()).headline
    assert headline == "20,000 requests in 1 h: 330 a minute on average, at most 480 within one"
    at_once = described(
        span_s=0.0, mean_request_per_s=None, gap_cv_ratio=None, dispersion_ratio=None, row_count=3
    )
    assert trace.panel(at_once).headline == "3 requests at one instant"


def test_pictures_have_units_and_the_data_as_a_table() -> None:
    panel = trace.panel(described(skipped_count=25))
    arrivals, lengths, _table = panel.charts
    assert arrivals.body["data"][0]["x"] == [0.0, 30.0]
    assert arrivals.body["layout"]["xaxis"]["ticksuffix"] == " min"
    assert arrivals.body["layout"]["yaxis"]["ticksuffix"] == " /min"
    assert [line["name"] for line in lengths.body["data"]] == ["prompt", "answer"]
    assert all(chart.table and chart.summary for chart in panel.charts)
    assert panel.extra == {"more": 5}
    assert "25 of 20,025 rows" in panel.notes[0].text
