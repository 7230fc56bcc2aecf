"""The page of sensitivities as it is asked for: which study, of which figure, over which inputs.

Intervals are texts as people write them ("5 to 8", "3 to 3.4 TB/s"); an empty one holds its input. A text that was
not changed stands for the range as it is known, with what it rests on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from explorer import wording
from simcore import glossary
from simcore.analysis.cells import Depth
from simcore.analysis.estimate import closed_form_metrics
from simcore.analysis.intervals import interval
from simcore.analysis.ranges import InputRange, assumed_range, default_ranges, value_at
from simcore.analysis.sensitivity import default_metric, design_choices, ranges_of
from simcore.analysis.studies import Study, parse_study
from simcore.analysis.tornado import Tornado, as_interval
from simcore.errors import InputError
from simcore.plan import Plan
from simcore.units import dimension_of, printed_text

Kind = Literal["tornado", "draws", "goal"]
FIGURES: Final = (
    "cost.usd_per_million_tokens",
    "cost.usd_per_million_output_tokens",
    "cost.tco_usd_per_year",
    "cost.capex_usd",
    "cost.power_w",
    "cost.joule_per_token",
    "serving.capacity_request_per_s",
    "compute.decode_step_s",
    "compute.prefill_step_s",
    "memory.kv_token_capacity",
    "training.token_per_s",
    "training.step_s",
    "training.mfu_fraction",
    "training.days",
    "fabric.fabric_capex_usd",
    "fabric.bisection_bytes_per_s",
)
# Figures of a run, for which each point is simulated.
SIMULATED: Final = (
    "serving.ttft_s.p95",
    "serving.tpot_s.mean",
    "serving.e2e_s.p95",
    "serving.slo_attainment_fraction",
    "serving.output_token_per_s",
)
SOUGHT: Final = (
    "hardware.chip_count",
    "workload.arrivals.request_per_s",
    "workload.arrivals.concurrency",
    "serving.scheduler.max_num_seqs",
    "serving.scheduler.max_num_batched_tokens",
    "workload.lengths.input_mean_tokens",
    "training.global_batch_tokens",
    "reliability.host_availability_fraction",
    "economics.price_ratio",
    "economics.electricity_usd_per_kwh",
)
DRAWS: Final = (50, 100, 200)
PREFIX: Final = "in:"  # of the field that holds an input's interval


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalField:
    """One uncertain input: its interval as text, and what the text rests on while it is unchanged."""

    path: str
    label: str
    text: str
    basis: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked, as text; whatever is wrong with it is said where it is read."""

    kind: Kind
    metric: str
    fields: tuple[IntervalField, ...]
    ranges: tuple[InputRange, ...]
    draw_count: int = 100
    path: str = ""
    between: str = ""
    find: str = "smallest"
    bound_metric: str = ""
    side: str = "at_most"
    bound: str = ""
    errors: tuple[InputError, ...] = field(default=())


def question(planned: Plan, data: Mapping[str, str]) -> Question:
    """The form's fields with what was sent in them, defaults where nothing was."""
    known = closed_form_metrics(planned)
    metric = data.get("metric") or default_metric(planned)
    if metric not in known and metric not in SIMULATED:
        metric = default_metric(planned)
    fields, ranges, errors = _intervals(planned, data)
    path = (data.get("path") or _sought(planned)[0][0]).strip()
    bound_metric = data.get("bound_metric") or _bound_metric(known)
    kind = data.get("study", "tornado")
    return Question(
        kind="draws" if kind == "draws" else "goal" if kind == "goal" else "tornado",
        metric=metric,
        fields=fields,
        ranges=ranges,
        draw_count=next((count for count in DRAWS if str(count) == data.get("draws")), 100),
        path=path,
        between=data.get("between", "").strip(),
        find="largest" if data.get("find") == "largest" else "smallest",
        bound_metric=bound_metric,
        side=data["side"] if data.get("side") in ("at_least", "at_most") else _side(bound_metric),
        bound=data.get("bound") or _bound(bound_metric, known),
        errors=errors,
    )


