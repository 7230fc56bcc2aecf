"""The four taxes: worked out by hand, never below zero, and traced to what the owner typed."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.analysis.taxes import TAXES, taxed, taxes_of
from simcore.errors import InputError
from simcore.plan import plan
from simcore.scenario import Scenario, apply_overrides
from simcore.simulate import simulate
from simcore.why import evaluate, leaves

POD = {
    "name": "64 chips, one rail",
    "hardware": {"chip": "nvidia-h100-sxm", "chip_count": 64},
    "topology": {"kind": "rail_only", "tiers": 1, "price_book": "h100-sheet-2024-08"},
    "model": {"name": "llama-3.1-8b"},
    "workload": {
        "arrivals": {"kind": "poisson", "request_per_s": 20},
        "lengths": {"kind": "constant", "input_tokens": 512, "output_tokens": 64},
        "request_count": 200,
    },
    "economics": {"depreciation_years": 4, "electricity_usd_per_kwh": 0.1, "pue": 1.25},
}
TRAINS = POD | {
    "workload": {"kind": "training"},
    "training": {
        "parallelism": {"tp": 4, "pp": 1},
        "sequence_length": 2048,
        "global_batch_tokens": 2048 * 256,
    },
}


def found(overrides=None, base=POD):
    document, _ = apply_overrides(base, overrides or {})
    planned = plan(Scenario.parse(document))
    result = simulate(planned)
    return planned, result, taxes_of(planned, result)


def test_waiting_is_the_cost_of_compute_while_it_does_not_compute() -> None:
    planned, result, taxes = found()
    busy = result.metrics["analysis.busy_fraction"]
    used = 1 - result.metrics["analysis.waiting.queue_fraction"]
    used -= result.metrics["analysis.waiting.failure_fraction"]
    # By hand: what compute costs in four years, and its watts at this use, priced for a year and with its floor.
    capex = sum(row.total("mid").value for row in planned.cost.bill if row.group == "compute")
    hosts = planned.cost.hosts_power.value
    watts = 64 * planned.chip.tdp_w * (0.15 + 0.70 * used) + hosts
    full = 64 * planned.chip.tdp_w * 0.85 + hosts
    plant = planned.cost.plant_usd_per_w.value / 15
    yearly = capex / 4 + watts * 1.25 / 1000 * 0.1 * 8760 + full * plant
    assert taxes.terms["waiting"].value == pytest.approx(yearly * (1 - busy), rel=1e-6)


def test_connection_is_the_yearly_cost_of_gear_that_carries_next_to_nothing() -> None:
    """Replicas of one chip send nothing: all 64 links are idle, so one switch and 128 modules are paid for nothing."""
    planned, result, taxes = found({"serving.parallelism.tp": 2})
    own = planned.fabric.transceiver_convention
    lines = [line for line in planned.cost.network_lines if line.convention == own]
    (rail,) = [line for line in lines if line.item == "switch"]
    modules = [line for line in lines if line.item == "module"]
    assert {row["idle_count"] for row in result.tables["idle_links"] if "rail" in row["layer"]} == {64}
    usd = rail.count * rail.unit_usd + sum(line.count * line.unit_usd for line in modules)
    watts = rail.power_w + sum(line.power_w for line in modules)
    by_hand = usd / 4 + watts * 1.25 / 1000 * 0.1 * 8760
    assert taxes.terms["connection"].value == pytest.approx(by_hand, rel=1e-6)


def test_links_that_are_used_pay_no_connection_tax() -> None:
    _, _, taxes = found(base=TRAINS)
    assert taxes.terms["connection"].value == 0
    _, _, strict = found({"economics.connection_load_threshold_fraction": 1.0}, TRAINS)
    assert strict.terms["connection"].value > 0


def test_understanding_is_incidents_times_suspects_times_minutes_times_wages_and_standing_chips() -> None:
    planned, result, taxes = found(
        {"economics.minutes_per_suspect": 30, "economics.labour_usd_per_hour": 200}
    )
    incidents = 6.5 * 8 / 1000 * 365  # RSC-1: 6.5 failures in 1,000 days of a server; 8 servers
    hours = incidents * planned.metrics["reliability.expected_suspect_count"] * 0.5
    assert taxes.parts["understanding"]["labour"].value == pytest.approx(hours * 200, rel=1e-6)
    still = planned.metrics["reliability.blast_radius_chip_count"] / 64
    used = 1 - result.metrics["analysis.waiting.queue_fraction"]
    used -= result.metrics["analysis.waiting.failure_fraction"]
    chips = taxes.parts["understanding"]["chips"]
    compute = taxes.parts["waiting"]["hbm"].args[0].value
    assert chips.value == pytest.approx(hours * compute / 8760 * still, rel=1e-6)


def test_change_is_what_the_owner_declares_times_how_likely_he_holds_it() -> None:
    declared = [
        {"name": "double", "probability_fraction": 0.3, "cost_usd": 1_000_000},
        {"name": "spine", "probability_fraction": 0.1, "cost_usd": 500_000},
    ]
    _, _, taxes = found({"economics.alternatives": declared})
    assert taxes.terms["change"].value == pytest.approx(350_000)
    assert set(taxes.parts["change"]) == {"double", "spine"}


def test_no_alternative_is_no_change_tax_and_a_sentence_that_says_so() -> None:
    planned, result, taxes = found()
    assert taxes.terms["change"].value == 0
    assert "tax.no_alternatives" in {message.code for message in taxed(planned, result).messages}


def test_an_alternative_by_its_overrides_strands_what_it_has_no_use_for() -> None:
    """Half as many chips: half of chips and servers is left over, and half of that is not yet written off."""
    declared = [{"name": "half", "probability_fraction": 1.0, "overrides": {"hardware.chip_count": 32}}]
    planned, _, taxes = found({"economics.alternatives": declared})
    by_name = {leaf.name: leaf.value for leaf in leaves(taxes.terms["change"])}
    chips = next(row for row in planned.cost.bill if row.label == "chips")
    assert by_name["stranded_chips_usd"] == pytest.approx(chips.total("mid").value / 2)
    assert by_name["held_fraction"] == 0.5
    assert by_name["new_cable_count"] == 0
    assert taxes.terms["change"].value > 0.25 * chips.total("mid").value


def test_an_alternative_that_cannot_be_is_said_and_counts_as_free() -> None:
    declared = [{"name": "none", "probability_fraction": 1.0, "overrides": {"topology.radix": 127}}]
    _, _, taxes = found({"economics.alternatives": declared})
    assert taxes.terms["change"].value == 0
    assert [message.code for message in taxes.messages] == ["tax.alternative_cannot_be"]


def test_an_alternative_needs_a_cost_or_what_makes_it() -> None:
    with pytest.raises(InputError, match="needs cost_usd"):
        found({"economics.alternatives": [{"name": "x", "probability_fraction": 0.5}]})


def test_the_largest_tax_is_said_in_a_sentence() -> None:
    planned, result, taxes = found()
    assert taxes.largest == "waiting"
    assert taxed(planned, result).messages[0].text.startswith("The largest tax is waiting: $")


def test_nothing_is_taxed_where_nothing_has_a_price() -> None:
    planned, result, _ = found()
    bare = planned.cost.__class__(
        **{name: getattr(planned.cost, name) for name in planned.cost.__slots__} | {"bill": ()}
    )
    fields = {name: getattr(planned, name) for name in planned.__slots__} | {"cost": bare}
    assert taxes_of(planned.__class__(**fields), result) is None


@settings(deadline=None, max_examples=25)
@given(
    chips=st.sampled_from([1, 8, 64]),
    rate=st.sampled_from([0.5, 20.0, 500.0]),
    threshold=st.floats(0, 1),
    wage=st.floats(0, 1000),
    minutes=st.floats(0, 600),
)
def test_taxes_are_never_below_zero_and_their_parts_add_up(chips, rate, threshold, wage, minutes) -> None:
    _, _, taxes = found(
        {
            "hardware.chip_count": chips,
            "topology": {"kind": "clos"},
            "workload.arrivals.request_per_s": rate,
            "workload.request_count": 50,
            "economics.connection_load_threshold_fraction": threshold,
            "economics.labour_usd_per_hour": wage,
            "economics.minutes_per_suspect": minutes,
        }
    )
    assert {"waiting", "change"} <= set(taxes.terms) <= set(TAXES)
    for tax, term in taxes.terms.items():
        assert term.value >= 0
        assert term.value == pytest.approx(sum(part.value for part in taxes.parts[tax].values()))
        assert evaluate(term, {}) == pytest.approx(term.value)
    waiting = taxes.terms["waiting"].value
    assert waiting <= taxes.tco.value * (1 + 1e-9)
