"""Laws of sharing: nothing above capacity, every flow has its bottleneck, closed forms on single links."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.fabric.flows import Sharing, completion, max_min_rates
from simcore.fabric.routing import Paths, Routing, link_loads, paths_of
from simcore.fabric.specs import Degraded
from simcore.fabric.traffic import joined
from tests.simcore.fabric.networks import GROUPS, all_to_all, flows, network, random_flows
from tests.simcore.fabric.test_routing import CASES, NETWORKS

NIC, PORT = 50e9, 450e9


def carried(paths: Paths, rate: np.ndarray) -> np.ndarray:
    rows = np.repeat(np.arange(len(rate)), np.diff(paths.row_start))
    return np.bincount(
        paths.resource, rate[rows] * paths.share_fraction, minlength=len(paths.capacity_bytes_per_s)
    )


@pytest.mark.parametrize(("name", "routing"), CASES)
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 1000))
def test_rates_are_max_min_fair(name: str, routing: Routing, seed: int) -> None:
    """No link above its capacity; each flow has a full link on which no other flow is faster."""
    sent = random_flows(NETWORKS[name].chip_count, 60, seed)
    paths = paths_of(NETWORKS[name], sent, routing=routing, seed=seed)
    rate = max_min_rates(paths, sent.group_of, "max_min")
    used = carried(paths, rate)
    assert (used <= paths.capacity_bytes_per_s * (1 + 1e-9)).all()
    full = used >= paths.capacity_bytes_per_s * (1 - 1e-9)
    rows = np.repeat(np.arange(len(sent)), np.diff(paths.row_start))
    fastest = np.zeros(len(used))
    np.maximum.at(fastest, paths.resource, rate[rows])
    for flow in np.flatnonzero(np.diff(paths.row_start)):
        links = paths.resource[paths.row_start[flow] : paths.row_start[flow + 1]]
        assert (full[links] & (rate[flow] >= fastest[links] * (1 - 1e-9))).any()


@pytest.mark.parametrize(("name", "routing"), CASES)
def test_no_end_comes_before_the_busiest_link_allows(name: str, routing: Routing) -> None:
    found = NETWORKS[name]
    sent = random_flows(found.chip_count, 300, 11)
    loads = link_loads(found, sent, routing=routing, seed=1).moved_bytes
    busiest_s = (loads / found.capacity_bytes_per_s).max()
    assert completion(found, sent, routing=routing, seed=1).makespan_s >= busiest_s * (1 - 1e-9)


@settings(deadline=None)
@given(sizes=st.lists(st.integers(1, 1000), min_size=1, max_size=20))
def test_on_one_bottleneck_the_last_flow_ends_when_all_bytes_are_through(sizes: list[int]) -> None:
    """Processor sharing of one NIC: flow i ends at Σ min(size, size_i) ÷ capacity."""
    sent = flows(*((0, 8 + index, size * 1e6) for index, size in enumerate(sizes)))
    found = completion(NETWORKS["two tiers"], sent, routing="ecmp")
    expected = [sum(min(size, own) for size in sizes) * 1e6 / NIC for own in sizes]
    assert found.finish_s == pytest.approx(expected)


@pytest.mark.parametrize(
    "sharing", ["max_min", "strict", {"core": 8.0, "inter_domain": 2.0, "management": 1.0}]
)
@pytest.mark.parametrize(("name", "routing"), CASES)
def test_no_end_comes_after_all_bytes_in_turn_over_the_slowest_link(
    name: str, routing: Routing, sharing: Sharing
) -> None:
    """Something always moves at the rate of a full link, whichever class waits for another."""
    found = NETWORKS[name]
    sent = random_flows(found.chip_count, 300, 13)
    ended = completion(found, sent, routing=routing, sharing=sharing)
    assert ended.makespan_s <= sent.total_bytes / found.capacity_bytes_per_s.min() * (1 + 1e-9)


def test_an_all_to_all_takes_what_the_nics_must_carry() -> None:
    found = completion(NETWORKS["two tiers"], all_to_all(128), routing="ecmp")
    assert found.makespan_s == pytest.approx(120e6 / NIC)


def test_oversubscription_slows_what_leaves_the_leaf() -> None:
    """12 chips of a leaf share 4 uplinks."""
    sent = flows(*((chip, 100 + chip, 1e9) for chip in range(12)))
    found = completion(NETWORKS["three tiers, oversubscribed"], sent, routing="ecmp")
    assert found.makespan_s == pytest.approx(12e9 / (4 * NIC))


def test_a_flow_is_never_faster_than_the_smallest_link_on_its_way() -> None:
    found = NETWORKS["two tiers"]
    inside, outside = flows((0, 1, 1e9)), flows((0, 9, 1e9))
    assert completion(found, inside, routing="ecmp").makespan_s == pytest.approx(1e9 / PORT)
    assert completion(found, outside, routing="hashed").makespan_s == pytest.approx(1e9 / NIC)


def test_strict_priority_serves_core_as_if_it_were_alone() -> None:
    found = NETWORKS["two tiers"]
    core, rest = flows((0, 8, 5e9), group=0), flows((0, 16, 5e9), group=2)
    both = type(core)(
        source=np.append(core.source, rest.source),
        target=np.append(core.target, rest.target),
        moved_bytes=np.append(core.moved_bytes, rest.moved_bytes),
        group_of=np.append(core.group_of, rest.group_of),
        groups=GROUPS,
    )
    strict = completion(found, both, routing="ecmp", sharing="strict")
    assert strict.finish_s == pytest.approx([0.1, 0.2])
    assert completion(found, both, routing="ecmp").finish_s == pytest.approx([0.2, 0.2])
    weighted = completion(found, both, routing="ecmp", sharing={"core": 3.0, "management": 1.0})
    assert weighted.finish_s == pytest.approx([5e9 / (0.75 * NIC), 0.2])
    assert strict.class_s == pytest.approx({"core": 0.1, "inter_domain": 0.0, "management": 0.2})
    assert strict.group_s == pytest.approx({"core": 0.1, "inter_domain": 0.0, "management": 0.2})


def test_a_degraded_link_makes_a_straggler_of_the_even_split() -> None:
    """ECMP does not know: each of 8 uplinks gets an eighth, and the half one ends last."""
    sent = flows(*((chip, 8 + chip, 1e9) for chip in range(8)))
    whole = completion(network("two tiers"), sent, routing="ecmp").makespan_s
    half = completion(
        network("two tiers", Degraded(link="leaf 0 → spine 3", capacity_fraction=0.5)), sent, routing="ecmp"
    )
    assert half.makespan_s == pytest.approx(2 * whole)


def test_lost_flows_never_end_and_the_others_do() -> None:
    found = network("two tiers", Degraded(switch="leaf 1"))
    ended = completion(found, flows((0, 8, 1e9), (0, 16, 1e9)), routing="ecmp")
    assert ended.finish_s == pytest.approx([np.inf, 1e9 / NIC])
    assert (ended.unreachable_count, ended.unreachable_bytes) == (1, 1e9)
    assert ended.makespan_s == pytest.approx(1e9 / NIC)


def test_flows_to_oneself_and_of_no_bytes_end_at_once() -> None:
    ended = completion(NETWORKS["torus"], flows((3, 3, 1e9), (0, 1, 0.0)), routing="dimension_order")
    assert ended.finish_s.tolist() == [0.0, 0.0]


def test_the_same_seed_gives_the_same_ends() -> None:
    found, sent = NETWORKS["three tiers"], random_flows(128, 400, 2)
    first, again = (completion(found, sent, routing="hashed", seed=9).finish_s for _ in range(2))
    assert (first == again).all()


@pytest.mark.parametrize("count", range(3, 60, 4))
def test_a_class_that_waits_for_a_full_link_has_no_rate_at_all(count: int) -> None:
    """Not the rounding errors of those that fill it, at which it would take years."""
    sent = random_flows(128, count, count)
    waiting = flows(*((int(a), int(b), 1e9) for a, b in zip(sent.source, sent.target, strict=True) if a != b))
    paths = paths_of(NETWORKS["two tiers"], joined([sent, waiting]), routing="ecmp")
    kinds = np.repeat([0, 2], [count, len(waiting)])
    rates = max_min_rates(paths, kinds, "strict")[count:]
    assert ((rates == 0) | (rates > 1.0)).all()
