"""What doubling each resource would bring a training run, and what its step waits for then.

Capacity is tokens per second of the same batch, cut and schedule. Each doubling re-plans the step on the
changed chip, with NICs twice as fast, or with latencies half as long. A cut that fits gains nothing from more memory,
but the row says how much of it is used. What each lets through alone is as in `doubling.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from simcore import glossary
from simcore.analysis.doubling import Load
from simcore.analysis.resources import FIGURES, NOTICEABLE_RATIO, RATES, WITHOUT_LIMIT, scaled_chip
from simcore.errors import Message
from simcore.plan.training import TrainingPlan, build_training
from simcore.training import TrainingStep
from simcore.why import Term

_WAITS: Final = {"hbm": "hbm_bandwidth"}


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingDoubling:
    """One resource doubled: tokens per second over before, and what most of the step waits for then."""

    resource: str
    gain: Term
    next_bottleneck: str

    def as_dict(self) -> dict[str, Any]:
        return {
            "resource": self.resource,
            "gain_ratio": self.gain.value,
            "step_ratio": 1.0 / self.gain.value,
            "next_bottleneck": self.next_bottleneck,
        }

    @property
    def message(self) -> Message:
        gain = self.gain.value
        params = {
            "resource": glossary.resource_label(self.resource),
            "gain": f"{round((gain - 1) * 100) or 0}%",
            "next": glossary.resource_label(self.next_bottleneck),
        }
        if gain < NOTICEABLE_RATIO:
            return Message(
                code="doubling.training_nothing",
                template="doubling {resource} brings nothing here; the step waits for {next}",
                params=params,
                path=self.resource,
            )
        return Message(
            code="doubling.training_gain",
            template="doubling {resource} trains {gain} faster; {next} takes most of the step then",
            params=params,
            path=self.resource,
        )


def training_resources(planned: TrainingPlan) -> tuple[str, ...]:
    """Resources that the run uses: no links where one chip trains alone."""
    parallelism, domain = planned.inputs.parallelism, planned.inputs.network.domain_size
    found = ["compute", "hbm_bandwidth", "hbm_capacity"]
    if planned.inputs.chip_count > 1 and domain > 1:
        found.append("scaleup")
    if parallelism.dp * parallelism.rank_chip_count > domain:
        found.append("scaleout")
    return (*found, "latency") if planned.inputs.chip_count > 1 else tuple(found)


def with_more_training(planned: TrainingPlan, factors: Mapping[str, float]) -> TrainingStep:
    """The step of the same run with each of these resources so many times as large."""
    chip = planned.inputs.chip
    for resource in FIGURES:
        if resource in factors:
            chip = scaled_chip(chip, resource, factors[resource])
    return build_training(
        planned,
        chip,
        scaleout_factor=factors.get("scaleout", 1.0),
        latency_ratio=1.0 / factors.get("latency", 1.0),
    )


def double_training(planned: TrainingPlan, resource: str, *, factor: float = 2.0) -> TrainingDoubling:
    """The same run with one resource `factor` times as large."""
    after = with_more_training(planned, {resource: factor})
    return TrainingDoubling(
        resource=resource,
        gain=_gain(planned, after, f"analysis.doubling.{resource}.gain_ratio"),
        next_bottleneck=step_bound(after),
    )


def training_without_limit(planned: TrainingPlan, resource: str) -> Term:
    """Tokens per second with more of a resource than anything needs, over what they are."""
    after = with_more_training(planned, {resource: WITHOUT_LIMIT})
    return _gain(planned, after, f"analysis.without_limit.{resource}.gain_ratio")


def training_together(planned: TrainingPlan) -> Term:
    """Tokens per second with twice of everything, over what they are."""
    after = with_more_training(planned, dict.fromkeys(training_resources(planned), 2.0))
    return _gain(planned, after, "analysis.doublings.together_ratio")


def training_load_of(planned: TrainingPlan, resource: str) -> Load:
    """Memory by its bytes; of the rest, the run's tokens per second over those with every other rate without limit."""
    name = f"analysis.used.{resource}.used_fraction"
    if resource == "hbm_capacity":
        room = planned.inputs.chip.leaf("hbm_visible_bytes")
        return Load(used=(planned.memory.used / room).named(name, "fraction"), saturation=None)
    others = dict.fromkeys((one for one in RATES if one != resource), WITHOUT_LIMIT)
    full = with_more_training(planned, others).token_per_s.named(
        f"analysis.saturation.{resource}.saturating_token_per_s", "token_per_s"
    )
    return Load(used=(planned.step.token_per_s / full).named(name, "fraction"), saturation=full)


def _gain(planned: TrainingPlan, after: TrainingStep, name: str) -> Term:
    return (after.token_per_s / planned.step.token_per_s).named(name, "ratio")


def step_bound(step: TrainingStep) -> str:
    """The resource that takes most of a step."""
    parts = {name: part.value for name, part in step.split.parts.items()}
    most = max(parts, key=lambda name: parts[name])
    return _WAITS.get(most, most)


def training_closing(planned: TrainingPlan, best: TrainingDoubling) -> Message:
    """One sentence: where the step goes, and which doubling brings most."""
    parts = {name: part.value for name, part in planned.step.split.parts.items()}
    top = max(parts, key=lambda name: parts[name])
    return Message(
        code="finding.training_bound",
        template="{share} of the step is {top}; doubling {resource} brings most, {gain}",
        params={
            "share": f"{parts[top] / sum(parts.values()):.0%}",
            "top": glossary.resource_label(top),
            "resource": glossary.resource_label(best.resource),
            "gain": f"{best.gain.value - 1:+.0%}",
        },
    )
