"""The benchmark measures what it says: the same work as the bare loop, and every figure that is promised."""

import numpy as np
import pytest

from simcore.bench import as_text
from simcore.bench.bare_loop import BareStep, bare_loop
from simcore.bench.cluster import run_cluster
from simcore.bench.disagg import run_disagg
from simcore.bench.serving import run_serving
from simcore.compute.step_table import StepTimeTable
from simcore.serving.warm import warm
from tests.simcore.serving.tables import constant_table, engine, poisson_requests

CHUNK, SEATS = 64, 12


def bare_table() -> StepTimeTable:
    """The bare loop's own roofline where weights bind: a constant, so both see the same steps."""
    step = BareStep()
    return constant_table(
        step.weight_bytes / step.attained_bytes_per_s + step.overhead_s, max_tokens=CHUNK, max_sequences=SEATS
    )


def test_the_bare_loop_and_the_engine_do_the_same_work() -> None:
    requests = poisson_requests(400, rate=20.0, most_in=150, most_out=40)
    step = BareStep(kv_bytes_per_token=0.0, flop_per_token=0.0, attention_flop_per_pair=0.0)
    first, last, iterations = bare_loop(
        requests.arrival_s,
        requests.input_tokens,
        requests.output_tokens,
        CHUNK,
        SEATS,
        4096,
        16,
        step.as_array(),
    )
    run = engine(requests, bare_table(), max_num_seqs=SEATS, max_num_batched_tokens=CHUNK)
    run.run()
    assert run.totals().iteration_count == iterations
    np.testing.assert_allclose(run.records().first_token_s, first, rtol=1e-9)
    np.testing.assert_allclose(run.records().finish_s, last, rtol=1e-9)


def test_the_benchmark_reports_its_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("simcore.bench.serving.REQUESTS", 2000)
    monkeypatch.setattr("simcore.bench.serving.ROUNDS", 1)
    measured = run_serving()
    for name in ("requests_per_s", "iterations_per_s", "seconds", "peak_rss_bytes", "ratio_to_bare_loop"):
        assert measured[name] > 0
    assert "requests_per_s" in as_text("serving", measured)


def test_the_cluster_benchmark_spreads_the_requests_and_reports_its_figures(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("simcore.bench.cluster.REQUESTS", 4000)
    monkeypatch.setattr("simcore.bench.cluster.ROUNDS", 1)
    measured = run_cluster()
    assert measured["replicas"] == 64
    for name in ("requests_per_s", "iterations_per_s", "seconds", "peak_rss_bytes", "ratio_to_bare_loop"):
        assert measured[name] > 0


def test_prefill_and_decode_apart_are_measured_beside_the_bare_loop_on_the_same_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("simcore.bench.disagg.REQUESTS", 4000)
    monkeypatch.setattr("simcore.bench.disagg.ROUNDS", 1)
    measured = run_disagg()
    assert measured["prefill_replicas"] + measured["decode_replicas"] == 64
    for name in ("requests_per_s", "iterations_per_s", "seconds", "peak_rss_bytes", "ratio_to_bare_loop"):
        assert measured[name] > 0


def test_warming_up_needs_no_scenario_and_no_catalog() -> None:
    warm()
