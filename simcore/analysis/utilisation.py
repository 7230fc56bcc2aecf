"""Effective utilisation, and where the rest went: from all that is owned down to useful arithmetic at peak.

`effective = busy × kernel efficiency × useful share`, busy + waits = 1. The waterfall takes each wait from the whole,
then what kernels lack of the peak while they compute, then work that is done again (after preemption, or recomputed
activations in training). Its steps add up to what was lost, whatever happened.

Limits: refused drafts of speculation count as useful; padding is not modelled, so none is lost to it.
"""

from __future__ import annotations

from typing import Any, Final

from simcore.analysis.findings import Findings
from simcore.plan import Plan
from simcore.simulate import OnEvent, Result

WAITS: Final = ("queue", "failure", "bubble", "scaleout", "scaleup", "host", "overhead", "hbm")


def lost(plan: Plan, result: Result, on_event: OnEvent | None = None) -> Findings:
    """The `loss_waterfall` table; nothing where nothing was run."""
    rows = waterfall(result)
    return Findings(tables={"loss_waterfall": rows}) if rows else Findings()


def waterfall(result: Result) -> list[dict[str, Any]]:
    """Steps of the waterfall, each with what it loses and what is left: shares of owned chip time at peak.

    The first row is what is owned, the last what was useful; between them each `lost_fraction` is taken from the
    `left_fraction` before it.
    """
    found = result.metrics
    effective = found.get("analysis.effective_utilisation_fraction")
    if effective is None:
        return []
    left = 1.0
    rows: list[dict[str, Any]] = [{"step": "owned", "lost_fraction": 0.0, "left_fraction": left}]
    losses = [(name, float(found.get(f"analysis.waiting.{name}_fraction", 0.0))) for name in WAITS]
    again = _done_again(result)
    kernels = float(found["analysis.busy_fraction"]) - float(effective) - again
    for step, loss in (*losses, ("kernels", kernels), ("again", again)):
        if loss:
            left -= loss
            rows.append({"step": step, "lost_fraction": loss, "left_fraction": left})
    return [*rows, {"step": "effective", "lost_fraction": 0.0, "left_fraction": float(effective)}]


def _done_again(result: Result) -> float:
    """Arithmetic at peak that was done for the second time."""
    found = result.metrics
    effective = float(found["analysis.effective_utilisation_fraction"])
    useful = found.get("analysis.useful_work_fraction")
    if useful is not None:
        return effective / float(useful) - effective if float(useful) else 0.0
    model, hardware = found.get("training.mfu_fraction"), found.get("training.hfu_fraction")
    if not model or hardware is None:
        return 0.0
    return effective * (float(hardware) / float(model) - 1.0)
