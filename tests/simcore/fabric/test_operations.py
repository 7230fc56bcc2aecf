"""Media of links and hours of people: both follow from the counts, whatever the topology."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.errors import InfeasibleError
from simcore.fabric import Clos, Dragonfly, HyperX, OcsPod, RailOnly, RailOptimized, SlimFly, Torus
from simcore.fabric.media import link_layers
from simcore.fabric.operations import EFFORTS, WORKS, operation_rows, operation_terms
from simcore.fabric.specs import TRANSCEIVER_CONVENTIONS
from simcore.why import leaves
from tests.simcore.fabric.fabrics import built

SPECS = {
    "clos": Clos(radix=16),
    "oversubscribed": Clos(radix=16, oversubscription_ratio=3.0),
    "copper": Clos(radix=16, transceiver_convention="copper_first_hop"),
    "twin": RailOptimized(radix=16, transceiver_convention="twin_port"),
    "rails": RailOnly(radix=16),
    "islands": RailOnly(radix=16, tiers=1),
    "torus": Torus(),
    "pod": OcsPod(),
    "planes": Clos(radix=16, planes=2),
    "dragonfly": Dragonfly(radix=16),
    "slim fly": SlimFly(radix=16),
    "hyperx": HyperX(radix=16),
}


@given(name=st.sampled_from(sorted(SPECS)), count=st.integers(1, 2000))
@settings(max_examples=80, deadline=None)
def test_modules_of_all_layers_are_those_that_the_convention_counts(name: str, count: int) -> None:
    try:
        fabric = built(SPECS[name], count)
    except InfeasibleError:
        return
    for convention in TRANSCEIVER_CONVENTIONS:
        layers = link_layers(fabric, convention)
        assert sum(layer.module_count for layer in layers) == fabric.transceivers[convention]
        assert sum(layer.link_count for layer in layers) == fabric.link_count


@given(name=st.sampled_from(sorted(SPECS)), count=st.integers(1, 2000))
@settings(max_examples=80, deadline=None)
def test_rows_by_tier_sum_to_the_hours_of_the_fabric(name: str, count: int) -> None:
    try:
        fabric = built(SPECS[name], count)
    except InfeasibleError:
        return
    rows, terms = operation_rows(fabric), operation_terms(fabric)
    assert len({(row["tier"], row["device"]) for row in rows}) == len(rows)
    for work in WORKS:
        assert sum(row[work] for row in rows) == pytest.approx(terms[f"fabric.{work}"].value)


def test_removing_two_tiers_removes_two_thirds_of_the_cabling_and_all_sessions() -> None:
    clos, rails = built(Clos(radix=128), 32_768), built(RailOnly(radix=128, hb_domain_size=256), 32_768)
    hours = [
        sum(row["deploy_hours"] for row in operation_rows(fabric) if row["device"] == "cable")
        for fabric in (clos, rails)
    ]
    assert hours[0] == 3 * hours[1]
    assert not [row for row in operation_rows(rails) if row["device"] == "adjacency"]


def test_every_hour_is_marked_an_assumption_that_says_what_it_covers() -> None:
    term = operation_terms(built(Clos(radix=16), 1000))["fabric.deploy_hours"]
    found = [one for one in leaves(term) if one.kind == "assumption"]
    assert {one.source for one in found} == {EFFORTS[device].source for device in EFFORTS if device != "ocs"}


def test_a_longer_way_takes_another_medium() -> None:
    fabric = built(Clos(radix=16, transceiver_convention="copper_first_hop"), 1000)
    assert [layer.medium for layer in link_layers(fabric)] == ["copper", "optical_100m", "optical_500m"]
    assert link_layers(fabric, "both_ends")[0].medium == "optical_30m"
