"""Drawn workloads have the statistics they were asked for, and share their randomness by seed."""

import numpy as np
import pytest
from pydantic import TypeAdapter, ValidationError

from simcore.errors import InputError
from simcore.workload.arrivals import Arrivals, ClosedLoop, Diurnal, Gamma, Poisson, Ramp, Trace
from simcore.workload.lengths import Constant, Empirical, Lengths, LogNormal
from simcore.workload.requests import Requests, draw_requests
from simcore.workload.traces import read_trace

ARRIVALS = TypeAdapter(Arrivals)
LENGTHS = TypeAdapter(Lengths)
SHORT = Constant(input_tokens=512, output_tokens=128)
MIX = LogNormal(input_mean_tokens=1024, input_cv=1.0, output_mean_tokens=256, output_cv=0.5)


def drawn(
    arrivals: object = None,
    lengths: object = SHORT,
    *,
    count: int = 100_000,
    seed: int = 1,
    **options: object,
) -> Requests:
    options.setdefault("max_model_len", 1_000_000)
    return draw_requests(
        arrivals or Poisson(request_per_s=8.0), lengths, request_count=count, seed=seed, **options
    )


@pytest.mark.parametrize(
    ("arrivals", "cv"),
    [
        (Poisson(request_per_s=8.0), 1.0),
        (Gamma(request_per_s=8.0, cv=3.0), 3.0),
        (Gamma(request_per_s=8.0, cv=0.2), 0.2),
    ],
)
def test_gaps_have_the_rate_and_variation_asked_for(arrivals: Poisson | Gamma, cv: float) -> None:
    gaps = np.diff(drawn(arrivals).arrival_s)
    assert (gaps >= 0).all()
    assert gaps.mean() == pytest.approx(1 / 8, rel=0.03)
    assert gaps.std() / gaps.mean() == pytest.approx(cv, rel=0.05)


def test_a_ramp_reaches_its_end_rate_and_stays_there() -> None:
    instants = drawn(Ramp(start_request_per_s=10, end_request_per_s=100, ramp_s=1000)).arrival_s
    counts, _ = np.histogram(instants, bins=np.arange(0, 1500, 100))
    expected = [100 * (10 + 9 * (k + 0.5)) for k in range(10)] + [10_000] * 4
    assert counts == pytest.approx(expected, abs=4 * max(expected) ** 0.5)
    assert (np.diff(instants) >= 0).all()


def test_a_flat_ramp_and_a_flat_day_are_poisson() -> None:
    poisson = drawn(Poisson(request_per_s=8.0)).arrival_s
    flat = drawn(Ramp(start_request_per_s=8, end_request_per_s=8, ramp_s=50)).arrival_s
    np.testing.assert_allclose(flat, poisson, rtol=1e-12)
    day = drawn(Diurnal(request_per_s=8, peak_ratio=1, period_s=500)).arrival_s
    np.testing.assert_allclose(day, poisson, rtol=1e-9)


def test_a_day_has_its_peak_its_trough_and_its_mean() -> None:
    instants = drawn(Diurnal(request_per_s=100, peak_ratio=1.8, period_s=100)).arrival_s
    assert len(instants) / instants[-1] == pytest.approx(100, rel=0.02)
    counts, _ = np.histogram(instants % 100, bins=20)
    centres = (np.arange(20) + 0.5) * 5
    expected = len(instants) / 20 * (1 + 0.8 * np.sin(2 * np.pi * centres / 100))
    assert counts == pytest.approx(expected, abs=5 * expected.max() ** 0.5)
    assert (np.diff(instants) >= 0).all()


def test_lognormal_lengths_have_the_mean_and_variation_asked_for() -> None:
    requests = drawn(lengths=MIX)
    for tokens, mean, cv in ((requests.input_tokens, 1024, 1.0), (requests.output_tokens, 256, 0.5)):
        assert tokens.min() >= 1
        assert tokens.mean() == pytest.approx(mean, rel=0.02)
        assert tokens.std() / tokens.mean() == pytest.approx(cv, rel=0.04)


