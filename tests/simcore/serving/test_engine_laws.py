"""Laws of the engine, over all schedulers and routers: what must hold whatever the policy is."""

import hashlib
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.serving.capacity import throughput_curve
from simcore.serving.engine import Engine
from simcore.serving.routers import ROUTER_CODES, Router
from simcore.serving.schedulers import LEAVES_SEATS_EMPTY, SchedulerParameters
from simcore.serving.state import FINISHED, REJECTED, UNFINISHED
from simcore.workload.requests import Requests
from tests.simcore.serving.tables import (
    ALL_POLICIES,
    ALL_SCHEDULERS,
    POLICIES,
    ROUTERS,
    SCHEDULERS,
    affine_table,
    closed_requests,
    constant_table,
    engine,
    poisson_requests,
    scaled,
    speculating_table,
)

LOADS = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 2**32 - 1),
        "rate": st.sampled_from([2.0, 20.0, 1000.0]),
        "blocks": st.sampled_from([30, 60, 4096]),
        "replica_count": st.sampled_from([1, 2, 5]),
        "window": st.sampled_from([0, 100]),
        "drafts": st.sampled_from([0, 0, 3]),
        "acceptance": st.sampled_from([0.0, 0.7, 1.0]),
    }
)


def loaded(kind: str, router: Router, load: dict, count: int = 120) -> Engine:
    return engine(
        poisson_requests(count, rate=load["rate"], seed=load["seed"]),
        speculating_table(load["drafts"], load["acceptance"], window_tokens=load["window"]),
        kind=kind,
        block_count=load["blocks"],
        replica_count=load["replica_count"],
        router=router,
    )


def test_every_registered_policy_is_under_the_laws() -> None:
    assert {router.kind for router in ROUTERS} == set(ROUTER_CODES)
    assert len(ALL_POLICIES) == (len(SCHEDULERS) + 1) * len(ROUTER_CODES)


@pytest.mark.parametrize(("kind", "router"), ALL_POLICIES)
@settings(deadline=None, max_examples=40)
@given(load=LOADS)
def test_requests_are_conserved_and_time_goes_forward(kind: str, router: Router, load: dict) -> None:
    run = loaded(kind, router, load)
    instants: list[float] = []
    for piece in run.slices(target_count=9):
        instants += piece.columns["time_s"].tolist()
        states = run.records().status
        finished = int((states == FINISHED).sum())
        rejected = int((states == REJECTED).sum())
        assert finished == piece.completed_count
        # Everything else is seated, in line, or has not arrived yet.
        lanes, clock = run._lanes, run._clock[0]
        between = int(lanes.queued.sum() + lanes.coming.sum() + lanes.landed.sum())
        inside = int(lanes.running.sum() + lanes.waiting.sum()) + between
        assert finished + rejected + inside == clock.next_request
        assert int((states == UNFINISHED).sum()) == len(states) - finished - rejected
    assert all(a < b for a, b in pairwise(instants))
    records = run.records()
    done = records.status == FINISHED
    assert (done | (records.status == REJECTED)).all()
    assert (records.queue_s[done] >= 0).all()
    assert (records.scheduled_s < records.first_token_s)[done].all()
    assert (records.first_token_s <= records.finish_s)[done].all()


