"""Which inputs move a number most: each alone from the low to the high end of its range, the widest swing first.

`swing` is the largest less the smallest of the metric over low, base and high; `elasticity` is the arc elasticity
`ln(m_high / m_low) / ln(x_high / x_low)`, the per cent that the metric moves per per cent of the input, over the
whole range. An end at which the system cannot be built has no value and says what forbids it. Everything here is
closed form (`estimate.py`); prices and energy re-price a plan instead of planning anew. The design is held: what
`auto` made of tensor parallelism and of the batch limits stays, so that less memory does not quietly become another
cut. Limits: one input at a time,
so what two do together is not seen (a grid or draws see it).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from simcore.analysis.estimate import closed_form_metrics, closed_form_terms
from simcore.analysis.ranges import CHIP, InputRange, as_typed, assumed_range, default_ranges
from simcore.catalog import Catalog
from simcore.errors import InputError, Message, TrimtabError
from simcore.plan import Plan, Traces, plan, priced
from simcore.scenario import Scenario, apply_overrides

EXTRAPOLATED: Final = frozenset({"compute.extrapolated", "training.extrapolated"})
_MONEY: Final = ("economics.", f"{CHIP}tdp_w")
_CHOICES: Final = ("parallelism.tp", "max_num_seqs", "max_num_batched_tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """One end of a range: the metric there, or why there is none, and whether it lies beyond what was measured."""

    value: float | None
    blocked: Message | None = None
    is_extrapolated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Swing:
    """What one input does to the metric between its ends."""

    given: InputRange
    metric: str
    base_value: float
    low: End
    high: End
    is_extrapolated: bool = False  # the scenario itself

    @property
    def swing(self) -> float:
        values = [end.value for end in (self.low, self.high) if end.value is not None]
        return max([self.base_value, *values]) - min([self.base_value, *values])

    @property
    def elasticity(self) -> float | None:
        """None where an end is missing or a sign changes on the way."""
        return _elasticity(
            (self.given.low, self.given.high), (self.low.value, self.high.value), self.base_value
        )

    def as_dict(self) -> dict[str, Any]:
        return {
            **self.given.as_dict(),
            "metric": self.metric,
            "base_value": self.base_value,
            "at_low": self.low.value,
            "at_high": self.high.value,
            "swing": self.swing,
            "elasticity": self.elasticity,
            "blocked_low": self.low.blocked.as_dict() if self.low.blocked else None,
            "blocked_high": self.high.blocked.as_dict() if self.high.blocked else None,
            "extrapolated_base": self.is_extrapolated,
            "extrapolated_low": self.low.is_extrapolated,
            "extrapolated_high": self.high.is_extrapolated,
        }


def top_sensitivities(
    document: Mapping[str, Any],
    metric: str,
    n: int = 5,
    *,
    catalog: Catalog | None = None,
    traces: Traces | None = None,
) -> list[dict[str, Any]]:
    """The `n` inputs with the widest swings of a closed-form metric, as rows; inputs without an effect are left out."""
    found = swings(document, metric, catalog=catalog, traces=traces)
    return [one.as_dict() for one in found if one.swing > 0][:n]


def swings(
    document: Mapping[str, Any],
    metric: str,
    *,
    ranges: Sequence[InputRange] | None = None,
    catalog: Catalog | None = None,
    traces: Traces | None = None,
) -> list[Swing]:
    """Every input's swing, widest first; the default ranges where none are given."""
    base = plan(Scenario.parse(document), catalog, traces)
    held, metrics = held_design(document, base), closed_form_metrics(base)
    if metric not in metrics:
        raise unknown_metric(metric, sorted(metrics))

    def end(path: str, value: float) -> End:
        return _end(held, base, metric, {path: as_typed(path, value)}, catalog, traces)

    found = [
        Swing(
            given=one,
            metric=metric,
            base_value=metrics[metric],
            low=end(one.path, one.low),
            high=end(one.path, one.high),
            is_extrapolated=beyond_measured(warning.code for warning in base.warnings),
        )
        for one in (default_ranges(base) if ranges is None else ranges)
    ]
    return sorted(found, key=lambda one: -one.swing)


def held_design(document: Mapping[str, Any], base: Plan) -> dict[str, Any]:
    """The document with what `auto` became written out where it is a choice of the design, not a consequence."""
    return apply_overrides(document, design_choices(base))[0]


def design_choices(base: Plan) -> dict[str, Any]:
    """What `auto` became in it, by path."""
    return {path: value for path, value in base.resolved.items() if path.endswith(_CHOICES)}


def ranges_of(base: Plan, paths: Sequence[str]) -> list[InputRange]:
    """The known or assumed ranges of these inputs; the default inputs where none is named."""
    known = {one.path: one for one in default_ranges(base)}
    if not paths:
        return list(known.values())
    found = []
    for path in paths:
        one = known.get(path) or assumed_range(base, path)
        if one is None:
            raise InputError.at(
                path,
                "sensitivity.not_numeric",
                "no number stands here, so it has no ends; name a numeric input such as {example}",
                example="hardware.chip_overrides.hbm_bytes_per_s",
            )
        found.append(one)
    return found


def beyond_measured(codes: Iterable[str]) -> bool:
    """Whether warnings with these codes say that steps lie outside the settings that were measured."""
    return not EXTRAPOLATED.isdisjoint(codes)


def default_metric(base: Plan) -> str:
    """What is asked about most: the cost of a token, or of a year where none is made."""
    metric = "cost.usd_per_million_tokens"
    return metric if metric in closed_form_terms(base) else "cost.tco_usd_per_year"


def unknown_metric(metric: str, known: Sequence[str]) -> InputError:
    """A metric that this scenario does not have, with those that sound alike."""
    last = metric.rpartition(".")[2]
    close = [name for name in known if last and last in name] or list(known)
    return InputError.at(
        "metric",
        "sensitivity.metric",
        "{got} is no number that this scenario has in closed form; choose one such as {close}",
        got=metric,
        close=", ".join(close[:5]),
    )


def _end(
    document: Mapping[str, Any],
    base: Plan,
    metric: str,
    override: Mapping[str, Any],
    catalog: Catalog | None,
    traces: Traces | None,
) -> End:
    try:
        scenario = Scenario.parse(apply_overrides(document, override)[0])
        if all(path.startswith(_MONEY) for path in override):
            metrics = closed_form_metrics(base, priced(scenario, base.fabric, catalog))
            return End(value=metrics.get(metric))
        changed = plan(scenario, catalog, traces)
    except TrimtabError as error:
        return End(value=None, blocked=error.message)
    beyond = beyond_measured(warning.code for warning in changed.warnings)
    return End(value=closed_form_metrics(changed).get(metric), is_extrapolated=beyond)


def _elasticity(
    ends: tuple[float, float], values: tuple[float | None, float | None], base_value: float
) -> float | None:
    low, high = values
    if low is None or high is None or min(ends) <= 0 or ends[0] == ends[1]:
        return None
    if min(low, high, base_value) <= 0:
        return None
    return math.log(high / low) / math.log(ends[1] / ends[0])
