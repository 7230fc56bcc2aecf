"""Error bands of a training run's headlines: between which values nine of ten measured steps fall.

A band is the value times the 5 % and 95 % quantiles of measured ÷ predicted step time, over runs that no fit has
seen (tests/simcore/training/measured.py). Regimes: dense models on chips whose training was fitted; models with
experts; adapters beside frozen weights; chips whose training was not fitted (TPU v6e, MI300X and MI325X stand for
all). A run of two regimes is as wide as both. Beyond the measured chips, lengths or formats a band is wider by
half as much again on each side, and the run says so (`training.extrapolated`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from simcore.errors import Message, Phrases
from simcore.plan.bands import Band
from simcore.plan.training import TrainingPlan
from simcore.training import TrainingInputs

TIMES: Final = ("training.step_s", "training.days")
RATES: Final = ("training.mfu_fraction", "training.token_per_s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Regime:
    """Residuals of measured runs of one kind, and how far those runs reached."""

    said: Message
    run_count: int
    p5_ratio: float
    p95_ratio: float
    most_chips_count: int
    most_sequence_tokens: int


DENSE: Final = Regime(
    said=Message(code="band.dense", template="dense models on chips whose training was fitted"),
    run_count=216,
    p5_ratio=0.884,
    p95_ratio=1.113,
    most_chips_count=8192,
    most_sequence_tokens=65_536,
)
EXPERTS: Final = Regime(
    said=Message(code="band.experts_trained", template="models with experts"),
    run_count=55,
    p5_ratio=0.937,
    p95_ratio=1.659,
    most_chips_count=256,
    most_sequence_tokens=8192,
)
ADAPTERS: Final = Regime(
    said=Message(code="band.adapters", template="adapters beside frozen weights"),
    run_count=14,
    p5_ratio=1.0,  # all 14 took longer than predicted, by 3 % at least
    p95_ratio=1.333,
    most_chips_count=512,
    most_sequence_tokens=8192,
)
UNFITTED: Final = Regime(
    said=Message(code="band.unfitted", template="chips whose training was not fitted"),
    run_count=28,
    p5_ratio=0.891,
    p95_ratio=1.247,
    most_chips_count=1024,
    most_sequence_tokens=8192,
)
FITTED_CHIPS: Final = frozenset(
    f"nvidia-{name}"
    for name in (
        "a100-40gb-sxm",
        "a100-80gb-sxm",
        "h100-sxm",
        "h200-sxm",
        "b200-sxm",
        "b300-sxm",
        "gb200",
        "gb300",
    )
)


def training_bands(planned: TrainingPlan, metrics: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The band of each headline of a run that is among the metrics."""
    band = step_band(planned.inputs)
    found = dict.fromkeys(TIMES, band) | dict.fromkeys(RATES, band.inverse)
    return {
        name: one.around(float(metrics[name]))
        for name, one in found.items()
        if isinstance(metrics.get(name), int | float)
    }


def step_band(inputs: TrainingInputs) -> Band:
    """Of the step time."""
    first, *others = regimes(inputs)
    band = Band(low_ratio=first.p5_ratio, high_ratio=first.p95_ratio, basis=(_said(first),))
    for regime in others:
        band = band.widened(regime.p5_ratio, regime.p95_ratio, _said(regime))
    beyond = _beyond(inputs)
    if beyond:
        band = band.widened(math.sqrt(band.low_ratio), math.sqrt(band.high_ratio), *beyond)
    return band


def regimes(inputs: TrainingInputs) -> list[Regime]:
    """What kinds of run this is, the kind of model first."""
    found = []
    if inputs.arch.is_moe:
        found.append(EXPERTS)
    if inputs.spec.lora.rank:
        found.append(ADAPTERS)
    if inputs.chip.slug not in FITTED_CHIPS:
        found.append(UNFITTED)
    return found or [DENSE]


def training_extrapolation(inputs: TrainingInputs) -> list[Message]:
    """What lies beyond the runs that the step was compared with."""
    beyond = _beyond(inputs)
    if not beyond:
        return []
    return [
        Message(
            code="training.extrapolated",
            template="The training step is extrapolated: {reasons}; its error bands are wider",
            params={"reasons": Phrases(tuple(beyond))},
            path="training",
        )
    ]


def _said(regime: Regime) -> Message:
    return Message(
        code="band.training",
        template="training steps of {regime}: {count} runs that were not fitted",
        params={"regime": Phrases((regime.said,)), "count": regime.run_count},
    )


def _beyond(inputs: TrainingInputs) -> list[Message]:
    kinds, found = regimes(inputs), []
    chips = min(regime.most_chips_count for regime in kinds)
    tokens = min(regime.most_sequence_tokens for regime in kinds)
    if inputs.chip_count > chips:
        found.append(
            Message(
                code="beyond.chips",
                template="{got:,} chips, measured up to {most:,}",
                params={"got": inputs.chip_count, "most": chips},
            )
        )
    if inputs.spec.sequence_length > tokens:
        found.append(
            Message(
                code="beyond.sequence",
                template="sequences of {got:,} tokens, measured up to {most:,}",
                params={"got": inputs.spec.sequence_length, "most": tokens},
            )
        )
    if inputs.arch.is_moe and inputs.spec.dtype == "nvfp4":
        found.append(Message(code="beyond.format", template="experts in nvfp4, which were not measured"))
    return found
