"""The loss waterfall: from what is owned to what was useful, nothing left over."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.analysis.utilisation import waterfall
from simcore.plan import plan
from simcore.scenario import Scenario
from simcore.serving.records import Totals
from simcore.simulate import simulate, useful_fraction
from tests.simcore.analysis.test_taxes import TRAINS


def adds_up(rows) -> None:
    assert rows[0]["left_fraction"] == 1
    assert rows[0]["lost_fraction"] == rows[-1]["lost_fraction"] == 0
    left = 1.0
    for row in rows[1:-1]:
        left -= row["lost_fraction"]
        assert row["lost_fraction"] > 0
        assert row["left_fraction"] == pytest.approx(left)
    assert rows[-1]["left_fraction"] == pytest.approx(left, abs=1e-12)


@settings(deadline=None, max_examples=25)
@given(
    rate=st.sampled_from([0.5, 8.0, 200.0]),
    chips=st.sampled_from([1, 2, 12]),
    blocks=st.sampled_from([None, 600]),
    drafts=st.booleans(),
)
def test_losses_of_serving_add_up(rate, chips, blocks, drafts) -> None:
    serving = {"num_gpu_blocks_override": blocks} if blocks else {}
    if drafts:
        serving["speculative"] = {"kind": "ngram", "num_speculative_tokens": 3, "acceptance_rate": 0.6}
    document = {
        "name": "x",
        "hardware": {"chip_count": chips},
        "workload": {"request_count": 60, "arrivals": {"kind": "poisson", "request_per_s": rate}},
        "serving": serving,
    }
    adds_up(waterfall(simulate(plan(Scenario.parse(document)))))


def test_losses_of_training_add_up_and_recomputing_is_one_of_them() -> None:
    document = TRAINS | {"training": TRAINS["training"] | {"recompute": "full"}}
    result = simulate(plan(Scenario.parse(document)))
    rows = waterfall(result)
    adds_up(rows)
    again = next(row["lost_fraction"] for row in rows if row["step"] == "again")
    assert again == pytest.approx(
        rows[-1]["left_fraction"] / 3, rel=0.1
    )  # a third pass beside two of the model


def test_work_that_preemption_repeats_is_not_useful() -> None:
    tight = {
        "name": "x",
        "hardware": {"chip_count": 1},
        "serving": {"num_gpu_blocks_override": 600},
        "workload": {"request_count": 200, "arrivals": {"kind": "poisson", "request_per_s": 20}},
    }
    result = simulate(plan(Scenario.parse(tight)))
    useful = result.metrics["analysis.useful_work_fraction"]
    assert 0.5 < useful < 1
    whole = result.metrics["serving.mfu_fraction"] * (1 - result.metrics["analysis.waiting.failure_fraction"])
    assert result.metrics["analysis.effective_utilisation_fraction"] == pytest.approx(whole * useful)


def test_the_useful_share_by_hand() -> None:
    blank = dict.fromkeys(Totals.__slots__, 0)
    assert useful_fraction(Totals(**blank)) == 1
    passed = blank | {"prefill_token_sum": 800, "decode_sequence_sum": 200, "discarded_token_sum": 250}
    assert useful_fraction(Totals(**passed)) == 0.75


def test_nothing_is_lost_where_nothing_is_run() -> None:
    bare = {"name": "x", "hardware": {"chip_count": 64}, "workload": {"kind": "none"}}
    assert waterfall(simulate(plan(Scenario.parse(bare)))) == []
