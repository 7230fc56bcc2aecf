"""What Methods shows of the replayed runs: queue and batch over time, measured and replayed, typed at a few instants.

The measured requests are not part of the program, so that the replayed curves are typed too; a test replays them anew
and holds both to the files.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml

_FILE: Final = Path(__file__).parent / "data" / "curves" / "serving_replay.yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayCurves:
    """One run. Counts are aligned with `time_s`; latencies are mean and 90th percentile over its requests."""

    run: str
    time_s: tuple[float, ...]
    measured_running_count: tuple[float, ...]
    replayed_running_count: tuple[float, ...]
    measured_waiting_count: tuple[float, ...]
    replayed_waiting_count: tuple[float, ...]
    measured_ttft_s: tuple[float, float]
    replayed_ttft_s: tuple[float, float]
    measured_tpot_s: tuple[float, float]
    replayed_tpot_s: tuple[float, float]


@cache
def replay_curves() -> tuple[ReplayCurves, ...]:
    """Every typed run."""
    document = yaml.safe_load(_FILE.read_text(encoding="utf-8"))
    return tuple(
        ReplayCurves(run=name, **{key: _numbers(value) for key, value in entry.items()})
        for name, entry in document["runs"].items()
    )


def _numbers(value: Any) -> Any:
    return (value["mean"], value["p90"]) if isinstance(value, dict) else tuple(map(float, value))
