"""The Fabric tab: what a saving rests on is said beside it, bills and ports add up, hours say what they assume."""

from typing import Any

import pytest

from explorer.charts import collectives, comparison_panel, fabric, network_bill, panel, strip, wiring
from simcore.plan import plan
from simcore.scenario import Scenario, apply_overrides
from simcore.scenario.stories import story
from simcore.simulate import simulate


def document(overrides: dict[str, Any] | None = None, *, of: str = "variant") -> dict[str, Any]:
    base, _ = apply_overrides(dict(getattr(story("s1-rail-only"), of)), overrides or {})
    return {**simulate(plan(Scenario.parse(base))).as_dict(), "scenario": base}


@pytest.fixture(scope="module")
def clos() -> dict[str, Any]:
    return document(of="baseline")


@pytest.fixture(scope="module")
def rails() -> dict[str, Any]:
    return document()


def test_the_saving_at_any_prices_stands_below_the_counts(
    clos: dict[str, Any], rails: dict[str, Any]
) -> None:
    assert fabric.saving(rails, clos) == pytest.approx((2 / 3, 4 / 5))
    chart = fabric.counts(rails, clos)
    assert chart is not None
    assert chart.table is not None
    assert [cell.text for cell in chart.table.total][1:3] == ["1", "0.20 to 0.33"]
    assert chart.table.total[3].delta is not None
    assert chart.table.total[3].delta.text == "66.7 to 80.0 %"


def test_what_costs_more_promises_no_saving(clos: dict[str, Any], rails: dict[str, Any]) -> None:
    assert fabric.saving(clos, rails) is None
    assert fabric.saving(clos, clos) is None


@pytest.mark.parametrize("tab", ["overview", "fabric"])
def test_what_the_saving_rests_on_is_said_on_the_tab(
    clos: dict[str, Any], rails: dict[str, Any], tab: str
) -> None:
    guard = panel(tab, rails, baseline=clos).guard
    assert guard is not None
    assert guard.holds
    assert guard.numbers == "32,768 ≤ 256 × 128 = 32,768"
    assert "32 islands of 1,024" in guard.text
    assert "768 switches and 131,072 transceivers" in guard.text


def test_it_is_said_in_the_strip_and_where_scenarios_are_compared(
    clos: dict[str, Any], rails: dict[str, Any]
) -> None:
    tiles = {tile.metric: tile for tile in strip(rails, clos).tiles}
    assert tiles["fabric.switch_count"].sub == "N ≤ K × k: 32,768 ≤ 256 × 128 = 32,768"
    compared = comparison_panel([clos["scenario"], rails["scenario"]], [clos, rails], ["a", "b"])
    assert compared.guard is not None
    assert "N ≤ K × k" in compared.headline


def test_a_fabric_without_the_condition_does_not_speak_of_it(clos: dict[str, Any]) -> None:
    assert fabric.guard(clos) is None
    assert not any(tile.sub for tile in strip(clos).tiles)
    assert wiring.domains(clos) is None


def test_the_size_of_the_domain_is_told_row_by_row(rails: dict[str, Any]) -> None:
    chart = wiring.domains(rails)
    assert chart is not None
    assert chart.table is not None
    rows = [[cell.text for cell in row] for row in chart.table.rows]
    assert rows == [
        ["8", "32 islands of 1,024", "768", "131,072"],
        ["72", "4 islands of 9,216", "864", "131,072"],
        ["256", "one island", "256", "65,536"],
    ]


def test_ports_down_up_and_spare_are_all_ports(clos: dict[str, Any]) -> None:
    chart = wiring.ports(clos)
    assert chart is not None
    assert chart.title == "Every port of every switch is used"
    odd = document({"hardware.chip_count": 30_000}, of="baseline")
    chart = wiring.ports(odd)
    assert chart is not None
    assert "stay free" in chart.title
    for row in odd["tables"]["fabric_tiers"]:
        used = row["down_port_count"] + row["up_port_count"] + row["spare_port_count"]
        assert used == row["switch_count"] * row["radix"]
        assert row["spare_port_count"] >= 0


def test_the_network_bill_has_a_bar_per_convention_and_one_total(clos: dict[str, Any]) -> None:
    chart = network_bill.bill(clos)
    assert chart is not None
    assert chart.table is not None
    assert len(chart.body) == 3
    assert chart.table.total[1].text == "153 M USD"
    assert chart.table.total[2].text.endswith("partial"), "this book has no price for copper"
    assert max(part.left + part.width for bar in chart.body for part in bar.segments) <= 100


def test_a_domain_that_nobody_sells_is_not_passed_over(rails: dict[str, Any]) -> None:
    chart = wiring.scaleup(rails)
    assert chart is not None
    assert "No machine in the catalog has a scale-up domain of 256" in chart.title
    chart = wiring.scaleup(document({"topology.hb_domain_size": 8}))
    assert chart is not None
    assert "16,384 more switch chips" in chart.title


def test_hours_are_marked_as_assumptions_and_add_up(clos: dict[str, Any]) -> None:
    chart = wiring.operations(clos)
    assert chart is not None
    assert "assumptions" in chart.axis
    assert chart.table is not None
    assert chart.table.total[2].text == "34,345"


def test_no_network_needs_no_ports_bill_or_hours() -> None:
    single = document({"hardware.chip_count": 8, "topology.hb_domain_size": 8})
    assert [wiring.ports(single), network_bill.bill(single), wiring.operations(single)] == [None, None, None]


def test_collectives_say_which_algorithm_is_taken_and_grey_the_others() -> None:
    served = {
        "name": "experts over 16 chips",
        "hardware": {"chip": "nvidia-h100-sxm", "chip_count": 16},
        "model": {"name": "mixtral-8x7b"},
        "serving": {"parallelism": {"tp": 2, "dp": 8, "ep": 8}},
    }
    chart = collectives.collectives({"tables": plan(Scenario.parse(served)).tables})
    assert chart is not None
    assert chart.table is not None
    greyed = [row[0].muted for row in chart.table.rows]
    assert not greyed[0]
    assert any(greyed)
    assert chart.title.startswith("Experts, prefill: the longest call, all-to-all of 16 ranks, takes ")
