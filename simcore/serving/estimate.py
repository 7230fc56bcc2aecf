"""TTFT and TPOT in closed form, to stand beside the simulation: queueing on the mean-field steady state.

One replica lane at the batch `n` that its offered load keeps (`capacity.Curve`), with a mean iteration of `t`:

    TPOT = t + prompts ahead × mean(1 / (output - 1))
    TTFT = wait for a seat + rest of the iteration under way + prompts ahead + own prompt + front end

The wait for a seat is that of M/G/c (Erlang C with one server per sequence that the replica holds, times
`(1 + cv²)/2` for the spread of service times: Allen and Cunneen 1990, Lee and Longton 1959); prompts ahead
are M/G/1 on the prefill work (Pollaczek-Khinchine), since prompts take the token budget one after another; an
arrival meets half an iteration where the lane is busy at all, `1 - exp(-n)` as in M/G/∞. Prompts come in
clumps: those that a prompt met ahead of it are, in the mean, also met behind it by its first decodes, and the mean
over requests gives each answer that wait once, however short it is.

What it leaves out, and therefore where it and the simulation part: bursts and trends of the arrivals, waves of
answers that end together, and preemption. Over the grid of tests/simcore/serving/test_estimate.py, loads to 0.8, the
simulated means lie within these factors: `TPOT_BAND` and `TTFT_BAND` (worst 1.74 and 1.56, medians 1.01 and 1.00).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from simcore.compute.step_table import StepTimeTable
from simcore.errors import Message
from simcore.serving.capacity import Curve, prompt_iterations_s
from simcore.serving.records import Integers
from simcore.serving.schedulers import SchedulerParameters
from simcore.serving.step_means import Mix, prompts_s
from simcore.why import Term, leaf, total

TPOT_BAND: Final = 1.8  # a factor either way
TTFT_BAND: Final = 1.8
HIGHEST_LOAD: Final = 0.8  # beyond it waits depend on how long the run is


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneLoad:
    """One replica lane under its share of the load."""

    curve: Curve
    request_per_s: float
    input_tokens: Integers
    output_tokens: Integers

    @property
    def batch(self) -> float:
        return self.curve.batch_at(self.request_per_s)

    @property
    def load_ratio(self) -> float:
        return self.request_per_s / self.curve.capacity_request_per_s

    def iteration_s(self, batch: float) -> float:
        """Mean iteration of the steady state with this batch: sequences ended per iteration over their rate."""
        seconds = self.curve.batch / (self.curve.mix.iterations * self.curve.request_per_s)
        return float(np.interp(batch, self.curve.batch, seconds))


def latency_terms(lane: LaneLoad, table: StepTimeTable, scheduler: SchedulerParameters) -> dict[str, Term]:
    """`serving.estimate.{ttft_s,tpot_s}`; empty where load leaves no steady state or nothing is decoded.

    And for static batches, which nobody joins, and for lines in another order than that of arrival: waits there are
    those for a batch to end, or for whoever ranks before.
    """
    if scheduler.kind == "static_batch" or scheduler.queue != "fcfs":
        return {}
    if lane.curve.mix.decode_steps == 0 or not 0 < lane.load_ratio < HIGHEST_LOAD:
        return {}
    batch = lane.batch
    each_s = lane.iteration_s(batch)
    prompt_s, share_s = (
        float(seconds[0])
        for seconds in prompt_iterations_s(table, scheduler, lane.curve.mix, np.array([batch]))
    )
    ahead_s = _leaf(_prompts_ahead_s(lane, share_s), "prompts_ahead_s", source="M/G/1 over the prefill work")
    ttft_s = total(
        _leaf(_seat_wait_s(lane), "seat_wait_s", source="M/G/c over the sequences that a replica holds"),
        _leaf(
            -math.expm1(-batch) * 0.5 * each_s,
            "iteration_rest_s",
            source="half an iteration where the lane is busy",
        ),
        ahead_s,
        _leaf(prompt_s, "own_prompt_s", source="the prompt's own chunks beside the decodes"),
        _leaf(table.front_end_s, "front_end_s", source="the engine's front end, outside of all steps"),
    )
    share = _leaf(
        _per_answer(lane.output_tokens), "mean_inverse_answer_ratio", source="mean of 1 / (output - 1)"
    )
    step = _leaf(each_s, "iteration_s", source=f"mean-field iteration at a batch of {batch:.3g}")
    tpot_s = _per_token(step, lane.curve.mix) + ahead_s * share
    return {
        "serving.estimate.ttft_s": ttft_s.named("serving.estimate.ttft_s"),
        "serving.estimate.tpot_s": tpot_s.named("serving.estimate.tpot_s"),
    }


def apart_latency_terms(
    prefill: LaneLoad, table: StepTimeTable, decode: LaneLoad, *, transfer: Term, front_end_s: float
) -> dict[str, Term]:
    """`serving.estimate.{ttft_s,tpot_s}` of prefill and decode apart, `table` being the step table of prefill.

    Prompts wait for prompts, then for their KV on an idle link, for a seat, and for half an iteration; the first token
    takes an iteration, as every other one does.
    """
    prompt_s = float(prompts_s(table, prefill.curve.mix, np.ones(1))[0])
    batch = decode.batch
    step = _leaf(
        decode.iteration_s(batch), "iteration_s", source=f"mean-field iteration at a batch of {batch:.3g}"
    )
    ttft_s = total(
        _leaf(_prompts_ahead_s(prefill, prompt_s), "prompts_ahead_s", source="M/G/1 over the prefill work"),
        _leaf(prompt_s, "own_prompt_s", source="the prompt alone in a prefill step"),
        transfer,
        _leaf(_seat_wait_s(decode), "seat_wait_s", source="M/G/c over the sequences that a replica holds"),
        _leaf(
            -math.expm1(-batch) * 0.5 * step.value,
            "iteration_rest_s",
            source="half an iteration where the lane is busy",
        ),
        step,
        _leaf(front_end_s, "front_end_s", source="the engine's front end, outside of all steps"),
    )
    return {
        "serving.estimate.ttft_s": ttft_s.named("serving.estimate.ttft_s"),
        "serving.estimate.tpot_s": _per_token(step, decode.curve.mix).named("serving.estimate.tpot_s"),
    }


def _per_token(step: Term, mix: Mix) -> Term:
    """An iteration gives a token, or with drafts more of them."""
    if mix.iterations == mix.decode_steps:
        return step
    return step * _leaf(
        mix.iterations_per_token,
        "iterations_per_token",
        source="accepted drafts come with the token of the iteration; what the last one gives too many is lost",
    )


def _leaf(value: float, name: str, *, source: str) -> Term:
    return leaf(value, name, kind="derived", source=source)


def _per_answer(output_tokens: Integers) -> float:
    """Mean over answers of more than one token."""
    steps = output_tokens[output_tokens > 1] - 1
    return float((1.0 / steps).mean())


def _seat_wait_s(lane: LaneLoad) -> float:
    """Erlang C, corrected for the spread of the answers, which is that of the service times."""
    best = int(lane.curve.request_per_s.argmax())
    seats = max(1, round(float(lane.curve.batch[best])))
    service_s = seats / lane.curve.capacity_request_per_s
    spread = 0.5 * (1.0 + _variation(lane.output_tokens))
    waits = erlang_c(seats, lane.load_ratio * seats)
    return waits * service_s / (seats * (1.0 - lane.load_ratio)) * spread


def _prompts_ahead_s(lane: LaneLoad, prompt_s: float) -> float:
    busy = min(lane.request_per_s * prompt_s, HIGHEST_LOAD)
    return 0.5 * busy * prompt_s * (1.0 + _variation(lane.input_tokens)) / (1.0 - busy)


def _variation(tokens: Integers) -> float:
    """Squared coefficient of variation."""
    return float(tokens.var() / tokens.mean() ** 2)


def erlang_c(servers: int, offered: float) -> float:
    """Probability that an arrival at M/M/c waits, for `offered` Erlang below `servers`.

    >>> round(erlang_c(1, 0.5), 6), round(erlang_c(2, 1.0), 6)
    (0.5, 0.333333)
    """
    blocked = 1.0  # Erlang B, by its recursion over servers
    for server in range(1, servers + 1):
        blocked = offered * blocked / (server + offered * blocked)
    return blocked / (1.0 - offered / servers * (1.0 - blocked))


def disagreement(
    estimated: Mapping[str, float | str], simulated: Mapping[str, float | int | str]
) -> tuple[Message, ...]:
    """A message per latency whose simulated mean lies outside the estimate's band; ids as in `latency_terms`."""
    found = []
    for name, band in (("ttft_s", TTFT_BAND), ("tpot_s", TPOT_BAND)):
        expected = float(estimated.get(f"serving.estimate.{name}", 0.0))
        got = float(simulated.get(f"serving.{name}.mean", 0.0))
        if expected <= 0 or got <= 0 or max(got / expected, expected / got) <= band:
            continue
        found.append(
            Message(
                code=f"serving.estimate.{name}",
                template="simulated mean {name} is {got}, {ratio:.1f} times the queueing estimate of {expected}; "
                "bursts, preemption or waves of equal answers do that, so look at the queue over time",
                params={
                    "name": {"ttft_s": "TTFT", "tpot_s": "TPOT"}[name],
                    "got": _milliseconds(got),
                    "ratio": got / expected,
                    "expected": _milliseconds(expected),
                },
                path="workload.arrivals",
            )
        )
    return tuple(found)


def _milliseconds(seconds: float) -> str:
    return f"{1e3 * seconds:.3g} ms"
