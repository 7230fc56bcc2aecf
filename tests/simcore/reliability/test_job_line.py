"""One job through failures and drains, against sums made by hand and the laws that any timeline keeps."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simcore.reliability import Down, Rescue, Slow, job_line

RESCUE = Rescue(rework_s=50.0, save_s=10.0, restart_s=30.0)


def down(begin_s, end_s, *replicas, planned=False):
    return Down(begin_s=begin_s, end_s=end_s, replicas=frozenset(replicas or (0,)), is_planned=planned)


def line(*downs, slows=(), rescue=RESCUE, left=0.0, shrinks=False):
    return job_line(downs, slows, rescue, left_ratio=lambda lost: max(0.0, left), shrinks=shrinks)


def pieces(found):
    return [
        (float(begin), float(end), float(pace))
        for begin, end, pace in zip(found.edges_s[:-1], found.edges_s[1:], found.pace_ratio, strict=True)
    ]


def test_nothing_happens_without_events_and_in_no_time() -> None:
    for found in (line(), line(down(100, 100)), line(slows=[Slow(begin_s=5, end_s=5, pace_ratio=0.5)])):
        assert found.whole_again_s == 0.0
        assert float(found.useful_s(1000.0)) == 1000.0
        outcome = found.recovery(first_shock_s=100, horizon_s=1000)
        assert (outcome.dip_fraction, outcome.recovery_s, outcome.lost_fraction) == (0.0, 0.0, 0.0)


def test_a_failed_host_costs_its_repair_the_restart_and_what_is_done_again() -> None:
    found = line(down(100, 400))
    assert pieces(found) == [(0, 100, 1), (100, 430, 0), (430, 480, 0)]
    outcome = found.recovery(first_shock_s=100, horizon_s=960)
    assert outcome.dip_fraction == 1.0
    assert outcome.recovery_s == 380
    assert outcome.lost_fraction == pytest.approx(380 / 960)


def test_a_drain_saves_first_and_does_nothing_again() -> None:
    assert line(down(100, 400, planned=True)).whole_again_s == 430
    assert line(down(100, 105, planned=True)).whole_again_s == 100 + 10 + 30


def test_a_job_that_shrinks_goes_on_at_the_smaller_pace_and_grows_back_by_a_planned_stop() -> None:
    found = line(down(100, 1000), left=0.5, shrinks=True)
    # restart to 130, 50 s of work again at half the pace to 230, a save and a restart from 1,000 to 1,040
    assert pieces(found) == [
        (0, 100, 1),
        (100, 130, 0),
        (130, 230, 0),
        (230, 1000, 0.5),
        (1000, 1010, 0),
        (1010, 1040, 0),
    ]


def test_a_job_does_not_shrink_for_a_wait_that_is_shorter_than_going_back() -> None:
    assert pieces(line(down(100, 140), left=0.5, shrinks=True)) == pieces(line(down(100, 140)))
    assert pieces(line(down(100, 1000), left=0.0, shrinks=True)) == pieces(line(down(100, 1000)))


def test_a_job_waits_for_the_part_that_is_back_soon_and_goes_on_without_the_rest() -> None:
    found = job_line(
        [down(100, 110, 0), down(100, 1000, 1)],
        [],
        RESCUE,
        left_ratio=lambda lost: 1.0 - 0.4 * lost,
        shrinks=True,
    )
    assert (100.0, 140.0, 0.0) in pieces(found)
    assert max(pace for begin, _, pace in pieces(found) if 140 <= begin < 1000) == pytest.approx(0.6)


def test_a_failure_during_a_restart_makes_it_start_anew_and_loses_nothing_more() -> None:
    assert line(down(100, 200), down(220, 300)).whole_again_s == 300 + 30 + 50


def test_no_more_is_lost_than_was_done_since_the_last_restart() -> None:
    """The second failure comes 20 s after the restart: 20 of the 50 s were done again, and are lost."""
    found = line(down(100, 200), down(250, 300))
    assert found.whole_again_s == 300 + 30 + 50


def test_what_slows_at_one_time_counts_once_at_its_worst() -> None:
    slows = [Slow(begin_s=0, end_s=100, pace_ratio=0.8), Slow(begin_s=50, end_s=150, pace_ratio=0.5)]
    assert pieces(line(slows=slows)) == [(0, 50, 0.8), (50, 100, 0.5), (100, 150, 0.5)]


def test_lost_work_is_done_again_at_the_pace_that_there_is() -> None:
    slow = Slow(begin_s=0, end_s=1000, pace_ratio=0.5)
    assert (430.0, 530.0, 0.0) in pieces(line(down(100, 400), slows=[slow]))


EVENT = st.builds(
    lambda begin, length, replica, planned: down(begin, begin + length, replica, planned=planned),
    st.integers(0, 2000),
    st.integers(0, 800),
    st.integers(0, 3),
    st.booleans(),
)
SLOW = st.builds(
    lambda begin, length, pace: Slow(begin_s=begin, end_s=begin + length, pace_ratio=pace / 10),
    st.integers(0, 2000),
    st.integers(0, 800),
    st.integers(1, 10),
)


@given(st.lists(EVENT, max_size=6), st.lists(SLOW, max_size=3), st.booleans())
def test_any_timeline_ends_whole_and_never_gets_more_done_than_undisturbed(events, slows, shrinks) -> None:
    found = job_line(
        events, slows, RESCUE, left_ratio=lambda lost: max(0.0, 1.0 - 0.25 * lost), shrinks=shrinks
    )
    assert (found.pace_ratio >= 0).all()
    assert (found.pace_ratio <= 1).all()
    assert (np.diff(found.edges_s) > 0).all()
    end_s = found.whole_again_s
    done = found.useful_s(np.array([end_s, end_s + 100.0]))
    assert done[1] - done[0] == pytest.approx(100.0)
    assert done[0] <= end_s + 1e-9
    assert end_s >= max((one.end_s for one in events if one.begin_s < one.end_s), default=0.0)


@given(st.lists(EVENT, max_size=6), st.floats(0, 50), st.floats(0, 10), st.floats(0, 30))
def test_a_cheaper_stop_never_costs_more(events, rework_s, save_s, restart_s) -> None:
    cheaper = Rescue(rework_s=rework_s, save_s=save_s, restart_s=restart_s)
    assert line(*events, rescue=cheaper).useful_s(9e3) >= line(*events).useful_s(9e3) - 1e-9


@given(EVENT, st.integers(0, 10))
def test_of_one_event_being_able_to_shrink_never_costs(event, left) -> None:
    able = line(event, left=left / 10, shrinks=True).useful_s(9e3)
    assert able >= line(event, left=left / 10).useful_s(9e3) - 1e-9
