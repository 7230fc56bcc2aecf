"""Preset arrivals have the rate that is asked for, and the rhythm and bursts of the traces they were fitted to."""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from numpy.typing import NDArray

from simcore.plan import plan
from simcore.scenario import Scenario
from simcore.workload.arrival_presets import ArrivalPresetName, arrival_presets
from simcore.workload.arrivals import ArrivalPreset, Gamma, Poisson, arrival_instants

Floats = NDArray[np.float64]
NAMES = get_args(ArrivalPresetName)
MOVING = [name for name in NAMES if name != "mooncake-synthetic"]
SERVEGEN = {
    "servegen-m-large": "language/m-large",
    "servegen-m-mid": "language/m-mid",
    "servegen-m-small": "language/m-small",
    "servegen-mm-image": "multimodal/mm-image",
    "servegen-deepseek-r1": "reason/deepseek-r1",
}


def drawn(name: str, *, rate: float = 8.0, period_s: float | str = "auto", count: int = 100_000) -> Floats:
    preset = ArrivalPreset(name=name, request_per_s=rate, period_s=period_s)
    return arrival_instants(preset, count, seed=7)


def test_every_name_has_its_rates_and_its_source() -> None:
    assert tuple(arrival_presets()) == NAMES
    for fitted in arrival_presets().values():
        assert np.mean(fitted.relative_rates) == pytest.approx(1.0, abs=0.002)
        assert min(fitted.relative_rates) > 0
        assert fitted.gap_cv >= 1
        assert fitted.url.startswith("https://")
        assert fitted.licence
        assert fitted.fitted_on == "2026-11-30"


@pytest.mark.parametrize("name", NAMES)
def test_whole_periods_have_the_mean_rate_that_is_asked_for(name: str) -> None:
    instants = drawn(name, period_s=100.0)
    assert (np.diff(instants) >= 0).all()
    assert len(instants) / instants[-1] == pytest.approx(8.0, rel=0.02 * arrival_presets()[name].gap_cv)


