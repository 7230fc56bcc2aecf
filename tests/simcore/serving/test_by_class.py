"""Classes in a result: their rows add up to the whole, and each request is held to its own class's SLO."""

import numpy as np
import pytest

from simcore.simulate import Result
from tests.simcore.conftest import Planner

CHAT = {"name": "chat", "share_fraction": 0.7, "slo": {"ttft_s": 0.05, "tpot_s": 0.02}}
DOCUMENTS = {
    "name": "documents",
    "share_fraction": 0.3,
    "lengths": {"kind": "constant", "input_tokens": 3000, "output_tokens": 40},
    "slo": {"ttft_s": 0.25, "tpot_s": 0.03},
}
BUSY = {"workload.arrivals.request_per_s": 25, "workload.request_count": 600}


@pytest.fixture(scope="module")
def parted(planner: Planner) -> Result:
    return planner.result({**BUSY, "workload.classes": [CHAT, DOCUMENTS]})


def test_counts_and_goodput_of_the_classes_sum_to_the_whole(parted: Result) -> None:
    rows = parted.tables["classes"]
    assert [row["class"] for row in rows] == ["chat", "documents"]
    for name in ("completed_count", "rejected_count", "slo_goodput_request_per_s"):
        assert sum(row[name] for row in rows) == pytest.approx(parted.metrics[f"serving.{name}"])
    counts = np.array([row["completed_count"] for row in rows])
    assert counts.sum() == 600
    for name in ("ttft_s", "e2e_s"):
        means = np.array([row[f"{name}.mean"] for row in rows])
        assert means @ counts / 600 == pytest.approx(parted.metrics[f"serving.{name}.mean"])


def test_a_request_is_held_to_the_slo_of_its_own_class(parted: Result, planner: Planner) -> None:
    planned = planner.plan({**BUSY, "workload.classes": [CHAT, DOCUMENTS]})
    records, class_of = parted.records, planned.serving.inputs.requests.class_of
    tpot_s = (records.finish_s - records.first_token_s) / (records.output_tokens - 1)
    ttft_s = records.ttft_s + planned.serving.pool.step_table.front_end_s
    met = [(ttft_s <= one["slo"]["ttft_s"]) & (tpot_s <= one["slo"]["tpot_s"]) for one in (CHAT, DOCUMENTS)]
    assert met[0].any()
    assert not met[0].all()
    for place, row in enumerate(parted.tables["classes"]):
        own = class_of == place
        assert row["slo_attainment_fraction"] == pytest.approx(met[place][own].mean())
        assert row["ttft_s.p95"] == pytest.approx(np.percentile(ttft_s[own], 95))
    whole = np.where(class_of == 0, met[0], met[1]).mean()
    assert parted.metrics["serving.slo_attainment_fraction"] == pytest.approx(whole)
    assert whole != pytest.approx(met[0].mean(), abs=0.01)  # one SLO for all would say something else


def test_one_class_of_the_workloads_own_is_no_class_at_all(planner: Planner) -> None:
    without = planner.result(BUSY)
    one = planner.result({**BUSY, "workload.classes": [{"name": "all", "share_fraction": 1.0}]})
    assert one.metrics == without.metrics
    assert "classes" not in without.tables
    row = one.tables["classes"][0]
    for name, value in row.items():
        if name not in ("class", "slo_ttft_s", "slo_tpot_s"):
            assert value == without.metrics[f"serving.{name}"], name


def test_what_every_class_says_for_itself_is_said_to_be_unread_of_the_workload(planner: Planner) -> None:
    both = [CHAT | {"lengths": DOCUMENTS["lengths"]}, DOCUMENTS]
    paths = {"workload.slo.ttft_s": 0.3, "workload.lengths.input_tokens": 99}
    found = {
        warning.path
        for warning in planner.plan({**paths, "workload.classes": both}).warnings
        if warning.code == "input.no_effect"
    }
    assert {"workload.slo", "workload.lengths"} <= found
    partly = planner.plan({**paths, "workload.classes": [CHAT, DOCUMENTS]}).warnings
    assert "workload.lengths" not in {warning.path for warning in partly}


def test_a_class_without_a_request_has_counts_alone(planner: Planner) -> None:
    rare = [{"name": "often", "share_fraction": 0.999999}, {"name": "never", "share_fraction": 0.000001}]
    row = planner.result({**BUSY, "workload.request_count": 5, "workload.classes": rare}).tables["classes"][1]
    assert row["completed_count"] == 0
    assert "ttft_s.mean" not in row
    assert "slo_attainment_fraction" not in row
