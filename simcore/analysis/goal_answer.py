"""What a goal seek came to, in one row and one sentence: found, at the edge, not monotone, never met, or not built."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Literal, Protocol

from simcore import glossary
from simcore.analysis.cells import CellResult
from simcore.analysis.targets import Target, all_met
from simcore.errors import Message, Phrases
from simcore.units import dimension_of, printed_text

BINDS: Final = ("analysis.bottleneck", "serving.regime")
_FOUND: Final = {
    "smallest": Message(
        code="goal.smallest",
        template="{input} {value} is the smallest that keeps to {targets}; {neighbour} does not",
    ),
    "largest": Message(
        code="goal.largest",
        template="{input} {value} is the largest that keeps to {targets}; {neighbour} does not",
    ),
}
_AT_EDGE: Final = {
    "smallest": Message(
        code="goal.smallest.edge",
        template="{input} {value} keeps to {targets}, and is the smallest that was asked for",
    ),
    "largest": Message(
        code="goal.largest.edge",
        template="{input} {value} keeps to {targets}, and is the largest that was asked for",
    ),
}


class Goal(Protocol):
    """What was looked for."""

    @property
    def path(self) -> str: ...
    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...
    @property
    def find(self) -> Literal["smallest", "largest"]: ...
    @property
    def targets(self) -> tuple[Target, ...]: ...


def answer(goal: Goal, values: Sequence[float], tried: Mapping[float, CellResult]) -> dict[str, Any]:
    """The row; `values` stand in the order from the side on which the answer is looked for."""
    met = [all_met(goal.targets, tried[value]) for value in values]
    if not any(met):
        nearest = min(values, key=lambda value: (_miss(goal, tried[value]), values.index(value)))
        return _row(goal, None, nearest, tried) | {"message": _never(goal, nearest, tried[nearest]).as_dict()}
    first = met.index(True)
    again = [value for value, is_met in zip(values[first:], met[first:], strict=True) if not is_met]
    message = _found(goal, values[first], values[first - 1] if first else None, again)
    row = _row(goal, values[first], values[first], tried)
    return row | {"is_monotone": not again, "message": message.as_dict()}


def binds(result: CellResult) -> str | None:
    """What the system waits for there, as far as the depth tells."""
    found = [result.metrics[name] for name in BINDS if name in result.metrics]
    return str(found[0]) if found else None


def _row(
    goal: Goal, value: float | None, nearest: float, tried: Mapping[float, CellResult]
) -> dict[str, Any]:
    one = tried[nearest]
    return {
        "path": goal.path,
        "find": goal.find,
        "bound": goal.targets[0].bound,
        "value": value,
        "nearest": nearest,
        "is_monotone": True,
        "evaluated_count": len(tried),
        **{target.metric: one.metrics.get(target.metric) for target in goal.targets},
        "binds": binds(one),
    }


def _miss(goal: Goal, result: CellResult) -> float:
    return math.inf if result.errors else max(target.miss(result.metrics) for target in goal.targets)


def _words(goal: Goal) -> dict[str, Any]:
    return {
        "input": glossary.label(goal.path),
        "targets": Phrases(tuple(target.message for target in goal.targets)),
    }


def _printed(goal: Goal, value: float) -> str:
    return printed_text(value, dimension_of(goal.path), digits=4)


def _found(goal: Goal, value: float, neighbour: float | None, again: Sequence[float]) -> Message:
    params = {**_words(goal), "value": _printed(goal, value)}
    if again:
        return Message(
            code="goal.not_monotone",
            template="{input} {value} keeps to {targets}, but {again} does not, so what lies between the values tried "
            "may go either way",
            params={**params, "again": _printed(goal, again[0])},
            path=goal.path,
        )
    if neighbour is None:
        return replace(_AT_EDGE[goal.find], params=params, path=goal.path)
    neighbours = {**params, "neighbour": _printed(goal, neighbour)}
    return replace(_FOUND[goal.find], params=neighbours, path=goal.path)


def _never(goal: Goal, nearest: float, result: CellResult) -> Message:
    params = {
        **_words(goal),
        "low": _printed(goal, goal.low),
        "high": _printed(goal, goal.high),
        "nearest": _printed(goal, nearest),
    }
    if result.errors:
        reason = Phrases((Message.from_dict(result.errors[0]),))
        return Message(
            code="goal.nothing_built",
            template="{input} from {low} to {high}: nothing can be built; at {nearest}, {reason}",
            params={**params, "reason": reason},
            path=goal.path,
        )
    worst = max(goal.targets, key=lambda target: target.miss(result.metrics))
    return Message(
        code="goal.never",
        template="{input} from {low} to {high} never keeps to {targets}; nearest is {nearest}, with {got}",
        params={**params, "got": worst.said(result.metrics)},
        path=goal.path,
    )