@pytest.mark.parametrize("name", MOVING)
def test_the_rate_takes_its_course_once_in_a_period(name: str) -> None:
    fitted = arrival_presets()[name]
    cells = len(fitted.relative_rates)
    instants = drawn(name, rate=100.0, period_s=60.0)
    periods = int(instants[-1] // 60.0)
    counts, _ = np.histogram(instants[instants < periods * 60.0] % 60.0, bins=cells, range=(0, 60))
    relative = np.array(fitted.relative_rates) / np.mean(fitted.relative_rates)
    expected = relative * periods * 60.0 * 100.0 / cells
    assert counts == pytest.approx(expected, abs=5 * fitted.gap_cv * expected.max() ** 0.5)
    own = drawn(name, rate=100.0 * 60.0 / fitted.period_s)
    np.testing.assert_allclose(own / fitted.period_s, instants / 60.0, rtol=1e-9)


def test_gaps_vary_as_fitted_where_the_rate_does_not_move() -> None:
    fitted = arrival_presets()["mooncake-synthetic"]
    gamma = arrival_instants(Gamma(request_per_s=8.0, cv=fitted.gap_cv), 1000, seed=7)
    np.testing.assert_allclose(drawn("mooncake-synthetic", count=1000), gamma, rtol=1e-12)


def test_a_short_run_sees_about_the_mean_rate() -> None:
    for name in SERVEGEN:
        first = arrival_presets()[name].relative_rates[0]
        assert 1.0 <= first <= 1.25
        assert ArrivalPreset(name=name, request_per_s=1.0).fit.period_s == 86_400


def test_a_period_of_a_rate_that_does_not_move_is_said_to_have_no_effect() -> None:
    def told(name: str) -> list[str]:
        arrivals = {"kind": "preset", "name": name, "request_per_s": 1.0, "period_s": 60.0}
        document = {"name": "x", "workload": {"request_count": 10, "arrivals": arrivals}}
        return [warning.path for warning in plan(Scenario.parse(document)).warnings]

    assert "workload.arrivals.period_s" in told("mooncake-synthetic")
    assert "workload.arrivals.period_s" not in told("mooncake-conversation")


def test_another_trace_is_another_result() -> None:
    def digest(name: str) -> str:
        arrivals = {"kind": "preset", "name": name, "request_per_s": 2.0}
        return plan(
            Scenario.parse({"name": "x", "workload": {"request_count": 10, "arrivals": arrivals}})
        ).digest

    assert digest("servegen-m-large") != digest("servegen-m-mid")


# ---- against the traces ------------------------------------------------------------------------------


def recorded(shared: Path, name: str) -> Floats:
    path = shared / "data" / "traces" / f"{name}.csv"
    instants = np.sort(
        np.genfromtxt(path, delimiter=",", names=True, usecols=("timestamp_s",))["timestamp_s"]
    )
    return instants - instants[0]


def like(name: str, trace: Floats) -> Floats:
    """Twenty times the trace's hours, at its rate."""
    rate = (len(trace) - 1) / trace[-1]
    return drawn(name, rate=rate, count=20 * len(trace))


def counts_by(instants: Floats, width_s: float) -> Floats:
    return np.histogram(instants, np.arange(0.0, instants[-1], width_s))[0].astype(float)


def quantiles(values: Floats, shares: Sequence[float]) -> Floats:
    return np.quantile(values, shares)


@pytest.mark.parametrize(
    ("name", "file", "off_fraction"),
    [
        ("azure-conversation-2023", "azure2023_conv", 0.03),
        ("mooncake-synthetic", "mooncake_synthetic", 0.03),
    ],
)
def test_quantiles_of_the_gaps_are_the_traces(
    name: str, file: str, off_fraction: float, shared: Path
) -> None:
    trace = recorded(shared, file)
    shares = (0.25, 0.5, 0.75, 0.9, 0.99)
    ours, theirs = (quantiles(np.diff(instants), shares) for instants in (like(name, trace), trace))
    assert ours == pytest.approx(theirs, rel=off_fraction)
    spread = [np.diff(instants).std() / np.diff(instants).mean() for instants in (like(name, trace), trace)]
    assert spread[0] == pytest.approx(spread[1], rel=0.03)


@pytest.mark.parametrize(
    ("name", "file", "width_s", "off_fraction"),
    [
        ("azure-conversation-2023", "azure2023_conv", 60.0, 0.04),
        ("mooncake-conversation", "mooncake_conversation", 60.0, 0.04),
        ("mooncake-synthetic", "mooncake_synthetic", 60.0, 0.04),
    ],
)
def test_quantiles_of_the_requests_a_minute_are_the_traces(
    name: str, file: str, width_s: float, off_fraction: float, shared: Path
) -> None:
    trace = recorded(shared, file)
    shares = (0.1, 0.25, 0.5, 0.75, 0.9)
    ours, theirs = (
        quantiles(counts_by(instants, width_s), shares) for instants in (like(name, trace), trace)
    )
    assert ours == pytest.approx(theirs, rel=off_fraction)


def test_a_trace_in_ticks_has_poisson_counts_and_not_the_variation_of_its_gaps(shared: Path) -> None:
    """Mooncake logs the requests of 3 s at one instant: their gaps would pass for a variation of 3."""
    trace = recorded(shared, "mooncake_conversation")
    gaps = np.diff(trace)
    assert gaps.std() / gaps.mean() > 3
    assert np.median(gaps[gaps > 0]) == pytest.approx(3.0, abs=0.01)
    ticks = counts_by(trace + 1.5, 3.0)
    by_five_minutes = ticks[: len(ticks) // 100 * 100].reshape(-1, 100)
    dispersion = (by_five_minutes.var(axis=1, ddof=1) / by_five_minutes.mean(axis=1)).mean()
    assert arrival_presets()["mooncake-conversation"].gap_cv ** 2 == pytest.approx(dispersion, abs=0.03)


@pytest.mark.parametrize("name", SERVEGEN)
def test_the_hours_and_the_variation_are_those_of_the_windows(name: str, shared: Path) -> None:
    with (shared / "data" / "traces" / "servegen_rates.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["workload"] == SERVEGEN[name]]
    rates = np.array([float(row["total_rate_req_s"]) for row in rows])
    rates[rates == 0] = np.nan  # nothing was logged
    hours = np.nanmean(rates.reshape(-1, 24, 6), axis=(0, 2))
    hours /= hours.mean()
    quietest = int(hours.argmin())
    start = next(hour for hour in range(quietest + 1, quietest + 25) if hours[hour % 24] >= 1.0)
    fitted = arrival_presets()[name]
    assert fitted.relative_rates == pytest.approx(np.roll(hours, -start), abs=0.006)
    variations = [
        float(row["rate_weighted_iat_cv"]) for row, rate in zip(rows, rates, strict=True) if rate > 0
    ]
    assert fitted.gap_cv == pytest.approx(np.median(variations), rel=0.01)


def test_a_preset_is_burstier_than_poisson_at_the_same_rate() -> None:
    poisson = arrival_instants(Poisson(request_per_s=8.0), 100_000, seed=7)
    bursty = drawn("servegen-m-small")
    assert counts_by(bursty, 10.0).var() > 3 * counts_by(poisson, 10.0).var()
