"""The tornado on cells says what the closed forms say, and keeps what ranges rest on."""

import pytest

from simcore.analysis.cells import evaluate
from simcore.analysis.ranges import default_ranges
from simcore.analysis.sensitivity import design_choices, swings
from simcore.analysis.studies import parse_study
from simcore.analysis.tornado import Tornado
from simcore.plan import plan
from simcore.scenario import Scenario

METRIC = "cost.usd_per_million_tokens"
DOCUMENT = {"name": "one", "hardware": {"chip_count": 2}, "workload": {"request_count": 300}}


@pytest.fixture(scope="module")
def tornado():
    planned = plan(Scenario.parse(DOCUMENT))
    one = Tornado.of(default_ranges(planned), [METRIC], depth="closed_forms", hold=design_choices(planned))
    return parse_study(one.model_dump(mode="json"))


def test_cells_and_closed_forms_agree(tornado):
    rows = tornado.summary(DOCUMENT, list(evaluate(DOCUMENT, tornado.cells(DOCUMENT), depth=tornado.depth)))[
        "tornado"
    ]
    expected = [one.as_dict() for one in swings(DOCUMENT, METRIC)]
    assert {row["path"] for row in rows} == {row["path"] for row in expected}
    by_path = {row["path"]: row for row in expected}
    for row in rows:
        assert row["swing"] == pytest.approx(by_path[row["path"]]["swing"], rel=1e-6, abs=1e-12)
        assert row["basis"] == by_path[row["path"]]["basis"]
        assert row["base"] == by_path[row["path"]]["base"]
    assert [row["swing"] for row in rows] == sorted((row["swing"] for row in rows), reverse=True)


def test_inputs_that_are_not_there_yet_have_no_row(tornado):
    cells = tornado.cells(DOCUMENT)[:5]
    rows = tornado.summary(DOCUMENT, list(evaluate(DOCUMENT, cells, depth="closed_forms")))["tornado"]
    assert len(rows) == 2
    assert tornado.summary(DOCUMENT, [])["tornado"] == []


def test_a_simulated_metric_has_ends_too():
    one = Tornado.model_validate(
        {"ranges": {"workload.arrivals.request_per_s": "4 to 12"}, "metrics": ["serving.ttft_s.p95"]}
    )
    [row] = one.summary(DOCUMENT, list(evaluate(DOCUMENT, one.cells(DOCUMENT), depth=one.depth)))["tornado"]
    assert row["at_low"] < row["at_high"]
    assert row["confidence"] == "yours"
