"""One training iteration on a time line: the pipeline's passes, what happens once, one micro-batch by operator.

Built from a result's `pipeline` and `operators` tables. In the Chrome trace each pipeline stage is a thread of the
first process, in which what follows the last pass has its own; the second process is one micro-batch on the slowest
stage, its forward and its backward, by lane. A long schedule is cut to `MOST_PASSES`, and the trace says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from simcore.report.trace import LANES, Event, chrome_trace, complete, in_turn, named
from simcore.training import Pass, schedule, shortened

Row = Mapping[str, Any]
MOST_PASSES: Final = 20_000
_MICROSECOND: Final = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingIteration:
    """A step: the passes that are drawn, what happens once after them, and one micro-batch by operator."""

    stages: int
    micro_batches: int
    drawn_micro_batches: int
    passes: tuple[Pass, ...]
    once: tuple[Event, ...]  # from the end of the last pass
    micro_batch: tuple[Event, ...]

    @property
    def pipeline_s(self) -> float:
        return max(one.end_s for one in self.passes)

    @property
    def s(self) -> float:
        return self.pipeline_s + sum(event.s for event in self.once)


def training_iteration(
    pipeline: Row, rows: Sequence[Row], *, most_passes: int = MOST_PASSES
) -> TrainingIteration:
    """The iteration of a `pipeline` row and the `operators` rows beside it."""
    cut = {name: int(pipeline[name]) for name in ("stages", "pieces", "micro_batches")}
    drawn = shortened(**cut, most_passes=most_passes)
    passes = schedule(
        **{**cut, "micro_batches": drawn},
        forward_s=float(pipeline["forward_s"]),
        backward_s=float(pipeline["backward_s"]),
    )
    return TrainingIteration(
        stages=cut["stages"],
        micro_batches=cut["micro_batches"],
        drawn_micro_batches=drawn,
        passes=tuple(passes),
        once=in_turn([row for row in rows if row["phase"] == "once"], 1.0),
        micro_batch=in_turn([row for row in rows if row["phase"] != "once"], 1.0),
    )


def iteration_trace(tables: Mapping[str, Sequence[Row]], *, name: str = "") -> dict[str, Any] | None:
    """The Chrome trace of whatever a result's tables take apart; None where nothing is."""
    rows, pipeline = tables.get("operators"), tables.get("pipeline")
    if not rows:
        return None
    if not pipeline:
        return chrome_trace(rows, name=name)
    step = training_iteration(pipeline[0], rows)
    events = [named("process_name", 1, 0, "pipeline"), named("process_name", 2, 0, "one micro-batch")]
    events += [named("thread_name", 1, stage + 1, f"stage {stage + 1}") for stage in range(step.stages)]
    events.append(named("thread_name", 1, step.stages + 1, "once per step"))
    events += [named("thread_name", 2, thread, lane) for thread, lane in enumerate(LANES, start=1)]
    events += [_pass(one) for one in step.passes]
    events += [{**complete(event, 1, step.pipeline_s, {}), "tid": step.stages + 1} for event in step.once]
    events += [complete(event, 2, 0.0, {}) for event in step.micro_batch]
    about = {
        "scenario": name,
        "micro_batches": step.micro_batches,
        "drawn_micro_batches": step.drawn_micro_batches,
    }
    return {"displayTimeUnit": "ms", "otherData": about, "traceEvents": events}


def _pass(one: Pass) -> dict[str, Any]:
    return {
        "name": f"{one.kind} {one.micro_batch + 1}",
        "cat": one.kind,
        "ph": "X",
        "ts": one.start_s / _MICROSECOND,
        "dur": one.s / _MICROSECOND,
        "pid": 1,
        "tid": one.stage + 1,
        "args": {"micro_batch": one.micro_batch + 1, "piece": one.piece + 1},
    }
