"""Lanes that fail, are slowed or drained while they serve: conservation, limits, and what can be done about it."""

import hashlib
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.serving.attribution import seconds_by_resource
from simcore.serving.engine import Engine
from simcore.serving.interruptions import KvCopy, Outage, Outages
from simcore.serving.queue_order import Line
from simcore.serving.routers import Router
from simcore.serving.routers.least_outstanding import LeastOutstanding
from simcore.serving.routers.round_robin import RoundRobin
from simcore.serving.state import FINISHED, REJECTED, UNFINISHED
from tests.simcore.serving.tables import (
    POLICIES,
    SCHEDULERS,
    closed_requests,
    engine,
    poisson_requests,
    speculating_table,
)
from tests.simcore.serving.test_prefix import caching, check_lane, conversations
from tests.simcore.serving.test_reservations import KINDS, engine_of
from tests.simcore.serving.test_tiers import DRAM, NVME, behind

RECORDED = ("scheduled_s", "first_token_s", "finish_s", "preemption_count", "status", "replica")
COPY = KvCopy(s_per_token=1e-6, latency_s=1e-3)


def outages(lanes: st.SearchStrategy[set[int]], *, within_s: float, most: int) -> st.SearchStrategy[Outages]:
    """Outages, slow times and drains of some `lanes` that begin within a time; rerouted and copied, or not."""
    one = st.builds(
        lambda hit, begin_s, span_s, slow, drains: Outage(
            lanes=tuple(sorted(hit)),
            begin_s=begin_s,
            end_s=begin_s + span_s,
            slow_ratio=slow,
            drains=drains,
        ),
        lanes,
        st.floats(0, within_s),
        st.floats(0.01, 5),
        st.sampled_from([math.inf, math.inf, 1.5, 3.0]),
        st.booleans(),
    )
    return st.builds(
        Outages,
        outages=st.lists(one, min_size=1, max_size=most).map(tuple),
        reroutes=st.booleans(),
        copy=st.sampled_from([None, COPY]),
    )


OUTAGES = outages(st.sets(st.integers(0, 2), min_size=1), within_s=8, most=4)
LOADS = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 2**32 - 1),
        "rate": st.sampled_from([10.0, 30.0, 200.0]),
        "blocks": st.sampled_from([40, 4096]),
        "drafts": st.sampled_from([0, 0, 3]),
    }
)


def down(*lanes: int, begin_s: float = 1.0, end_s: float = 4.0) -> Outage:
    return Outage(lanes=lanes, begin_s=begin_s, end_s=end_s)


def loaded(kind: str, router: Router, load: dict, outages: Outages | None, count: int = 90) -> Engine:
    return engine(
        poisson_requests(count, rate=load["rate"], seed=load["seed"]),
        speculating_table(load["drafts"], 0.7),
        kind=kind,
        block_count=load["blocks"],
        replica_count=3,
        router=router,
        outages=outages,
    )


def same(one: Engine, two: Engine) -> None:
    for name in RECORDED:
        np.testing.assert_array_equal(getattr(one.records(), name), getattr(two.records(), name))
    assert one.totals().busy_s == two.totals().busy_s


@pytest.mark.parametrize(("kind", "router"), POLICIES)
@settings(deadline=None, max_examples=30)
@given(load=LOADS, outages=OUTAGES)
def test_every_request_is_served_once_through_all_failures(kind, router, load, outages):
    run = loaded(kind, router, load, outages)
    for piece in run.slices(target_count=9):
        states, lanes = run.records().status, run._lanes
        inside = int(lanes.running.sum() + lanes.waiting.sum())
        done = int((states == FINISHED).sum() + (states == REJECTED).sum())
        assert done + inside == run._clock[0].next_request
        assert int((states == FINISHED).sum()) == piece.completed_count
        assert int((states == UNFINISHED).sum()) == len(states) - done
    records, totals = run.records(), run.totals()
    served = records.status == FINISHED
    assert (served | (records.status == REJECTED)).all()
    assert (records.scheduled_s < records.first_token_s)[served].all()
    assert (records.first_token_s <= records.finish_s)[served].all()
    assert totals.gap_count == int((records.output_tokens[served] - 1).sum()) or load["drafts"]
    assert totals.preemption_count == records.preemption_count.sum()
    assert 0 <= totals.stranded_count <= totals.preemption_count
    assert (run._lanes.free_blocks == load["blocks"]).all()
    for name in ("line_blocks", "held", "prefilled", "running", "waiting", "returning", "heap_count"):
        assert (run._lanes[name] == 0).all(), name
    parts = seconds_by_resource(totals, speculating_table(load["drafts"], 0.7))
    assert sum(parts.values()) == pytest.approx(max(totals.busy_s, 3 * totals.makespan_s), rel=1e-9)


