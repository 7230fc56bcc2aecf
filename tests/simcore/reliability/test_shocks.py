"""Timelines of shocks: what fails when, what a spare saves, and a load that is warped."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from simcore.errors import InputError
from simcore.reliability.shock_kinds import (
    CubeFailure,
    Drain,
    HostFailure,
    LinkFailure,
    LoadBurst,
    LongPrompts,
    ModelSwap,
    SwitchFailure,
)
from simcore.reliability.shocks import ShockSite, SwitchTier, lengthened, timeline, warped

SITE = ShockSite(
    server_count=64,
    links_per_server=8,
    link_lost_fraction=1 / 8,
    servers_per_cube=16,
    tiers={
        "leaf": SwitchTier(switch_count=8, server_count=8, lost_fraction=1.0),
        "spine": SwitchTier(switch_count=4, server_count=64, lost_fraction=0.25),
    },
)
BARE = ShockSite(
    server_count=4, links_per_server=8, link_lost_fraction=1 / 8, servers_per_cube=None, tiers={}
)
INSTANTS = arrays(np.float64, st.integers(1, 60), elements=st.floats(0, 500)).map(np.sort)
BURSTS = st.lists(
    st.builds(
        LoadBurst,
        at_s=st.floats(0, 200),
        duration_s=st.floats(0, 200),
        rate_ratio=st.sampled_from([0.1, 0.5, 1.0, 2.0, 7.0]),
    ),
    max_size=3,
)


def events(*shocks, site=SITE, spares=0, seed=1, reconfiguration_s=10.0):
    return timeline(shocks, site, seed=seed, spares=spares, reconfiguration_s=reconfiguration_s)


def test_each_kind_takes_what_stands_below_it():
    shocks = (
        HostFailure(at_s=1, count=3),
        CubeFailure(at_s=2),
        LinkFailure(at_s=3),
        SwitchFailure(at_s=4),
        SwitchFailure(at_s=5, tier="spine"),
        Drain(at_s=6),
    )
    found = events(*shocks).capacity
    assert [len(one.servers) for one in found] == [1, 1, 1, 16, 1, 8, 64, 1]
    assert [one.lost_fraction for one in found] == [1, 1, 1, 1, 1 / 8, 1, 0.25, 1]
    assert [one.drains for one in found] == [False] * 7 + [True]
    assert found[3].servers[0] % 16 == 0
    assert found[5].servers[0] % 8 == 0
    assert all(0 <= server < 64 for one in found for server in one.servers)


def test_the_same_seed_fails_the_same_servers_whatever_else_happens():
    alone = events(HostFailure(at_s=9, count=5)).capacity
    beside = events(HostFailure(at_s=9, count=5), Drain(at_s=1)).capacity
    other = events(HostFailure(at_s=9, count=5), seed=2).capacity
    assert [one.servers for one in alone] == [one.servers for one in beside[1:]]
    assert [one.servers for one in alone] != [one.servers for one in other]
    assert len({one.servers for one in alone}) == 5


def test_spares_bring_back_as_many_as_there_are_until_the_failed_ones_are_repaired():
    shocks = (
        HostFailure(at_s=0, duration_s=100, count=3),
        HostFailure(at_s=50, duration_s=100),
        HostFailure(at_s=120, duration_s=100),
    )
    assert [one.end_s for one in events(*shocks).capacity] == [100, 100, 100, 150, 220]
    assert [one.end_s for one in events(*shocks, spares=2).capacity] == [10, 10, 100, 150, 130]
    assert [one.end_s for one in events(*shocks, spares=9).capacity] == [10, 10, 10, 60, 130]
    quick = events(HostFailure(at_s=0, duration_s=3), spares=1).capacity
    assert quick[0].end_s == 3  # repaired before a spare serves


@pytest.mark.parametrize("shock", [LinkFailure(at_s=0, duration_s=50), SwitchFailure(at_s=0, duration_s=50)])
def test_links_and_switches_have_no_spares(shock):
    assert {one.end_s for one in events(shock, spares=9).capacity} == {50.0}


def test_replicas_are_swapped_some_at_a_time():
    (swap,) = events(ModelSwap(at_s=3, duration_s=40, at_once=2)).swaps
    assert (swap.begin_s, swap.each_s, swap.at_once) == (3, 40, 2)


@pytest.mark.parametrize(
    ("shock", "path"),
    [
        (HostFailure(count=5), "reliability.shocks.0.count"),
        (CubeFailure(), "reliability.shocks.0.kind"),
        (SwitchFailure(), "reliability.shocks.0.kind"),
    ],
)
def test_what_is_not_there_cannot_fail(shock, path):
    with pytest.raises(InputError) as error:
        events(shock, site=BARE)
    assert error.value.message.path == path


@given(instants=INSTANTS, bursts=BURSTS)
def test_a_warp_of_time_keeps_order_and_what_came_before(instants, bursts):
    found = warped(instants, bursts)
    assert len(found) == len(instants)
    assert (np.diff(found) >= -1e-9).all()
    begin = min((one.at_s for one in bursts if one.rate_ratio != 1), default=np.inf)
    early = instants <= begin
    np.testing.assert_array_equal(found[early], instants[early])


@given(instants=INSTANTS)
def test_a_burst_of_no_length_or_of_the_same_rate_changes_no_bit(instants):
    nothing = [LoadBurst(at_s=3, duration_s=0, rate_ratio=5), LoadBurst(at_s=1, rate_ratio=1)]
    assert warped(instants, nothing) is instants


@pytest.mark.parametrize("ratio", [0.25, 3.0])
def test_so_many_times_as_many_arrive_in_the_window(ratio):
    instants = np.arange(0.0, 1000.0, 0.1)
    found = warped(instants, [LoadBurst(at_s=100, duration_s=50, rate_ratio=ratio)])
    inside = np.count_nonzero((found > 100) & (found <= 150))
    assert inside == pytest.approx(500 * ratio, abs=1)
    gaps = np.diff(found[found > 150.5])
    np.testing.assert_allclose(gaps, 0.1, rtol=1e-6)


def test_overlapping_bursts_multiply():
    instants = np.arange(0.0, 1000.0, 0.1)
    both = [
        LoadBurst(at_s=100, duration_s=50, rate_ratio=2),
        LoadBurst(at_s=120, duration_s=10, rate_ratio=3),
    ]
    found = warped(instants, both)
    assert np.count_nonzero((found > 120) & (found <= 130)) == pytest.approx(600, abs=1)


def test_prompts_are_longer_in_their_window_alone_and_never_empty():
    arrival = np.array([5.0, 15.0, 25.0, np.nan])
    tokens = np.array([10, 10, 10, 10])
    longer = lengthened(tokens, arrival, [LongPrompts(at_s=10, duration_s=10, length_ratio=2.5)])
    assert longer.tolist() == [10, 25, 10, 10]
    shorter = lengthened(tokens, arrival, [LongPrompts(at_s=0, duration_s=100, length_ratio=0.01)])
    assert shorter.tolist() == [1, 1, 1, 10]