def study_of(asked: Question, planned: Plan) -> Study:
    """The study of a question. Raises InputError with what is wrong."""
    hold = design_choices(planned)
    if asked.kind == "goal":
        between = asked.between or around(planned, asked.path)
        where, step = interval(asked.path, between), _step(planned, asked.path)
        return parse_study(
            {
                "kind": "goal_seek",
                "path": asked.path,
                "low": max(step, where.low // step * step) if step > 1 else where.low,
                "high": where.high,
                "find": asked.find,
                "targets": [{"metric": asked.bound_metric, asked.side: asked.bound}],
                "step": step,
                "depth": _depth(asked.bound_metric),
            }
        )
    if asked.kind == "draws":
        return parse_study(
            {
                "kind": "monte_carlo",
                "ranges": {one.path: as_interval(one) for one in asked.ranges},
                "hold": hold,
                "metrics": [asked.metric],
                "draw_count": asked.draw_count,
                "depth": _depth(asked.metric),
            }
        )
    return Tornado.of(asked.ranges, [asked.metric], depth=_depth(asked.metric), hold=hold)


def _step(planned: Plan, path: str) -> int:
    """Chips come in whole servers, where those that are owned do."""
    each = planned.server.chips_per_server
    whole = planned.scenario.hardware.chip_count % each == 0
    return each if path == "hardware.chip_count" and whole else 1


def choices(planned: Plan, asked: Question) -> dict[str, list[tuple[str, str]]]:
    """What the selects offer: figures with their labels, and inputs that may be sought."""
    known = closed_form_metrics(planned)
    figures = [name for name in FIGURES if name in known]
    runs = list(SIMULATED) if planned.serving is not None else []
    return {
        "figures": [(name, wording.figure(name)) for name in (*figures, *runs)],
        "sought": _with(asked.path, _sought(planned)),
    }


def _depth(metric: str) -> Depth:
    return "simulated" if metric in SIMULATED else "closed_forms"


def _intervals(
    planned: Plan, data: Mapping[str, str]
) -> tuple[tuple[IntervalField, ...], tuple[InputRange, ...], tuple[InputError, ...]]:
    """Each input's field with its range; a wrong text is an error, and its field keeps it."""
    fields, ranges, errors = [], [], []
    given = {one.path: one for one in default_ranges(planned)}
    added = data.get("also", "").strip()
    if added and added not in given:
        one = assumed_range(planned, added)
        if one is not None:
            given[added] = one
        else:
            errors.append(_not_numeric(planned, added))
    for path, one in given.items():
        default = _text(one)
        text = data.get(f"{PREFIX}{path}", default).strip()
        basis = wording.translated(one.basis)
        fields.append(IntervalField(path=path, label=wording.label(path), text=text, basis=basis))
        if text == default:
            ranges.append(one)
        elif text:
            try:
                ends = interval(path, text)
                ranges.append(one.narrowed(ends.low, ends.high))
            except InputError as error:
                errors.append(error)
    return tuple(fields), tuple(ranges), tuple(errors)


def _not_numeric(planned: Plan, path: str) -> InputError:
    try:
        ranges_of(planned, [path])
    except InputError as error:
        return error
    raise AssertionError("a path with a number has a range")


def _text(one: InputRange) -> str:
    """An interval as it can be read again: `2.880 to 3.697 TB/s`."""
    dimension = dimension_of(one.path)
    low, high = (printed_text(value, dimension, digits=4) for value in (one.low, one.high))
    number, space, unit = low.partition(" ")
    return f"{number} to {high}" if space and high.endswith(f" {unit}") else f"{low} to {high}"


def _sought(planned: Plan) -> list[tuple[str, str]]:
    return [(path, wording.label(path)) for path in SOUGHT if value_at(planned, path) is not None]


def _with(path: str, offered: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return offered if path in dict(offered) else [*offered, (path, wording.label(path))]


def around(planned: Plan, path: str) -> str:
    """From a quarter of the value to four times it."""
    value = value_at(planned, path)
    if value is None:
        return ""
    ends = (max(1.0, value // 4), value * 4) if value >= 4 and value.is_integer() else (value / 4, value * 4)
    if dimension_of(path) == "fraction":
        ends = (value / 2, 1.0)
    low, high = (printed_text(end, dimension_of(path), digits=4) for end in ends)
    return f"{low} to {high}"


def _bound_metric(known: Mapping[str, float]) -> str:
    offered = ("serving.capacity_request_per_s", "training.token_per_s", "cost.tco_usd_per_year")
    return next(name for name in offered if name in known)


def _side(metric: str) -> str:
    return "at_least" if glossary.better(metric) == "up" else "at_most"


def _bound(metric: str, known: Mapping[str, float]) -> str:
    value = known.get(metric)
    return "" if value is None else printed_text(value, dimension_of(metric), digits=3)
