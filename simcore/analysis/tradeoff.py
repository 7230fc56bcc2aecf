"""Speed for one against output of all: what a serving system gives per chip at each speed that a user reads at.

From the closed form of the plan's curve (`serving/capacity.py`), over the sequences `b` that a lane keeps decoding,
which let through `r(b)` requests a second, of `O` tokens in the mean:

    token/s per user = r · (O − 1) / b        (Little: a request decodes for b / r)
    token/s per chip = r · O · lanes / chips

Limits: a steady state without queueing, preemption or faults, so simulated points lie below. Prefill and decode apart
have no curve in one batch, and answers of one token no speed: such plans have none.
"""

from __future__ import annotations

import numpy as np

from simcore.analysis.findings import Findings
from simcore.plan import Plan
from simcore.simulate import OnEvent, Result

SERIES = "token_tradeoff"
_POINTS = 24


def tradeoff(plan: Plan, result: Result, on_event: OnEvent | None) -> Findings:
    """The curve as a series, at most 24 batches evenly spread in their logarithm."""
    if plan.serving is None or len(plan.serving.pools) > 1:
        return Findings()
    inputs, pool = plan.serving.inputs, plan.serving.pool
    answer = float(np.mean(inputs.requests.output_tokens))
    curve = pool.operating_point.curve
    if answer <= 1 or curve.mix.decode_steps == 0:
        return Findings()
    keep = np.unique(np.geomspace(1, len(curve.batch), _POINTS).round().astype(int)) - 1
    batch, rate = curve.batch[keep], curve.request_per_s[keep]
    columns = {
        "batch_sequences": batch,
        "token_per_s_per_user": rate * (answer - 1) / batch,
        "token_per_s_per_chip": rate * answer * pool.lane_count / pool.chip_count,
    }
    return Findings(series={SERIES: {name: values.tolist() for name, values in columns.items()}})
