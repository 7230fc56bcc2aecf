"""One iteration on a time line: as events for a Gantt chart, and as JSON for chrome://tracing or Perfetto.

Built from the rows of a result's `operators` table. The step model adds its parts up, so events follow each
other and no two lanes overlap; each layer is the mean of all layers, and both all-reduces of a layer (with
the waiting of ranks for each other) stand after the block that they belong to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

Row = Mapping[str, Any]
LANES: Final = ("compute", "collective", "host")
_BLOCK_ENDS: Final = ("attention_output", "output_up")
_MICROSECOND: Final = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """An operator on its lane, from the start of the layer or iteration."""

    operator: str
    lane: str
    bound: str
    start_s: float
    s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Iteration:
    """A step: a mean layer, how often it runs, and what follows the layers."""

    phase: str
    layer_count: int
    layer: tuple[Event, ...]
    after: tuple[Event, ...]  # from the end of the last layer

    @property
    def layer_s(self) -> float:
        return sum(event.s for event in self.layer)

    @property
    def s(self) -> float:
        return self.layer_s * self.layer_count + sum(event.s for event in self.after)


def iterations(rows: Sequence[Row]) -> list[Iteration]:
    """The phases that the table has, decode first."""
    found = []
    for phase in dict.fromkeys(str(row["phase"]) for row in rows):
        own = [row for row in rows if row["phase"] == phase]
        layers = [row for row in own if row["per_layer"]]
        count = max(1, round(next(row["count"] for row in layers if row["operator"] == "launch")))
        found.append(
            Iteration(
                phase=phase,
                layer_count=count,
                layer=in_turn(_with_collectives(layers), 1.0 / count),
                after=in_turn([row for row in own if not row["per_layer"]], 1.0),
            )
        )
    return found


def _with_collectives(layers: Sequence[Row]) -> list[Row]:
    """A layer's rows, with half of each collective after attention and half at its end."""
    halves = [{**row, "s": row["s"] / 2} for row in layers if row["lane"] == "collective"]
    kernels = [row for row in layers if row["lane"] != "collective"]
    ends = (at for at, row in enumerate(kernels, start=1) if row["operator"] in _BLOCK_ENDS)
    middle = next(ends, len(kernels))
    return [*kernels[:middle], *halves, *kernels[middle:], *halves]


def in_turn(rows: Sequence[Row], share: float) -> tuple[Event, ...]:
    start_s, found = 0.0, []
    for row in rows:
        seconds = float(row["s"]) * share
        if seconds > 0:
            found.append(
                Event(
                    operator=row["operator"],
                    lane=row["lane"],
                    bound=row["bound"],
                    start_s=start_s,
                    s=seconds,
                )
            )
            start_s += seconds
    return tuple(found)


def chrome_trace(rows: Sequence[Row], *, name: str = "") -> dict[str, Any]:
    """All layers of each phase as complete events; a phase is a process, a lane a thread."""
    events: list[dict[str, Any]] = []
    for process, step in enumerate(iterations(rows), start=1):
        events.append(named("process_name", process, 0, f"{step.phase} step"))
        events += [named("thread_name", process, thread, lane) for thread, lane in enumerate(LANES, start=1)]
        for layer in range(step.layer_count):
            events += [
                complete(event, process, layer * step.layer_s, {"layer": layer}) for event in step.layer
            ]
        end_s = step.layer_count * step.layer_s
        events += [complete(event, process, end_s, {}) for event in step.after]
    return {"displayTimeUnit": "ms", "otherData": {"scenario": name}, "traceEvents": events}


def named(kind: str, process: int, thread: int, text: str) -> dict[str, Any]:
    return {"name": kind, "ph": "M", "pid": process, "tid": thread, "args": {"name": text}}


def complete(event: Event, process: int, offset_s: float, where: Mapping[str, int]) -> dict[str, Any]:
    return {
        "name": event.operator,
        "cat": event.bound,
        "ph": "X",
        "ts": (offset_s + event.start_s) / _MICROSECOND,
        "dur": event.s / _MICROSECOND,
        "pid": process,
        "tid": LANES.index(event.lane) + 1,
        "args": {**where, "waits_for": event.bound},
    }