@pytest.mark.parametrize(("kind", "router"), POLICIES)
@settings(deadline=None, max_examples=40)
@given(load=LOADS)
def test_blocks_are_conserved_at_every_pause(kind: str, router: Router, load: dict) -> None:
    run = loaded(kind, router, load)
    block = 16
    for _ in run.slices(target_count=25):
        for lane in run._lanes:
            owned = held = 0
            seat_id = lane.last_seat
            while seat_id >= 0:
                seat = run._seats[seat_id]
                tokens = seat.done if seat.start < 0 else seat.target + lane.step - seat.start
                # The next tokens of a decode in a run have their blocks already.
                coming = int(lane.gained) if load["drafts"] else 1
                ahead = coming if seat.start >= 0 and lane.steps > 0 and lane.decodes > 0 else 0
                owned += -(-(int(tokens) + ahead) // block)
                held += int(tokens)
                seat_id = seat.before
            assert owned + lane.free_blocks == load["blocks"]
            assert held == lane.held + lane.prefilled
            assert lane.line_blocks >= 0
            assert lane.free_blocks >= 0
    assert (run._lanes.free_blocks == load["blocks"]).all()
    assert (run._lanes.line_blocks == 0).all()


@pytest.mark.parametrize(("kind", "router"), ALL_POLICIES)
@settings(deadline=None, max_examples=25)
@given(load=LOADS, pieces=st.integers(2, 50))
def test_slices_and_one_go_give_the_same_bits(kind: str, router: Router, load: dict, pieces: int) -> None:
    whole, sliced = loaded(kind, router, load), loaded(kind, router, load)
    whole.run()
    series = [piece.columns["running"] for piece in sliced.slices(target_count=pieces)]
    assert len(series) > 1
    for name in ("scheduled_s", "first_token_s", "finish_s", "preemption_count", "replica"):
        np.testing.assert_array_equal(getattr(whole.records(), name), getattr(sliced.records(), name))
    assert whole.totals().busy_s == sliced.totals().busy_s
    np.testing.assert_array_equal(whole.totals().gap_histogram, sliced.totals().gap_histogram)


def fingerprint(kind: str) -> str:
    digest = hashlib.sha256()
    for router in ROUTERS:
        load = {"seed": 5, "rate": 60.0, "blocks": 40, "replica_count": 2, "window": 100, "acceptance": 0.7}
        for drafts in (0, 3):
            run = loaded(kind, router, load | {"drafts": drafts}, count=150)
            run.run()
            digest.update(run.records().finish_s.tobytes())
            digest.update(run.totals().gap_histogram.tobytes())
    return digest.hexdigest()


@pytest.mark.parametrize("kind", ALL_SCHEDULERS)
def test_another_process_gives_the_same_bits(kind: str) -> None:
    program = f"from tests.simcore.serving.test_engine_laws import fingerprint; print(fingerprint({kind!r}))"
    other = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert other.stdout.strip() == fingerprint(kind)


@pytest.mark.parametrize(("kind", "router"), POLICIES)
@settings(deadline=None, max_examples=25)
@given(load=LOADS)
def test_no_lane_is_idle_while_somebody_waits_in_it(kind: str, router: Router, load: dict) -> None:
    """Work conservation: the time without an iteration is exactly the time with an empty system."""
    load = load | {"replica_count": 1}
    run = loaded(kind, router, load)
    run.run()
    records, totals = run.records(), run.totals()
    done = records.status == FINISHED
    events = sorted(
        [(at, 1) for at in records.arrival_s[done]] + [(at, -1) for at in records.finish_s[done]],
        key=lambda event: (event[0], -event[1]),
    )
    inside, empty_s, last_s = 0, 0.0, float(records.arrival_s[0])
    for at, change in events:
        if inside == 0:
            empty_s += at - last_s
        inside, last_s = inside + change, at
    assert totals.makespan_s - totals.busy_s == pytest.approx(empty_s, rel=1e-9, abs=1e-9)


def longest_wait_beside_a_free_seat(kind: str, seed: int) -> float:
    """Iterations of one second that begin without a request that waits, though a seat and all else is free."""
    seats, requests = 6, poisson_requests(60, rate=1.0, seed=seed, most_in=50, most_out=9)
    table = constant_table(1.0, max_tokens=4096, max_sequences=seats)
    run = engine(requests, table, kind=kind, max_num_seqs=seats, max_num_batched_tokens=4096)
    run.run()
    records, longest = run.records(), 0.0
    for arrived, scheduled in zip(records.arrival_s, records.scheduled_s, strict=True):
        instant = scheduled - 1.0  # iterations follow each other while anybody is inside
        while instant > arrived + 1e-6:  # sums of seconds are rounded
            seated = (records.scheduled_s < instant + 1e-6) & (records.finish_s > instant + 1e-6)
            if seated.sum() < seats:
                longest = max(longest, scheduled - instant)
            instant -= 1.0
    return longest


@pytest.mark.parametrize("kind", sorted(set(SCHEDULERS) - LEAVES_SEATS_EMPTY))
@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 2**32 - 1))
def test_nobody_waits_beside_a_free_seat(kind: str, seed: int) -> None:
    assert longest_wait_beside_a_free_seat(kind, seed) == 0.0


def test_only_static_batches_are_exempt_from_filling_their_seats_and_they_need_it() -> None:
    assert {"static_batch"} == LEAVES_SEATS_EMPTY
    assert longest_wait_beside_a_free_seat("static_batch", seed=3) > 1.0


@pytest.mark.parametrize(("kind", "router"), ALL_POLICIES)
@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 2**32 - 1), factor=st.integers(2, 5))
def test_the_scheduler_does_not_read_the_true_output_length(
    kind: str, router: Router, seed: int, factor: int
) -> None:
    """Until the first request finishes, longer answers must change nothing."""
    requests = poisson_requests(40, rate=200.0, seed=seed)
    longer = Requests(
        arrival_s=requests.arrival_s,
        input_tokens=requests.input_tokens,
        output_tokens=requests.output_tokens * factor,
    )
    first, second = engine(requests, kind=kind, router=router), engine(longer, kind=kind, router=router)
    first.run()
    second.run()
    until = np.nanmin(first.records().finish_s)
    for name in ("scheduled_s", "first_token_s"):
        one, two = getattr(first.records(), name), getattr(second.records(), name)
        np.testing.assert_allclose(np.minimum(one, until), np.minimum(two, until), rtol=1e-12)


