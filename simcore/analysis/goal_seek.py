"""Goal seek: the smallest (or largest) value of one input at which every target is met.

Rounds of a section search: the first looks at both ends and some values between, each next one between the best value
that meets the targets and its neighbour that does not, until whole numbers are neighbours (`step` apart) or real
ones within `tolerance_fraction`. A value at which nothing can be built meets nothing. The search is right where
meeting is monotone; every value that was looked at is kept, so where one beyond the answer misses again the result
says that it isn't, and that smaller islands may exist between what was tried. Where no value meets the targets the
nearest miss stands, with what it came to. The search is replayed from the results, so it resumes anywhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal, Self

from pydantic import Field, model_validator

from simcore.analysis.cells import Cell, CellResult, Depth
from simcore.analysis.goal_answer import BINDS, answer, binds
from simcore.analysis.ranges import is_integer
from simcore.analysis.targets import Target, all_met
from simcore.spec import Spec
from simcore.units import dimension_of, quantity

MAX_ROUNDS: Final = 40
_WIDE_RATIO: Final = 8.0  # ends further apart than this are cut at equal ratios


class GoalSeek(Spec):
    """What is looked for, where, and what it must keep to."""

    kind: Literal["goal_seek"] = "goal_seek"
    path: str = Field(min_length=1, max_length=200)
    low: float
    high: float
    find: Literal["smallest", "largest"] = "smallest"
    targets: tuple[Target, ...] = Field(min_length=1, max_length=5)
    step: int = Field(
        default=1, ge=1, le=1_000_000, description="between whole numbers, counted from the low end"
    )
    tolerance_fraction: float = Field(default=0.01, ge=1e-6, le=0.5)
    points_per_round: int = Field(default=3, ge=1, le=64)
    hold: dict[str, Any] = Field(default_factory=dict, max_length=200)
    depth: Depth = "simulated"

    @model_validator(mode="before")
    @classmethod
    def _ends_in_si(cls, data: Any) -> Any:
        """The unit of the ends is that of the path."""
        if not isinstance(data, Mapping) or not isinstance(data.get("path"), str):
            return data
        dimension = dimension_of(data["path"])
        ends = {end: quantity(data[end], dimension, path=end) for end in ("low", "high") if end in data}
        return {**data, **ends}

    @model_validator(mode="after")
    def _low_below_high(self) -> Self:
        if not self.low < self.high:
            raise ValueError("low must be below high")
        return self

    def cells(self, document: Mapping[str, Any]) -> list[Cell]:
        """The first round."""
        return self._asked(self._first(), 0)

    def next_cells(self, results: Sequence[CellResult]) -> list[Cell]:
        """What to look at after these results; nothing when the answer stands or a round is still out."""
        tried, pending = self._replayed(results)
        if pending:
            return []
        return self._asked(self._between(tried), len(tried))

    def keeps(self, metric: str) -> bool:
        return metric in BINDS or any(metric == target.metric for target in self.targets)

    def summary(
        self, document: Mapping[str, Any], results: Sequence[CellResult]
    ) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        """`goal`, the answer in one row with its sentence, and `goal_trace`, all that was looked at by value."""
        tried, _ = self._replayed(results)
        trace = [
            {
                "value": value,
                "met": all_met(self.targets, one),
                **{target.metric: one.metrics.get(target.metric) for target in self.targets},
                "binds": binds(one),
                "error": one.errors[0] if one.errors else None,
            }
            for value, one in sorted(tried.items())
        ]
        return {"goal": [answer(self, self._in_order(tried), tried)] if tried else [], "goal_trace": trace}

    @property
    def _is_whole(self) -> bool:
        return is_integer(self.path)

    def _asked(self, values: Iterable[float], begin: int) -> list[Cell]:
        return [
            Cell(
                index=begin + place,
                overrides={**self.hold, self.path: int(value) if self._is_whole else value},
            )
            for place, value in enumerate(values)
        ]

    def _replayed(self, results: Sequence[CellResult]) -> tuple[dict[float, CellResult], bool]:
        """What was looked at by value, and whether a round is still out: indices alone say in which round."""
        by_index = {one.index: one for one in results}
        tried: dict[float, CellResult] = {}
        values = self._first()
        for _ in range(MAX_ROUNDS):
            indices = range(len(tried), len(tried) + len(values))
            if not values or not all(index in by_index for index in indices):
                known = {v: by_index[i] for v, i in zip(values, indices, strict=True) if i in by_index}
                return {**tried, **known}, bool(known)
            tried |= {value: by_index[index] for value, index in zip(values, indices, strict=True)}
            values = self._between(tried)
        return tried, True

    def _first(self) -> list[float]:
        low, high = self._least, self._most
        return sorted({low, *self._inner(low, high), high})

    @property
    def _least(self) -> float:
        return math.ceil(self.low) if self._is_whole else self.low

    @property
    def _most(self) -> float:
        if not self._is_whole:
            return self.high
        return self._least + math.floor((self.high - self._least) / self.step) * self.step

    def _between(self, tried: Mapping[float, CellResult]) -> list[float]:
        bracket = self._bracket(tried)
        return [] if bracket is None else self._inner(*bracket)

    def _bracket(self, tried: Mapping[float, CellResult]) -> tuple[float, float] | None:
        """The answer so far and its neighbour that misses, low one first; None where one of them is missing."""
        values = self._in_order(tried)
        met = [all_met(self.targets, tried[value]) for value in values]
        if not any(met) or met[0]:
            return None
        first = met.index(True)
        low, high = sorted((values[first - 1], values[first]))
        return low, high

    def _in_order(self, tried: Mapping[float, CellResult]) -> list[float]:
        """From the side on which the answer is looked for."""
        return sorted(tried, reverse=self.find == "largest")

    def _inner(self, low: float, high: float) -> list[float]:
        """Up to so many values between two, at equal ratios where they are far apart; none where they are close."""
        if not self._is_whole and high - low <= self.tolerance_fraction * max(abs(low), abs(high)):
            return []
        shares = [(place + 1) / (self.points_per_round + 1) for place in range(self.points_per_round)]
        is_wide = low > 0 and high / low > _WIDE_RATIO
        found = [low * (high / low) ** share if is_wide else low + (high - low) * share for share in shares]
        if self._is_whole:
            found = [self._least + round((value - self._least) / self.step) * self.step for value in found]
            if self.step < high - low and not {*found} - {low, high}:
                found = [low + self.step]
        return sorted({value for value in found if low < value < high})
