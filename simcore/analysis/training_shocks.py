"""The shock test of a training job: what a timeline of shocks costs of its tokens, and which ability bought how much.

Closed form: the pace of the job under each subset of the abilities that are turned on (`plan/training_shocks.py`,
`reliability/job_line.py`) against the job undisturbed, whose goodput is its tokens per second less the share of time
for checkpoints. The time looked at goes from 0 to the last recovery under any of the subsets, and as long again: shares
are of that time, so a finding names it.

Limits: expected values, of work that is lost; which servers fail is drawn from the first seed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from simcore.analysis.findings import Findings
from simcore.analysis.shock_findings import (
    Tried,
    ability_message,
    bought_by,
    metrics_of,
    series_of,
    subsets,
    tables_of,
    with_only,
)
from simcore.errors import Message
from simcore.plan import TrainingPlan
from simcore.plan.training_shocks import ShockedJob, shocked_job
from simcore.reliability import JobLine, Recovery, ReliabilitySpec
from simcore.why import Term, leaf

_SLICES: Final = 120


def training_shock_test(planned: TrainingPlan, spec: ReliabilitySpec, *, seed: int) -> Findings:
    """The shock test of a job; nothing where its timeline is empty."""
    if not spec.shocks:
        return Findings()
    job = shocked_job(planned, spec, seed=seed)
    lines = {some: job.line(with_only(spec.abilities, some)) for some in subsets(spec.abilities)}
    ends_s = [one.at_s + one.duration_s for one in spec.shocks]
    last_s = max(*(line.whole_again_s for line in lines.values()), *ends_s, planned.step.step_s.value)
    edges_s = np.linspace(0.0, 2 * last_s, _SLICES + 1)
    first_s = job.first_shock_s
    steady = job.steady_token_per_s.value
    tried = [
        Tried(
            abilities=some,
            outcome=line.recovery(first_shock_s=first_s, horizon_s=2 * last_s),
            goodput_per_s=steady * np.diff(line.useful_s(edges_s)) / np.diff(edges_s),
        )
        for some, line in lines.items()
    ]
    bought, outcome = bought_by(tried), tried[-1].outcome
    why = _why(outcome, list(lines.values())[-1], first_s=first_s, horizon_s=2 * last_s)
    return Findings(
        metrics={name: why[name].value for name in metrics_of(outcome)},
        tables=tables_of(tried, bought),
        series=series_of(tried, (edges_s[:-1] + edges_s[1:]) / 2, np.full(_SLICES, steady)),
        why=why,
        messages=(
            _cost(outcome, horizon_s=2 * last_s),
            *_state(job),
            *ability_message(outcome, tried[0].outcome, bought),
        ),
    )


def _why(outcome: Recovery, line: JobLine, *, first_s: float, horizon_s: float) -> dict[str, Term]:
    horizon = leaf(horizon_s, "horizon_s", kind="derived", source="to the last recovery, and as long again")
    useful = _of_line(float(line.useful_s(horizon_s)), "useful_s")
    least = _of_line(1.0 - outcome.dip_fraction, "least_pace_ratio")
    first = leaf(first_s, "first_shock_s", path="reliability.shocks")
    back = _of_line(first_s + outcome.recovery_s, "recovered_s")
    found = {
        "reliability.shock.dip_fraction": 1 - least,
        "reliability.shock.recovery_s": back - first,
        "reliability.shock.lost_goodput_fraction": 1 - useful / horizon,
    }
    return {name: term.named(name) for name, term in found.items()}


def _of_line(value: float, name: str) -> Term:
    return leaf(
        value, name, kind="derived", source="the job's pace over the timeline (reliability/job_line.py)"
    )


def _cost(outcome: Recovery, *, horizon_s: float) -> Message:
    return Message(
        code="finding.training_shock",
        template="the shocks cost {lost} of the tokens of {horizon_s:,.0f} s, the time to the last recovery and as "
        "long again; at worst {dip} of the pace is missing, and {recovery_s:,.0f} s after the first shock the job "
        "is back for good",
        params={
            "lost": f"{outcome.lost_fraction:.1%}",
            "horizon_s": horizon_s,
            "dip": f"{outcome.dip_fraction:.0%}",
            "recovery_s": outcome.recovery_s,
        },
        path="reliability.shocks",
    )


def _state(job: ShockedJob) -> Iterator[Message]:
    """What a stop costs with the state in another server's memory, and without."""
    able = job.spec.abilities
    if not (able.data and job.downs(job.events(able))):
        return
    near, far = (job.rescue(able.model_copy(update={"data": data})) for data in (True, False))
    yield Message(
        code="finding.shock_state",
        template="from a checkpoint a stop costs {far_s:,.0f} s of work in the mean and a restart of "
        "{far_restart_s:,.0f} s; from another server's memory {near_s:,.1f} s and {near_restart_s:,.0f} s (assumption: "
        "a copy after each step, at no cost)",
        params={
            "far_s": far.rework_s,
            "far_restart_s": far.restart_s,
            "near_s": near.rework_s,
            "near_restart_s": near.restart_s,
        },
        path="reliability.abilities.data",
    )
