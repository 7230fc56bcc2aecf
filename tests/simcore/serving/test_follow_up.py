"""Later turns of sessions in the engine: laws over all schedulers and routers."""

import hashlib
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.serving.admission import Admission
from simcore.serving.engine import Engine
from simcore.serving.queue_order import Line
from simcore.serving.routers import Router
from simcore.serving.state import FINISHED, REJECTED, UNFINISHED
from simcore.workload.requests import Requests
from simcore.workload.sessions import Turns
from tests.simcore.serving.tables import POLICIES, ROUTERS, engine, in_sessions, poisson_requests

LOADS = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 2**32 - 1),
        "rate": st.sampled_from([2.0, 20.0, 1000.0]),
        "blocks": st.sampled_from([20, 60, 4096]),
        "replica_count": st.sampled_from([1, 2, 5]),
        "think_s": st.sampled_from([0.0, 0.1, 5.0]),
        "users": st.sampled_from([0, 0, 3, 50]),
        "line": st.sampled_from([None, 0, 3]),
    }
)


def loaded(kind: str, router: Router, load: dict, count: int = 100) -> Engine:
    requests = poisson_requests(count, rate=load["rate"], seed=load["seed"])
    if load["users"]:
        requests = replace(requests, arrival_s=np.zeros(count), concurrency=load["users"])
    return engine(
        in_sessions(requests, load["seed"], load["think_s"]),
        kind=kind,
        block_count=load["blocks"],
        replica_count=load["replica_count"],
        router=router,
        admission=Admission(max_queue_length=load["line"]),
    )


@pytest.mark.parametrize(("kind", "router"), POLICIES)
@settings(deadline=None, max_examples=25)
@given(load=LOADS)
def test_every_turn_ends_once_and_none_comes_before_the_answer_that_it_follows(
    kind: str, router: Router, load: dict
) -> None:
    run = loaded(kind, router, load)
    for piece in run.slices(target_count=9):
        states = run.records().status
        finished, rejected = int((states == FINISHED).sum()), int((states == REJECTED).sum())
        clock = run._clock[0]
        assert finished == piece.completed_count == clock.completed
        assert rejected == clock.rejected
        inside = int(run._lanes.running.sum() + run._lanes.waiting.sum())
        assert inside == clock.turn - clock.completed - clock.refused
        assert int((states == UNFINISHED).sum()) == len(states) - finished - rejected
    records, turns = run.records(), run._requests.turns
    done = records.status == FINISHED
    assert (done | (records.status == REJECTED)).all()
    later = turns.following
    first, second = np.flatnonzero(later >= 0), later[later >= 0]
    sent = done[first]
    # A turn comes exactly when its user has thought, and after one that was turned away none comes.
    np.testing.assert_array_equal(
        records.arrival_s[second[sent]], (records.finish_s[first] + turns.think_s[second])[sent]
    )
    assert (records.status[second[~sent]] == REJECTED).all()
    assert np.isnan(records.arrival_s[second[~sent]]).all()
    assert (records.replica[second[~sent]] == -1).all()
    assert run.totals().unsent_count == int(np.count_nonzero(~sent))
    assert (records.queue_s[done] >= 0).all()
    assert (run._lanes.free_blocks == load["blocks"]).all()


@pytest.mark.parametrize(("kind", "router"), POLICIES)
@settings(deadline=None, max_examples=15)
@given(load=LOADS, pieces=st.integers(2, 50))
def test_slices_and_one_go_give_the_same_bits(kind: str, router: Router, load: dict, pieces: int) -> None:
    whole, sliced = loaded(kind, router, load), loaded(kind, router, load)
    whole.run()
    assert len(list(sliced.slices(target_count=pieces))) > 1
    for name in ("arrival_s", "scheduled_s", "first_token_s", "finish_s", "replica"):
        np.testing.assert_array_equal(getattr(whole.records(), name), getattr(sliced.records(), name))


