"""How long requests are: the length laws that a scenario may name, and how they are drawn.

`lognormal` is given by mean and coefficient of variation, as people measure them; its parameters are
`sigma² = ln(1 + cv²)` and `mu = ln(mean) - sigma²/2`. `empirical` resamples the rows of two aligned lists,
so input and output keep their correlation; a `preset` has that of the trace it was fitted to. Every request
has at least one token in and one out.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from simcore.spec import Spec
from simcore.streams import stream
from simcore.workload.presets import PresetName, draw_preset

MAX_TOKENS = 16_777_216
Tokens = Annotated[int, Field(ge=1, le=MAX_TOKENS)]
MeanTokens = Annotated[float, Field(ge=1, le=MAX_TOKENS)]
Variation = Annotated[float, Field(ge=0, le=20)]
Lists = Annotated[list[Tokens], Field(min_length=1, max_length=1_000_000)]


class Constant(Spec):
    """Every request alike."""

    kind: Literal["constant"] = "constant"
    input_tokens: Tokens
    output_tokens: Tokens


class LogNormal(Spec):
    """Independent lognormal lengths, given by mean and coefficient of variation."""

    kind: Literal["lognormal"] = "lognormal"
    input_mean_tokens: MeanTokens
    input_cv: Variation = 1.0
    output_mean_tokens: MeanTokens
    output_cv: Variation = 1.0


class Empirical(Spec):
    """Rows of measured lengths, drawn with replacement."""

    kind: Literal["empirical"] = "empirical"
    input_tokens: Lists
    output_tokens: Lists

    @model_validator(mode="after")
    def _lists_are_aligned(self) -> Self:
        if len(self.input_tokens) != len(self.output_tokens):
            raise ValueError(
                f"input_tokens has {len(self.input_tokens)} entries and output_tokens "
                f"{len(self.output_tokens)}; give one of each per measured request"
            )
        return self


class Preset(Spec):
    """Lengths fitted to a real trace (`presets.py`)."""

    kind: Literal["preset"] = "preset"
    name: PresetName = "azure-conversation-2023"


AnyLengths = Constant | LogNormal | Empirical | Preset
Lengths = Annotated[AnyLengths, Field(discriminator="kind")]
Pair = tuple[NDArray[np.int64], NDArray[np.int64]]


def draw_lengths(lengths: AnyLengths, count: int, seed: int) -> Pair:
    """Input and output tokens of `count` requests."""
    if isinstance(lengths, Constant):
        return np.full(count, lengths.input_tokens), np.full(count, lengths.output_tokens)
    if isinstance(lengths, Empirical):
        rows = stream(seed, "workload", "lengths").integers(0, len(lengths.input_tokens), count)
        return np.asarray(lengths.input_tokens)[rows], np.asarray(lengths.output_tokens)[rows]
    if isinstance(lengths, Preset):
        return draw_preset(lengths.name, count, seed)
    inputs = _lognormal(lengths.input_mean_tokens, lengths.input_cv, count, seed, "input")
    return inputs, _lognormal(lengths.output_mean_tokens, lengths.output_cv, count, seed, "output")


def _lognormal(mean: float, variation: float, count: int, seed: int, name: str) -> NDArray[np.int64]:
    variance = np.log1p(variation**2)
    normal = stream(seed, "workload", "lengths", name).standard_normal(count)
    drawn = np.exp(np.log(mean) - variance / 2 + np.sqrt(variance) * normal)
    tokens: NDArray[np.int64] = np.clip(np.rint(drawn), 1, MAX_TOKENS).astype(np.int64)
    return tokens
