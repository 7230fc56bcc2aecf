"""Who is preempted where memory is short, by which right, and that everybody gets to the end all the same."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.serving.queue_order import Line
from simcore.serving.schedulers import LEAVES_SEATS_EMPTY
from simcore.serving.state import FINISHED
from simcore.workload.requests import Requests
from tests.simcore.serving.tables import SCHEDULERS, engine, poisson_requests

ORDERED = sorted(set(SCHEDULERS) - LEAVES_SEATS_EMPTY)
TIGHT = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 2**32 - 1),
        "levels": st.sampled_from([2, 3, 100]),
        "blocks": st.sampled_from([30, 40, 60]),
        "replica_count": st.sampled_from([1, 2]),
        "longest_chunk": st.sampled_from([0, 40]),
    }
)


def by_priority(kind: str, load: dict, count: int = 120) -> tuple:
    priorities = np.random.default_rng(load["seed"] + 1).integers(0, load["levels"], count).astype(np.float64)
    run = engine(
        poisson_requests(count, rate=200.0, seed=load["seed"]),
        kind=kind,
        block_count=load["blocks"],
        replica_count=load["replica_count"],
        longest_chunk=load["longest_chunk"] if kind == "chunked_prefill" else 0,
        line=Line(ranks=priorities, preempts_lowest=True),
    )
    return run, priorities


@pytest.mark.parametrize("kind", ORDERED)
@settings(deadline=None, max_examples=40)
@given(load=TIGHT)
def test_everybody_gets_to_the_end_and_blocks_are_conserved_at_every_pause(kind: str, load: dict) -> None:
    run, _ = by_priority(kind, load)
    for _ in run.slices(target_count=40):
        records = run.records()
        for index, lane in enumerate(run._lanes):
            owned = held = 0
            seat_id, running = lane.last_seat, set()
            while seat_id >= 0:
                seat = run._seats[seat_id]
                tokens = seat.done if seat.start < 0 else seat.target + lane.step - seat.start
                opened = int(seat.start >= 0 and lane.steps > 0 and lane.decodes > 0 and tokens % 16 == 0)
                owned += -(-int(tokens) // 16) + opened
                held += int(tokens)
                running.add(int(seat.request))
                seat_id = seat.before
            assert owned + lane.free_blocks == load["blocks"]
            assert held == lane.held + lane.prefilled
            here = set(np.flatnonzero((records.replica == index) & (records.status != FINISHED)).tolist())
            assert running <= here
            assert lane.waiting == len(here - running)
            assert lane.returning == (records.preemption_count[list(here - running)] > 0).sum()
            assert lane.line_blocks >= 0
    assert (run.records().status == FINISHED).all()
    assert (run._lanes.free_blocks == load["blocks"]).all()
    assert (run._lanes.line_blocks == 0).all()


@pytest.mark.parametrize("kind", ORDERED)
@settings(deadline=None, max_examples=40)
@given(load=TIGHT)
def test_the_first_in_rank_of_a_replica_is_never_preempted(kind: str, load: dict) -> None:
    """Whoever runs beside it is lower, and alone it fits."""
    run, priorities = by_priority(kind, load)
    run.run()
    records = run.records()
    for replica in range(load["replica_count"]):
        mine = np.flatnonzero(records.replica == replica)
        first = mine[np.lexsort((mine, priorities[mine]))[0]]
        assert records.preemption_count[first] == 0


@pytest.mark.parametrize("kind", ORDERED)
def test_no_high_priority_is_preempted_while_low_ones_run(kind: str) -> None:
    """Two high ones fit in memory beside each other whatever comes; under fcfs the late one of them is preempted."""
    count = 40
    requests = Requests(
        arrival_s=np.arange(count) * 1e-3,
        input_tokens=np.full(count, 60),
        output_tokens=np.full(count, 100),
    )
    priorities = np.ones(count)
    priorities[[3, 20]] = 0
    preempted = []
    for line in (Line(ranks=priorities, preempts_lowest=True), Line(ranks=priorities), None):
        run = engine(requests, kind=kind, block_count=30, line=line)  # an answer ends on ten blocks
        run.run()
        assert run.totals().preemption_count > 0
        preempted.append(int(run.records().preemption_count[[3, 20]].sum()))
        if line is not None and line.preempts_lowest:
            assert np.nanmax(run.records().finish_s[[3, 20]]) < np.median(run.records().finish_s)
    assert preempted[0] == 0
    assert max(preempted[1:]) > 0


@pytest.mark.parametrize("kind", ORDERED)
@pytest.mark.parametrize("blocks", [30, 60])
def test_equal_priorities_are_first_come_first_served_bit_for_bit(kind: str, blocks: int) -> None:
    requests = poisson_requests(300, rate=100.0)
    options = {"kind": kind, "block_count": blocks, "replica_count": 2}
    plain = engine(requests, **options)
    equal = engine(requests, line=Line(ranks=np.zeros(300), preempts_lowest=True), **options)
    plain.run()
    equal.run()
    assert plain.totals().preemption_count > 0
    for name in ("scheduled_s", "first_token_s", "finish_s", "preemption_count"):
        np.testing.assert_array_equal(getattr(plain.records(), name), getattr(equal.records(), name))
    np.testing.assert_array_equal(plain.totals().gap_histogram, equal.totals().gap_histogram)


def test_who_was_preempted_for_its_priority_waits_behind_the_higher_ones() -> None:
    """A low one that runs alone gives way to high ones that came later, and ends after all of them."""
    requests = Requests(
        arrival_s=np.array([0.0, 0.05, 0.06, 0.07]),
        input_tokens=np.array([100, 60, 60, 60]),
        output_tokens=np.array([60, 40, 40, 40]),
    )
    ended = {}
    for lowest in (True, False):
        line = Line(ranks=np.array([5.0, 0.0, 0.0, 0.0]), preempts_lowest=lowest)
        run = engine(requests, block_count=20, max_num_seqs=4, line=line)
        run.run()
        ended[lowest] = run.records()
    assert ended[True].preemption_count.tolist() == [1, 0, 0, 0]
    assert ended[True].finish_s.argmax() == 0
    assert ended[False].preemption_count[0] == 0
    assert ended[True].finish_s[1:].max() < ended[False].finish_s[1:].max()


@settings(deadline=None, max_examples=25)
@given(load=TIGHT)
def test_priorities_end_on_separate_pools_too(load: dict) -> None:
    run, _ = by_priority("disaggregated", load)
    run.run()
    assert (run.records().status == FINISHED).all()
    assert (run._lanes.free_blocks == load["blocks"]).all()
    assert (run._lanes.returning == 0).all()
