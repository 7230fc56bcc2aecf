"""The engine with memory promised at admission: slots, buddy runs, and what paging gives in the limit."""

import hashlib
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.memory.allocators import reservation
from simcore.serving.capacity import capacity_request_per_s
from simcore.serving.engine import Engine
from simcore.serving.metrics import _memory
from simcore.serving.pools import LanePool
from simcore.serving.routers.round_robin import RoundRobin
from simcore.serving.schedulers import LEAVES_SEATS_EMPTY, SchedulerParameters
from simcore.serving.state import FINISHED, REJECTED
from tests.simcore.serving.tables import SCHEDULERS, affine_table, poisson_requests

KINDS = ("contiguous_max", "contiguous_pow2", "contiguous_oracle")
LONGEST = 1_024
BLOCK = 16
LOADS = st.fixed_dictionaries(
    {"seed": st.integers(0, 2**32 - 1), "blocks": st.integers(64, 400), "replicas": st.sampled_from([1, 3])}
)


def engine_of(
    allocator,
    scheduler,
    requests,
    *,
    blocks,
    replicas=1,
    max_num_seqs=16,
    max_num_batched_tokens=256,
    outages=None,
):
    promised = reservation(
        allocator, requests.input_tokens, requests.output_tokens, max_model_len=LONGEST,
        block_size_tokens=BLOCK, block_count=blocks, pool_count=replicas,
    )  # fmt: skip
    pool = LanePool(
        table=affine_table(),
        scheduler=SchedulerParameters(
            kind=scheduler, max_num_seqs=max_num_seqs, max_num_batched_tokens=max_num_batched_tokens
        ),
        block_count=blocks,
        lane_count=replicas,
    )
    run = Engine(
        [pool],
        block_size_tokens=BLOCK,
        router=RoundRobin(),
        requests=requests,
        reservation=promised,
        outages=outages,
    )
    return run, promised


def outcome(run):
    records = run.records()
    return np.stack([records.scheduled_s, records.first_token_s, records.finish_s])


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None, max_examples=25)
@given(load=LOADS)
def test_what_is_promised_is_taken_once_and_given_back(kind, scheduler, load):
    requests = poisson_requests(80, rate=50.0, seed=load["seed"])
    run, promised = engine_of(
        kind, scheduler, requests, blocks=load["blocks"], replicas=load["replicas"]
    )  # fmt: skip
    empty = run._tree.copy()
    for _ in run.slices(target_count=7):
        lanes = run._lanes
        assert (lanes.free_blocks >= 0).all()
        assert (lanes.prefilled + lanes.held <= (load["blocks"] - lanes.free_blocks) * BLOCK).all()
    assert (run._lanes.free_blocks == load["blocks"]).all()
    assert (run._tree == empty).all()
    records, totals = run.records(), run.totals()
    done = records.status == FINISHED
    assert (done | (records.status == REJECTED)).all()
    assert (done == (promised.blocks <= load["blocks"])).all()
    assert totals.preemption_count == 0
    stay_s = (records.finish_s - records.scheduled_s)[done]
    assert totals.kv_taken_token_s == pytest.approx(float(stay_s @ promised.blocks[done]) * BLOCK)


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 2**32 - 1), slots=st.integers(1, 6))
def test_slots_of_the_longest_request_are_seats(scheduler, seed, slots):
    """A pool of `slots` slots serves as a pool without limit and `slots` seats does.

    To the last bit but for rounding: who finds a seat and no memory still cuts a run in two.
    """
    requests = poisson_requests(60, rate=50.0, seed=seed)
    if (
        scheduler in LEAVES_SEATS_EMPTY
    ):  # an answer of one token gives its slot back while its batch still forms
        requests = replace(requests, output_tokens=np.maximum(requests.output_tokens, 2))
    bounded, _ = engine_of(
        "contiguous_max", scheduler, requests, blocks=slots * LONGEST // BLOCK + 3
    )  # fmt: skip
    seated, _ = engine_of("paged", scheduler, requests, blocks=100_000, max_num_seqs=slots)
    bounded.run()
    seated.run()
    np.testing.assert_allclose(outcome(bounded), outcome(seated), rtol=1e-12)


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize("kind", KINDS)
def test_with_memory_for_all_it_does_not_matter_how_it_is_handed_out(kind, scheduler):
    requests = poisson_requests(100, rate=50.0, seed=3)
    runs = [engine_of(one, scheduler, requests, blocks=8_192)[0] for one in (kind, "paged")]
    for run in runs:
        run.run()
    assert (outcome(runs[0]) == outcome(runs[1])).all()


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize("kind", ["paged", *KINDS])
def test_memory_is_told_in_four_parts(kind, scheduler):
    requests = poisson_requests(300, rate=500.0, seed=5)
    run, promised = engine_of(kind, scheduler, requests, blocks=300)
    run.run()
    found = _memory(run.records(), run.totals(), promised)
    parts = [found[f"memory.kv_{part}_fraction"] for part in
             ("useful", "reserved_waste", "internal_waste", "external_waste")]  # fmt: skip
    assert sum(parts) == pytest.approx(1.0)
    assert all(part >= 0 for part in parts)
    if kind == "paged":
        assert parts[1] == 0.0
    if kind == "contiguous_oracle":
        assert parts[2] == 0.0
    if (
        kind == "contiguous_max" and scheduler not in LEAVES_SEATS_EMPTY
    ):  # 4 slots of 64 blocks in 300: the rest fits nobody
        assert parts[3] == pytest.approx(44 / 300, abs=0.02)


@pytest.mark.parametrize("kind", KINDS)
def test_closed_form_capacity_is_what_a_flooded_engine_serves(kind):
    requests = poisson_requests(2_000, rate=1e6, seed=7)
    run, promised = engine_of(kind, "chunked_prefill", requests, blocks=400)
    run.run()
    done = run.records().status == FINISHED
    served = done.sum() / run.totals().makespan_s
    closed = capacity_request_per_s(
        affine_table(),
        scheduler=SchedulerParameters(kind="chunked_prefill", max_num_seqs=16, max_num_batched_tokens=256),
        block_count=400,
        block_size_tokens=BLOCK,
        input_tokens=requests.input_tokens[done],
        output_tokens=requests.output_tokens[done],
        reserved_blocks=promised.blocks[done],
    )
    assert served == pytest.approx(closed, rel=0.15 if kind == "contiguous_max" else 0.3)


def fingerprint(kind):
    run, _ = engine_of(kind, "chunked_prefill", poisson_requests(60, rate=50.0, seed=9), blocks=150)
    run.run()
    return hashlib.sha256(outcome(run).tobytes()).hexdigest()
