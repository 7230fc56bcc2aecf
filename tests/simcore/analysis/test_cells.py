"""Cells: what `--set` says, in any order, on any number of processes, and a refusal is an answer."""

import pytest

from simcore import Scenario, analyse, plan, simulate
from simcore.analysis.cells import Cell, chunks, evaluate, evaluate_in_processes
from simcore.analysis.estimate import closed_form_metrics
from simcore.errors import InputError

DOCUMENT = {
    "name": "cells",
    "hardware": {"chip": "nvidia-h100-sxm", "chip_count": 1},
    "model": {"name": "llama-3.1-8b"},
    "workload": {"arrivals": {"kind": "poisson", "request_per_s": 4.0}, "request_count": 200},
}
RATES = [
    Cell(index=place, overrides={"workload.arrivals.request_per_s": rate})
    for place, rate in enumerate([2, "8", "x2", 16.0])
]


def _alone(rate: float):
    document = {
        **DOCUMENT,
        "workload": {"arrivals": {"kind": "poisson", "request_per_s": rate}, "request_count": 200},
    }
    return plan(Scenario.parse(document))


def test_a_cell_is_the_scenario_with_its_overrides():
    found = list(evaluate(DOCUMENT, RATES))
    assert [one.index for one in found] == [0, 1, 2, 3]
    for one, rate in zip(found, [2.0, 8.0, 8.0, 16.0], strict=True):
        alone = simulate(_alone(rate))
        assert one.digest == alone.digest
        assert one.metrics == {
            name: value if isinstance(value, str) else float(value) for name, value in alone.metrics.items()
        }


def test_depth_says_how_far_a_cell_goes():
    depths = {
        depth: next(evaluate(DOCUMENT, RATES[:1], depth=depth)).metrics.keys()
        for depth in ("closed_forms", "simulated", "analysed")
    }
    planned = _alone(2.0)
    result = simulate(planned)
    assert depths["closed_forms"] == closed_form_metrics(planned).keys()
    assert depths["simulated"] == result.metrics.keys()
    assert depths["analysed"] == result.with_findings(analyse(planned, result)).metrics.keys()


def test_a_refused_and_an_infeasible_cell_say_why_and_stop_nobody():
    cells = [
        Cell(index=0, overrides={"workload.arrivals.request_per_s": "fast"}),
        Cell(index=1, overrides={"model.name": "llama-3.1-405b"}),
        Cell(index=2, overrides={"hardware.chip_count": 1}),
    ]
    refused, infeasible, fine = evaluate(DOCUMENT, cells, depth="closed_forms")
    assert refused.errors[0]["path"] == "workload.arrivals.request_per_s"
    assert infeasible.errors
    assert not infeasible.metrics
    assert not fine.errors
    assert fine.metrics


def test_keep_chooses_metrics_and_what_is_known_is_not_run_again():
    only = next(evaluate(DOCUMENT, RATES[:1], keep=lambda name: name == "serving.request_per_s"))
    assert list(only.metrics) == ["serving.request_per_s"]
    known = {only.digest: {"serving.request_per_s": 7.0}}
    told = list(evaluate(DOCUMENT, RATES[:2], known=known))
    assert told[0].metrics == {"serving.request_per_s": 7.0}
    assert len(told[1].metrics) > 1
    assert known[told[1].digest].keys() == told[1].metrics.keys()


def test_a_check_refuses_a_cell_and_a_listener_stops_all():
    def refuse(scenario):
        raise InputError.at("workload", "limit.requests", "no")

    assert next(evaluate(DOCUMENT, RATES[:1], check=refuse)).errors[0]["code"] == "limit.requests"

    def stop(kind, payload):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(evaluate(DOCUMENT, RATES, on_event=stop))


def test_processes_find_what_one_process_finds():
    here = list(evaluate(DOCUMENT, RATES, depth="closed_forms"))
    there = sorted(
        evaluate_in_processes(DOCUMENT, RATES, jobs=2, depth="closed_forms"), key=lambda one: one.index
    )
    assert there == here


@pytest.mark.parametrize(("count", "parts"), [(1, 8), (7, 3), (1000, 16), (1000, 1)])
def test_chunks_cover_every_cell_once(count, parts):
    cells = [Cell(index=place, overrides={}) for place in range(count)]
    cut = chunks(cells, parts=parts)
    assert [cell for chunk in cut for cell in chunk] == cells
    assert len(cut) >= min(parts, count)
    assert max(map(len, cut)) <= 50
