"""Prefill and decode apart: what is conserved on the way, and closed forms of the simplest cases."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.serving.engine import Engine
from simcore.serving.handover import KvLink
from simcore.serving.routers import Router
from simcore.serving.state import FINISHED
from simcore.workload.requests import Requests
from tests.simcore.serving.tables import (
    ROUTERS,
    affine_table,
    closed_requests,
    constant_table,
    engine,
    poisson_requests,
)
from tests.simcore.serving.test_prefix import caching, conversations

BLOCK = 16
STEP_S = 0.01
FREE = KvLink(prefill_s_per_token=0.0, decode_s_per_token=0.0, latency_s=0.0)
LOADS = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 2**32 - 1),
        "rate": st.sampled_from([20.0, 200.0, 2000.0]),
        "blocks": st.sampled_from([30, 60, 4096]),
        "replica_count": st.sampled_from([1, 3]),
        "s_per_token": st.sampled_from([0.0, 1e-5, 2e-3]),
        "latency_s": st.sampled_from([0.0, 2e-3]),
        "last": st.sampled_from([1.0, 0.05]),
    }
)


def apart(load: dict, router: Router | None = None, count: int = 80) -> Engine:
    return engine(
        poisson_requests(count, rate=load["rate"], seed=load["seed"]),
        affine_table(),
        kind="disaggregated",
        block_count=load["blocks"],
        replica_count=load["replica_count"],
        router=router,
        link=KvLink(
            prefill_s_per_token=load["s_per_token"],
            decode_s_per_token=0.5 * load["s_per_token"],
            latency_s=load["latency_s"],
            last_layer_fraction=load["last"],
        ),
    )


def blocks(tokens: int) -> int:
    return -(-int(tokens) // BLOCK)


def parked_blocks(run: Engine, index: int) -> int:
    """Blocks of a lane that belong to prompts on their way."""
    handover, inputs = run._handover, run._inputs
    flying = set(handover.order[: run._clock[0].in_flight].tolist())
    lane, hops = run._lanes[index], handover.hops
    if lane.pool == 1:
        waiting, request = [], int(lane.landed_first)
        for _ in range(int(lane.landed)):
            waiting.append(request)
            request = int(run._rows[request].after)
        coming = [one for one in flying if hops[one].target == index]
        return sum(blocks(inputs[one] - 1) for one in waiting + coming)
    unsent = [
        one
        for one in range(len(hops))
        if not np.isnan(hops[one].prefilled_s) and np.isnan(hops[one].pulled_s)
    ]
    return sum(blocks(inputs[one]) for one in [*unsent, *flying] if hops[one].source == index)


def seated_blocks(run: Engine, index: int) -> int:
    lane, owned = run._lanes[index], 0
    seat_id = lane.last_seat
    while seat_id >= 0:
        seat = run._seats[seat_id]
        tokens = seat.done if seat.start < 0 else seat.target + lane.step - seat.start
        opened = int(seat.start >= 0 and lane.steps > 0 and lane.decodes > 0 and tokens % BLOCK == 0)
        owned += blocks(tokens) + opened
        seat_id = seat.before
    return owned


@settings(deadline=None, max_examples=60)
@given(load=LOADS)
def test_a_block_is_free_seated_or_on_its_way_at_every_pause(load: dict) -> None:
    run = apart(load)
    for _ in run.slices(target_count=20):
        for index, lane in enumerate(run._lanes):
            assert seated_blocks(run, index) + parked_blocks(run, index) + lane.free_blocks == load["blocks"]
            assert lane.free_blocks >= 0
    for name in ("parked", "queued", "coming", "landed", "running", "waiting", "held", "prefilled"):
        assert (run._lanes[name] == 0).all()


@pytest.mark.parametrize("router", ROUTERS, ids=lambda one: one.kind)
@settings(deadline=None, max_examples=25)
@given(load=LOADS)
def test_nothing_happens_before_what_it_waits_for(router: Router, load: dict) -> None:
    run = apart(load, router)
    run.run()
    records, hops, landed_s = run.records(), run._handover.hops, run._handover.landed_s
    done = records.status == FINISHED
    sent_s = run._inputs * load["s_per_token"]
    assert (records.scheduled_s < hops.prefilled_s)[done].all()
    assert (hops.prefilled_s <= hops.pulled_s)[done].all()
    assert (hops.pulled_s + load["last"] * sent_s + load["latency_s"] <= landed_s * (1 + 1e-12))[done].all()
    assert (landed_s < records.first_token_s)[done].all()
    assert (records.first_token_s <= records.finish_s)[done].all()
    assert run.totals().gap_count == int((records.output_tokens[done] - 1).sum())


@settings(deadline=None, max_examples=25)
@given(load=LOADS)
def test_an_end_of_the_link_sends_one_prompt_at_a_time(load: dict) -> None:
    """With layers sent one after the other: what a lane has sent by an instant fits in the time until then."""
    run = apart(load | {"last": 1.0})
    run.run()
    hops, landed_s = run._handover.hops, run._handover.landed_s
    for lane in range(load["replica_count"]):
        mine = np.flatnonzero(hops.source == lane)
        mine = mine[np.argsort(landed_s[mine], kind="stable")]
        end_s = landed_s[mine] - load["latency_s"]
        begin_s = end_s - run._inputs[mine] * load["s_per_token"]
        assert (begin_s[1:] >= end_s[:-1] - 1e-9).all()


def test_one_request_takes_its_prompt_its_transfer_and_its_steps() -> None:
    requests = Requests(arrival_s=np.array([1.0]), input_tokens=np.array([100]), output_tokens=np.array([5]))
    link = KvLink(prefill_s_per_token=1e-4, decode_s_per_token=2e-4, latency_s=3e-3)
    run = engine(
        requests,
        constant_table(STEP_S, max_tokens=256, max_sequences=16),
        kind="disaggregated",
        link=link,
    )
    run.run()
    records = run.records()
    assert records.first_token_s[0] == pytest.approx(1.0 + STEP_S + 100 * 2e-4 + 3e-3 + STEP_S)
    assert records.finish_s[0] == pytest.approx(records.first_token_s[0] + 4 * STEP_S)


@pytest.mark.parametrize(("fraction", "exposed"), [(1.0, 1.0), (0.25, 0.25), (0.01, 0.5)])
def test_layers_sent_as_they_are_computed_hide_behind_the_prompt(fraction: float, exposed: float) -> None:
    """A transfer of two steps behind a prompt of one: half of it shows, and its last layer at least."""
    requests = Requests(arrival_s=np.zeros(1), input_tokens=np.array([100]), output_tokens=np.array([2]))
    seconds = 2 * STEP_S if fraction < 0.1 else STEP_S
    link = KvLink(
        prefill_s_per_token=seconds / 100, decode_s_per_token=0.0, latency_s=0.0, last_layer_fraction=fraction
    )
    run = engine(
        requests, constant_table(STEP_S, max_tokens=256, max_sequences=16), kind="disaggregated", link=link
    )
    run.run()
    assert run.records().first_token_s[0] == pytest.approx(2 * STEP_S + exposed * seconds)


def test_a_free_link_and_endless_memory_never_let_a_decode_wait() -> None:
    """Each request has a lane's batch to itself in time: decode goes on one step after another."""
    requests = poisson_requests(300, rate=60.0, seed=3)
    run = engine(
        requests,
        constant_table(STEP_S, max_tokens=512, max_sequences=64),
        kind="disaggregated",
        max_num_seqs=64,
        max_num_batched_tokens=512,
        block_count=100_000,
        replica_count=2,
        link=FREE,
    )
    run.run()
    records = run.records()
    spread = records.finish_s - records.first_token_s
    np.testing.assert_allclose(spread, (records.output_tokens - 1) * STEP_S, atol=1e-9)
    assert (records.first_token_s - run._handover.landed_s <= 2 * STEP_S + 1e-9).all()


