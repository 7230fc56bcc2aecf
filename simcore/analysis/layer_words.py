"""What an attribution says, in sentences that a manager reads: who earned the gain, what needed what, what blocks.

The first sentence is the finding and can stand as a headline. Ratios are printed as factors; a change below half a
percent counts as none, and layers count as needing (or overlapping) each other from two percent on.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from simcore.analysis.layers import Attribution, Combination, Layer, what_changed
from simcore.errors import Message, Phrases
from simcore.why import Term

NOTHING_RATIO: Final = 1.005
TOGETHER_RATIO: Final = 1.02
_LAYERS: Final[dict[Layer, Message]] = {
    "physical": Message(code="layer.physical", template="physical layer"),
    "data": Message(code="layer.data", template="data layer"),
    "task": Message(code="layer.task", template="task layer"),
}


def sentences(found: Attribution) -> tuple[Message, ...]:
    """The finding first, then what needs what, what is blocked, and what the demand does."""
    return (_finding(found), *_idle(found), *_together(found), *_blocked(found), *_demand(found))


def _finding(found: Attribution) -> Message:
    if not found.changed:
        return _nothing_changed(found)
    if found.whole is None:
        return _impossible(found)
    ratio, measure = found.whole.value, _measure(found)
    if len(found.shares) == 1:
        return _single(found, found.shares[0].layer)
    acting = [one for one in found.shares if not _is_nothing(one.earned.value)]
    if _is_nothing(ratio) and len(acting) < 2:
        return Message(
            code="layers.no_effect",
            template="What changed ({what}) makes no difference to the {measure}",
            params={"what": _all_changes(found), "measure": measure},
        )
    if len(acting) == 1:
        return _single(found, acting[0].layer)
    first, *others = sorted(
        acting or found.shares, key=lambda one: -math.log(one.earned.value) * _sign(ratio)
    )
    params = {
        "times": factor(ratio),
        "measure": measure,
        "layer": _names([first.layer]),
        "what": what_changed(found.changes[first.layer]),
        "earned": factor(first.earned.value),
        "others": _factors([(one.layer, one.earned) for one in others]),
    }
    if _is_nothing(ratio):
        return Message(
            code="layers.cancel",
            template="The layers cancel out: the {layer} ({what}) brings ×{earned} of the {measure}, {others}",
            params=params,
        )
    if _sign(ratio) > 0:
        return Message(
            code="layers.several",
            template="{times} times the {measure}: the {layer} ({what}) earned the most, ×{earned}, then {others}",
            params=params,
        )
    return Message(
        code="layers.several_lose",
        template="{times} times the {measure}: the {layer} ({what}) cost the most, ×{earned}, then {others}",
        params=params,
    )


def _nothing_changed(found: Attribution) -> Message:
    if found.changes["demand"]:
        return Message(
            code="layers.demand_only",
            template="Only the demand differs ({what}); the system is the same, so no layer earned anything",
            params={"what": what_changed(found.changes["demand"])},
        )
    return Message(code="layers.same", template="Both are the same system under the same demand")


def _impossible(found: Attribution) -> Message:
    """An end that cannot be built: there is nothing to divide by, but a reason."""
    first, last = found.combinations[0], found.combinations[-1]
    if last.error is not None:
        return Message(
            code="layers.after_impossible",
            template="With all changes it cannot be built, so nothing is earned: {reason}",
            params={"reason": Phrases((last.error,))},
        )
    return Message(
        code="layers.before_impossible",
        template="What was there cannot carry this demand, so no ratio exists; the change of the {layers} makes it "
        "possible: {reason}",
        params={
            "layers": _names(first.blocked_by),
            "reason": _reason(first),
        },
    )


def _single(found: Attribution, layer: Layer) -> Message:
    """One layer changed, or of those that did only one matters."""
    ratio = 1.0 if found.whole is None else found.whole.value
    params = {
        "layer": _names([layer]),
        "what": what_changed(found.changes[layer]),
        "times": factor(ratio),
        "measure": _measure(found),
    }
    if _is_nothing(ratio):
        return Message(
            code="layers.single_nothing",
            template="Only the {layer} changed ({what}), and it makes no difference to the {measure}",
            params=params,
        )
    if ratio > 1:
        return Message(
            code="layers.single",
            template="The {layer} ({what}) earned the whole gain: {times} times the {measure}",
            params=params,
        )
    return Message(
        code="layers.single_loses",
        template="The {layer} ({what}) cost the whole loss: {times} times the {measure}",
        params=params,
    )


def _idle(found: Attribution) -> list[Message]:
    """Layers that changed beside one that matters, and earn nothing alone or with others."""
    idle = [
        one.layer for one in found.shares if _is_nothing(one.earned.value) and _is_nothing(one.alone.value)
    ]
    if not idle or len(idle) == len(found.shares):
        return []
    return [
        Message(
            code="layers.idle",
            template="The change of the {layers} ({what}) makes no difference to the {measure}",
            params={
                "layers": _names(idle),
                "what": what_changed([row for layer in idle for row in found.changes[layer]]),
                "measure": _measure(found),
            },
        )
    ]


def _together(found: Attribution) -> list[Message]:
    """Whether layers need each other, or bring the same thing twice."""
    beyond = found.beyond
    alone = _factors([(one.layer, one.alone) for one in found.shares])
    params = {"alone": alone, "beyond": factor(beyond)}
    if found.whole is None or 1 / TOGETHER_RATIO < beyond < TOGETHER_RATIO:
        return []
    if beyond > 1:
        return [
            Message(
                code="layers.need_each_other",
                template="Changed one at a time they bring {alone}; another ×{beyond} exists only because they changed "
                "together",
                params=params,
            )
        ]
    return [
        Message(
            code="layers.overlap",
            template="Changed one at a time they bring {alone}; together less than that by ×{beyond}, because what one "
            "brings the other no longer can",
            params=params,
        )
    ]


def _blocked(found: Attribution) -> list[Message]:
    if found.whole is None:
        return []
    return [_blocked_one(one) for one in found.combinations if one.error is not None]


def _blocked_one(one: Combination) -> Message:
    return Message(
        code="layers.blocked",
        template="The change of the {layers} alone cannot be built; it is blocked by the {blockers}: {reason}",
        params={
            "layers": _names(one.layers),
            "blockers": _names(one.blocked_by),
            "reason": _reason(one),
        },
    )


def _demand(found: Attribution) -> list[Message]:
    """Demand is no layer: it stands on both sides, and its own effect is said apart."""
    if not found.changed or not found.changes["demand"]:
        return []
    what = what_changed(found.changes["demand"])
    if found.demand is None:
        return [
            Message(
                code="layers.demand",
                template="The demand differs too ({what}); it is set on both sides first, and no layer is credited "
                "with it",
                params={"what": what},
            )
        ]
    return [
        Message(
            code="layers.demand_effect",
            template="The demand differs too ({what}); it is set on both sides first, and alone it makes {times} times "
            "the {measure}",
            params={"what": what, "times": factor(found.demand.value), "measure": _measure(found)},
        )
    ]


def factor(ratio: float) -> str:
    """A ratio as people say it.

    >>> factor(2.751), factor(0.3), factor(101.8)
    ('2.75', '0.3', '102')
    """
    return f"{ratio:.3g}"


def _names(layers: Sequence[Layer]) -> Phrases:
    return Phrases(tuple(_LAYERS[layer] for layer in layers))


def _factors(shares: Sequence[tuple[Layer, Term]]) -> Phrases:
    return Phrases(
        tuple(
            Message(
                code="layers.factor",
                template="{layer} ×{factor}",
                params={"layer": _names([layer]), "factor": factor(term.value)},
            )
            for layer, term in shares
        )
    )


def _reason(one: Combination) -> Phrases:
    return Phrases(() if one.error is None else (one.error,))


def _measure(found: Attribution) -> Phrases:
    return Phrases((found.yardstick.said,))


def _all_changes(found: Attribution) -> str:
    return what_changed([row for layer in found.changed for row in found.changes[layer]])


def _is_nothing(ratio: float) -> bool:
    return 1 / NOTHING_RATIO < ratio < NOTHING_RATIO


def _sign(ratio: float) -> int:
    return 1 if ratio >= 1 else -1