@pytest.mark.parametrize("kind", SCHEDULERS)
@settings(deadline=None, max_examples=20)
@given(load=LOADS, outages=OUTAGES, pieces=st.integers(2, 40))
def test_slices_and_one_go_give_the_same_bits(kind, load, outages, pieces):
    whole, sliced = (loaded(kind, LeastOutstanding(), load, outages) for _ in range(2))
    whole.run()
    for _ in sliced.slices(target_count=pieces):
        pass
    same(whole, sliced)


@pytest.mark.parametrize(("kind", "router"), POLICIES)
def test_outages_of_no_length_or_no_effect_change_no_bit(kind, router):
    load = {"seed": 5, "rate": 30.0, "blocks": 60, "drafts": 0}
    nothing = (
        down(0, begin_s=1.0, end_s=1.0),
        replace(down(1, 2), slow_ratio=1.0),
        down(0, 1, 2, begin_s=1e5, end_s=1e6),
    )
    plain, shocked = loaded(kind, router, load, None), loaded(kind, router, load, Outages(outages=nothing))
    plain.run()
    shocked.run()
    same(plain, shocked)


@pytest.mark.parametrize("uses", [None, (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("kind", SCHEDULERS)
@settings(deadline=None, max_examples=20)
@given(outages=OUTAGES, seed=st.integers(0, 1000))
def test_cached_prefixes_and_tiers_of_a_lane_that_fails_are_lost_and_no_block_is(uses, kind, outages, seed):
    requests = conversations(80, rate=40.0, seed=seed, kinds=5)
    tiers = None if uses is None else behind((DRAM, NVME), uses)
    run = caching(requests, kind=kind, block_count=60, replica_count=3, tiers=tiers, outages=outages)
    for _ in run.slices(target_count=15):
        for index, lane in enumerate(run._lanes):
            check_lane(run, lane, 60)
            if lane.down and lane.order < 0:
                assert lane.cached_blocks == lane.running == 0, index
    assert (run._lanes.free_blocks == 60).all()
    assert (run._prefix.tiers.swapped_blocks == 0).all()
    assert (run.records().status != UNFINISHED).all()


@pytest.mark.parametrize("reroutes", [False, True])
@pytest.mark.parametrize("line", ["ranked", "fair"])
def test_lines_by_rank_go_through_a_failure(line, reroutes):
    requests = poisson_requests(200, rate=60.0, seed=3)
    ranks = np.random.default_rng(3).random(200)
    flows = np.arange(200) % 3 if line == "fair" else None
    run = engine(
        requests,
        replica_count=3,
        max_num_seqs=4,
        line=Line(ranks=ranks, flows=flows, preempts_lowest=line == "ranked"),
        outages=Outages(outages=(down(0), down(1, begin_s=2.0, end_s=3.0)), reroutes=reroutes),
    )
    run.run()
    assert (run.records().status == FINISHED).all()
    assert (run._lanes.line_blocks == 0).all()


def test_while_all_lanes_are_down_nobody_is_served_and_all_are_afterwards():
    requests = poisson_requests(100, rate=50.0, seed=2)
    for reroutes in (False, True):
        run = engine(
            requests,
            replica_count=2,
            outages=Outages(outages=(down(0, 1, begin_s=0.5, end_s=500.0),), reroutes=reroutes),
        )
        run.run()
        finish_s = run.records().finish_s
        assert not ((finish_s > 1.0) & (finish_s < 500.0)).any()
        assert (finish_s > 500.0).sum() > 50


def test_a_closed_loop_waits_for_the_lane_that_its_users_are_at():
    requests = closed_requests(60, concurrency=4, input_tokens=50, output_tokens=20)
    run = engine(requests, replica_count=2, outages=Outages(outages=(down(0, end_s=50.0),)))
    run.run()
    assert (run.records().status == FINISHED).all()


def test_requests_are_sent_where_lanes_are_up_or_wait_at_one_that_is_not():
    requests = poisson_requests(400, rate=20.0, seed=7)
    outage = Outages(outages=(down(1, begin_s=2.0, end_s=12.0),))
    sent = engine(requests, replica_count=3, outages=outage)
    stuck = engine(requests, replica_count=3, outages=replace(outage, reroutes=False))
    sent.run()
    stuck.run()
    during = (requests.arrival_s > 2.0) & (requests.arrival_s < 12.0)
    assert set(sent.records().replica[during]) == {0, 2}
    shares = np.bincount(sent.records().replica[during], minlength=3)
    assert abs(shares[0] - shares[2]) < 0.2 * shares.sum()
    assert set(stuck.records().replica[during]) == {0, 1, 2}
    waited = stuck.records().ttft_s[during & (stuck.records().replica == 1)]
    assert waited.max() > 9.0
    assert sent.records().ttft_s.max() < 2.0


def test_a_drained_lane_finishes_what_it_has_and_takes_nothing():
    requests = poisson_requests(300, rate=20.0, seed=7)
    run = engine(requests, replica_count=3, outages=Outages(outages=(replace(down(1), drains=True),)))
    run.run()
    records = run.records()
    assert run.totals().stranded_count == 0
    during = (requests.arrival_s > 1.0) & (requests.arrival_s < 4.0)
    assert set(records.replica[during]) == {0, 2}


def test_a_copy_saves_computing_what_was_held_and_costs_the_time_to_bring_it_back():
    requests = poisson_requests(200, rate=60.0, seed=4)
    lost, kept, slow = (
        engine(requests, replica_count=2, outages=Outages(outages=(down(0, end_s=1.5),), copy=copy))
        for copy in (None, COPY, replace(COPY, s_per_token=1e-3))
    )
    for run in (lost, kept, slow):
        run.run()
    assert lost.totals().stranded_count == kept.totals().stranded_count > 4
    assert lost.totals().discarded_token_sum > 0 == kept.totals().discarded_token_sum
    computed = requests.input_tokens.sum()
    assert lost.totals().prefill_token_sum > kept.totals().prefill_token_sum > computed
    assert kept.totals().prefill_token_sum - computed <= kept.totals().stranded_count + 256
    assert slow.totals().moved_s > 100 * kept.totals().moved_s > 0
    assert lost.totals().moved_s == 0


def test_a_slowed_lane_takes_so_many_times_as_long():
    requests = closed_requests(40, concurrency=1, input_tokens=50, output_tokens=20)
    plain = engine(requests)
    slowed = engine(
        requests, outages=Outages(outages=(replace(down(0, begin_s=0.0, end_s=1e6), slow_ratio=1.5),))
    )
    plain.run()
    slowed.run()
    assert slowed.totals().busy_s == pytest.approx(1.5 * plain.totals().busy_s, rel=1e-2)
    assert slowed.totals().slowed_s == pytest.approx(slowed.totals().busy_s / 3, rel=1e-2)


def test_the_failure_of_one_of_n_lanes_for_good_is_as_n_minus_one_lanes():
    """In the limit of a failure that begins at once and outlasts the run, with routing around it."""
    requests = poisson_requests(200, rate=15.0, seed=9)
    fewer = engine(requests, replica_count=2)
    failed = engine(requests, replica_count=3, outages=Outages(outages=(down(2, begin_s=0.0, end_s=1e6),)))
    fewer.run()
    failed.run()
    assert set(failed.records().replica) == {0, 1}
    assert failed.records().e2e_s.mean() == pytest.approx(fewer.records().e2e_s.mean(), rel=0.02)


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize("kind", KINDS)
def test_what_was_promised_to_who_was_interrupted_is_given_back_and_promised_again(kind, scheduler):
    for copy in (None, COPY):
        outages = Outages(outages=(down(0, begin_s=0.2), down(2, begin_s=0.4)), copy=copy)
        requests = poisson_requests(80, rate=200.0, seed=3)
        run, _ = engine_of(kind, scheduler, requests, blocks=300, replicas=3, outages=outages)
        empty = run._tree.copy()
        run.run()
        assert run.totals().stranded_count > 0
        assert (run.records().status == FINISHED).all()
        assert (run._lanes.free_blocks == 300).all()
        assert (run._tree == empty).all()


def test_lanes_that_are_down_are_counted_over_time():
    run = engine(poisson_requests(300, rate=40.0), replica_count=3, outages=Outages(outages=(down(0, 2),)))
    parts = [piece.columns for piece in run.slices(target_count=5)]
    time_s, count = (np.concatenate([part[name] for part in parts]) for name in ("time_s", "lanes_down"))
    assert (count == np.where((time_s >= 1.0) & (time_s < 4.0), 2, 0)).all()


def fingerprint(kind: str) -> str:
    found = hashlib.sha256()
    for copy, reroutes in ((None, True), (COPY, False)):
        outages = (down(0), replace(down(1), slow_ratio=3.0), replace(down(2, begin_s=2.0), drains=True))
        load = {"seed": 11, "rate": 40.0, "blocks": 40, "drafts": 0}
        run = loaded(kind, RoundRobin(), load, Outages(outages=outages, reroutes=reroutes, copy=copy))
        run.run()
        for name in RECORDED:
            found.update(getattr(run.records(), name).tobytes())
        found.update(np.float64(run.totals().busy_s).tobytes())
    return found.hexdigest()
