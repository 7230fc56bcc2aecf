"""Stages are re-plans, simulated and taxed: the first is the scenario's own, failures scale one tax, growth all."""

import pytest

from simcore.analysis.stages import AGES, GROWTH, message_of, stages
from simcore.analysis.taxes import taxes_of
from simcore.catalog import default_catalog
from simcore.plan import plan
from simcore.scenario import Scenario
from simcore.simulate import simulate

CATALOG = default_catalog()
TRAINING = {
    "name": "train",
    "hardware": {"chip_count": 16},
    "workload": {"kind": "training"},
    "training": {"parallelism": {"tp": 4}},
    "topology": {"kind": "clos", "radix": 32},
}


def replan(document):
    return plan(Scenario.parse(document), CATALOG)


@pytest.fixture(scope="module")
def staged():
    return stages(replan(TRAINING), CATALOG, replan)


def test_the_first_stage_is_the_scenario_as_it_stands(staged):
    planned = replan(TRAINING)
    own = taxes_of(planned, simulate(planned))
    assert own is not None
    assert {tax: term.value for tax, term in staged[0].taxes.terms.items()} == pytest.approx(
        {tax: term.value for tax, term in own.terms.items()}
    )


def test_a_training_run_grows_and_ages_and_mixes_with_nothing(staged):
    kinds = [stage.kind for stage in staged]
    assert kinds == ["grow"] * (1 + len(GROWTH)) + ["age"] * len(AGES)


def test_searching_scales_with_failures(staged):
    """By hand: twice the incidents are twice the searches, twice the labour and twice the chips that stand still."""
    now = staged[0].taxes.terms["understanding"].value
    for stage, factor in zip(staged[-len(AGES) :], AGES, strict=True):
        assert stage.taxes.terms["understanding"].value / now == pytest.approx(factor, rel=0.1)
        assert stage.taxes.terms["connection"].value == staged[0].taxes.terms["connection"].value


def test_all_taxes_are_at_least_nothing_and_one_leads(staged):
    for stage in staged:
        assert all(term.value >= 0 for term in stage.taxes.terms.values())
    assert "the largest" in message_of(staged).text


def test_other_chips_are_mixed_into_what_serves(planner):
    found = stages(planner.plan({}), CATALOG, replan)
    mixed = [stage for stage in found if stage.kind == "mix"]
    assert [stage.name.text for stage in mixed] == ["20% NVIDIA H200 SXM", "50% NVIDIA H200 SXM"]
    assert all(stage.taxes is not None for stage in mixed)


def test_without_prices_there_are_no_stages(planner):
    unpriced = {"economics.price_book": "rail-only-2024", "topology.price_book": "rail-only-2024"}
    assert stages(planner.plan(unpriced), CATALOG, replan) == []
