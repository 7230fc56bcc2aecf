"""What holds for every registered topology, whatever its parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from simcore.errors import TrimtabError
from simcore.fabric import AnyTopology, Clos, Fabric, RailOnly, RailOptimized, SwitchedSpec
from simcore.why import evaluate
from tests.simcore.fabric.fabrics import built

KINDS: tuple[type[AnyTopology], ...] = get_args(AnyTopology)
SWITCHED = [kind for kind in KINDS if issubclass(kind, SwitchedSpec)]
COUNTS = st.integers(1, 40_000)
RADICES = st.integers(2, 64).map(lambda half: 2 * half)
UNHURRIED = settings(deadline=None)
RATIOS = st.sampled_from([1.0, 1.5, 2.0, 3.0])
DOMAINS = st.sampled_from(["auto", 1, 4, 8, 16, 72, 256])


@st.composite
def switched(draw: st.DrawFn) -> SwitchedSpec:
    kind = draw(st.sampled_from(SWITCHED))
    return kind(radix=draw(RADICES), oversubscription_ratio=draw(RATIOS), hb_domain_size=draw(DOMAINS))


def tried(spec: Any, count: int) -> Fabric:
    try:
        return built(spec, count)
    except TrimtabError:
        assume(False)
        raise


@UNHURRIED
@given(spec=switched(), count=COUNTS)
def test_ports_are_never_overspent_and_uplinks_are_the_next_tiers_downlinks(
    spec: SwitchedSpec, count: int
) -> None:
    fabric = tried(spec, count)
    for tier in fabric.tiers:
        assert tier.spare_port_count >= 0
        assert min(tier.switch_count, tier.down_port_count) > 0
    for lower, upper in zip(fabric.tiers, fabric.tiers[1:], strict=False):
        assert lower.up_port_count == upper.down_port_count
    if fabric.tiers:
        assert fabric.tiers[0].down_port_count == fabric.endpoint_count
        assert fabric.tiers[-1].up_port_count == 0


@UNHURRIED
@given(spec=switched(), count=COUNTS)
def test_uplinks_keep_the_oversubscription_promised(spec: SwitchedSpec, count: int) -> None:
    ratio = spec.oversubscription_ratio
    assert isinstance(ratio, float)
    for tier in tried(spec, count).tiers[:-1]:
        assert tier.down_port_count <= tier.up_port_count * ratio + 1e-9


@UNHURRIED
@given(kind=st.sampled_from(KINDS), count=COUNTS)
def test_islands_hold_all_chips_and_shares_of_hops_sum_to_one(kind: type[AnyTopology], count: int) -> None:
    fabric = tried(kind(), count)
    assert fabric.island_count * fabric.island_size >= count
    if count > 1:
        assert sum(fraction for _, fraction in fabric.hop_histogram) == pytest.approx(1)
        assert 1 <= fabric.mean_hops <= fabric.diameter_hops
    assert fabric.bisection_bytes_per_s >= 0


@UNHURRIED
@given(kind=st.sampled_from(KINDS), count=COUNTS)
def test_the_trees_are_the_numbers(kind: type[AnyTopology], count: int) -> None:
    fabric = tried(kind(), count)
    numbers: Mapping[str, float] = {
        "fabric.switch_count": fabric.switch_count,
        "fabric.link_count": fabric.link_count,
        "fabric.transceiver_count": fabric.transceiver_count,
        "fabric.island_count": fabric.island_count,
        "fabric.ocs_count": fabric.ocs_count,
        "fabric.bisection_bytes_per_s": fabric.bisection_bytes_per_s,
        "fabric.routing_adjacency_count": fabric.routing_adjacency_count,
    }
    for name, term in fabric.terms.items():
        assert evaluate(term, {}) == pytest.approx(term.value)
        if name in numbers:
            assert term.value == pytest.approx(numbers[name]), name


@pytest.mark.parametrize("kind", [Clos, RailOptimized, RailOnly])
@pytest.mark.parametrize("metric", ["fabric.switch_count", "fabric.link_count", "fabric.transceiver_count"])
def test_a_perturbed_leaf_moves_the_tree_as_a_new_plan_does(kind: type[Any], metric: str) -> None:
    before, after = built(kind(radix=128), 16_384), built(kind(radix=128), 32_768)
    assert len(before.tiers) == len(after.tiers)
    assert evaluate(before.terms[metric], {"chip_count": 32_768}) == after.terms[metric].value


@UNHURRIED
@given(spec=switched(), count=COUNTS, more=st.integers(1, 5_000))
def test_more_chips_never_need_fewer_switches_or_links(spec: SwitchedSpec, count: int, more: int) -> None:
    small, large = tried(spec, count), tried(spec, count + more)
    assert large.link_count >= small.link_count
    assert large.switch_count >= small.switch_count


@UNHURRIED
@given(spec=switched(), count=COUNTS)
def test_the_conventions_are_ordered(spec: SwitchedSpec, count: int) -> None:
    modules = tried(spec, count).transceivers
    assert 0 <= modules["copper_first_hop"] <= modules["both_ends"]
    assert modules["twin_port"] <= modules["both_ends"] + 1


@UNHURRIED
@given(count=COUNTS, radix=RADICES)
def test_a_larger_radix_never_needs_more_switches(count: int, radix: int) -> None:
    small, large = tried(Clos(radix=radix), count), tried(Clos(radix=2 * radix), count)
    assert large.switch_count <= small.switch_count


@UNHURRIED
@given(count=COUNTS, radix=RADICES, domain=st.sampled_from([4, 8, 16]))
def test_rails_never_need_more_link_ends_than_a_clos_of_the_same_chips(
    count: int, radix: int, domain: int
) -> None:
    clos = tried(Clos(radix=radix, hb_domain_size=domain), count)
    rails = tried(RailOnly(radix=radix, hb_domain_size=domain), count)
    assert rails.transceiver_count <= clos.transceiver_count
