"""Plan search: closed forms over arrays are those of the plan, and its answers keep the laws of a search."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore import Scenario, errors, plan
from simcore.analysis.cells import Cell, evaluate
from simcore.analysis.search import Search, answer, cells_of, closed_forms, search
from simcore.analysis.search.choices import feasible
from simcore.analysis.search.columns import replica_counts, seat_waits_s, seats_of
from simcore.analysis.search.rows import overrides
from simcore.analysis.studies import parse_study
from simcore.scenario import apply_overrides
from simcore.serving.estimate import TPOT_BAND, erlang_c

DOCUMENT = {
    "name": "search",
    "hardware": {"chip": "nvidia-h100-sxm", "chip_count": 8},
    "model": {"name": "llama-3.1-8b"},
    "workload": {
        "arrivals": {"kind": "poisson", "request_per_s": 12.0},
        "request_count": 400,
        "slo": {"ttft_s": 1.0, "tpot_s": 0.03},
    },
}
SMALL = {
    "chips": ("nvidia-h100-sxm", "nvidia-a100-80gb-sxm"),
    "max_chips": 8,
    "tp": (1, 2),
    "pp": (1, 2),
    "max_num_seqs": ("auto", 32),
    "max_num_batched_tokens": ("auto",),
}


def _planned(found, place):
    document, _ = apply_overrides(DOCUMENT, overrides(found.candidates, place, found.scenario, found.search))
    return plan(Scenario.parse(document))


@pytest.mark.parametrize("scheduler", ["chunked_prefill", "continuous", "disaggregated"])
def test_a_candidates_figures_are_those_of_its_plan(scheduler):
    found = closed_forms(DOCUMENT, Search(**SMALL, schedulers=(scheduler,)))
    places = np.flatnonzero(found.feasible)
    assert len(places) > 20
    for place in places[:: len(places) // 12]:
        planned, columns = _planned(found, int(place)), found.candidates.columns
        metrics = planned.metrics
        for name in ("ttft_s", "tpot_s"):
            figure = found.candidates.figures[name][place]
            assert figure == pytest.approx(metrics[f"serving.estimate.{name}"], rel=1e-6)
        assert columns.capacity_request_per_s[place] == pytest.approx(
            metrics["serving.capacity_request_per_s"], rel=1e-6
        )


def test_a_candidates_money_is_that_of_closed_form_cells():
    found = closed_forms(DOCUMENT, Search(**SMALL))
    place = found.best
    said = overrides(found.candidates, place, found.scenario, found.search)
    (result,) = evaluate(DOCUMENT, [Cell(index=0, overrides=said)], depth="closed_forms")
    for name in ("usd_per_million_tokens", "tco_usd_per_year", "joule_per_token"):
        assert found.candidates.figures[name][place] == pytest.approx(
            result.metrics[f"cost.{name}"], rel=1e-6
        )


def test_brute_force_by_plans_finds_the_same_best():
    wanted = Search(
        **(SMALL | {"chips": SMALL["chips"][:1], "max_chips": 4}), schedulers=("chunked_prefill",)
    )
    found = closed_forms(DOCUMENT, wanted)
    cells = [
        Cell(
            index=index,
            overrides={
                "serving.parallelism.tp": tp,
                "serving.parallelism.pp": pp,
                "serving.replica_count": replicas,
                "hardware.chip_count": tp * pp * replicas,
                "serving.scheduler.max_num_seqs": seats,
            },
        )
        for index, (tp, pp, replicas, seats) in enumerate(
            (tp, pp, replicas, seats)
            for tp in (1, 2)
            for pp in (1, 2)
            for replicas in range(1, 4 // (tp * pp) + 1)
            for seats in ("auto", 32)
        )
    ]
    results = [one.metrics for one in evaluate(DOCUMENT, cells, depth="closed_forms")]
    kept = [
        one["cost.usd_per_million_tokens"]
        for one in results
        if one.get("serving.estimate.ttft_s", 9) <= 1.0 and one.get("serving.estimate.tpot_s", 9) <= 0.03
    ]
    assert len(found.candidates) == len(cells)
    assert min(kept) == pytest.approx(
        found.candidates.figures["usd_per_million_tokens"][found.best], rel=1e-6
    )


@settings(max_examples=8, deadline=None)
@given(
    ttft_s=st.floats(0.02, 2.0),
    tpot_s=st.floats(0.004, 0.05),
    objective=st.sampled_from(["usd_per_million_tokens", "chip_count", "joule_per_token", "tpot_s"]),
)
def test_what_is_returned_keeps_the_limits_and_nothing_beats_the_front(ttft_s, tpot_s, objective):
    found = closed_forms(DOCUMENT, Search(**SMALL, ttft_s=ttft_s, tpot_s=tpot_s, objective=objective))
    figures = found.candidates.figures
    if found.best is None:
        assert found.relaxations or found.nearest
        for one in found.relaxations:
            loosened = dict(found.limits) | {one.limit: one.needed}
            assert feasible(found.candidates, loosened)[one.place]
            assert one.needed > one.asked
        return
    for place in [found.best, *found.frontier]:
        assert figures["ttft_s"][place] <= ttft_s * (1 + 1e-8)
        assert figures["tpot_s"][place] <= tpot_s * (1 + 1e-8)
        assert found.candidates.columns.chip_count[place] <= 8
    score = found.candidates.score(objective)
    assert score[found.best] == np.nanmin(score[found.feasible])
    per_chip, times = figures["output_token_per_s_per_chip"], figures["tpot_s"]
    for place in found.frontier:
        better = (per_chip >= per_chip[place]) & (times <= times[place]) & found.feasible
        strictly = (per_chip > per_chip[place]) | (times < times[place])
        assert not (better & strictly).any()


@settings(max_examples=6, deadline=None)
@given(first=st.floats(0.006, 0.05), second=st.floats(0.006, 0.05))
def test_a_tighter_limit_never_improves_the_objective(first, second):
    tight, loose = sorted((first, second))
    found = [closed_forms(DOCUMENT, Search(**SMALL, tpot_s=limit)) for limit in (tight, loose)]
    if found[0].best is not None:
        scores = [one.candidates.score("usd_per_million_tokens")[one.best] for one in found]
        assert scores[0] >= scores[1] * (1 - 1e-12)


def test_more_candidates_never_worsen_the_best():
    few = closed_forms(DOCUMENT, Search(**SMALL))
    more = closed_forms(DOCUMENT, Search(**(SMALL | {"chips": (*SMALL["chips"], "nvidia-h200-sxm")})))
    assert len(more.candidates) > len(few.candidates)
    best = [one.candidates.score("usd_per_million_tokens")[one.best] for one in (few, more)]
    assert best[1] <= best[0] * (1 + 1e-12)


def test_an_impossible_limit_is_named_with_the_nearest_that_is_possible():
    told = search(DOCUMENT, Search(**SMALL, tpot_s=0.001))
    assert told.recommended is None
    assert told.feasible_count == 0
    assert told.messages[0].code == "search.binding"
    assert "TPOT ≤ 1 ms binds: the least is " in told.messages[0].text
    moved = told.relaxations[0]
    again = search(DOCUMENT, Search(**SMALL, tpot_s=moved["needed"] * 1.001, verified=0))
    assert again.feasible_count > 0


def test_the_front_is_simulated_and_the_recommended_design_keeps_the_slo():
    told = search(DOCUMENT, Search(**SMALL))
    assert told.recommended["keeps_slo"]
    assert told.recommended["serving.slo_attainment_fraction"] >= 0.95
    verified = [row for row in told.rows if "simulated" in row]
    assert len(verified) >= 3
    for row in verified:
        assert 1 / TPOT_BAND < row["ratio"]["tpot_s"] < TPOT_BAND
    assert told.messages[0].code == "search.recommended"


def test_a_free_rate_is_part_of_the_design():
    found = closed_forms(
        DOCUMENT, Search(**SMALL, rate="free", objective="output_token_per_s_per_chip", ttft_s=2.0)
    )
    said = overrides(found.candidates, found.best, found.scenario, found.search)
    assert said["workload.arrivals"]["request_per_s"] > 12
    assert found.candidates.columns.load_ratio[found.best] <= 0.8


def test_users_of_a_closed_loop_need_no_rate():
    document = DOCUMENT | {
        "workload": {"arrivals": {"kind": "closed_loop", "concurrency": 16}, "request_count": 200}
    }
    told = search(document, Search(**SMALL, objective="output_token_per_s_per_chip", verified=2))
    assert told.feasible_count > 0
    assert told.rows[0]["ratio"]["tpot_s"] == pytest.approx(1.0, abs=0.15)


def test_ranks_that_share_experts_are_searched_where_there_are_experts():
    document = DOCUMENT | {"model": {"name": "qwen3-30b-a3b"}}
    found = closed_forms(document, Search(**SMALL, dp=(1, 2), schedulers=("chunked_prefill",)))
    cuts = {(lane.cut.tp, lane.cut.dp, lane.cut.ep) for lane in found.candidates.lanes}
    assert (2, 2, 4) in cuts
    assert (2, 1, 1) in cuts


def test_erlang_c_of_many_is_that_of_each():
    found = closed_forms(DOCUMENT, Search(**SMALL, schedulers=("chunked_prefill",)))
    curves = [lane.curve for lane in found.candidates.lanes[:4]]
    loads = np.array([0.2, 0.5, 0.75])
    waits = seat_waits_s([seats_of(curve, loads) for curve in curves]).reshape(-1, 3)
    for curve, row in zip(curves, waits, strict=True):
        one = seats_of(curve, loads)
        for load, wait in zip(loads, row, strict=True):
            expected = erlang_c(one.count, load * one.count) * one.service_s / (one.count * (1 - load))
            assert wait == pytest.approx(expected, rel=1e-9)


def test_replica_counts_are_all_of_few_and_some_of_many():
    assert list(replica_counts(5)) == [1, 2, 3, 4, 5]
    many = replica_counts(1000)
    assert many[-1] == 1000
    assert (many[1:] / many[:-1]).max() <= 2
    assert (many[33:] / many[32:-1]).max() < 1.04
    assert not len(replica_counts(0))


def test_a_search_is_a_study():
    study = parse_study({"kind": "search", **SMALL, "verified": 2})
    cells = study.cells(DOCUMENT)
    assert len(cells) == 2
    tables = study.summary(DOCUMENT, list(evaluate(DOCUMENT, cells)))
    assert tables["search"][0]["recommended"] is not None
    assert cells_of(study.found(DOCUMENT)) == cells
    assert answer(study.found(DOCUMENT), []).recommended is None


def test_what_does_not_serve_is_refused():
    with pytest.raises(errors.InputError, match="is among configurations"):
        closed_forms({"name": "x", "workload": {"kind": "none"}}, Search())
    with pytest.raises(errors.InputError, match="nvidia-h9000"):
        closed_forms(DOCUMENT, Search(chips=("nvidia-h9000",)))
