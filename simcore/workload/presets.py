"""Lengths fitted to real traces: quantiles of prompts and answers, and the rank correlation between the two.

Tokens stand at evenly spaced standard normal scores and are interpolated in the logarithm between them, so a
table is a lognormal law bent to the trace; shares beyond the outermost scores (a thousandth at either end) are
cut off. Prompt and answer are tied by a Gaussian copula, whose correlation `ρ = 2 sin(π r / 6)` gives Spearman's
`r` (Kruskal 1958). What it leaves out: any tie beyond that one number, such as a cap on their sum.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from simcore.streams import stream
from simcore.workload.fitted import Fitted, fits

PresetName = Literal[
    "azure-conversation-2023",
    "mooncake-conversation",
    "mooncake-synthetic",
    "servegen-m-large",
    "servegen-m-mid",
    "servegen-m-small",
    "servegen-deepseek-r1",
    "sharegpt",
    "arxiv-summarization",
]
SCORES: Final[NDArray[np.float64]] = np.linspace(-3.1, 3.1, 63)


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthPreset(Fitted):
    """One trace's lengths: tokens at `SCORES`, and where they come from."""

    rank_correlation: float
    input_tokens: tuple[int, ...]
    output_tokens: tuple[int, ...]


@cache
def length_presets() -> Mapping[str, LengthPreset]:
    """The presets by name, in the order in which they are offered."""
    return fits("length_presets.yaml", LengthPreset)


def draw_preset(name: PresetName, count: int, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Input and output tokens of `count` requests, from the normal draws that `lognormal` lengths use."""
    fitted = length_presets()[name]
    tie = 2.0 * math.sin(math.pi * fitted.rank_correlation / 6.0)
    prompt = stream(seed, "workload", "lengths", "input").standard_normal(count)
    own = stream(seed, "workload", "lengths", "output").standard_normal(count)
    answer = tie * prompt + math.sqrt(1.0 - tie * tie) * own
    return _tokens(fitted.input_tokens, prompt), _tokens(fitted.output_tokens, answer)


def _tokens(table: tuple[int, ...], scores: NDArray[np.float64]) -> NDArray[np.int64]:
    drawn = np.exp(np.interp(scores, SCORES, np.log(table)))
    tokens: NDArray[np.int64] = np.rint(drawn).astype(np.int64)
    return tokens
