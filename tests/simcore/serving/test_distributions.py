"""A sketch says what sorting says, within the error that it states, in whatever parts it was made."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simcore.serving import latencies
from simcore.serving.by_class import class_rows
from simcore.serving.distributions import RELATIVE_ERROR_FRACTION, Ordered, Sketch
from simcore.serving.engine import Engine
from simcore.serving.metrics import ServingMetrics, serving_metrics
from simcore.workload.classes import RequestClass, Slo
from tests.simcore.serving.tables import affine_table, engine, poisson_requests, pool_use

NO_TIME_S = 1e-9  # below which a time counts as none
FRACTIONS = np.linspace(0.0, 1.0, 101)
TIMES = st.lists(
    st.floats(0.0, 1e10, allow_subnormal=False) | st.floats(1e-4, 10.0) | st.just(0.0),
    min_size=1,
    max_size=200,
)


def assert_alike(sketched: float, exact: float) -> None:
    assert abs(sketched - exact) <= RELATIVE_ERROR_FRACTION * exact * (1 + 1e-9) + NO_TIME_S


@given(times=TIMES)
def test_quantiles_are_those_of_sorting_within_the_stated_error(times: list[float]) -> None:
    values = np.array(times)
    sketch, exact = Sketch.of(values), Ordered.of(values)
    assert len(sketch) == len(exact) == len(values)
    assert sketch.mean_s == pytest.approx(exact.mean_s)
    for ours, theirs in zip(sketch.at(FRACTIONS), exact.at(FRACTIONS), strict=True):
        assert_alike(ours, theirs)
    assert (np.diff(sketch.at(FRACTIONS)) >= 0).all()


@given(times=TIMES, cut=st.integers(0, 200))
def test_sketches_of_parts_add_up_to_that_of_the_whole(times: list[float], cut: int) -> None:
    values = np.array(times)
    parts, whole = Sketch.of(values[:cut]) + Sketch.of(values[cut:]), Sketch.of(values)
    np.testing.assert_array_equal(parts.counts, whole.counts)
    assert (parts.lowest_s, parts.highest_s) == (whole.lowest_s, whole.highest_s)
    assert parts.sum_s == pytest.approx(whole.sum_s)


def test_the_stated_error_is_under_half_a_per_cent_and_is_reached() -> None:
    assert RELATIVE_ERROR_FRACTION < 0.005
    edge = np.array([1.0, 1.0, 3.0])  # at the lower end of its bin, which is the widest there is
    assert Sketch.of(edge).at(np.array([0.5]))[0] == pytest.approx(1.0 + RELATIVE_ERROR_FRACTION, rel=1e-4)


def test_a_sketch_of_nothing_has_no_times() -> None:
    assert len(Sketch.of(np.empty(0))) == 0
    assert latencies.statistics("ttft_s", Sketch.of(np.empty(0))) == {}


@pytest.fixture(scope="module")
def run() -> Engine:
    requests = poisson_requests(3000, rate=40.0)
    inputs = np.where(np.arange(3000) % 50 == 7, 100_000, requests.input_tokens)  # some fit nowhere
    run = engine(replace(requests, input_tokens=inputs))
    run.run()
    return run


def measured(run: Engine, slo_ttft_s: latencies.Limit) -> ServingMetrics:
    return serving_metrics(
        run.records(),
        [pool_use(run, replace(affine_table(), front_end_s=0.01), chips=4)],
        slo_ttft_s=slo_ttft_s,
        slo_tpot_s=0.012,
        capacity_request_per_s=50.0,
        closed_loop=False,
        chip_count=8,
    )


def sketch_every_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latencies, "SKETCHED_ABOVE", 100)
    monkeypatch.setattr(latencies, "_PART", 700)


@pytest.mark.parametrize("own_limits", [False, True])
def test_a_large_run_says_the_same_within_the_error_and_says_so(
    run: Engine, own_limits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit = np.where(np.arange(3000) % 3 == 0, 0.05, 0.2) if own_limits else 0.1
    exact = measured(run, limit)
    sketch_every_run(monkeypatch)
    sketched = measured(run, limit)
    assert exact.metrics.keys() == sketched.metrics.keys()
    assert exact.metrics["serving.rejected_count"] > 0
    for name, value in exact.metrics.items():
        if ".p" in name:
            assert_alike(sketched.metrics[name], value)
        else:
            assert sketched.metrics[name] == (value if isinstance(value, str) else pytest.approx(value))
    for name, columns in exact.cdfs.items():
        for column, values in columns.items():
            for ours, theirs in zip(sketched.cdfs[name][column], values, strict=True):
                assert_alike(ours, theirs)
    assert not any(warning.code == "serving.sketched" for warning in exact.warnings)
    told = next(warning for warning in sketched.warnings if warning.code == "serving.sketched")
    assert "off by at most 0.4%" in told.text


def test_classes_of_a_large_run_are_sketched_too(run: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    def rows() -> list[dict[str, float | int | str]]:
        return class_rows(
            run.records(),
            classes=[RequestClass(name=name, share_fraction=0.5) for name in ("one", "other")],
            common=Slo(ttft_s=0.1, tpot_s=0.012),
            class_of=np.arange(3000) % 2,
            front_end_s=0.0,
            makespan_s=run.totals().makespan_s,
        )

    exact = rows()
    sketch_every_run(monkeypatch)
    for sketched, row in zip(rows(), exact, strict=True):
        assert sketched.keys() == row.keys()
        for name, value in row.items():
            if ".p" in name:
                assert_alike(sketched[name], value)
            else:
                assert sketched[name] == (value if isinstance(value, str) else pytest.approx(value))
