"""The pipeline's schedule: every pass once, nothing before what it needs, and the closed form's length."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.training import Pass, schedule, shortened

CUTS = st.builds(
    lambda stages, pieces, groups: {
        "stages": stages,
        "pieces": pieces if stages > 1 else 1,
        "micro_batches": stages * groups,
    },
    st.integers(1, 8),
    st.integers(1, 5),
    st.integers(1, 6),
)


def passes_of(cut: dict[str, int]) -> list[Pass]:
    return schedule(**cut, forward_s=1.0, backward_s=2.0)


@settings(max_examples=40, deadline=None)
@given(cut=CUTS)
def test_it_lasts_as_long_as_the_closed_form(cut: dict[str, Any]) -> None:
    """(m + (p−1)/v) (forward + backward): the bubble over the ideal is (p−1)/(v m)."""
    end_s = max(one.end_s for one in passes_of(cut))
    assert end_s == pytest.approx(
        (cut["micro_batches"] + (cut["stages"] - 1) / cut["pieces"]) * 3.0, rel=1e-9
    )


@settings(max_examples=25, deadline=None)
@given(cut=CUTS)
def test_every_micro_batch_passes_every_piece_once_each_way(cut: dict[str, Any]) -> None:
    seen = Counter((one.stage, one.piece, one.micro_batch, one.kind) for one in passes_of(cut))
    assert set(seen.values()) == {1}
    assert len(seen) == 2 * cut["stages"] * cut["pieces"] * cut["micro_batches"]


@settings(max_examples=25, deadline=None)
@given(cut=CUTS)
def test_a_stage_runs_one_pass_at_a_time_and_waits_for_what_it_needs(cut: dict[str, Any]) -> None:
    passes = passes_of(cut)
    ends = {(one.kind, one.piece * cut["stages"] + one.stage, one.micro_batch): one.end_s for one in passes}
    last = cut["stages"] * cut["pieces"] - 1
    for one in passes:
        place = one.piece * cut["stages"] + one.stage
        if one.kind == "forward" and place:
            assert one.start_s >= ends["forward", place - 1, one.micro_batch] - 1e-9
        if one.kind == "backward":
            needed = ("forward", last) if place == last else ("backward", place + 1)
            assert one.start_s >= ends[*needed, one.micro_batch] - 1e-9
    for stage in range(cut["stages"]):
        own = sorted((one for one in passes if one.stage == stage), key=lambda one: one.start_s)
        assert all(a.end_s <= b.start_s + 1e-9 for a, b in itertools.pairwise(own))


def test_the_first_stage_holds_as_many_micro_batches_as_the_pipeline_is_deep() -> None:
    """What `in_flight_term` charges: p with 1F1B."""
    own = [one for one in passes_of({"stages": 4, "pieces": 1, "micro_batches": 16}) if one.stage == 0]
    held, most = 0, 0
    for one in sorted(own, key=lambda one: one.start_s):
        held += 1 if one.kind == "forward" else -1
        most = max(most, held)
    assert most == 4


def test_a_last_group_that_is_not_full_ends_later() -> None:
    full, padded = (
        max(one.end_s for one in passes_of({"stages": 4, "pieces": 3, "micro_batches": count}))
        for count in (12, 10)
    )
    assert padded == pytest.approx(full)


@pytest.mark.parametrize(
    "cut",
    [{"stages": 8, "pieces": 8, "micro_batches": 1024}, {"stages": 64, "pieces": 1, "micro_batches": 512}],
)
def test_a_long_schedule_is_drawn_short_and_still_fills(cut: dict[str, int]) -> None:
    drawn = shortened(**cut, most_passes=2000)
    assert cut["stages"] <= drawn < cut["micro_batches"]
    assert drawn % cut["stages"] == 0


def test_a_short_one_is_drawn_whole() -> None:
    assert shortened(stages=4, pieces=5, micro_batches=64, most_passes=3000) == 64
