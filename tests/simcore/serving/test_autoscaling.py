"""Replicas by load: the rule, who is let in, what starting costs, and that a fixed number is what it was."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.serving.autoscaling import Autoscaling, ByKvUsage, ByOutstanding, ReplicaCount
from simcore.serving.engine import Engine
from simcore.serving.routers import Router
from simcore.serving.state import FINISHED
from simcore.workload.requests import Requests
from tests.simcore.serving.tables import POLICIES, ROUTERS, engine, in_sessions, poisson_requests

COMMON = {
    "min_replica_count": st.integers(1, 3),
    "interval_s": st.sampled_from([1.0, 2.5]),
    "startup_s": st.sampled_from([0.0, 0.7, 4.0]),
    "scale_down_stabilization_s": st.sampled_from([0.0, 5.0]),
}
SPECS = st.builds(ByOutstanding, target=st.sampled_from([0.7, 3.0]), **COMMON) | st.builds(
    ByKvUsage, target=st.sampled_from([0.1, 0.7]), **COMMON
)


def series(run: Engine) -> dict[str, np.ndarray]:
    parts = [piece.columns for piece in run.slices()]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def waves(count: int, seed: int, *, low: float = 2.0, high: float = 40.0, period_s: float = 40.0) -> Requests:
    """Arrivals whose rate goes up and down between two values."""
    draws = np.random.default_rng(seed)
    arrival_s, now_s = [], 0.0
    while len(arrival_s) < count:
        now_s += draws.exponential(1 / high)
        rate = low + (high - low) * 0.5 * (1 - math.cos(2 * math.pi * now_s / period_s))
        if draws.random() < rate / high:
            arrival_s.append(now_s)
    return Requests(
        arrival_s=np.array(arrival_s),
        input_tokens=draws.integers(1, 200, count),
        output_tokens=draws.integers(1, 60, count),
    )


@pytest.mark.parametrize(("kind", "router"), POLICIES)
@pytest.mark.parametrize("replicas", [1, 3])
def test_as_many_at_least_as_at_most_is_that_many_bit_for_bit(
    kind: str, router: Router, replicas: int
) -> None:
    requests = poisson_requests(200, rate=30.0)
    options = {"kind": kind, "router": router, "replica_count": replicas, "block_count": 60}
    fixed = engine(requests, **options)
    scaled = engine(requests, autoscaling=ByOutstanding(min_replica_count=replicas, interval_s=1), **options)
    fixed.run()
    scaled.run()
    for name in ("replica", "scheduled_s", "first_token_s", "finish_s", "preemption_count"):
        np.testing.assert_array_equal(getattr(fixed.records(), name), getattr(scaled.records(), name))
    assert fixed.totals().busy_s == scaled.totals().busy_s
    assert fixed.replicas() is None
    use = scaled.replicas()
    assert use.up_count == use.down_count == 0
    assert use.used_s == pytest.approx(replicas * fixed.totals().makespan_s)


@pytest.mark.parametrize("router", ROUTERS, ids=lambda router: router.kind)
@settings(deadline=None, max_examples=15)
@given(spec=SPECS, seed=st.integers(0, 2**32 - 1), most=st.integers(3, 6))
def test_nobody_is_sent_to_a_replica_that_is_not_ready_and_everybody_ends(
    router: Router, spec: Autoscaling, seed: int, most: int
) -> None:
    requests = waves(300, seed)
    run = engine(
        requests, router=router, replica_count=most, max_num_seqs=4, block_count=100, autoscaling=spec
    )
    columns = series(run)
    records = run.records()
    assert (records.status == FINISHED).all()
    assert columns["replicas"].min() >= spec.min_replica_count
    assert (columns["replicas"] + columns["replicas_starting"]).max() <= most
    ready = run._autoscaler.columns(requests.arrival_s - 1e-9)["replicas"]
    later = run._autoscaler.columns(requests.arrival_s + 1e-9)["replicas"]
    assert (records.replica < np.maximum(ready, later)).all()
    use = run.replicas()
    assert spec.min_replica_count <= use.ready_mean <= use.ready_max <= most
    assert use.used_s <= most * run.totals().makespan_s * (1 + 1e-9)
    assert use.used_s >= run.totals().busy_s * (1 - 1e-9)


@pytest.mark.parametrize("think_s", [0.1, 20.0])
def test_later_turns_of_sessions_go_to_replicas_that_are_ready(think_s: float) -> None:
    requests = in_sessions(poisson_requests(300, rate=20.0), 3, think_s)
    options = {"replica_count": 4, "max_num_seqs": 4, "router": ROUTERS[2]}
    fixed = engine(requests, **options)
    same = engine(requests, autoscaling=ByOutstanding(min_replica_count=4, interval_s=1), **options)
    spec = ByOutstanding(target=2, interval_s=1, startup_s=2, scale_down_stabilization_s=3)
    scaled = engine(requests, autoscaling=spec, **options)
    for run in (fixed, same, scaled):
        run.run()
    np.testing.assert_array_equal(fixed.records().finish_s, same.records().finish_s)
    records = scaled.records()
    assert (records.status == FINISHED).all()
    assert scaled.replicas().up_count > 0
    ready = np.maximum(
        *(scaled._autoscaler.columns(records.arrival_s + shift_s)["replicas"] for shift_s in (-1e-9, 1e-9))
    )
    assert (records.replica < ready).all()


def test_slices_and_one_go_give_the_same_bits() -> None:
    spec = ByOutstanding(target=2, interval_s=1, startup_s=2, scale_down_stabilization_s=3)
    requests = waves(400, 3)
    runs = [engine(requests, replica_count=4, max_num_seqs=4, autoscaling=spec) for _ in range(2)]
    runs[0].run()
    for _ in runs[1].slices(target_count=100):
        pass
    np.testing.assert_array_equal(runs[0].records().finish_s, runs[1].records().finish_s)
    assert runs[0].replicas() == runs[1].replicas()


def test_a_step_in_load_is_followed_one_interval_and_one_start_later() -> None:
    """Twenty requests a second where there were two: all that there may be start at the next evaluation."""
    spec = ByOutstanding(target=5, interval_s=10, startup_s=7, scale_down_stabilization_s=1_000)
    requests = Requests(
        arrival_s=np.append(np.arange(40) * 0.5, 21 + np.arange(400) * 0.05),
        input_tokens=np.full(440, 200),
        output_tokens=np.full(440, 60),
    )
    run = engine(requests, replica_count=6, max_num_seqs=2, router=ROUTERS[2], autoscaling=spec)
    instants = np.array([9.0, 29.0, 31.0, 36.5, 37.5, 60.0])
    run.run()
    seen = run._autoscaler.columns(instants)
    assert seen["replicas"].tolist() == [1, 1, 1, 1, 6, 6]
    assert seen["replicas_starting"][2:4].tolist() == [5, 5]
    first = run.records().arrival_s[run.records().replica > 0].min()
    assert 37.0 <= first < 37.5


def test_the_rule_is_that_of_the_horizontal_pod_autoscaler() -> None:
    spec = ByOutstanding(target=10, interval_s=10, startup_s=0, scale_down_stabilization_s=25)
    count = ReplicaCount(spec, most=8, begin_s=0.0)
    seen = []
    for place, total in enumerate([10.9, 31.0, 500.0, 20.0, 20.0, 20.0, 21.9, 0.0, 0.0, 0.0], 1):
        count.at(10.0 * place, total)
        seen.append(count.ready)
    # within a tenth; up at once, to the bound; down when nothing in 25 s wanted more; never below one
    assert seen == [1, 4, 8, 8, 8, 2, 2, 2, 2, 1]


def test_what_starts_counts_as_present_and_goes_first() -> None:
    spec = ByOutstanding(target=10, interval_s=10, startup_s=100, scale_down_stabilization_s=0)
    count = ReplicaCount(spec, most=8, begin_s=0.0)
    count.at(10.0, 40.0)
    count.at(20.0, 40.0)
    assert (count.ready, len(count.starting), count.up_count) == (1, 3, 3)
    count.at(30.0, 20.0)
    assert (count.ready, len(count.starting), count.down_count) == (1, 1, 2)
    assert count.cancelled_s == 40.0
    assert count.at(110.0, 20.0) == [10.0]
    assert (count.ready, len(count.starting)) == (2, 0)


def test_waves_are_served_in_fewer_replica_hours_and_no_better() -> None:
    requests = waves(2_000, 1)
    options = {"replica_count": 6, "max_num_seqs": 4, "router": ROUTERS[2]}
    spec = ByOutstanding(target=3, interval_s=2, startup_s=3, scale_down_stabilization_s=6)
    fixed, scaled = engine(requests, **options), engine(requests, autoscaling=spec, **options)
    fixed.run()
    scaled.run()
    assert scaled.replicas().used_s < 0.9 * 6 * fixed.totals().makespan_s
    assert np.quantile(scaled.records().ttft_s, 0.95) >= np.quantile(fixed.records().ttft_s, 0.95)


def test_one_pool_is_scaled_and_no_pair() -> None:
    with pytest.raises(ValueError, match="one pool"):
        engine(poisson_requests(3, rate=1.0), kind="disaggregated", autoscaling=ByOutstanding())
