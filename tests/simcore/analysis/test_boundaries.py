"""Growth is a re-plan; what breaks holds after and not before; the share that may cross is NIC over bytes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.analysis.boundaries import FACTORS, boundaries, first_break, next_chip
from simcore.analysis.crossing import SHARES, crossing
from simcore.catalog import default_catalog
from simcore.errors import InputError
from simcore.plan import plan
from simcore.scenario import Scenario, apply_overrides

CATALOG = default_catalog()
TRAINING = {
    "name": "train",
    "hardware": {"chip_count": 64},
    "workload": {"kind": "training"},
    "training": {"parallelism": {"tp": 4, "pp": 2}},
    "topology": {"kind": "clos", "radix": 16},
}
WIRING = {"name": "wires", "workload": {"kind": "none"}, "hardware": {"chip_count": 512}}
RAILS = {"kind": "rail_only", "radix": 64, "tiers": 1, "hb_domain_size": 8}


def replan(document):
    return plan(Scenario.parse(document), CATALOG)


def grown_of(document):
    return boundaries(replan(document), CATALOG, replan)


def by_factor(found):
    return {one.case.factor: one for one in found if one.case.factor}


def test_rails_of_one_tier_end_where_their_radix_does():
    """64 ports and 8 rails hold 512 chips; of twice as many, each switch joins only a half: two islands."""
    found = grown_of(WIRING | {"topology": RAILS})
    assert found[0].breaks == ()
    grown = by_factor(found)
    assert [grown[factor].breaks[0].code for factor in FACTORS] == ["boundary.islands"] * 3
    assert [grown[factor].breaks[0].params["islands"] for factor in FACTORS] == [2, 4, 8]
    assert (
        first_break(found).text
        == "growing, it first breaks at ×2: the fabric falls into 2 islands of 512 chips"
    )


def test_a_clos_gets_another_tier():
    """Two tiers of 16 ports hold 16² ÷ 2 = 128 endpoints: 128 chips fit, 256 do not."""
    grown = by_factor(grown_of(TRAINING))
    assert "boundary.tier" not in {one.code for one in grown[2].breaks}
    (tier,) = (one for one in grown[4].breaks if one.code == "boundary.tier")
    assert tier.text == "it needs 3 tiers of switches, not 2"


def test_what_cannot_be_is_an_answer_in_its_own_words():
    found = grown_of(TRAINING)
    beside = found[-1]
    assert not beside.is_possible
    assert beside.breaks[0].code == "pools.training"


def test_growth_multiplies_load_and_fixed_counts(planner):
    document = planner.document({"hardware.chip_count": 2, "serving.replica_count": 2})
    grown = by_factor(grown_of(document))
    assert grown[4].case.overrides == {
        "hardware.chip_count": 8,
        "workload.arrivals.request_per_s": 24.0,
        "serving.replica_count": 8,
    }
    assert not grown[4].breaks
    edited, _ = apply_overrides(document, grown[4].case.overrides)
    name = "serving.capacity_request_per_s"
    assert grown[4].terms[name].value == replan(edited).terms[name].value
    assert grown[4].terms["analysis.boundary.per_chip_ratio"].value == pytest.approx(1.0)


def test_another_kind_of_chip_stands_beside(planner):
    found = boundaries(planner.plan({}), CATALOG, replan, other_chip="nvidia-h200-sxm")[-1]
    (added,) = found.case.overrides["hardware.pools"]
    assert added == {"name": "added", "chip": "nvidia-h200-sxm", "chip_count": 1}
    assert found.is_possible
    assert next_chip(CATALOG, CATALOG.chip("nvidia-h100-sxm")).slug == "nvidia-h200-sxm"
    with pytest.raises(InputError):
        boundaries(planner.plan({}), CATALOG, replan, other_chip="no-such-chip")


@settings(max_examples=8, deadline=None)
@given(st.integers(1, 12), st.floats(0.5, 8.0))
def test_a_row_is_possible_or_says_why(chips, rate):
    document = {
        "name": "any",
        "hardware": {"chip_count": chips},
        "workload": {"arrivals": {"kind": "poisson", "request_per_s": rate}, "request_count": 50},
    }
    for one in grown_of(document):
        assert one.is_possible or one.breaks
        assert bool(one.terms) == one.is_possible
        assert all(message.text for message in (*one.breaks, *one.notes))


def test_nics_are_full_where_the_bytes_of_a_chip_are_those_of_its_nic():
    """By hand: load at a share is share · bytes per second ÷ 50 GB/s of a non-blocking fabric, full at its inverse."""
    found = crossing(replan(TRAINING))
    assert found is not None
    each = 50e9 / found.full.value
    for row in found.rows:
        assert row["nic_load_fraction"] == pytest.approx(row["share_fraction"] * each / 50e9)
        assert row["load_fraction"] == max(row["nic_load_fraction"], row["scaleup_load_fraction"])
    assert [row["share_fraction"] for row in found.rows] == list(SHARES)
    assert 0 < found.now.value < 1


def test_a_tapered_fabric_is_full_in_proportion():
    tapered = apply_overrides(TRAINING, {"hardware.chip_count": 128, "topology.oversubscription_ratio": 3.0})[
        0
    ]
    wide = apply_overrides(TRAINING, {"hardware.chip_count": 128})[0]
    full = [crossing(replan(one)).full.value for one in (wide, tapered)]
    assert full[1] < full[0]


def test_one_domain_has_nothing_to_cross(planner):
    assert crossing(planner.plan({"hardware.chip_count": 2, "serving.parallelism.tp": 2})) is None
    assert crossing(planner.plan({})) is None