def test_a_full_decode_pool_holds_prompts_back_in_the_prefill_pool() -> None:
    """Four decodes of 9 blocks fill the pool; the prompts behind them keep 8 blocks each, and prefill stops."""
    requests = closed_requests(60, concurrency=60, input_tokens=128, output_tokens=16)
    run = engine(
        requests, kind="disaggregated", block_count=36, max_num_seqs=16, max_num_batched_tokens=256, link=FREE
    )
    pieces = list(run.slices(target_count=20))
    assert max(piece.columns["handing_over"].max() for piece in pieces) >= 4
    hops = run._handover.hops
    assert float(np.median(hops.pulled_s - hops.prefilled_s)) > 5e-3
    busy = [one.busy_s for one in run.pool_totals()]
    assert busy[0] < 0.8 * run.totals().makespan_s  # prefill waits, though prompts do too
    assert run.totals().completed_count == 60


def test_prompts_share_their_prefixes_in_the_prefill_pool_and_give_back_every_block() -> None:
    requests = conversations(200, rate=30.0, seed=4, kinds=3)
    run = caching(requests, kind="disaggregated", replica_count=2)
    for _ in run.slices(target_count=25):
        for lane in run._lanes:
            assert 0 <= lane.free_blocks <= 4096
            assert lane.cached_blocks <= lane.free_blocks
    prefill, decode = run.pool_totals()
    assert prefill.hit_token_sum > 0.3 * prefill.prompt_token_sum
    assert decode.hit_token_sum == 0
    assert (run._lanes.free_blocks == run._setup["block_count"][run._lanes.pool]).all()


def test_pools_may_differ_and_each_keeps_to_its_own_times() -> None:
    requests = poisson_requests(100, rate=50.0)
    run = engine(requests, kind="disaggregated", replica_count=2)
    run.run()
    prefill, decode = run.pool_totals()
    assert prefill.decode_sequence_sum == 0
    assert decode.prefill_token_sum == 0
    assert prefill.prefill_token_sum == int(requests.input_tokens.sum())
    assert decode.decode_sequence_sum == int(requests.output_tokens.sum())