@pytest.mark.parametrize(("kind", "router"), POLICIES)
@settings(deadline=None, max_examples=15)
@given(load=LOADS)
def test_sessions_of_one_turn_are_requests_bit_for_bit(kind: str, router: Router, load: dict) -> None:
    requests = poisson_requests(80, rate=load["rate"], seed=load["seed"])
    if load["users"]:
        requests = replace(requests, arrival_s=np.zeros(80), concurrency=load["users"])
    alone = Turns(session=np.arange(80), turn=np.zeros(80, np.int64), think_s=np.zeros(80), shared_tokens=0)
    options = {
        "kind": kind,
        "router": router,
        "block_count": load["blocks"],
        "replica_count": load["replica_count"],
        "admission": Admission(max_queue_length=load["line"]),
    }
    runs = [engine(one, **options) for one in (requests, replace(requests, turns=alone))]
    for run in runs:
        run.run()
    for name in ("arrival_s", "scheduled_s", "first_token_s", "finish_s", "replica", "status"):
        plain, session = (getattr(run.records(), name) for run in runs)
        np.testing.assert_array_equal(plain, session)
    assert runs[0].totals().busy_s == runs[1].totals().busy_s


def chain(think_s: float, *, users: int = 0) -> Requests:
    """Two sessions of three turns each, that begin together."""
    turns = Turns(
        session=np.tile([0, 1], 3),
        turn=np.repeat([0, 1, 2], 2),
        think_s=np.repeat([0.0, think_s, think_s], 2),
        shared_tokens=0,
    )
    return Requests(
        arrival_s=np.array([0.0, 0.0, *[np.nan] * 4]),
        input_tokens=np.full(6, 20),
        output_tokens=np.full(6, 4),
        concurrency=users,
        turns=turns,
    )


def test_users_who_do_not_think_send_the_next_turn_into_the_very_next_iteration() -> None:
    run = engine(chain(0.0))
    run.run()
    records = run.records()
    np.testing.assert_array_equal(records.scheduled_s[2:], records.finish_s[:4])
    assert run.totals().busy_s == pytest.approx(run.totals().makespan_s)


def test_a_user_of_a_closed_loop_begins_his_next_session_when_the_last_has_ended() -> None:
    run = engine(chain(7.0, users=1))
    run.run()
    records = run.records()
    assert records.arrival_s[1] == records.finish_s[4]  # the first turn of the second session
    order = np.argsort(records.arrival_s)
    assert order.tolist() == [0, 2, 4, 1, 3, 5]
    assert (records.arrival_s[order[1:]] >= records.finish_s[order[:-1]]).all()


def test_whoever_is_refused_sends_no_more_turns() -> None:
    """One seat, no line: the second session is refused at once, and its two other turns are never sent."""
    run = engine(chain(1.0), max_num_seqs=1, admission=Admission(max_queue_length=0))
    run.run()
    totals = run.totals()
    assert (totals.completed_count, totals.rejected_count) == (3, 3)
    assert (totals.refused_count, totals.unsent_count) == (1, 2)
    assert run.records().status.tolist() == [FINISHED, REJECTED] * 3


def test_of_equal_ranks_a_later_turn_that_came_first_goes_first() -> None:
    """A second turn has a higher number than every first turn, and must not stand behind those that came after it."""
    turns = Turns(
        session=np.array([0, 1, 2, 0]),
        turn=np.array([0, 0, 0, 1]),
        think_s=np.array([0.0, 0.0, 0.0, 0.001]),
        shared_tokens=0,
    )
    alone = Requests(arrival_s=np.array([0.0]), input_tokens=np.array([20]), output_tokens=np.array([4]))
    first = engine(alone, max_num_seqs=1)
    first.run()
    end_s = float(first.records().finish_s[0])
    requests = Requests(
        arrival_s=np.array([0.0, end_s - 1e-4, end_s + 0.002, np.nan]),
        input_tokens=np.full(4, 20),
        output_tokens=np.full(4, 4),
        turns=turns,
    )
    for line in (None, Line(ranks=np.zeros(4))):
        run = engine(requests, max_num_seqs=1, line=line)
        run.run()
        assert np.argsort(run.records().scheduled_s).tolist() == [0, 1, 3, 2]


def fingerprint(kind: str) -> str:
    digest = hashlib.sha256()
    for router in ROUTERS:
        load = {
            "seed": 5,
            "rate": 60.0,
            "blocks": 40,
            "replica_count": 2,
            "think_s": 0.2,
            "users": 0,
            "line": None,
        }
        run = loaded(kind, router, load)
        run.run()
        digest.update(run.records().finish_s.tobytes())
    return digest.hexdigest()
