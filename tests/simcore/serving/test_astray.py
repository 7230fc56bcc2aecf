"""Prefill and decode apart while lanes of either fail: nothing is lost or served twice, wherever its KV was."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.serving.engine import Engine
from simcore.serving.handover import KvLink
from simcore.serving.interruptions import KvCopy, Outage, Outages
from simcore.serving.queue_order import Line
from simcore.serving.routers import Router
from simcore.serving.routers.round_robin import RoundRobin
from simcore.serving.state import FINISHED, REJECTED, UNFINISHED
from tests.simcore.serving.tables import (
    ROUTERS,
    closed_requests,
    constant_table,
    engine,
    poisson_requests,
    speculating_table,
)
from tests.simcore.serving.test_handover import parked_blocks, seated_blocks
from tests.simcore.serving.test_interruptions import COPY, RECORDED, outages, same
from tests.simcore.serving.test_prefix import caching, conversations

PREFILL, DECODE = (0, 1, 2), (3, 4, 5)  # lanes
KINDS = ("waiting", "queued", "coming", "landed", "running")
OUTAGES = outages(st.sets(st.integers(0, 5), min_size=1, max_size=4), within_s=6, most=5)
LOADS = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 2**32 - 1),
        "rate": st.sampled_from([10.0, 40.0, 300.0]),
        "blocks": st.sampled_from([30, 60, 4096]),
        "drafts": st.sampled_from([0, 0, 3]),
        "s_per_token": st.sampled_from([0.0, 1e-5, 2e-3]),
        "last": st.sampled_from([1.0, 0.05]),
        "ranked": st.booleans(),
    }
)


def down(*lanes: int, begin_s: float = 1.0, end_s: float = 4.0) -> Outage:
    return Outage(lanes=lanes, begin_s=begin_s, end_s=end_s)


def shocked(
    load: dict, outages: Outages | None, router: Router | None = None, count: int = 90, seats: int = 16
) -> Engine:
    line = Line(ranks=np.random.default_rng(3).random(count), flows=None, preempts_lowest=False)
    return engine(
        poisson_requests(count, rate=load["rate"], seed=load["seed"]),
        speculating_table(load["drafts"], 0.7),
        kind="disaggregated",
        block_count=load["blocks"],
        replica_count=3,
        max_num_seqs=seats,
        router=router or RoundRobin(),
        line=line if load["ranked"] else None,
        link=KvLink(
            prefill_s_per_token=load["s_per_token"],
            decode_s_per_token=0.5 * load["s_per_token"],
            latency_s=1e-3,
            last_layer_fraction=load["last"],
        ),
        outages=outages,
    )


PLAIN = {
    "seed": 5, "rate": 60.0, "blocks": 4096, "drafts": 0, "s_per_token": 1e-4, "last": 1.0, "ranked": False,
}  # fmt: skip


def check_conserved(run: Engine, load: dict) -> None:
    """Run to the end; every request is in one place at every pause, and so is every block."""
    for piece in run.slices(target_count=12):
        states, lanes = run.records().status, run._lanes
        inside = sum(int(lanes[kind].sum()) for kind in KINDS)
        done = int((states == FINISHED).sum() + (states == REJECTED).sum())
        assert done + inside == run._clock[0].next_request
        assert int((states == FINISHED).sum()) == piece.completed_count
        assert int((states == UNFINISHED).sum()) == len(states) - done
        assert int(lanes["coming"].sum()) == run._clock[0].in_flight
        for index, lane in enumerate(lanes):
            assert lane.free_blocks >= 0
            if not load["drafts"]:
                held = seated_blocks(run, index) + parked_blocks(run, index)
                assert held + lane.free_blocks == load["blocks"]
            if lane.down and lane.order < 0:
                assert lane.running == lane.coming == lane.landed == lane.parked == 0
    records, totals = run.records(), run.totals()
    served = records.status == FINISHED
    assert (served | (records.status == REJECTED)).all()
    assert (records.scheduled_s < records.first_token_s)[served].all()
    assert (records.first_token_s <= records.finish_s)[served].all()
    assert totals.gap_count == int((records.output_tokens[served] - 1).sum()) or load["drafts"]
    assert totals.preemption_count == records.preemption_count.sum()
    assert 0 <= totals.stranded_count <= totals.preemption_count
    assert (run._lanes.free_blocks == load["blocks"]).all()
    assert set(records.replica[served]) <= set(PREFILL)
    for name in (*KINDS, "line_blocks", "held", "prefilled", "parked", "returning", "heap_count"):
        assert (run._lanes[name] == 0).all(), name


@pytest.mark.parametrize("router", ROUTERS, ids=lambda one: one.kind)
@settings(deadline=None, max_examples=40)
@given(load=LOADS, outages=OUTAGES, seats=st.sampled_from([3, 16]))
def test_every_request_is_somewhere_once_and_so_is_every_block(router, load, outages, seats):
    check_conserved(shocked(load, outages, router, seats=seats), load)


@settings(deadline=None, max_examples=25)
@given(load=LOADS, outages=OUTAGES, pieces=st.integers(2, 40))
def test_slices_and_one_go_give_the_same_bits(load, outages, pieces):
    whole, sliced = (shocked(load, outages) for _ in range(2))
    whole.run()
    for _ in sliced.slices(target_count=pieces):
        pass
    same(whole, sliced)


@pytest.mark.parametrize("load", [PLAIN, PLAIN | {"blocks": 60, "ranked": True}])
def test_outages_of_no_length_or_no_effect_change_no_bit(load):
    nothing = (
        down(0, 4, begin_s=1.0, end_s=1.0),
        replace(down(1, 5), slow_ratio=1.0),
        down(0, 1, 2, 3, begin_s=1e5, end_s=1e6),
    )
    plain, shock = shocked(load, None), shocked(load, Outages(outages=nothing))
    plain.run()
    shock.run()
    same(plain, shock)


@settings(deadline=None, max_examples=25)
@given(outages=OUTAGES, seed=st.integers(0, 1000))
def test_prefixes_cached_in_prefill_lanes_that_fail_are_lost_and_no_block_is(outages, seed):
    requests = conversations(80, rate=40.0, seed=seed, kinds=5)
    run = caching(requests, kind="disaggregated", block_count=60, replica_count=3, outages=outages)
    for _ in run.slices(target_count=15):
        for lane in run._lanes:
            assert 0 <= lane.cached_blocks <= lane.free_blocks <= 60
            if lane.down and lane.order < 0:
                assert lane.free_blocks == 60
                assert lane.cached_blocks == 0
    assert (run._lanes.free_blocks == 60).all()
    assert (run.records().status != UNFINISHED).all()


@pytest.mark.parametrize("pool", [PREFILL, DECODE])
@pytest.mark.parametrize("reroutes", [False, True])
def test_while_a_whole_pool_is_down_nobody_is_answered_and_all_are_afterwards(pool, reroutes):
    outage = down(*pool, begin_s=0.5, end_s=300.0)
    run = shocked(PLAIN, Outages(outages=(outage,), reroutes=reroutes), count=200)
    run.run()
    first_s = run.records().first_token_s
    assert (run.records().status == FINISHED).all()
    assert not ((first_s > 2.0) & (first_s < 300.0)).any()
    assert (first_s > 300.0).sum() > 100


@pytest.mark.parametrize("lost", [2, 5])
def test_the_failure_of_one_of_n_lanes_for_good_is_as_n_minus_one_lanes(lost):
    """In the limit of a failure that begins at once and outlasts the run, with routing around it."""
    requests = closed_requests(300, concurrency=12, input_tokens=120, output_tokens=40)
    step = constant_table(0.01, max_tokens=256, max_sequences=16)
    failed = engine(
        requests,
        step,
        kind="disaggregated",
        replica_count=3,
        outages=Outages(outages=(down(lost, begin_s=0.0, end_s=1e6),)),
    )
    failed.run()
    others = [index for index in (*PREFILL, *DECODE) if index != lost]
    hops, records = failed._handover.hops, failed.records()
    assert (records.status == FINISHED).all()
    assert set(hops.source) | set(hops.target) == set(others)


def test_a_prompt_on_its_way_to_a_lost_lane_goes_to_another_and_is_not_computed_again():
    """One prompt of 100 tokens, sent from 0.01 s on for 1 s; its target fails at 0.5 s and the other takes it."""
    requests = closed_requests(1, concurrency=1, input_tokens=100, output_tokens=3)
    link = KvLink(prefill_s_per_token=0.01, decode_s_per_token=0.01, latency_s=0.0)
    step = constant_table(0.01, max_tokens=256, max_sequences=16)

    def served(outages: Outages | None, lanes: int = 2) -> Engine:
        run = engine(requests, step, kind="disaggregated", replica_count=lanes, link=link, outages=outages)
        run.run()
        return run

    loss = down(2, begin_s=0.5, end_s=9.0)
    sent = served(Outages(outages=(loss,)))
    assert sent.totals().prefill_token_sum == 100
    assert sent.totals().stranded_count == 0
    # What was booked at the source stays booked: it sends again from 1.01 s on.
    assert sent.records().first_token_s[0] == pytest.approx(0.01 + 1.0 + 1.0 + 0.01)
    stuck = served(Outages(outages=(loss,), reroutes=False))
    assert stuck.records().first_token_s[0] == pytest.approx(9.0 + 1.0 + 0.01)
    assert stuck.totals().prefill_token_sum == 100


@pytest.mark.parametrize("copy", [None, KvCopy(s_per_token=1e-3, latency_s=0.5)])
def test_a_prompt_whose_prefill_lane_is_lost_is_computed_again_or_brought_back(copy):
    requests = closed_requests(1, concurrency=1, input_tokens=100, output_tokens=3)
    link = KvLink(prefill_s_per_token=0.01, decode_s_per_token=0.01, latency_s=0.0)
    run = engine(
        requests,
        constant_table(0.01, max_tokens=256, max_sequences=16),
        kind="disaggregated",
        replica_count=2,
        link=link,
        outages=Outages(outages=(down(0, begin_s=0.5, end_s=9.0),), copy=copy),
    )
    run.run()
    brought_s = 0.0 if copy is None else 0.5 + 99 * 1e-3
    # The next decode lane in turn is free.
    assert run.records().first_token_s[0] == pytest.approx(0.5 + brought_s + 0.01 + 1.0 + 0.01)
    assert run.totals().prefill_token_sum == (200 if copy is None else 101)
    assert run.totals().stranded_count == run.records().preemption_count[0] == 1
    assert run.totals().discarded_token_sum == (99 if copy is None else 0)
    assert run.records().replica[0] == 1


def test_what_has_landed_on_a_lost_decode_lane_is_computed_again_by_another():
    requests = poisson_requests(300, rate=60.0, seed=4)
    lost, kept = (
        engine(
            requests,
            kind="disaggregated",
            replica_count=2,
            outages=Outages(outages=(down(2, end_s=2.5),), copy=copy),
        )
        for copy in (None, COPY)
    )
    for run in (lost, kept):
        run.run()
        assert (run.records().status == FINISHED).all()
    prefill, decode = lost.pool_totals()
    assert prefill.stranded_count == 0 < decode.stranded_count
    assert decode.prefill_token_sum == decode.discarded_token_sum + decode.stranded_count
    assert kept.pool_totals()[1].prefill_token_sum == kept.pool_totals()[1].stranded_count


def test_records_are_the_same_in_every_run():
    outages = Outages(outages=(down(0, 4), down(3, begin_s=2.0), replace(down(1), drains=True)))
    one, two = (shocked(PLAIN | {"blocks": 60}, outages, count=300) for _ in range(2))
    one.run()
    two.run()
    for name in RECORDED:
        np.testing.assert_array_equal(getattr(one.records(), name), getattr(two.records(), name))
