"""What a figure must keep to: at most, or at least, so much. A figure that is absent keeps to nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Self

from pydantic import Field, model_validator

from simcore import glossary
from simcore.analysis.cells import CellResult
from simcore.errors import InputError, Message, Phrases
from simcore.scenario import Scenario
from simcore.spec import Spec
from simcore.units import dimension_of, printed_text, quantity

_WRITTEN: Final = re.compile(r"^\s*(?P<metric>[\w.]+)\s*(?P<side><=|>=|≤|≥)\s*(?P<bound>.+)$")


class Target(Spec):
    """One bound on one metric."""

    metric: str = Field(min_length=1, max_length=200)
    at_most: float | None = None
    at_least: float | None = None

    @model_validator(mode="before")
    @classmethod
    def _bounds_in_si(cls, data: Any) -> Any:
        """The unit of a bound is that of the metric."""
        if not isinstance(data, Mapping) or not isinstance(data.get("metric"), str):
            return data
        dimension = dimension_of(data["metric"])
        bounds = {side: data[side] for side in ("at_most", "at_least") if data.get(side) is not None}
        return {**data, **{side: quantity(value, dimension) for side, value in bounds.items()}}

    @model_validator(mode="after")
    def _one_side(self) -> Self:
        if (self.at_most is None) == (self.at_least is None):
            raise ValueError("give either at_most or at_least")
        return self

    def is_met(self, metrics: Mapping[str, float | str]) -> bool:
        got = metrics.get(self.metric)
        if got is None or isinstance(got, str):
            return False
        return got <= self.at_most if self.at_most is not None else got >= self.bound

    @property
    def bound(self) -> float:
        return self.at_most if self.at_most is not None else self.at_least or 0.0

    @property
    def side(self) -> str:
        return "≤" if self.at_most is not None else "≥"

    def miss(self, metrics: Mapping[str, float | str]) -> float:
        """How far off, as a share of the bound: 0 where it is met, without end where there is no such figure."""
        got = metrics.get(self.metric)
        if got is None or isinstance(got, str):
            return float("inf")
        return 0.0 if self.is_met(metrics) else abs(got - self.bound) / (abs(self.bound) or 1.0)

    @property
    def text(self) -> str:
        return f"{self.metric} {self.side} {printed_text(self.bound, dimension_of(self.metric))}"

    @property
    def message(self) -> Message:
        """The same in the words of the glossary."""
        bound = printed_text(self.bound, dimension_of(self.metric))
        params = {"metric": glossary.label(self.metric), "side": self.side, "bound": bound}
        return Message(code="target", template="{metric} {side} {bound}", params=params)

    def said(self, metrics: Mapping[str, float | str]) -> Phrases:
        """What the figure came to."""
        got = metrics.get(self.metric)
        text = (
            "–"
            if got is None
            else got
            if isinstance(got, str)
            else printed_text(got, dimension_of(self.metric))
        )
        params = {"metric": glossary.label(self.metric), "value": text}
        return Phrases((Message(code="target.got", template="{metric} {value}", params=params),))


def all_met(targets: Sequence[Target], result: CellResult) -> bool:
    """Whether a cell was built and keeps to all bounds."""
    return not result.errors and all(target.is_met(result.metrics) for target in targets)


def parse_target(text: str) -> Target:
    """`serving.ttft_s.p95 <= 200 ms` as a target."""
    match = _WRITTEN.match(text)
    if match is None:
        raise InputError.at(
            "--target",
            "target.malformed",
            "got {got!r}; write a metric and its bound like {example!r}",
            got=text[:80],
            example="serving.ttft_s.p95 <= 200 ms",
        )
    side = "at_most" if match["side"] in ("<=", "≤") else "at_least"
    return Target.model_validate({"metric": match["metric"], side: match["bound"].strip()})


def promised(scenario: Scenario) -> Target:
    """The scenario's SLO: so many of all requests meet both times."""
    share = scenario.workload.slo.attainment_fraction
    return Target(metric="serving.slo_attainment_fraction", at_least=share)
