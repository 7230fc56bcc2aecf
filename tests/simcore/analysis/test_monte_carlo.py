"""Draws over intervals: the quantiles of what goes in, one point where nothing is uncertain, and paired draws."""

import numpy as np
import pytest

from simcore.analysis.cells import CellResult, evaluate
from simcore.analysis.monte_carlo import MonteCarlo
from simcore.analysis.studies import parse_study
from simcore.analysis.targets import Target, parse_target
from simcore.errors import InputError
from simcore.plan import plan
from simcore.scenario import Scenario

RATE, POWER = "workload.arrivals.request_per_s", "economics.electricity_usd_per_kwh"
METRIC = "cost.tco_usd_per_year"
DOCUMENT = {"name": "one", "hardware": {"chip_count": 1}, "workload": {"request_count": 300}}


def study(**changes):
    given = {
        "ranges": {POWER: "0.05 to 0.15"},
        "metrics": [METRIC],
        "depth": "closed_forms",
        "draw_count": 40,
    }
    return MonteCarlo.model_validate(given | changes)


def results_of(one, document=DOCUMENT):
    return list(evaluate(document, one.cells(document), depth=one.depth, keep=one.keeps))


def test_the_output_of_a_linear_input_has_the_quantiles_of_the_input():
    one = study(draw_count=400)
    [row] = one.summary(DOCUMENT, results_of(one))["distribution"]
    ends = [
        plan(Scenario.parse(DOCUMENT | {"economics": {"electricity_usd_per_kwh": usd}}))
        for usd in (0.05, 0.15)
    ]
    low, high = (float(ended.metrics[METRIC]) for ended in ends)
    assert row["p5"] == pytest.approx(low, rel=0.002)
    assert row["p95"] == pytest.approx(high, rel=0.002)
    assert row["draw_count"] == 400
    assert row["failed_count"] == 0


def test_a_degenerate_interval_is_the_point_result():
    one = study(ranges={POWER: {"low": 0.08, "high": 0.08}})
    [row] = one.summary(DOCUMENT, results_of(one))["distribution"]
    value = plan(Scenario.parse(DOCUMENT)).metrics[METRIC]
    assert row["p5"] == row["p50"] == row["p95"] == row["mean"] == pytest.approx(value)
    assert row["standard_error"] == pytest.approx(0.0, abs=1e-6)


def test_one_seed_is_one_set_of_draws_whatever_else_is_uncertain():
    alone, beside = (
        study().cells(DOCUMENT),
        study(ranges={RATE: "4 to 9", POWER: "0.05 to 0.15"}).cells(DOCUMENT),
    )
    assert [cell.overrides[POWER] for cell in alone] == [cell.overrides[POWER] for cell in beside]
    assert alone == study().cells(DOCUMENT | {"name": "another"})
    assert alone != study(seed=2).cells(DOCUMENT)


def test_two_scenarios_differ_less_draw_by_draw_than_alone():
    one = study(ranges={RATE: "2 to 20"}, metrics=["cost.usd_per_million_tokens"], draw_count=60)
    faster = DOCUMENT | {"hardware": {"chip_count": 1, "chip_overrides": {"tdp_w": 800}}}
    first, second = (
        np.array([result.metrics["cost.usd_per_million_tokens"] for result in results_of(one, document)])
        for document in (DOCUMENT, faster)
    )
    assert np.std(second - first) < 0.2 * np.std(first)


def test_the_input_that_matters_is_ranked_first():
    one = study(ranges={POWER: "0.05 to 0.15", "economics.pue": "1.2 to 1.21"})
    rows = one.summary(DOCUMENT, results_of(one))["rank_correlations"]
    assert [row["path"] for row in rows] == [POWER, "economics.pue"]
    assert rows[0]["correlation"] > 0.95


def test_chances_are_counted_and_what_cannot_be_built_meets_nothing():
    one = study(targets=({"metric": METRIC, "at_most": 100.0},), draw_count=4)
    results = [
        CellResult(index=0, metrics={METRIC: 90.0}),
        CellResult(index=1, metrics={METRIC: 100.0}, warnings=("compute.extrapolated",)),
        CellResult(index=2, metrics={METRIC: 110.0}),
        CellResult(index=3, errors=({"code": "x", "message": "does not fit"},)),
    ]
    summary = one.summary(DOCUMENT, results)
    [chance] = summary["chances"]
    assert chance["fraction"] == 0.5
    assert chance["standard_error"] == pytest.approx(0.25)  # √(0.5 · 0.5 / 4)
    [row] = summary["distribution"]
    assert (row["failed_count"], row["extrapolated_count"]) == (1, 1)
    assert row["mean"] == pytest.approx(100.0)
    assert row["standard_error"] == pytest.approx(10 / 3**0.5)
    assert sum(bar["count"] for bar in summary["histogram"]) == 3


def test_no_result_yet_is_an_empty_summary():
    assert study().summary(DOCUMENT, []) == {
        "distribution": [], "histogram": [], "rank_correlations": [], "chances": [],
    }  # fmt: skip


def test_whole_numbers_are_drawn_whole_and_choices_are_held():
    one = study(ranges={"serving.scheduler.max_num_seqs": "20 to 60"}, hold={"serving.parallelism.tp": 1})
    cells = one.cells(DOCUMENT)
    assert all(isinstance(cell.overrides["serving.scheduler.max_num_seqs"], int) for cell in cells)
    assert all(cell.overrides["serving.parallelism.tp"] == 1 for cell in cells)


def test_a_specification_is_read_from_a_document_and_refused_by_path():
    one = parse_study({"kind": "monte_carlo", "ranges": {RATE: "5 to 8"}, "metrics": [METRIC]})
    assert one.ranges[RATE].low == 5.0
    assert parse_study(one.model_dump(mode="json")) == one
    with pytest.raises(InputError, match="got 'five'; write the ends"):
        parse_study({"kind": "monte_carlo", "ranges": {RATE: "five"}, "metrics": [METRIC]})


def test_targets_carry_the_unit_of_their_metric():
    assert parse_target("serving.ttft_s.p95 <= 200 ms") == Target(metric="serving.ttft_s.p95", at_most=0.2)
    assert parse_target("serving.slo_attainment_fraction ≥ 95 %").at_least == pytest.approx(0.95)
    assert parse_target("serving.ttft_s.p95 <= 200 ms").message.text == "TTFT p95 ≤ 200 ms"
    with pytest.raises(InputError, match="write a metric and its bound"):
        parse_target("fast please")
