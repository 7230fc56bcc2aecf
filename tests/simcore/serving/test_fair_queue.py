"""A fair line: classes share a replica by their weights, and a flood of one is its own trouble."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.plan import plan
from simcore.scenario import Scenario
from simcore.serving.queue_order import Line, starvation, waiting_line
from simcore.serving.schedulers import LEAVES_SEATS_EMPTY
from simcore.simulate import simulate
from simcore.workload.classes import RequestClass
from simcore.workload.requests import Requests
from tests.simcore.serving.tables import SCHEDULERS, constant_table, engine, poisson_requests

ORDERED = sorted(set(SCHEDULERS) - LEAVES_SEATS_EMPTY)


@pytest.mark.parametrize("kind", ORDERED)
@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 2**32 - 1),
    weight=st.sampled_from([1.0, 2.0, 7.5]),
    blocks=st.sampled_from([40, 4096]),
    seats=st.sampled_from([1, 4, 16]),
)
def test_two_backlogged_classes_are_served_by_their_weights_within_one_request_of_each(
    kind: str, seed: int, weight: float, blocks: int, seats: int
) -> None:
    """Goyal, Vin and Cheng 1996, theorem 1, at every instant at which both have somebody in line."""
    draws = np.random.default_rng(seed)
    count = 120
    requests = Requests(
        arrival_s=np.zeros(count),
        input_tokens=draws.integers(1, 400, count),
        output_tokens=draws.integers(1, 60, count),
    )
    flows, weights = draws.integers(0, 2, count), np.array([1.0, weight])
    costs = (requests.input_tokens + 30) / weights[flows]
    run = engine(
        requests, kind=kind, max_num_seqs=seats, block_count=blocks, line=Line(ranks=costs, flows=flows)
    )
    run.run()
    admitted_s = run.records().scheduled_s
    most = sum(costs[flows == flow].max(initial=0.0) for flow in (0, 1))
    both = min(admitted_s[flows == flow].max(initial=0.0) for flow in (0, 1))
    for instant in np.unique(admitted_s[admitted_s < both]):
        served = [costs[(flows == flow) & (admitted_s <= instant)].sum() for flow in (0, 1)]
        assert abs(served[0] - served[1]) <= most * (1 + 1e-12)


@pytest.mark.parametrize("kind", ORDERED)
def test_one_class_is_first_come_first_served_bit_for_bit(kind: str) -> None:
    requests = poisson_requests(300, rate=100.0)
    options = {"kind": kind, "block_count": 60, "replica_count": 2}
    plain, fair = (
        engine(requests, **options),
        engine(requests, line=waiting_line("fair", requests), **options),
    )
    plain.run()
    fair.run()
    assert plain.totals().preemption_count > 0
    for name in ("scheduled_s", "first_token_s", "finish_s", "preemption_count"):
        np.testing.assert_array_equal(getattr(plain.records(), name), getattr(fair.records(), name))
    assert plain.totals().busy_s == fair.totals().busy_s


def polite_waits_s(flood: int, queue: str) -> np.ndarray:
    """Waits of a class that asks once in 40 s, beside one that sends `flood` requests at once every 40 s.

    One seat, where a request takes as many seconds as it has tokens to answer: 3.
    """
    rounds = 30
    polite_s = np.arange(rounds) * 40.0 + 20.5
    flooding_s = np.repeat(np.arange(rounds) * 40.0, flood)
    arrival_s = np.append(polite_s, flooding_s)
    order = np.argsort(arrival_s, kind="stable")
    class_of = np.append(np.zeros(rounds, int), np.ones(len(flooding_s), int))[order]
    requests = Requests(
        arrival_s=arrival_s[order],
        input_tokens=np.ones(len(order), int),
        output_tokens=np.full(len(order), 3),
        class_of=class_of,
    )
    classes = [RequestClass(name=name, share_fraction=0.5) for name in ("polite", "flooding")]
    run = engine(
        requests,
        constant_table(1.0, max_tokens=16, max_sequences=1),
        max_num_seqs=1,
        max_num_batched_tokens=16,
        line=waiting_line(queue, requests, classes=classes),
    )
    run.run()
    return run.records().queue_s[class_of == 0]


def test_a_class_that_floods_does_not_raise_the_wait_of_another_beyond_the_bound() -> None:
    """Whoever asks for less than its share waits for the one in service, and for one that was tagged at its instant."""
    for flood in (1, 10, 50, 300):
        assert polite_waits_s(flood, "fair").max() <= 2 * 3.0
    assert polite_waits_s(300, "fcfs").max() > 1_000


def test_weights_and_mean_answers_make_the_cost() -> None:
    requests = Requests(
        arrival_s=np.zeros(4),
        input_tokens=np.array([10, 20, 30, 40]),
        output_tokens=np.array([1, 5, 3, 7]),
        class_of=np.array([0, 1, 0, 1]),
    )
    classes = [
        RequestClass(name="free", share_fraction=0.5),
        RequestClass(name="paid", share_fraction=0.5, weight=4.0),
    ]
    line = waiting_line("fair", requests, classes=classes)
    assert line.ranks.tolist() == [12.0, 26 / 4, 32.0, 46 / 4]
    assert line.flows.tolist() == [0, 1, 0, 1]
    assert line.flow_count == 2
    assert not line.preempts_lowest


def test_who_was_away_has_saved_up_nothing() -> None:
    """A class that joins late gets its share from then on, and no arrears."""
    count = 60
    requests = Requests(
        arrival_s=np.where(np.arange(count) < 40, 0.0, 50.5),
        input_tokens=np.ones(count, int),
        output_tokens=np.full(count, 3),
    )
    flows = (np.arange(count) >= 40).astype(int)
    run = engine(
        requests,
        constant_table(1.0, max_tokens=16, max_sequences=1),
        max_num_seqs=1,
        max_num_batched_tokens=16,
        line=Line(ranks=np.full(count, 4.0), flows=flows),
    )
    run.run()
    order = flows[np.argsort(run.records().scheduled_s)]
    shared = order[np.flatnonzero(order)[0] : len(order) - np.flatnonzero(order[::-1] == 0)[0]]
    assert np.abs(np.diff(np.cumsum(shared == 1)[1::2])).max() == 1  # one of each in turn


def test_a_fair_line_starves_nobody_who_asks_for_his_share() -> None:
    """Long waits of a class that asks for more are its own; nobody is told to change the order for them."""
    requests = poisson_requests(1_500, rate=1_000.0)
    run = engine(requests, line=waiting_line("fair", requests))
    run.run()
    assert starvation("fair", run.records(), slo_ttft_s=1e-9) == ()


@pytest.mark.parametrize("kind", ORDERED)
def test_a_scenario_serves_its_classes_by_their_weights(kind: str) -> None:
    """Two classes ask for the same, far more than one chip can do; the heavier is through sooner."""
    ended = {}
    for weight in (1.0, 4.0):
        scenario = Scenario.parse(
            {
                "name": "fair",
                "hardware": {"chip_count": 1},
                "workload": {
                    "arrivals": {"kind": "poisson", "request_per_s": 500},
                    "request_count": 800,
                    "classes": [
                        {"name": "free", "share_fraction": 0.5},
                        {"name": "paid", "share_fraction": 0.5, "weight": weight},
                    ],
                },
                "serving": {"scheduler": {"kind": kind, "queue": "fair", "max_num_seqs": 32}},
            }
        )
        free, paid = simulate(plan(scenario)).tables["classes"]
        ended[weight] = free["ttft_s.mean"] / paid["ttft_s.mean"]
    assert ended[1.0] == pytest.approx(1.0, rel=0.15)
    assert ended[4.0] > 1.5
