"""What is said of a trace: rates, lengths, burstiness and shared prefixes, against known processes."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simcore.workload.arrivals import Gamma, Poisson, arrival_instants
from simcore.workload.summary import TraceSummary, curves, summarise
from simcore.workload.traces import TraceTable, read_trace


def table_of(instants: object, *, inputs: object = 100, outputs: object = 10) -> TraceTable:
    times = np.asarray(instants, np.float64)
    return TraceTable(
        timestamp_s=times - times[0],
        input_tokens=np.broadcast_to(np.asarray(inputs, np.int64), times.shape).copy(),
        output_tokens=np.broadcast_to(np.asarray(outputs, np.int64), times.shape).copy(),
        content_sha256="0" * 64,
    )


def hashed(*prompts: tuple[int, list[int]]) -> TraceSummary:
    rows = [
        {"timestamp": place * 1000, "input_length": tokens, "output_length": 1, "hash_ids": hashes}
        for place, (tokens, hashes) in enumerate(prompts)
    ]
    return summarise(read_trace("\n".join(map(json.dumps, rows)).encode(), format="mooncake"))


@pytest.mark.parametrize("cv", [0.5, 1.0, 3.0])
def test_a_gamma_process_shows_its_coefficient_of_variation(cv: float) -> None:
    instants = arrival_instants(Gamma(request_per_s=5.0, cv=cv), 400_000, seed=3)
    found = summarise(table_of(instants))
    assert found.gap_cv_ratio == pytest.approx(cv, rel=0.05)
    assert found.mean_request_per_s == pytest.approx(5.0, rel=0.05)
    assert found.least_gap_s is not None
    assert found.least_gap_s * 5.0 < 0.1  # far below the mean: nobody rounded


def test_the_peak_is_of_any_minute_not_of_those_on_the_clock() -> None:
    """Forty within a minute that begins at second 40: no minute of the clock holds more than twenty-one."""
    instants = [0.0, *np.linspace(40.0, 99.0, 40), 300.0]
    assert summarise(table_of(instants)).peak_minute_count == 40


@given(st.lists(st.floats(0, 500), min_size=1, max_size=60))
def test_the_peak_is_what_counting_from_each_arrival_finds(gaps: list[float]) -> None:
    instants = np.cumsum(gaps)
    times = instants - instants[0]
    counted = max(int(((times >= start) & (times < start + 60.0)).sum()) for start in times)
    assert summarise(table_of(instants)).peak_minute_count == counted


def test_arrivals_at_the_same_instant_are_told() -> None:
    found = summarise(table_of([0, 0, 0, 5, 5]))
    assert (found.tied_gap_fraction, found.least_gap_s) == (0.75, 5.0)


def test_lengths_have_mean_and_percentiles() -> None:
    lengths = summarise(table_of(range(101), inputs=range(101))).input_tokens
    assert (lengths["mean"], lengths["p50"], lengths["p95"], lengths["p99"], lengths["max"]) == (
        50,
        50,
        95,
        99,
        100,
    )


def test_a_block_that_appeared_before_is_shared() -> None:
    """1,024 + 700 tokens; the first block of the second prompt is the first one's: 512 of 1,724."""
    assert hashed((1024, [1, 2]), (700, [1, 9])).shared_prompt_fraction == pytest.approx(512 / 1724)


def test_the_last_block_of_a_prompt_counts_what_is_left_of_it() -> None:
    assert hashed((600, [1, 2]), (600, [1, 2])).shared_prompt_fraction == 0.5
    assert (
        hashed((600, [1, 2, 3]), (600, [1, 2, 3])).shared_prompt_fraction == 0.5
    )  # a third block holds nothing


def test_prompts_of_their_own_share_nothing_and_without_hashes_nothing_is_said() -> None:
    assert hashed((600, [1, 2]), (600, [3, 4])).shared_prompt_fraction == 0.0
    assert summarise(table_of([0, 1, 2])).shared_prompt_fraction is None


def test_one_row_is_summarised_as_far_as_it_goes() -> None:
    found = summarise(table_of([7.0]))
    assert (found.mean_request_per_s, found.gap_cv_ratio, found.least_gap_s) == (None, None, None)
    assert found.peak_minute_count == 1
    assert np.isfinite(curves(table_of([7.0]))["arrivals"]["request_per_min"]).all()


def test_the_curve_of_arrivals_holds_every_request_and_that_of_lengths_rises() -> None:
    table = table_of(arrival_instants(Poisson(request_per_s=2.0), 3_000, seed=1), inputs=range(3_000))
    drawn = curves(table)
    window_min = table.timestamp_s[-1] / 120 / 60
    assert drawn["arrivals"]["request_per_min"].sum() * window_min == pytest.approx(3_000)
    assert len(drawn["arrivals"]["time_s"]) == 120
    for name in ("input_tokens", "output_tokens"):
        assert (np.diff(drawn["lengths"][name]) >= 0).all()
    assert drawn["lengths"]["input_tokens"][[0, -1]].tolist() == [0, 2_999]
