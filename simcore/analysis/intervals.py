"""An input that is known as an interval: "5 to 8" means that nine of ten times it lies between 5 and 8.

The ends are the 5 % and 95 % quantiles. The law between them follows from what the input may be: lognormal where both
ends are above zero (median `sqrt(low · high)`, so 5 to 8 has 6.32 in the middle), logit-normal for a share between 0
and 1, normal otherwise: in each case `g(x)` is normal with mean `(g(low) + g(high)) / 2` and standard deviation
`(g(high) - g(low)) / (2 · 1.6449)`, g being ln, logit or nothing. Equal ends are a point. What falls outside the
schema's bounds is moved to the bound. Limits: inputs are independent of each other.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Final, Literal

import numpy as np
from pydantic import Field

from simcore.analysis.ranges import CHIP, Confidence, as_typed
from simcore.errors import InputError
from simcore.scenario.overrides import union_members
from simcore.serving.records import Floats
from simcore.spec import Spec
from simcore.units import dimension_of, quantity

Law = Literal["point", "lognormal", "logit", "normal"]
_WORDS: Final = re.compile(r"^\s*(?P<low>\S.*?)\s*(?:\bto\b|\.\.|–|至|到)\s*(?P<high>\S.*?)\s*$")
_WITH_UNIT: Final = re.compile(r"^(?P<number>[-+]?[\d.,_]+(?:[eE][-+]?\d+)?)\s*(?P<unit>\D.*)?$")
_NORMAL: Final = NormalDist()
_Z95: Final = _NORMAL.inv_cdf(0.95)  # 1.6449


class Interval(Spec):
    """Low and high end, and what they rest on."""

    low: float
    high: float
    confidence: Confidence = "yours"
    basis: dict[str, Any] | None = Field(default=None, description="a Message, as it stands in a document")


@dataclass(frozen=True, slots=True, kw_only=True)
class Uncertain:
    """An input with its law."""

    path: str
    given: Interval

    @property
    def law(self) -> Law:
        low, high = self.given.low, self.given.high
        if low == high:
            return "point"
        if bounds_at(self.path)[1] == 1.0 and low > 0 and high < 1:
            return "logit"
        return "lognormal" if low > 0 else "normal"

    def quantiles(self, shares: Floats) -> Floats:
        """The values below which such shares of all draws fall."""
        law, (low, high) = self.law, (self.given.low, self.given.high)
        if law == "point":
            return np.full(len(shares), low)
        ends = _transformed(law, np.array([low, high]))
        scores = np.array([_NORMAL.inv_cdf(float(share)) for share in shares]) / _Z95
        values = _back(law, (ends[0] + ends[1]) / 2 + scores * (ends[1] - ends[0]) / 2)
        least, most = bounds_at(self.path)
        return np.clip(values, least, most)

    def typed(self, values: Floats) -> list[float | int]:
        """As the schema wants them."""
        return [as_typed(self.path, float(value)) for value in values]


def interval(path: str, given: Any) -> Interval:
    """`"5 to 8"`, `"3 to 4 TB/s"` or {low, high} as an interval in SI. Raises InputError at the path."""
    if isinstance(given, Interval):
        return given
    if isinstance(given, str):
        match = _WORDS.match(given)
        if match is None:
            raise _malformed(path, given)
        given = {"low": _with_unit_of(match["low"], match["high"]), "high": match["high"]}
    if not isinstance(given, Mapping) or not {"low", "high"} <= given.keys():
        raise _malformed(path, given)
    dimension = dimension_of(path)
    low, high = (quantity(given[end], dimension, path=path) for end in ("low", "high"))
    if low > high:
        raise InputError.at(
            path, "interval.order", "got {low:g} to {high:g}; write the lower end first", low=low, high=high
        )
    rest = {key: given[key] for key in ("confidence", "basis") if key in given}
    return Interval(low=low, high=high, **rest)


def bounds_at(path: str) -> tuple[float, float]:
    """The least and the most that the schema lets stand at a path."""
    if path.startswith(CHIP):
        return 0.0, math.inf
    section, _, key = path.rpartition(".")
    fields = [model.model_fields[key] for model in union_members(section) if key in model.model_fields]
    least, most = -math.inf, math.inf
    for rule in (rule for field in fields for rule in field.metadata):
        low = getattr(rule, "ge", None)
        high = getattr(rule, "le", None)
        least = least if low is None else max(least, float(low))
        most = most if high is None else min(most, float(high))
    return least, most


def _transformed(law: Law, values: Floats) -> Floats:
    if law == "lognormal":
        return np.log(values)
    return np.log(values / (1 - values)) if law == "logit" else values


def _back(law: Law, values: Floats) -> Floats:
    if law == "lognormal":
        return np.exp(values)
    return 1 / (1 + np.exp(-values)) if law == "logit" else values


def _with_unit_of(low: str, high: str) -> str:
    """`3 to 4 TB/s`: the unit stands once and is that of both."""
    found, bare = _WITH_UNIT.match(high), _WITH_UNIT.match(low)
    is_shared = found is not None and found["unit"] and bare is not None and not bare["unit"]
    return f"{low} {found['unit']}" if found is not None and is_shared else low


def _malformed(path: str, given: Any) -> InputError:
    return InputError.at(
        path,
        "interval.malformed",
        "got {got}; write the ends of a 90 % interval like {example}",
        got=repr(given)[:60],
        example="5 to 8",
    )