@pytest.mark.parametrize(("kind", "router"), ALL_POLICIES)
@settings(deadline=None, max_examples=25)
@given(load=LOADS)
def test_throughput_stays_below_the_tables_bound(kind: str, router: Router, load: dict) -> None:
    """Compute alone: every token costs at least its compute time, on every replica."""
    run = loaded(kind, router, load)
    run.run()
    totals, table = run.totals(), affine_table(window_tokens=load["window"])
    tokens = totals.prefill_token_sum + (1 + load["drafts"]) * totals.decode_sequence_sum
    assert totals.replica_count == load["replica_count"] * (2 if kind == "disaggregated" else 1)
    bound_token_per_s = totals.replica_count * (len(table.linear_s) - 1) / table.linear_compute_s[-1]
    assert tokens / totals.makespan_s <= bound_token_per_s


@pytest.mark.parametrize("kind", ALL_SCHEDULERS)
def test_a_faster_tier_never_makes_the_run_longer_and_an_infinite_one_is_a_missing_one(kind: str) -> None:
    requests = closed_requests(200, concurrency=12, input_tokens=90, output_tokens=40)
    makespans = []
    for factor in (1.0, 0.5, 0.0):
        table = scaled(affine_table(), comm_s=factor)
        run = engine(requests, table, kind=kind)
        run.run()
        makespans.append(run.totals().makespan_s)
    assert makespans[0] > makespans[1] > makespans[2]


@pytest.mark.parametrize("kind", ALL_SCHEDULERS)
def test_tight_memory_makes_progress_and_what_cannot_fit_is_rejected_at_once(kind: str) -> None:
    requests = Requests(
        arrival_s=np.zeros(60),
        input_tokens=np.tile([100, 300, 10], 20),
        output_tokens=np.tile([200, 50, 5], 20),
    )
    run = engine(requests, kind=kind, block_count=20)  # 320 tokens: the second kind needs 349
    run.run()
    records, totals = run.records(), run.totals()
    assert totals.rejected_count == 20
    assert (records.status == np.tile([FINISHED, REJECTED, FINISHED], 20)).all()
    assert totals.preemption_count > 0
    assert totals.kv_usage_max_fraction == 1.0


def test_replicas_beyond_the_requests_cost_nothing_and_stand_idle() -> None:
    run = engine(poisson_requests(5, rate=1.0), replica_count=1_000_000, block_size=1024)
    run.run()
    assert sorted(run.records().replica.tolist()) == [0, 1, 2, 3, 4]
    assert run.totals().replica_count == 1_000_000
    assert run.totals().kv_usage_mean_fraction < 1e-6


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of one program is read from /proc")
def test_a_million_requests_are_counted_in_little_memory() -> None:
    """Its own peak: ru_maxrss would inherit that of the test runner, across fork and exec."""
    program = (
        "import numpy as np\n"
        "from tests.simcore.serving.tables import engine, pool_use\n"
        "from simcore.workload.requests import Requests\n"
        "from simcore.serving.metrics import serving_metrics\n"
        "n = 1_000_000\n"
        "requests = Requests(arrival_s=np.arange(n) / 50, input_tokens=np.full(n, 50), output_tokens=np.full(n, 20))\n"
        "run = engine(requests)\n"
        "assert sum(1 for _ in run.slices()) == 40\n"
        "serving_metrics(run.records(), [pool_use(run)], slo_ttft_s=1, slo_tpot_s=1,\n"
        "    capacity_request_per_s=90, closed_loop=False, chip_count=1)\n"
        "print(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')))\n"
    )
    subprocess.run([sys.executable, "-c", "from simcore.serving.warm import warm; warm()"], check=True)
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert int(ran.stdout) * 1024 <= 500e6


@pytest.mark.parametrize("kind", SCHEDULERS)
def test_the_closed_form_capacity_is_met_at_saturation(kind: str) -> None:
    requests = closed_requests(3000, concurrency=64, input_tokens=180, output_tokens=50)
    options = {"kind": kind, "max_num_seqs": 16, "max_num_batched_tokens": 256}
    run = engine(requests, **options)
    run.run()
    curve = throughput_curve(
        affine_table(),
        scheduler=SchedulerParameters(**options),
        block_count=4096,
        block_size_tokens=16,
        input_tokens=requests.input_tokens,
        output_tokens=requests.output_tokens,
    )
    served = run.totals().completed_count / run.totals().makespan_s
    assert served == pytest.approx(curve.capacity_request_per_s, rel=0.08)
