"""The metrics of a run: exact statistics, absent ids, SLO, regime, utilisation, and time that adds up."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.serving.attribution import seconds_by_resource
from simcore.serving.engine import Engine
from simcore.serving.metrics import ServingMetrics, itl_cdf, regime_of, serving_metrics
from simcore.workload.requests import Requests
from tests.simcore.serving.tables import (
    SCHEDULERS,
    affine_table,
    closed_requests,
    engine,
    poisson_requests,
    pool_use,
)


def measured(
    run: Engine,
    *,
    capacity: float = 50.0,
    closed_loop: bool = False,
    front_end_s: float = 0.0,
    **options: float,
) -> ServingMetrics:
    figures = {"slo_ttft_s": 0.1, "slo_tpot_s": 0.012} | options
    return serving_metrics(
        run.records(),
        [pool_use(run, replace(affine_table(), front_end_s=front_end_s), chips=4)],
        capacity_request_per_s=capacity,
        closed_loop=closed_loop,
        chip_count=8,
        **figures,
    )


def finished(requests: Requests, **options: object) -> Engine:
    run = engine(requests, **options)
    run.run()
    return run


def test_percentiles_are_those_of_the_finished_requests() -> None:
    run = finished(poisson_requests(3000, rate=40.0))
    found, records = measured(run).metrics, run.records()
    tpot_s = (records.finish_s - records.first_token_s)[records.output_tokens > 1]
    tpot_s /= (records.output_tokens - 1)[records.output_tokens > 1]
    for name, values in (
        ("ttft_s", records.ttft_s),
        ("tpot_s", tpot_s),
        ("e2e_s", records.e2e_s),
        ("queue_s", records.queue_s),
    ):
        assert found[f"serving.{name}.mean"] == pytest.approx(values.mean())
        for percentile in (50, 90, 95, 99):
            assert found[f"serving.{name}.p{percentile}"] == pytest.approx(np.percentile(values, percentile))


@pytest.mark.parametrize("kind", SCHEDULERS)
def test_the_mean_gap_is_exact_and_its_percentiles_lie_within_a_bin(kind: str) -> None:
    run = finished(poisson_requests(500, rate=40.0), kind=kind)
    found, records = measured(run).metrics, run.records()
    spread = (records.finish_s - records.first_token_s).sum()
    assert found["serving.itl_s.mean"] == pytest.approx(spread / (records.output_tokens - 1).sum())
    edges, counts = run.totals().gap_edges_s, run.totals().gap_histogram
    assert counts.sum() == (records.output_tokens - 1).sum()
    middle = edges[np.searchsorted(np.cumsum(counts), counts.sum() / 2)]
    assert found["serving.itl_s.p50"] == pytest.approx(middle, rel=0.01)


@pytest.mark.parametrize("kind", SCHEDULERS)
@settings(deadline=None, max_examples=30)
@given(
    seed=st.integers(0, 2**32 - 1),
    rate=st.sampled_from([3.0, 40.0, 1e6]),
    window=st.sampled_from([0, 80]),
    blocks=st.sampled_from([40, 4096]),
    replica_count=st.sampled_from([1, 3]),
)
def test_seconds_by_resource_add_up_to_the_wall_time_of_all_replicas(
    kind: str, seed: int, rate: float, window: int, blocks: int, replica_count: int
) -> None:
    table = affine_table(window_tokens=window)
    run = finished(
        poisson_requests(100, rate=rate, seed=seed),
        table=table,
        kind=kind,
        block_count=blocks,
        replica_count=replica_count,
    )
    seconds, totals = seconds_by_resource(run.totals(), table), run.totals()
    assert all(value >= 0 for value in seconds.values())
    assert sum(seconds.values()) == pytest.approx(replica_count * totals.makespan_s, rel=1e-9)


def test_an_id_that_does_not_apply_is_absent() -> None:
    one_token = finished(closed_requests(50, concurrency=4, input_tokens=20, output_tokens=1))
    found = measured(one_token, closed_loop=True).metrics
    assert not any(name.startswith(("serving.tpot_s", "serving.itl_s")) for name in found)
    assert "serving.offered_load_ratio" not in found
    assert found["serving.slo_attainment_fraction"] == 1.0
    assert all(np.isfinite(value) for value in found.values() if not isinstance(value, str))


def test_a_run_in_which_nothing_fits_still_answers() -> None:
    found = measured(finished(poisson_requests(5, rate=1.0, most_in=90), block_count=1)).metrics
    assert found["serving.completed_count"] + found["serving.rejected_count"] == 5
    nothing = finished(closed_requests(5, concurrency=1, input_tokens=90, output_tokens=1), block_count=1)
    found = measured(nothing, closed_loop=True).metrics
    assert found["serving.rejected_count"] == 5
    assert "serving.ttft_s.mean" not in found


def test_rejected_requests_have_missed_their_slo_and_are_no_goodput() -> None:
    requests = Requests(
        arrival_s=np.array([0.0, 10.0, 20.0, 30.0]),
        input_tokens=np.array([20, 20, 20, 5000]),
        output_tokens=np.array([10, 1, 10, 10]),
    )
    run = finished(requests, block_count=20)
    found = measured(run, slo_ttft_s=1.0, slo_tpot_s=1.0).metrics
    assert found["serving.slo_attainment_fraction"] == 0.75
    assert found["serving.slo_goodput_request_per_s"] == pytest.approx(3 / found["serving.makespan_s"])
    strict = measured(run, slo_ttft_s=1.0, slo_tpot_s=1e-4).metrics
    assert strict["serving.slo_attainment_fraction"] == 0.25  # the answer of one token has no TPOT to miss


def test_the_slo_needs_both_times_and_counts_a_request_once() -> None:
    run = finished(poisson_requests(2000, rate=60.0))
    records = run.records()
    tpot_s = (records.finish_s - records.first_token_s) / np.maximum(1, records.output_tokens - 1)
    both = (records.ttft_s <= 0.015) & (tpot_s <= 0.0075)
    found = measured(run, slo_ttft_s=0.015, slo_tpot_s=0.0075).metrics
    assert 0.05 < both.mean() < 0.95
    assert found["serving.slo_attainment_fraction"] == pytest.approx(both.mean())


def test_the_front_end_delays_the_first_token_and_nothing_that_the_engine_does() -> None:
    run = finished(poisson_requests(2000, rate=60.0))
    without, found = measured(run).metrics, measured(run, front_end_s=0.02).metrics
    later = {name for name, value in found.items() if value != without[name]}
    latencies = {
        f"serving.{name}.{at}" for name in ("ttft_s", "e2e_s") for at in ("mean", "p50", "p90", "p95", "p99")
    }
    assert later == latencies | {"serving.slo_attainment_fraction", "serving.slo_goodput_request_per_s"}
    for name in latencies:
        assert found[name] - without[name] == pytest.approx(0.02)
    shifted = measured(run, slo_ttft_s=0.12, front_end_s=0.02).metrics
    assert shifted["serving.slo_attainment_fraction"] == without["serving.slo_attainment_fraction"]


def test_utilisation_counts_model_work_over_all_owned_chips() -> None:
    requests = closed_requests(64, concurrency=8, input_tokens=100, output_tokens=20)
    run = finished(requests)
    found, table = measured(run, closed_loop=True).metrics, affine_table()
    pairs = 64 * (100**2 / 2 + sum(100 + j for j in range(1, 20)))
    flop = 64 * (119 * table.flop_per_token + 20 * table.head_flop_per_sequence) + (
        pairs * table.flop_per_context_token
    )
    owned = 8 * found["serving.makespan_s"] * 989e12
    assert found["serving.mfu_fraction"] == pytest.approx(4 * flop / owned)
    read = run.totals().iteration_count * 1.6e10 + 64 * sum(100 + j for j in range(1, 20)) * 131072.0
    assert found["serving.mbu_fraction"] == pytest.approx(4 * read / (owned / 989e12 * 3.35e12))


def test_a_block_pool_of_single_tokens_wastes_nothing_and_larger_blocks_waste_their_tails() -> None:
    requests = poisson_requests(300, rate=50.0)
    exact = measured(finished(requests, block_size=1, block_count=60_000)).metrics
    coarse = measured(finished(requests, block_size=64)).metrics
    assert exact["memory.kv_useful_fraction"] == pytest.approx(1.0, abs=0.02)
    assert coarse["memory.kv_useful_fraction"] < 0.95
    assert coarse["memory.kv_useful_fraction"] + coarse["memory.kv_internal_waste_fraction"] == 1.0


@pytest.mark.parametrize(
    ("rate", "regime"), [(20.0, "stable"), (50.0, "near_saturation"), (80.0, "overloaded")]
)
def test_the_regime_compares_offered_load_with_capacity(rate: float, regime: str) -> None:
    found = measured(finished(poisson_requests(2000, rate=rate)), capacity=50.0)
    assert found.metrics["serving.offered_load_ratio"] == pytest.approx(rate / 50, rel=0.05)
    assert found.metrics["serving.regime"] == regime
    assert [warning.code for warning in found.warnings] == (
        [] if regime == "stable" else [f"serving.{regime}"]
    )
    assert all(f"{rate / 50:.1f}" in warning.text for warning in found.warnings)


def test_a_closed_loop_is_near_saturation_where_it_gets_all_there_is() -> None:
    run = finished(closed_requests(500, concurrency=4, input_tokens=50, output_tokens=20))
    served = measured(run, closed_loop=True).metrics["serving.request_per_s"]
    assert measured(run, closed_loop=True, capacity=served).metrics["serving.regime"] == "near_saturation"
    assert measured(run, closed_loop=True, capacity=served * 2).metrics["serving.regime"] == "stable"


def test_ten_per_cent_of_capacity_flips_the_answer_only_near_saturation() -> None:
    for ratio in np.linspace(0.5, 1.5, 101):
        flips = (ratio / 1.1 < 1) != (ratio / 0.9 < 1)
        if flips and regime_of(ratio) != "near_saturation":
            pytest.fail(f"{ratio} is called {regime_of(ratio)}")


def test_cdfs_rise_from_the_least_to_the_most() -> None:
    run = finished(poisson_requests(500, rate=40.0))
    cdfs = measured(run).cdfs
    assert set(cdfs) == {"ttft_cdf", "tpot_cdf", "itl_cdf", "e2e_cdf"}
    assert cdfs["ttft_cdf"]["ttft_s"][0] == run.records().ttft_s.min()
    assert cdfs["e2e_cdf"]["e2e_s"][-1] == run.records().e2e_s.max()
    for columns in cdfs.values():
        for values in columns.values():
            assert (np.diff(values) >= 0).all()


def test_the_cdf_of_gaps_agrees_with_their_percentiles_and_their_mean() -> None:
    """The mean is the area above the curve; bins are 0.8 % wide, so both agree to that."""
    found = measured(finished(poisson_requests(2_000, rate=60.0)))
    gaps_s, fraction = found.cdfs["itl_cdf"]["itl_s"], found.cdfs["itl_cdf"]["fraction"]
    assert (fraction[0], fraction[-1]) == (0.0, 1.0)
    for percent in (50, 90, 99):
        read = np.interp(percent / 100, fraction, gaps_s)
        assert read == pytest.approx(found.metrics[f"serving.itl_s.p{percent}"], rel=1e-12)
    middles = (gaps_s[1:] + gaps_s[:-1]) / 2
    assert np.diff(fraction) @ middles == pytest.approx(found.metrics["serving.itl_s.mean"], rel=0.008)


def test_the_cdf_of_gaps_keeps_only_where_it_turns() -> None:
    """Gaps of few lengths are few points, though the histogram has thousands of bins."""
    run = finished(closed_requests(64, concurrency=1, input_tokens=50, output_tokens=20))
    fraction = itl_cdf(run.totals())["fraction"]
    flat = np.diff(fraction) == 0
    assert not (flat[1:] & flat[:-1]).any()
    assert len(fraction) < len(run.totals().gap_histogram) / 10


def test_one_token_answers_have_no_cdf_of_gaps() -> None:
    run = finished(closed_requests(50, concurrency=4, input_tokens=50, output_tokens=1))
    assert "itl_cdf" not in measured(run).cdfs
