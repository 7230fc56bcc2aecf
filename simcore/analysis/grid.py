"""The grid study: every combination of the values on some axes, and what each came to.

Cells are numbered row-major, the last axis fastest: cell i of axes with n₁, n₂, … values stands where the digits of
i in that mixed radix say. On an axis, `lo..hi:n` stands for n values evenly apart, `lo..hi:nlog` for n at equal
ratios; a unit may follow each end. The frontier holds the cells that no other beats in both of two metrics.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from pydantic import Field

from simcore import glossary
from simcore.analysis.cells import Cell, CellResult, Depth
from simcore.errors import InputError
from simcore.spec import Spec

MAX_CELLS: Final = 100_000
MAX_AXES: Final = 8
MAX_VALUES: Final = 1_000
Value = float | int | bool | str | None | tuple[Any, ...]
_RANGE: Final = re.compile(
    r"^\s*(?P<low>[-+.\deE]+)\s*(?P<unit>[^\d.:]*?)\s*\.\.\s*(?P<high>[-+.\deE]+)\s*(?P<same>[^\d.:]*?)\s*"
    r":\s*(?P<count>\d+)\s*(?P<log>log)?\s*$"
)


class Axis(Spec):
    """One path of the scenario, and the values that it takes in turn."""

    path: str = Field(min_length=1, max_length=200)
    values: tuple[Value, ...] = Field(min_length=1, max_length=MAX_VALUES)


class Grid(Spec):
    """All combinations of the axes' values."""

    kind: Literal["grid"] = "grid"
    axes: tuple[Axis, ...] = Field(min_length=1, max_length=MAX_AXES)
    metrics: tuple[str, ...] = Field(default=(), max_length=50)  # none: all
    depth: Depth = "simulated"

    def cells(self, document: Mapping[str, Any]) -> list[Cell]:
        """One cell for each combination, the last axis fastest."""
        count = math.prod(len(axis.values) for axis in self.axes)
        if count > MAX_CELLS:
            raise InputError.at(
                "axes",
                "sweep.too_many",
                "got {got:,} combinations; {allowed:,} are evaluated at most, so take fewer values",
                got=count,
                allowed=MAX_CELLS,
            )
        _refuse_twice(self.axes)
        paths = [axis.path for axis in self.axes]
        combinations = itertools.product(*(axis.values for axis in self.axes))
        return [
            Cell(index=index, overrides=dict(zip(paths, values, strict=True)))
            for index, values in enumerate(combinations)
        ]

    def keeps(self, metric: str) -> bool:
        """Whether a metric is asked for."""
        return not self.metrics or metric in self.metrics

    def summary(
        self, document: Mapping[str, Any], results: Sequence[CellResult]
    ) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        """`sweep`, a row per cell; `best`, per metric with a better side the cell that has it."""
        overrides = [cell.overrides for cell in self.cells(document)]
        ordered = sorted(results, key=lambda one: one.index)
        rows = [
            {"index": one.index, **overrides[one.index], **one.metrics, "error": error_text(one)}
            for one in ordered
        ]
        return {"sweep": rows, "best": best_rows(ordered)}


def parse_axis(text: str) -> Axis:
    """`path=v1,v2,…`, or `path=lo..hi:n` for n values evenly apart and `:nlog` for equal ratios."""
    path, separator, listed = text.partition("=")
    values = tuple(axis_values(listed))
    if not separator or not path.strip() or not values:
        raise InputError.at(
            "--axis",
            "axis.malformed",
            "got {got!r}; write path=value,value, such as workload.arrivals.request_per_s=4,8,16 or 4..16:7",
            got=text[:80],
        )
    return Axis(path=path.strip(), values=values)


def axis_values(text: str) -> list[str | float]:
    """The values that a text lists, or those of the range that it is."""
    if (match := _RANGE.match(text)) is None:
        parts = (part.strip() for part in re.split(r",(?![^\[]*\])", text))
        return [part for part in parts if part]
    try:
        low, high = float(match["low"]), float(match["high"])
    except ValueError:
        low = high = math.nan
    count, unit = int(match["count"]), match["same"] or match["unit"]
    is_log = match["log"] is not None
    if not (math.isfinite(low + high) and 2 <= count <= MAX_VALUES) or (is_log and min(low, high) <= 0):
        raise InputError.at(
            "axis",
            "axis.range",
            "got {got!r}; a range is lo..hi:n with 2 to {allowed} values, and above 0 where it ends in log",
            got=text[:80],
            allowed=MAX_VALUES,
        )
    shares = [place / (count - 1) for place in range(count)]
    numbers = [low * (high / low) ** share if is_log else low + (high - low) * share for share in shares]
    return [_number(number) if not unit else f"{number:.12g} {unit}" for number in numbers]


def error_text(result: CellResult) -> str:
    """Why a cell has no metrics, in English; nothing where it has."""
    return "; ".join(str(error["message"]) for error in result.errors)


def best_rows(results: Sequence[CellResult]) -> list[dict[str, Any]]:
    """The cell with the best value of each metric that has a better side."""
    names = dict.fromkeys(name for one in results for name in one.metrics)
    rows = []
    for name in names:
        better = glossary.better(name)
        having = [(one.metrics[name], one.index) for one in results if name in one.metrics]
        numbers = [(value, index) for value, index in having if isinstance(value, int | float)]
        if better != "neutral" and numbers:
            value, index = (max if better == "up" else min)(numbers, key=lambda pair: pair[0])
            rows.append({"metric": name, "index": index, "value": value})
    return rows


def frontier(
    results: Sequence[CellResult], first: str, second: str, *, up: tuple[bool, bool] = (True, True)
) -> list[int]:
    """Indices of the cells that no other beats in both metrics, best in the first one before the others."""
    points = [
        (
            float(one.metrics[first]) * (1 if up[0] else -1),
            float(one.metrics[second]) * (1 if up[1] else -1),
            one,
        )
        for one in results
        if isinstance(one.metrics.get(first), int | float)
        and isinstance(one.metrics.get(second), int | float)
    ]
    found, highest = [], -math.inf
    for _, value, one in sorted(points, key=lambda point: (-point[0], -point[1], point[2].index)):
        if value > highest:
            found.append(one.index)
            highest = value
    return found


def _refuse_twice(axes: Sequence[Axis]) -> None:
    seen: set[str] = set()
    for place, axis in enumerate(axes):
        if axis.path in seen:
            raise InputError.at(
                f"axes.{place}.path",
                "axis.twice",
                "got {got!r} twice; give all its values on one axis",
                got=axis.path,
            )
        seen.add(axis.path)


def _number(value: float) -> float | int:
    rounded = float(f"{value:.12g}")
    return int(rounded) if rounded.is_integer() else rounded
