"""Patterns: whichever way an all-reduce goes it moves the same bytes, and every rank its due."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simcore.fabric import patterns
from simcore.fabric.traffic import FlowGroup

GROUP = FlowGroup(name="data", traffic_class="core")
SIZES = st.tuples(st.integers(1, 3), st.integers(1, 9), st.integers(1, 8))  # groups, domains, ranks in each


def members_of(groups, domains, inside):
    return np.arange(groups * domains * inside).reshape(groups, -1)


def made(edges):
    return patterns.flows(GROUP, edges)


def in_and_out(flows, count):
    return (
        np.bincount(flows.source, flows.moved_bytes, count),
        np.bincount(flows.target, flows.moved_bytes, count),
    )


@given(SIZES)
def test_ring_tree_and_hierarchical_move_what_the_bus_factor_says(sizes):
    groups, domains, inside = sizes
    members, ranks = members_of(*sizes), domains * inside
    wanted = groups * 2 * (ranks - 1) * 7.0
    ways = (
        patterns.ring(members, 2 * (ranks - 1) / ranks * 7.0, inside=inside),
        patterns.tree(members, 7.0, inside=inside),
        patterns.hierarchical(members, 7.0, inside=inside),
    )
    for edges in ways:
        assert made(edges).total_bytes == pytest.approx(wanted)


@given(SIZES)
def test_on_a_ring_every_rank_sends_and_gets_the_same(sizes):
    members = members_of(*sizes)
    if members.shape[1] == 1:
        return
    out, into = in_and_out(made(patterns.ring(members, 12.0, inside=sizes[2])), members.size)
    assert np.allclose(out, 12.0)
    assert np.allclose(into, 12.0)


def test_a_ring_over_domains_leaves_by_every_rail_alike():
    flows = made(patterns.ring(members_of(1, 4, 8), 8.0, inside=8))
    leaving = flows.source // 8 != flows.target // 8
    assert set(flows.source[leaving] % 8) == set(range(8))
    assert (flows.source[leaving] % 8 == flows.target[leaving] % 8).all()
    assert flows.moved_bytes[leaving].tolist() == [1.0] * 32


@given(st.integers(2, 70))
def test_both_trees_reach_all_ranks_and_no_rank_has_more_than_two_children(count):
    for parent in patterns.double_tree(count):
        assert (parent < 0).sum() == 1
        reached = np.arange(count)
        for _ in range(count.bit_length() + 1):
            reached = np.where(parent[reached] >= 0, parent[reached], reached)
        assert len(set(reached)) == 1
        assert np.bincount(parent[parent >= 0]).max() <= 2


@given(st.integers(4, 70).filter(lambda count: count % 2 == 0))
def test_a_rank_with_children_in_one_tree_is_a_leaf_of_the_other(count):
    first, second = (set(parent[parent >= 0]) for parent in patterns.double_tree(count))
    assert not first & second


@given(SIZES)
def test_all_to_all_is_even(sizes):
    members = members_of(*sizes)
    flows = made(patterns.all_to_all(members, 6.0))
    ranks = members.shape[1]
    assert len(flows) == sizes[0] * ranks * (ranks - 1)
    assert len(set(zip(flows.source, flows.target, strict=True))) == len(flows)
    if ranks > 1:
        assert all(np.allclose(one, 6.0) for one in in_and_out(flows, members.size))


def test_by_domain_sends_once_to_each_domain_along_the_rail():
    flows = made(patterns.by_domain(members_of(1, 4, 8), 7.0, 3.0, inside=8))
    away = flows.source // 8 != flows.target // 8
    assert len(flows) == 32 * (7 + 3)
    assert (flows.source[away] % 8 == flows.target[away] % 8).all()
    assert flows.moved_bytes[away].sum() == pytest.approx(32 * 3.0)


def test_a_line_sends_both_ways_and_ends_are_ends():
    flows = made(patterns.line(np.array([[0, 1, 2]]), 5.0, 3.0))
    assert sorted(zip(flows.source, flows.target, flows.moved_bytes, strict=True)) == [
        (0, 1, 5.0), (1, 0, 3.0), (1, 2, 5.0), (2, 1, 3.0)
    ]  # fmt: skip


@given(st.integers(1, 90), st.integers(1, 90), st.integers(1, 8), st.integers(1, 8))
def test_a_hand_over_is_even_for_senders_and_keeps_its_bytes(senders, receivers, width, other):
    sources = np.arange(senders * width).reshape(senders, width)
    targets = 100_000 + np.arange(receivers * other).reshape(receivers, other)
    flows = made(patterns.hand_over(sources, targets, 1.0))
    out = np.bincount(flows.source // width, flows.moved_bytes, senders)
    assert flows.total_bytes == pytest.approx(1.0)
    assert np.allclose(out, 1.0 / senders)
    into = np.bincount((flows.target - 100_000) // other, flows.moved_bytes, receivers)
    assert into.max() <= 2.5 / receivers


def test_ranks_send_round_the_end():
    flows = made(patterns.shifted(np.arange(4), 3, 2.0))
    assert flows.target.tolist() == [3, 0, 1, 2]
