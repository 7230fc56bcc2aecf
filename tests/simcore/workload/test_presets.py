"""Preset lengths have the mean, the percentiles and the rank correlation of the traces they were fitted to."""

from collections.abc import Callable
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from numpy.typing import NDArray

from simcore.plan import plan
from simcore.scenario import Scenario
from simcore.workload.lengths import Preset, draw_lengths
from simcore.workload.presets import SCORES, PresetName, length_presets

NAMES = get_args(PresetName)
COUNT = 200_000
PERCENTILES = (50, 90, 99)
# Mean, p50, p90 and p99 of prompts and of answers: the reading of each trace when it was published or collected.
SUMMARIES = {
    "azure-conversation-2023": ((1154.7, 1020.0, 2734.5, 4142.0), (211.1, 129.0, 424.0, 601.0)),
    "mooncake-conversation": ((12035.1, 6909.0, 27367.0, 85400.4), (342.6, 350.0, 597.0, 1118.5)),
    "mooncake-synthetic": ((15325.5, 11587.0, 38611.2, 66456.2), (149.1, 69.0, 389.0, 768.1)),
    "sharegpt": ((857.5, 731.5, 1460.1, 2765.2), (652.5, 632.0, 770.0, 784.1)),
    "arxiv-summarization": ((2588.1, 2730.0, 3702.0, 3933.4), (291.4, 167.0, 372.0, 3271.3)),
}
FILES = {
    "azure-conversation-2023": "azure2023_conv.csv",
    "mooncake-conversation": "mooncake_conversation.csv",
    "mooncake-synthetic": "mooncake_synthetic.csv",
    "sharegpt": "sharegpt300_llama-3.1-8b.csv",
    "arxiv-summarization": "arxiv_summarization_lengths.csv",
}
HISTOGRAMS = {
    "servegen-m-large": "language/m-large",
    "servegen-m-mid": "language/m-mid",
    "servegen-m-small": "language/m-small",
    "servegen-deepseek-r1": "reason/deepseek-r1",
}

Draw = Callable[[str], tuple[NDArray[np.int64], NDArray[np.int64]]]


@pytest.fixture(scope="module")
def drawn() -> Draw:
    kept = {name: draw_lengths(Preset(name=name), COUNT, seed=7) for name in NAMES}
    return kept.__getitem__


def summary(tokens: NDArray[np.generic]) -> list[float]:
    return [float(tokens.mean()), *np.percentile(tokens, PERCENTILES)]


def rank_correlation(one: NDArray[np.generic], other: NDArray[np.generic]) -> float:
    """Spearman's, with the mean rank where values are equal."""

    def ranks(values: NDArray[np.generic]) -> NDArray[np.float64]:
        _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
        ends = np.cumsum(counts)
        return ((2 * ends - counts - 1) / 2)[places]

    return float(np.corrcoef(ranks(one), ranks(other))[0, 1])


def test_every_name_has_its_table_and_its_source() -> None:
    assert tuple(length_presets()) == NAMES
    for fitted in length_presets().values():
        for tokens in (fitted.input_tokens, fitted.output_tokens):
            assert len(tokens) == len(SCORES) <= 64
            assert tokens[0] >= 1
            assert list(tokens) == sorted(tokens)
        assert fitted.url.startswith("https://")
        assert fitted.licence
        assert fitted.fitted_on == "2026-11-30"


@pytest.mark.parametrize("name", SUMMARIES)
def test_a_preset_has_the_mean_and_percentiles_of_its_trace(name: str, drawn: Draw) -> None:
    for tokens, expected in zip(drawn(name), SUMMARIES[name], strict=True):
        assert summary(tokens) == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize("name", NAMES)
def test_prompt_and_answer_are_tied_as_stated(name: str, drawn: Draw) -> None:
    assert rank_correlation(*drawn(name)) == pytest.approx(length_presets()[name].rank_correlation, abs=0.02)


@pytest.mark.parametrize("name", FILES)
def test_a_preset_meets_its_trace(name: str, drawn: Draw, shared: Path) -> None:
    path = shared / "data" / "traces" / FILES[name]
    columns = ("input_tokens", "output_tokens")
    trace = np.genfromtxt(path, delimiter=",", names=True, usecols=columns)
    for tokens, column in zip(drawn(name), columns, strict=True):
        assert summary(tokens) == pytest.approx(summary(trace[column]), rel=0.05)
    measured = rank_correlation(*(trace[column] for column in columns))
    assert rank_correlation(*drawn(name)) == pytest.approx(measured, abs=0.05)


@pytest.mark.parametrize("name", HISTOGRAMS)
def test_a_preset_of_a_histogram_has_its_mean_and_its_shares(name: str, drawn: Draw, shared: Path) -> None:
    rows = [
        line.split(",")
        for line in (shared / "data" / "traces" / "servegen_length_hist.csv").read_text().splitlines()
    ]
    for tokens, field in zip(drawn(name), ("input_tokens", "output_tokens"), strict=True):
        bins = np.array([row[2:] for row in rows if row[:2] == [HISTOGRAMS[name], field]], dtype=float)
        places, centres, weights = bins.T
        assert tokens.mean() == pytest.approx(centres @ weights / weights.sum(), rel=0.05)
        upper = 2 ** ((places + 0.5) / 4)
        below = np.cumsum(weights) / weights.sum()
        # A whole number above 16 lies in one bin of a quarter octave; smaller ones stand for several bins.
        for edge, share in zip(upper[upper > 16], below[upper > 16], strict=True):
            assert (tokens <= edge).mean() == pytest.approx(share, abs=0.03)


def test_more_requests_go_on_from_the_same_ones() -> None:
    few, many = (draw_lengths(Preset(name="sharegpt"), count, seed=3) for count in (50, 500))
    for fewer, more in zip(few, many, strict=True):
        np.testing.assert_array_equal(fewer, more[:50])


def test_another_trace_is_another_result() -> None:
    def digest(name: str) -> str:
        workload = {"request_count": 10, "lengths": {"kind": "preset", "name": name}}
        return plan(Scenario.parse({"name": "x", "workload": workload})).digest

    assert digest("sharegpt") != digest("servegen-m-large")
