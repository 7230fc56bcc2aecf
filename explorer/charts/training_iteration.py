"""Iteration of a training run: what a step does, its passes by operator, its pipeline on a time line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from django.utils.translation import gettext as _

from explorer import wording
from explorer.charts import iteration, style
from explorer.charts.iteration import Block, Lane, Row, Timeline
from explorer.charts.style import Cell, Chart, Result, Table
from simcore.report.training_trace import TrainingIteration, training_iteration
from simcore.training import Pass

KPIS: Final = (
    "training.step_s",
    "training.mfu_fraction",
    "training.forward_s",
    "training.backward_s",
    "training.bubble_fraction",
    "training.exposed_communication_fraction",
)
MOST_PASSES: Final = 800  # blocks of the picture
MOST_LANES: Final = 8
_LEFT: Final = 14.0
_LANE_HEIGHT: Final = 26


def pipeline(result: Result | None) -> Row | None:
    """What the schedule is made of, where the run trains."""
    found = style.rows(result, "pipeline")
    return found[0] if found else None


def headline(result: Result | None) -> str:
    """How many micro-batches a step has, and what most of one waits for."""
    cut = pipeline(result)
    assert cut is not None, "only asked for where a run trains"
    found = [row for row in iteration.rows(result) if row["phase"] != "once"]
    total = sum(row["s"] for row in found)
    by_bound: dict[str, float] = {}
    for row in found:
        by_bound[str(row["bound"])] = by_bound.get(str(row["bound"]), 0.0) + row["s"]
    most = max(by_bound, key=lambda bound: by_bound[bound])
    return _(
        "A step runs %(count)s micro-batches of %(time)s through %(stages)s; %(share)s of one waits for %(resource)s"
    ) % {
        "count": f"{cut['micro_batches']:,}",
        "time": style.number(total, "step_s"),
        "stages": _stages(int(cut["stages"])),
        "share": style.percent(by_bound[most] / total, digits=0),
        "resource": wording.resource_in_text(most),
    }


def _stages(count: int) -> str:
    return _("%(count)s pipeline stages") % {"count": count} if count > 1 else _("one stage")


def gantt(result: Result | None) -> Chart | None:
    """The pipeline's schedule, and one micro-batch on the slowest stage."""
    cut = pipeline(result)
    if cut is None:
        return None
    step = training_iteration(cut, iteration.rows(result), most_passes=MOST_PASSES)
    return Chart(
        slug="gantt",
        title=_title(result, step),
        axis=_("Time from left to right; coloured forward, plain backward, grey where the stage waits"),
        summary=_summary(step),
        source=_("Closed form; all stages take the slowest one's time, transfers are inside the passes"),
        draw="gantt",
        body=(_pipeline_line(step), *_micro_batch_lines(result)),
        table=_pass_table(step),
        wide=True,
        download="trace",
    )


def _title(result: Result | None, step: TrainingIteration) -> str:
    if step.stages == 1:
        return _("Micro-batches follow each other, and gradients move once behind them")
    bubble = (result or {}).get("metrics", {}).get("training.bubble_fraction", 0.0)
    return _("%(share)s of the pipeline's time is bubble: stages wait while it fills and drains") % {
        "share": style.percent(float(bubble), digits=1)
    }


def _summary(step: TrainingIteration) -> str:
    once = ", ".join(
        f"{wording.operator(event.operator)} {style.number(event.s, 'event_s')}" for event in step.once
    )
    return _("%(drawn)s of %(count)s micro-batches through %(stages)s take %(time)s; then %(once)s.") % {
        "drawn": step.drawn_micro_batches,
        "count": step.micro_batches,
        "stages": _stages(step.stages),
        "time": style.number(step.pipeline_s, "step_s"),
        "once": once,
    }


