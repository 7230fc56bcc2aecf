"""What doubling each resource would bring a training run, and what its step waits for then.

Capacity is tokens per second of the same batch, cut and schedule. Each doubling re-plans the step on the
changed chip, or with NICs twice as fast; memory is not among them, as a cut that fits gains nothing from more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from simcore import glossary
from simcore.analysis.resources import NOTICEABLE_RATIO, scaled_chip
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
    found = ["compute", "hbm_bandwidth"]
    if planned.inputs.chip_count > 1 and domain > 1:
        found.append("scaleup")
    if parallelism.dp * parallelism.rank_chip_count > domain:
        found.append("scaleout")
    return tuple(found)


def double_training(planned: TrainingPlan, resource: str, *, factor: float = 2.0) -> TrainingDoubling:
    """The same run with one resource `factor` times as large."""
    if resource == "scaleout":
        after = build_training(planned, planned.inputs.chip, scaleout_factor=factor)
    else:
        after = build_training(planned, scaled_chip(planned.inputs.chip, resource, factor))
    gain = after.token_per_s / planned.step.token_per_s
    return TrainingDoubling(
        resource=resource,
        gain=gain.named(f"analysis.doubling.{resource}.gain_ratio", "ratio"),
        next_bottleneck=step_bound(after),
    )


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
