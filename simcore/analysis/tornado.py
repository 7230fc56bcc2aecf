"""The tornado as a study: every input at both ends of its range, at any depth, for any number of metrics.

Cell 0 is the scenario as it is; cells 2k+1 and 2k+2 have input k at its low and its high end. `hold` is set in every
cell: what `auto` became, so that an input does not change the design. `sensitivity.py` says what swing and
elasticity are, and does the same in closed form without cells.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, Self

from pydantic import Field, model_validator

from simcore.analysis.cells import Cell, CellResult, Depth
from simcore.analysis.intervals import Interval, interval
from simcore.analysis.ranges import InputRange, as_typed
from simcore.analysis.sensitivity import End, Swing, beyond_measured
from simcore.errors import Message
from simcore.spec import Spec

MAX_INPUTS: Final = 200


class Ranges(Spec):
    """What the studies of uncertain inputs share: intervals by path, and what is held besides."""

    ranges: dict[str, Interval] = Field(min_length=1, max_length=MAX_INPUTS)
    hold: dict[str, Any] = Field(default_factory=dict, max_length=MAX_INPUTS)
    metrics: tuple[str, ...] = Field(min_length=1, max_length=50)
    depth: Depth = "simulated"

    @model_validator(mode="before")
    @classmethod
    def _read_intervals(cls, data: Any) -> Any:
        """`"5 to 8"` becomes an interval, in SI by the unit of its path."""
        if not isinstance(data, Mapping) or not isinstance(data.get("ranges"), Mapping):
            return data
        return {**data, "ranges": {path: interval(path, given) for path, given in data["ranges"].items()}}


class Tornado(Ranges):
    """One input at a time."""

    kind: Literal["tornado"] = "tornado"
    base: dict[str, float] = Field(
        default_factory=dict, description="the value of each input now, to be shown"
    )

    @classmethod
    def of(
        cls,
        ranges: Sequence[InputRange],
        metrics: Sequence[str],
        *,
        depth: Depth,
        hold: Mapping[str, Any] | None = None,
    ) -> Self:
        """A study of known ranges, with what they rest on."""
        return cls.model_validate(
            {
                "ranges": {one.path: as_interval(one) for one in ranges},
                "base": {one.path: one.base for one in ranges},
                "metrics": tuple(metrics),
                "depth": depth,
                "hold": dict(hold or {}),
            }
        )

    def cells(self, document: Mapping[str, Any]) -> list[Cell]:
        """The scenario as it is, then both ends of each input."""
        ends = [
            {path: as_typed(path, value)}
            for path, given in self.ranges.items()
            for value in (given.low, given.high)
        ]
        return [
            Cell(index=index, overrides={**self.hold, **override})
            for index, override in enumerate([{}, *ends])
        ]

    def keeps(self, metric: str) -> bool:
        return metric in self.metrics

    def summary(
        self, document: Mapping[str, Any], results: Sequence[CellResult]
    ) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        """`tornado`: per metric a row per input, the widest swing first; cells that are not there yet have no row."""
        by_index = {one.index: one for one in results}
        rows = [swing.as_dict() for metric in self.metrics for swing in self._swings(metric, by_index)]
        return {"tornado": rows}

    def _swings(self, metric: str, by_index: Mapping[int, CellResult]) -> list[Swing]:
        base_value = number(by_index.get(0), metric)
        if base_value is None:
            return []
        found = []
        for place, (path, given) in enumerate(self.ranges.items()):
            low, high = (by_index.get(2 * place + side) for side in (1, 2))
            if low is not None and high is not None:
                found.append(
                    Swing(
                        given=self._range(path, given),
                        metric=metric,
                        base_value=base_value,
                        low=_end(low, metric),
                        high=_end(high, metric),
                        is_extrapolated=beyond_measured(by_index[0].warnings),
                    )
                )
        return sorted(found, key=lambda one: -one.swing)

    def _range(self, path: str, given: Interval) -> InputRange:
        return InputRange(
            path=path,
            low=given.low,
            base=self.base.get(path, (given.low + given.high) / 2),
            high=given.high,
            basis=Message.from_dict(given.basis) if given.basis else yours(),
            confidence=given.confidence,
        )


def as_interval(one: InputRange) -> Interval:
    return Interval(low=one.low, high=one.high, confidence=one.confidence, basis=one.basis.as_dict())


def yours() -> Message:
    return Message(code="range.yours", template="as you wrote it")


def number(result: CellResult | None, metric: str) -> float | None:
    value = result.metrics.get(metric) if result is not None else None
    return None if value is None or isinstance(value, str) else float(value)


def _end(result: CellResult, metric: str) -> End:
    return End(
        value=number(result, metric),
        blocked=Message.from_dict(result.errors[0]) if result.errors else None,
        is_extrapolated=beyond_measured(result.warnings),
    )
