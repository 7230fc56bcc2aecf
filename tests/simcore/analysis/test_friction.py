"""Friction: what is added to network, software, operations and energy per dollar of added compute."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.analysis.friction import Yearly, dragged, friction_term, step_chips, yearly
from simcore.plan import plan
from simcore.scenario import Scenario
from simcore.simulate import simulate
from tests.simcore.analysis.test_taxes import POD, TRAINS


def planned(chips=64, **sections):
    return plan(Scenario.parse(POD | {"hardware": POD["hardware"] | {"chip_count": chips}} | sections))


def spent(**more: float) -> Yearly:
    base = dict.fromkeys(("compute", "network", "software", "operations", "energy"), 0.0) | more
    return Yearly(**{f"{name}_usd_per_year": value for name, value in base.items()})


def test_friction_by_hand() -> None:
    """Network 20 → 23, operations 1 → 1.2 and energy 9 → 9.8 for compute 100 → 110: 4 for 10."""
    one = spent(compute=100, network=20, operations=1, energy=9)
    two = spent(compute=110, network=23, operations=1.2, energy=9.8)
    assert friction_term(one, two, added=8).value == pytest.approx(0.4)


def test_one_more_server_on_a_switch_with_free_ports_drags_its_modules_and_watts() -> None:
    free = {"topology": {"kind": "rail_optimized", "radix": 128, "price_book": "h100-sheet-2024-08"}}
    before, after = yearly(planned(64, **free)), yearly(planned(72, **free))
    assert before is not None
    assert after is not None
    modules = (
        2 * 8 * 633.333333333 / 4
    )  # both ends of eight links, written off in four years; the switch was there
    assert after.network_usd_per_year - before.network_usd_per_year == pytest.approx(modules, rel=1e-6)
    found = dragged(planned(64, **free), None)
    assert found.metrics["analysis.friction_ratio"] == pytest.approx(
        friction_term(before, after, added=8).value
    )


def test_software_per_chip_is_part_of_the_drag() -> None:
    costs = POD["economics"] | {"software_usd_per_chip_year": 4500}
    free, paid = (dragged(planned(economics=one), None) for one in (POD["economics"], costs))
    added = paid.tables["friction"][0]
    assert added["software_usd_per_year"] == 8 * 4500
    difference = paid.metrics["analysis.friction_ratio"] - free.metrics["analysis.friction_ratio"]
    assert difference == pytest.approx(8 * 4500 / added["compute_usd_per_year"])


def test_the_step_is_a_replica_in_whole_servers_or_a_cube() -> None:
    assert step_chips(planned(64)) == 8
    assert step_chips(planned(64, serving={"parallelism": {"tp": 8, "pp": 2}})) == 16
    assert step_chips(plan(Scenario.parse(TRAINS))) == 8
    pod = {"name": "pod", "hardware": {"chip": "tpu-v4", "chip_count": 4096}, "workload": {"kind": "none"}}
    assert step_chips(plan(Scenario.parse(pod))) == 64


def test_compute_without_a_price_has_no_friction() -> None:
    pod = {"name": "pod", "hardware": {"chip": "tpu-v4", "chip_count": 4096}, "workload": {"kind": "none"}}
    assert dragged(plan(Scenario.parse(pod)), None).metrics == {}


@settings(deadline=None, max_examples=20)
@given(chips=st.sampled_from([8, 64, 128, 512, 1024]), kind=st.sampled_from(["clos", "rail_only", "hyperx"]))
def test_friction_is_above_zero(chips, kind) -> None:
    found = dragged(planned(chips, topology={"kind": kind}, workload={"kind": "none"}), None)
    for name in found.metrics:
        assert found.metrics[name] > 0


def test_the_sentence_and_the_secant_stand_beside_the_margin() -> None:
    one = planned(64)
    heard = []
    found = dragged(one, simulate(one), lambda kind, payload: heard.append(payload["code"]))
    assert heard == ["finding.friction"]
    assert "cents" in found.messages[0].text
    assert [row["to"] for row in found.tables["friction"]] == [72, 128]
    assert "analysis.friction_to_double_ratio" in found.metrics
