"""Tables of the cost page: sums that meet the metrics, and swings by hand."""

from typing import Any

import pytest

from simcore import Scenario, plan, simulate
from simcore.analysis.money import money
from simcore.plan import Plan
from simcore.simulate import Result
from tests.simcore.cost.test_offers import SERVES

TRAINS = {
    "name": "trains",
    "hardware": {"chip_count": 64},
    "model": {"name": "llama-3.1-8b"},
    "workload": {"kind": "training"},
}
STANDS = {"name": "stands", "hardware": {"chip_count": 1024}, "workload": {"kind": "none"}}
TPU = {"name": "pod", "hardware": {"chip": "tpu-v4", "chip_count": 4096}, "workload": {"kind": "none"}}


def found(document: dict[str, Any]) -> tuple[Plan, Result, dict[str, list[dict[str, Any]]]]:
    planned = plan(Scenario.parse(document))
    result = simulate(planned)
    return planned, result, dict(money(planned, result).tables)


@pytest.mark.parametrize("document", [SERVES, TRAINS, STANDS], ids=lambda one: one["name"])
def test_the_lines_of_a_year_add_up_to_the_tco(document: dict[str, Any]) -> None:
    _planned, result, tables = found(document)
    year = sum(row["mid_usd_per_year"] for row in tables["tco"])
    assert year == pytest.approx(result.metrics["cost.tco_usd_per_year"])


@pytest.mark.parametrize("document", [SERVES, TRAINS, STANDS], ids=lambda one: one["name"])
def test_own_and_rented_cross_at_the_break_even(document: dict[str, Any]) -> None:
    _planned, result, tables = found(document)
    met = result.metrics["cost.cloud_break_even_fraction"]
    for row in tables["break_even"]:
        assert (row["own_usd"] < row["cloud_usd"]) == (row["utilisation_fraction"] > met)


def test_swings_begin_at_the_price_of_a_token() -> None:
    """Half the price level of the compute takes half of the write-off of the compute away."""
    planned, result, tables = found(SERVES)
    rows = {row["path"]: row for row in tables["cost_swings"]}
    price = result.metrics["cost.usd_per_million_output_tokens"]
    assert all(row["base_value"] == pytest.approx(price) for row in rows.values())
    level = rows["economics.price_ratio"]
    assert planned.cost.compute_capex is not None
    written_off = planned.cost.compute_capex.value / 4 / result.metrics["cost.tco_usd_per_year"]
    assert level["at_low"] == pytest.approx(price * (1 - written_off * (1 - level["low"])))
    assert rows["utilisation_fraction"]["at_low"] > price > rows["utilisation_fraction"]["at_high"]


def test_a_partial_bill_has_no_break_even_and_its_unpriced_lines_no_sum() -> None:
    _planned, _result, tables = found(TPU)
    assert "break_even" not in tables
    assert {row["label"] for row in tables["tco"] if not row["priced"]} >= {"chips", "servers"}


def test_power_rises_from_idle_to_full_and_its_parts_add_up() -> None:
    _planned, result, tables = found(SERVES)
    idle, typical, peak = tables["energy"]
    assert idle["power_w"] < typical["power_w"] < peak["power_w"]
    assert typical["power_w"] == pytest.approx(result.metrics["cost.power_w"])
    for row in tables["energy"]:
        parts = ("chips_w", "hosts_w", "network_w", "facility_w")
        assert sum(row[part] for part in parts) == pytest.approx(row["power_w"])
