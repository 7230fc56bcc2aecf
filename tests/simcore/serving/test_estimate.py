"""The queueing estimate meets its limits, and the simulation inside its stated bands."""

import itertools
import math

import numpy as np
import pytest

from simcore.errors import Message
from simcore.plan import Plan, plan
from simcore.scenario import Scenario
from simcore.serving.estimate import HIGHEST_LOAD, TPOT_BAND, TTFT_BAND, disagreement, erlang_c
from simcore.simulate import simulate

LENGTHS = ((1024, 1.0, 256, 1.0), (200, 0.5, 1000, 0.5), (8000, 0.3, 100, 1.0), (512, 0.0, 128, 0.0))
KNOBS = ({}, {"max_num_seqs": 64, "max_num_batched_tokens": 512}, {"max_num_seqs": 16})


def planned(
    scheduler: str, lengths: tuple, knobs: dict, *, load: float, count: int = 3000, **arrivals: object
) -> Plan:
    """A plan whose offered load is `load` of its own capacity."""
    shown, shown_cv, answered, answered_cv = lengths
    document = {
        "name": "estimate",
        "hardware": {"chip": "nvidia-h100-sxm", "chip_count": 1},
        "workload": {
            "arrivals": {"kind": "poisson", "request_per_s": 1.0} | arrivals,
            "lengths": {
                "kind": "lognormal",
                "input_mean_tokens": shown,
                "input_cv": shown_cv,
                "output_mean_tokens": answered,
                "output_cv": answered_cv,
            },
            "request_count": count,
        },
        "serving": {"replica_count": 1, "scheduler": {"kind": scheduler} | knobs},
    }
    capacity = plan(Scenario.parse(document)).serving.pool.operating_point.capacity_request_per_s
    document["workload"]["arrivals"]["request_per_s"] = load * capacity
    return plan(Scenario.parse(document))


@pytest.mark.parametrize("kind", ["chunked_prefill", "continuous"])
@pytest.mark.parametrize("load", [0.3, 0.75])
def test_simulated_means_lie_in_the_stated_bands(kind: str, load: float) -> None:
    ratios = []
    for lengths, knobs in itertools.product(LENGTHS, KNOBS):
        made = planned(kind, lengths, knobs, load=load)
        found = simulate(made).metrics
        for name, band in (("ttft_s", TTFT_BAND), ("tpot_s", TPOT_BAND)):
            ratio = found[f"serving.{name}.mean"] / found[f"serving.estimate.{name}"]
            assert 1 / band < ratio < band, (name, lengths, knobs)
            ratios.append(ratio)
    assert np.median(ratios) == pytest.approx(1.0, abs=0.1)


def test_an_empty_house_leaves_a_prompt_and_nothing_else_to_wait_for() -> None:
    made = planned("chunked_prefill", LENGTHS[3], {}, load=0.001, count=200)
    tree = made.terms["serving.estimate.ttft_s"]
    parts = {part.name: part.value for part in tree.args}
    alone_s = parts["own_prompt_s"] + parts["front_end_s"]
    assert alone_s == pytest.approx(tree.value, rel=0.03)
    assert simulate(made).metrics["serving.ttft_s.p50"] == pytest.approx(alone_s, rel=0.03)


def test_there_is_no_estimate_near_saturation_or_without_an_offered_load() -> None:
    full = planned("chunked_prefill", LENGTHS[0], {}, load=HIGHEST_LOAD + 0.05, count=200)
    assert not any("estimate" in name for name in full.terms)
    closed = Scenario.parse(
        {"name": "c", "workload": {"arrivals": {"kind": "closed_loop", "concurrency": 4}}}
    )
    assert not any("estimate" in name for name in plan(closed).terms)


def test_erlang_c_has_its_textbook_values() -> None:
    """M/M/1: the load itself; M/M/c by the sum of its definition."""
    assert erlang_c(1, 0.3) == pytest.approx(0.3)
    servers, offered = 5, 3.2
    last = offered**servers / math.factorial(servers) * servers / (servers - offered)
    rest = sum(offered**k / math.factorial(k) for k in range(servers))
    assert erlang_c(servers, offered) == pytest.approx(last / (rest + last))


def test_bursts_are_flagged_as_a_disagreement() -> None:
    bursty = planned("chunked_prefill", LENGTHS[1], KNOBS[2], load=0.6, kind="gamma", cv=8.0)
    warnings = [warning.code for warning in simulate(bursty).warnings]
    assert "serving.estimate.ttft_s" in warnings


@pytest.mark.parametrize(
    ("got", "flagged"), [(0.5, True), (0.6, False), (1.0, False), (1.7, False), (1.9, True)]
)
def test_only_what_lies_outside_the_band_is_flagged(got: float, flagged: bool) -> None:
    found: tuple[Message, ...] = disagreement({"serving.estimate.ttft_s": 1.0}, {"serving.ttft_s.mean": got})
    assert bool(found) == flagged
