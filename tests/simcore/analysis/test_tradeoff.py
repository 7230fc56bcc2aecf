"""The curve of tokens per chip against tokens per user."""

import numpy as np
import pytest

from simcore.analysis.tradeoff import SERIES, tradeoff
from simcore.catalog import default_catalog
from simcore.plan import plan
from simcore.scenario import Scenario
from simcore.simulate import simulate
from tests.simcore.analysis.test_layers import SERVES


def curve_of(document):
    planned = plan(Scenario.parse(document), default_catalog())
    return planned, tradeoff(planned, simulate(planned), None).series


def test_speed_and_output_multiply_to_the_sequences_that_decode():
    """By hand: per chip ÷ per user = sequences of all lanes ÷ chips · O / (O − 1), with O = 64 and a lane a chip."""
    _planned, series = curve_of(SERVES)
    columns = {name: np.array(values) for name, values in series[SERIES].items()}
    per_user, per_chip = columns["token_per_s_per_user"], columns["token_per_s_per_chip"]
    assert per_chip / per_user == pytest.approx(columns["batch_sequences"] * 64 / 63)
    assert np.all(np.diff(per_user) < 0), "more sequences together, each slower"
    assert 2 < len(per_user) <= 24


def test_the_best_of_it_is_the_capacity():
    planned, series = curve_of(SERVES)
    most = max(series[SERIES]["token_per_s_per_chip"])
    assert most == pytest.approx(planned.metrics["serving.capacity_request_per_s"] * 64 / 8, rel=0.02)


def test_answers_of_one_token_have_no_speed():
    lengths = {"kind": "constant", "input_tokens": 512, "output_tokens": 1}
    _planned, series = curve_of({**SERVES, "workload": {**SERVES["workload"], "lengths": lengths}})
    assert series == {}
