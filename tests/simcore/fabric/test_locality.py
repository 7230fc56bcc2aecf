"""Where traffic stays: shares that add up, blocks that hold all bytes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simcore.fabric.locality import MOST_CELLS, Placement, by_place, coarse, inside_blocks, views

EIGHT = Placement(rank_count=32, domain_size=8)


@st.composite
def traffic(draw):
    count = draw(st.integers(2, 300))
    pairs = draw(st.lists(st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)), min_size=1))
    source, target = np.array(pairs).T
    moved = np.array(draw(st.lists(st.integers(1, 1000), min_size=len(pairs), max_size=len(pairs))), float)
    domain = draw(st.sampled_from((1, 2, 8, 72)))
    return Placement(rank_count=count, domain_size=domain), source, target, moved


def test_a_pair_is_in_a_domain_on_a_rail_or_across():
    source, target = np.array([0, 0, 0, 1]), np.array([7, 8, 9, 31])
    assert EIGHT.place_of(source, target).tolist() == [0, 1, 2, 2]


def test_chips_that_share_a_nic_share_a_rail():
    shared = Placement(rank_count=32, domain_size=8, chips_per_nic=2)
    assert shared.rail_count == 4
    assert shared.rail_of(np.array([0, 1, 2, 9])).tolist() == [0, 0, 1, 0]


@given(traffic())
def test_places_and_blocks_hold_all_bytes(found):
    placement, *flows = found
    total = flows[2].sum()
    assert by_place(placement, *flows).sum() == pytest.approx(total)
    for view in ("rank", "domain", "rail"):
        cells = coarse(placement, view, *flows)
        assert cells.block_count <= MOST_CELLS
        assert cells.moved_bytes.sum() == pytest.approx(total)
        assert max(cells.row.max(), cells.column.max()) < cells.block_count


@given(traffic())
def test_larger_blocks_hold_more_and_the_largest_all(found):
    placement, *flows = found
    shares = inside_blocks(*flows, rank_count=placement.rank_count)
    assert [share for _, share in shares] == sorted(share for _, share in shares)
    assert shares[-1][0] >= placement.rank_count
    assert shares[-1][1] == pytest.approx(1.0)


def test_one_domain_has_no_view_of_domains():
    one = Placement(rank_count=8, domain_size=8)
    assert [found["view"] for found in views(one, np.array([0]), np.array([1]), np.ones(1))] == [
        "rank",
        "rail",
    ]