def test_empirical_lengths_keep_rows_together() -> None:
    requests = drawn(lengths=Empirical(input_tokens=[10, 20, 30], output_tokens=[1, 2, 3]))
    assert (requests.input_tokens == 10 * requests.output_tokens).all()
    assert np.bincount(requests.output_tokens)[1:] / len(requests) == pytest.approx([1 / 3] * 3, abs=0.01)


def test_two_scenarios_with_one_seed_share_their_draws() -> None:
    slow, fast = drawn(Poisson(request_per_s=1.0), MIX), drawn(Poisson(request_per_s=4.0), MIX)
    np.testing.assert_allclose(slow.arrival_s, 4 * fast.arrival_s)
    np.testing.assert_array_equal(slow.input_tokens, fast.input_tokens)
    assert (drawn(lengths=MIX, seed=2).input_tokens != slow.input_tokens).any()
    # More requests go on from the same ones.
    np.testing.assert_array_equal(drawn(lengths=MIX, count=50).input_tokens, slow.input_tokens[:50])


def test_a_request_longer_than_the_model_is_clipped_and_counted() -> None:
    requests = drawn(lengths=Constant(input_tokens=900, output_tokens=200), count=10, max_model_len=1000)
    assert requests.input_tokens.tolist() == [900] * 10
    assert requests.output_tokens.tolist() == [100] * 10
    assert requests.clipped_count == 10
    huge = drawn(lengths=Constant(input_tokens=5000, output_tokens=200), count=1, max_model_len=1000)
    assert (huge.input_tokens[0], huge.output_tokens[0]) == (999, 1)


def test_a_closed_loop_has_a_concurrency_and_no_instants() -> None:
    requests = drawn(ClosedLoop(concurrency=64), count=1000)
    assert requests.concurrency == 64
    assert not requests.arrival_s.any()


def test_a_trace_brings_its_own_count_and_lengths() -> None:
    table = read_trace(b"timestamp_s,input_tokens,output_tokens\n0,5,6\n1,7,8\n", format="csv")
    requests = drawn(Trace(path="t.csv"), trace=table)
    assert requests.input_tokens.tolist() == [5, 7]
    with pytest.raises(InputError, match="'abc' was not found"):
        drawn(Trace(trace="abc"))


@pytest.mark.parametrize(
    ("document", "complaint"),
    [
        ({"kind": "trace"}, "either path"),
        ({"kind": "trace", "path": "a", "trace": "b"}, "not both"),
        ({"kind": "trace", "path": "a", "format": "azure", "columns": {}}, "remove columns"),
        ({"kind": "trace", "path": "a", "window": [5, 2]}, "0 ≤ first < second"),
        ({"kind": "poisson", "request_per_s": 0}, "greater than 0"),
        ({"kind": "poisson", "request_per_s": float("nan")}, "finite"),
        ({"kind": "closed_loop", "concurrency": 0}, "greater than or equal to 1"),
        ({"kind": "diurnal", "request_per_s": 1, "peak_ratio": 2.5}, "less than or equal to 2"),
        ({"kind": "ramp", "start_request_per_s": 1, "end_request_per_s": 0, "ramp_s": 5}, "greater than 0"),
        ({"kind": "uniform"}, "closed_loop"),
    ],
)
def test_impossible_arrivals_are_refused(document: dict, complaint: str) -> None:
    with pytest.raises(ValidationError, match=complaint):
        ARRIVALS.validate_python(document)


def test_a_rate_may_carry_its_unit() -> None:
    assert (
        ARRIVALS.validate_python({"kind": "poisson", "request_per_s": "120 request/min"}).request_per_s == 2.0
    )


def test_lists_of_measured_lengths_must_be_aligned() -> None:
    with pytest.raises(ValidationError, match="one of each per measured request"):
        LENGTHS.validate_python({"kind": "empirical", "input_tokens": [1, 2], "output_tokens": [1]})