def _pipeline_line(step: TrainingIteration) -> Timeline:
    lanes = [_stage_lane(step, stage, at) for at, stage in enumerate(_shown(step.stages))]
    once = Lane(
        label=_("Once"),
        top=24 + len(lanes) * _LANE_HEIGHT,
        blocks=tuple(
            _block(
                f"{wording.operator(event.operator)}: {style.number(event.s, 'event_s')}",
                event.bound,
                step.pipeline_s + event.start_s,
                event.s,
                step.s,
            )
            for event in step.once
        ),
    )
    return Timeline(
        name=_line_name(step),
        total=str(style.number(step.s, "step_s")),
        lanes=(*lanes, once),
        height=24 + (len(lanes) + 1) * _LANE_HEIGHT + 12,
    )


def _line_name(step: TrainingIteration) -> str:
    if step.drawn_micro_batches == step.micro_batches:
        return _("The whole step: %(count)s micro-batches") % {"count": f"{step.micro_batches:,}"}
    return _("A step of %(drawn)s micro-batches; the middle of the real one repeats up to %(count)s") % {
        "drawn": step.drawn_micro_batches,
        "count": f"{step.micro_batches:,}",
    }


def _shown(stages: int) -> list[int]:
    """Stages that are drawn: all, or the first and last ones."""
    if stages <= MOST_LANES:
        return list(range(stages))
    half = MOST_LANES // 2
    return [*range(half), *range(stages - half, stages)]


def _stage_lane(step: TrainingIteration, stage: int, at: int) -> Lane:
    own = [one for one in step.passes if one.stage == stage]
    waits = [_block(_("waits"), "bubble", 0.0, step.pipeline_s, step.s)] if step.stages > 1 else []
    return Lane(
        label=_("Stage %(number)s") % {"number": stage + 1},
        top=24 + at * _LANE_HEIGHT,
        blocks=tuple(waits + [_pass_block(one, step.s) for one in own]),
    )


def _pass_block(one: Pass, total_s: float) -> Block:
    said = (
        _("Forward of micro-batch %(number)s")
        if one.kind == "forward"
        else _("Backward of micro-batch %(number)s")
    )
    label = f"{said % {'number': one.micro_batch + 1}}: {style.number(one.s, 'event_s')}"
    resource = "compute" if one.kind == "forward" else "ink"
    return _block(label, resource, one.start_s, one.s, total_s, text=str(one.micro_batch + 1))


def _block(
    label: str, resource: str, start_s: float, seconds: float, total_s: float, *, text: str = ""
) -> Block:
    width = seconds / total_s * (100.0 - _LEFT)
    return Block(
        label=label,
        resource=resource,
        on="on-d" if resource in (*style.DARK_MARKS, "ink") else "on-l",
        left=round(_LEFT + start_s / total_s * (100.0 - _LEFT), 3),
        width=round(max(width, 0.05), 3),
        text=text if width > 0.9 + len(text) else "",
    )


def _micro_batch_lines(result: Result | None) -> list[Timeline]:
    return [
        iteration.timeline(name, iteration.rows(result, phase))
        for phase, name in (
            ("forward", _("Forward of one micro-batch on the slowest stage")),
            ("backward", _("Backward of one micro-batch on the slowest stage")),
        )
    ]


def _pass_table(step: TrainingIteration) -> Table:
    kinds = {"forward": _("Forward"), "backward": _("Backward")}

    def cells(one: Pass) -> tuple[Cell, ...]:
        numbers: Sequence[Any] = (one.stage + 1, one.piece + 1, one.micro_batch + 1)
        start, took = style.number(one.start_s, "start_s"), style.number(one.s, "event_s")
        return (
            Cell(text=kinds[one.kind]),
            *(Cell(text=f"{number:,}") for number in numbers),
            Cell(text=start.text, unit=start.unit),
            Cell(text=took.text, unit=took.unit, metric=f"training.{one.kind}_s"),
        )

    shown = set(_shown(step.stages))
    return Table(
        columns=(_("Pass"), _("Stage"), _("Piece"), _("Micro-batch"), _("Start"), _("Time")),
        words=1,
        rows=tuple(cells(one) for one in step.passes if one.stage in shown),
    )
