"""What a group meets on its way: layers with too few links, switches beyond the first, boxes of a torus."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simcore.fabric import Clos, Dragonfly, HyperX, OcsPod, RailOnly, RailOptimized, SlimFly, Torus
from simcore.fabric.box import all_to_all_share, box_of, torus_shape
from simcore.fabric.reach import Reach
from tests.simcore.fabric.fabrics import built


def reach(spec, chips=1024):
    return Reach(fabric=built(spec, chips))


@given(chips=st.integers(9, 1024), kind=st.sampled_from([Clos, RailOptimized, RailOnly]))
def test_a_fabric_without_oversubscription_slows_nothing(chips, kind):
    assert reach(kind(radix=64)).slowdown(chips) == pytest.approx(1)


@given(
    chips=st.integers(9, 1000),
    ratio=st.sampled_from([1.0, 2.0, 3.0, 7.0]),
    kind=st.sampled_from([Clos, RailOptimized, RailOnly]),
)
def test_a_wider_group_meets_no_less(chips, ratio, kind):
    over = reach(kind(radix=64, oversubscription_ratio=ratio))
    assert 1 <= over.slowdown(chips) <= over.slowdown(chips + 24) * (1 + 1e-9)
    assert 0 <= over.further_hops(chips) <= over.further_hops(chips + 24) + 1e-9
    assert over.slowdown(1024) <= ratio * 1.1  # ports are whole: a leaf may have a few uplinks fewer


def test_two_servers_of_one_leaf_meet_its_switch_alone():
    """Radix 64 with 32 ports down: four servers on a leaf of a Clos, 32 on the rail leaves of a pod."""
    assert reach(Clos(radix=64)).further_hops(32) == 0
    assert reach(Clos(radix=64)).further_hops(40) > 0
    assert reach(RailOptimized(radix=64)).further_hops(256) == 0
    assert reach(RailOptimized(radix=64)).further_hops(264) > 0


def test_beyond_its_leaf_a_pair_passes_two_more_switches():
    """[leaf]-[spine]-[leaf]: 1,024 chips in leaves of 32, of which 24 are in other servers."""
    assert reach(Clos(radix=64)).further_hops(1024) == pytest.approx(2 * 992 / 1016)


def test_the_share_beyond_the_leaf_over_its_uplinks_is_the_slowdown():
    """Ratio 3 on 64 ports: 48 down, 16 up, and 1,024 − 48 of 1,024 − 8 go up."""
    over = reach(Clos(radix=64, oversubscription_ratio=3.0), 960)
    assert over.slowdown(960) == pytest.approx((960 - 48) / (960 - 8) * 3)


@pytest.mark.parametrize(
    ("degraded", "slowdown"),
    [
        ([{"switch": "spine 0", "capacity_fraction": 0.5}], 992 / 1016 / (1 - 0.5 / 16)),
        ([{"switch": "spine 0"}], 992 / 1016 / (1 - 1 / 16)),
        ([{"link": "chip 5 → leaf 0", "capacity_fraction": 0.25}], 4),
        ([{"switch": "leaf 3"}], 1),  # its chips are gone, and with them what would wait
    ],
)
def test_the_weakest_place_sets_the_pace(degraded, slowdown):
    """32 leaves with 32 uplinks over 16 spines."""
    assert reach(Clos(radix=64, degraded=degraded)).slowdown(1024) == pytest.approx(
        max(1, slowdown), rel=1e-3
    )


@pytest.mark.parametrize("kind", [Dragonfly, SlimFly, HyperX])
def test_a_weaker_switch_slows_a_direct_network(kind):
    weak = reach(kind(degraded=[{"switch": "switch 0", "capacity_fraction": 0.25}]), 512)
    assert weak.slowdown(512) > 2 * reach(kind(), 512).slowdown(512)


@given(ranks=st.sampled_from([1, 2, 4, 8, 16, 64, 256, 512]))
def test_a_box_holds_its_ranks_and_uses_at_most_all_links(ranks):
    box = box_of(ranks, (8, 8, 8))
    assert math.prod(box.sizes) == ranks
    assert 0 <= box.ring_share <= 1
    if ranks > 1:
        assert 0 < box.all_to_all_share <= 1


def test_a_whole_torus_rings_on_all_its_links_and_a_part_on_some():
    assert box_of(4096, (16, 16, 16)).ring_share == 1
    assert box_of(4096, (16, 16, 16)).ring_steps == 45
    assert box_of(16, (16, 16, 16)).ring_share == pytest.approx(1 / 2)  # lines of 2 × 2 × 4 have open ends
    assert box_of(7, (4, 4, 4)).ring_share == pytest.approx(1 / 6)


def test_an_all_to_all_on_a_torus_is_bound_by_its_cut():
    """16³: a cut through 512 links each way; 8 ÷ 16 of a link per chip, of its six."""
    fabric = built(Torus(), 4096)
    share = all_to_all_share(4096, fabric.shape, fabric)
    assert share == pytest.approx(8 / 16 / 6, rel=1e-3)
    assert share == pytest.approx(box_of(4096, fabric.shape).all_to_all_share)


def test_a_mesh_inside_one_cube_closes_no_ring():
    torus = torus_shape(built(OcsPod(), 32))
    assert box_of(32, torus).ring_share == pytest.approx(1 / 2)


@pytest.mark.parametrize("spec", [Clos(), RailOptimized(), RailOnly()])
def test_switched_fabrics_are_no_torus(spec):
    assert torus_shape(built(spec, 256)) == ()
