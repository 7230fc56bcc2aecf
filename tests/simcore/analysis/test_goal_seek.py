"""The smallest or largest value that keeps its promises: brute force agrees, and what is not so is said."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.analysis.cells import Cell, CellResult, evaluate
from simcore.analysis.goal_seek import GoalSeek
from simcore.analysis.studies import InRounds, parse_study

CHIPS, RATE = "hardware.chip_count", "workload.arrivals.request_per_s"
METRIC = "serving.capacity_request_per_s"


def seek(**changes):
    given = {"path": CHIPS, "low": 1, "high": 100, "targets": ({"metric": METRIC, "at_least": 10.0},)}
    return GoalSeek.model_validate(given | changes)


def solved(goal, law):
    """Round by round, with a law in place of the model; its answer and how often it asked."""
    results, cells = [], goal.cells({})
    while cells:
        for cell in cells:
            value = law(cell.overrides[goal.path])
            errors = (
                () if value is not None else ({"code": "x", "template": "no room", "message": "no room"},)
            )
            results.append(
                CellResult(index=cell.index, metrics={} if errors else {METRIC: value}, errors=errors)
            )
        cells = goal.next_cells(results)
    [answer] = goal.summary({}, results)["goal"]
    return answer, len(results)


def test_it_is_a_study_in_rounds():
    one = parse_study(seek().model_dump(mode="json"))
    assert one == seek()
    assert isinstance(one, InRounds)


@settings(max_examples=200, deadline=None)
@given(
    edge=st.integers(-5, 140),
    low=st.integers(1, 50),
    size=st.integers(1, 90),
    step=st.integers(1, 7),
    points=st.integers(1, 8),
)
def test_the_smallest_whole_number_is_that_of_brute_force(edge, low, size, step, points):
    goal = seek(low=low, high=low + size, step=step, points_per_round=points)

    def law(chips):
        return 20.0 if chips >= edge else None if chips % 2 else 5.0

    answer, asked = solved(goal, law)
    meeting = [value for value in range(low, low + size + 1, step) if value >= edge]
    assert answer["value"] == (meeting[0] if meeting else None)
    assert answer["is_monotone"]
    assert asked <= 2 + points * (2 + math.log(max(2, size)) / math.log(points + 1) * 2)


@settings(max_examples=100, deadline=None)
@given(edge=st.floats(0.5, 5000), points=st.integers(1, 5))
def test_the_largest_real_number_is_within_the_tolerance(edge, points):
    goal = seek(path=RATE, low=0.5, high=2000.0, find="largest", points_per_round=points)
    answer, _ = solved(goal, lambda rate: 20.0 if rate <= edge else 1.0)
    assert answer["value"] == pytest.approx(min(edge, 2000.0), rel=0.0101)
    assert answer["value"] <= edge


def test_the_sentence_names_the_value_and_the_neighbour_that_misses():
    answer, _ = solved(seek(), lambda chips: chips / 2)
    assert answer["value"] == 20
    assert (
        answer["message"]["message"]
        == "Chips 20 is the smallest that keeps to Capacity ≥ 10 request/s; 19 does not"
    )


def test_never_met_says_how_near_it_comes():
    answer, _ = solved(seek(high=8), lambda chips: chips / 2)
    assert answer["value"] is None
    assert answer["nearest"] == 8
    assert answer["message"]["code"] == "goal.never"
    assert "nearest is 8, with Capacity 4 request/s" in answer["message"]["message"]


def test_nothing_that_can_be_built_says_why():
    answer, _ = solved(seek(high=8), lambda chips: None)
    assert answer["message"]["code"] == "goal.nothing_built"
    assert "no room" in answer["message"]["message"]


def test_already_met_at_the_edge_is_said():
    answer, _ = solved(seek(low=30), lambda chips: chips / 2)
    assert answer["value"] == 30
    assert answer["message"]["code"] == "goal.smallest.edge"


def test_what_is_not_monotone_is_said():
    answer, _ = solved(seek(low=1, high=101), lambda chips: 20.0 if 20 < chips < 60 else 1.0)
    assert not answer["is_monotone"]
    assert 20 < answer["value"] < 60
    assert answer["message"]["code"] == "goal.not_monotone"


def test_a_round_that_is_still_out_asks_for_nothing():
    goal = seek()
    first = goal.cells({})
    half = [CellResult(index=cell.index, metrics={METRIC: 1.0}) for cell in first[:2]]
    assert goal.next_cells(half) == []
    assert len(goal.summary({}, half)["goal_trace"]) == 2
    assert goal.summary({}, []) == {"goal": [], "goal_trace": []}


def test_the_least_chips_for_a_rate_are_those_of_brute_force():
    document = {"name": "sizing", "serving": {"parallelism": {"tp": 2}}}
    goal = seek(
        low=2, high=40, step=2, targets=({"metric": METRIC, "at_least": 120.0},), depth="closed_forms"
    )
    results, cells = [], goal.cells(document)
    while cells:
        results += evaluate(document, cells, depth=goal.depth)
        cells = goal.next_cells(results)
    [answer] = goal.summary(document, results)["goal"]
    every = [{CHIPS: chips} for chips in range(2, 41, 2)]
    whole = evaluate(document, [Cell(index=i, overrides=o) for i, o in enumerate(every)],
                     depth="closed_forms")  # fmt: skip
    meeting = [every[one.index][CHIPS] for one in whole if one.metrics.get(METRIC, 0.0) >= 120.0]
    assert answer["value"] == min(meeting)


@pytest.mark.parametrize("rate", [10.0, 30.0, 50.0])
def test_the_least_chips_for_a_rate_are_whole_replicas_of_it(rate):
    """Question N068: Qwen3-32B on H200 at 10 to 50 requests/s; known: ceil(rate ÷ replica rate) × GPUs per replica."""
    document = {
        "name": "N068",
        "hardware": {"chip": "nvidia-h200-sxm"},
        "model": {"name": "qwen3-32b"},
        "serving": {"parallelism": {"tp": 2}},
        "workload": {"lengths": {"kind": "constant", "input_tokens": 1024, "output_tokens": 256}},
    }
    goal = seek(low=2, high=64, step=2, targets=({"metric": METRIC, "at_least": rate},), depth="closed_forms")
    results, cells = [], goal.cells(document)
    while cells:
        results += evaluate(document, cells, depth=goal.depth)
        cells = goal.next_cells(results)
    [answer] = goal.summary(document, results)["goal"]
    [replica] = evaluate(document, [Cell(index=0, overrides={CHIPS: 2})], depth="closed_forms")
    assert answer["value"] == math.ceil(rate / replica.metrics[METRIC]) * 2
