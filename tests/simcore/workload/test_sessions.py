"""Sessions as they are drawn: what a turn's prompt is, and which draws depend on what."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from simcore.workload.arrivals import ClosedLoop, Poisson
from simcore.workload.classes import RequestClass
from simcore.workload.lengths import Constant, LogNormal
from simcore.workload.requests import Requests, draw_requests
from simcore.workload.sessions import Sessions

LENGTHS = LogNormal(input_mean_tokens=80, output_mean_tokens=40)
SESSIONS = st.builds(
    Sessions,
    turns_mean=st.sampled_from([1.0, 2.0, 5.0, 40.0]),
    turns_law=st.sampled_from(["geometric", "constant"]),
    think_time_mean_s=st.sampled_from([0.0, 7.0]),
    think_time_cv=st.sampled_from([0.0, 1.0, 3.0]),
    shared_system_prompt_tokens=st.sampled_from([0, 33]),
)


def drawn(
    sessions: Sessions | None, *, count: int = 300, seed: int = 3, longest: int = 100_000, **other
) -> Requests:
    given_ = {"arrivals": Poisson(request_per_s=2.0), "lengths": LENGTHS} | other
    return draw_requests(
        given_.pop("arrivals"),
        given_.pop("lengths"),
        request_count=count,
        seed=seed,
        max_model_len=longest,
        sessions=sessions,
        **given_,
    )


@settings(deadline=None)
@given(
    sessions=SESSIONS,
    count=st.integers(1, 400),
    seed=st.integers(0, 2**32),
    longest=st.sampled_from([64, 700, 100_000]),
)
def test_a_prompt_is_all_that_was_said_and_something_new(sessions, count, seed, longest):
    requests = drawn(sessions, count=count, seed=seed, longest=longest)
    turns = requests.turns
    assert len(requests) == count
    assert (requests.input_tokens + requests.output_tokens <= longest).all()
    said = requests.input_tokens + requests.output_tokens
    later = turns.following
    goes_on = later >= 0
    assert (requests.input_tokens[later[goes_on]] > said[goes_on]).all()
    assert (turns.session[later[goes_on]] == turns.session[goes_on]).all()
    assert (turns.turn[later[goes_on]] == turns.turn[goes_on] + 1).all()
    # Every turn but a first one follows exactly one.
    assert sorted(later[goes_on].tolist()) == list(range(requests.start_count, count))
    assert (np.diff(requests.arrival_s[: requests.start_count]) >= 0).all()
    assert np.isnan(requests.arrival_s[requests.start_count :]).all()
    assert (turns.session[: requests.start_count] == np.arange(requests.start_count)).all()
    assert (turns.think_s[: requests.start_count] == 0).all()
    if longest == 100_000:
        assert (requests.input_tokens > sessions.shared_system_prompt_tokens).all()


@pytest.mark.parametrize("arrivals", [Poisson(request_per_s=2.0), ClosedLoop(concurrency=7)])
def test_sessions_of_one_turn_are_the_workload_without_sessions(arrivals):
    plain, alone = drawn(None, arrivals=arrivals), drawn(Sessions(), arrivals=arrivals)
    for name in ("arrival_s", "input_tokens", "output_tokens"):
        np.testing.assert_array_equal(getattr(plain, name), getattr(alone, name))
    assert plain.concurrency == alone.concurrency


def test_more_turns_or_requests_leave_what_was_drawn_before_as_it_was():
    """Draws are keyed by session and turn: the same sessions, which only go on longer, or more of them."""
    few, longer, more = (
        drawn(Sessions(turns_mean=mean), count=count) for mean, count in ((3.0, 200), (6.0, 600), (3.0, 900))
    )
    known = by_turn(few)
    for other in (longer, more):
        found = by_turn(other)
        last = few.turns.session.max()  # was cut where the count was reached
        common = [key for key in known if key[0] < last]
        assert set(common) <= found.keys()
        assert all(found[key] == known[key] for key in common)
    assert longer.turns.turn.max() > few.turns.turn.max()


def by_turn(requests: Requests) -> dict[tuple[int, int], tuple[int, int, float]]:
    turns = requests.turns
    keys = zip(turns.session.tolist(), turns.turn.tolist(), strict=True)
    rows = zip(
        requests.input_tokens.tolist(), requests.output_tokens.tolist(), turns.think_s.tolist(), strict=True
    )
    return dict(zip(keys, rows, strict=True))


def test_turns_are_geometric_or_constant_with_their_mean():
    geometric = drawn(Sessions(turns_mean=4.0), count=60_000, longest=10**9)
    counts = np.bincount(geometric.turns.session)[:-1]
    assert counts.mean() == pytest.approx(4.0, rel=0.03)
    assert counts.var() == pytest.approx(4.0 * 3.0, rel=0.08)  # m (m - 1)
    constant = drawn(Sessions(turns_mean=4.0, turns_law="constant"), count=400)
    assert (np.bincount(constant.turns.session) == 4).all()


@pytest.mark.parametrize("variation", [0.0, 0.5, 2.0])
def test_think_times_have_their_mean_and_spread(variation):
    sessions = Sessions(turns_mean=5.0, think_time_mean_s=8.0, think_time_cv=variation)
    requests = drawn(sessions, count=60_000, longest=10**9)
    thought = requests.turns.think_s[requests.start_count :]
    assert thought.mean() == pytest.approx(8.0, rel=0.04)
    assert thought.std() / thought.mean() == pytest.approx(variation, rel=0.06)


def test_a_longer_think_time_only_scales_the_same_draws():
    one, two = (drawn(Sessions(turns_mean=4.0, think_time_mean_s=mean_s)) for mean_s in (3.0, 6.0))
    np.testing.assert_allclose(two.turns.think_s, 2.0 * one.turns.think_s, rtol=1e-12)
    np.testing.assert_array_equal(one.input_tokens, two.input_tokens)


def test_a_session_ends_before_the_turn_that_would_not_fit_and_is_counted():
    """Turns of 10 + 5 tokens: the third prompt is 40 long and its answer ends at 45; 50 hold three turns of five."""
    sessions = Sessions(turns_mean=5.0, turns_law="constant")
    requests = drawn(sessions, count=30, longest=50, lengths=Constant(input_tokens=10, output_tokens=5))
    assert (np.bincount(requests.turns.session) == 3).all()
    assert requests.turns.cut_short_count == 10
    assert requests.input_tokens[[0, 10, 20]].tolist() == [10, 25, 40]
    assert requests.clipped_count == 0
    roomy = drawn(sessions, count=30, lengths=Constant(input_tokens=10, output_tokens=5))
    assert roomy.turns.cut_short_count == 0
    assert roomy.start_count == 6


def test_a_session_that_the_count_cuts_did_not_end_early():
    sessions = Sessions(turns_mean=5.0, turns_law="constant")
    requests = drawn(sessions, count=7, lengths=Constant(input_tokens=10, output_tokens=5))
    assert np.bincount(requests.turns.session).tolist() == [5, 2]
    assert requests.turns.cut_short_count == 0


def test_all_turns_of_a_session_are_of_one_class():
    classes = (
        RequestClass(name="short", share_fraction=0.5, lengths=Constant(input_tokens=10, output_tokens=5)),
        RequestClass(name="long", share_fraction=0.5, lengths=Constant(input_tokens=100, output_tokens=50)),
    )
    requests = drawn(Sessions(turns_mean=3.0), classes=classes)
    for session in range(requests.start_count):
        mine = requests.turns.session == session
        each = (10, 5) if requests.class_of[mine][0] == 0 else (100, 50)
        assert len(set(requests.class_of[mine].tolist())) == 1
        assert (requests.output_tokens[mine] == each[1]).all()
        assert requests.input_tokens[mine].tolist() == [
            each[0] + turn * sum(each) for turn in range(int(mine.sum()))
        ]
    assert set(requests.class_of.tolist()) == {0, 1}


def test_a_constant_number_of_turns_that_is_not_whole_is_refused_with_a_next_step():
    with pytest.raises(ValidationError, match="round it, or set turns_law to geometric"):
        Sessions(turns_mean=2.5, turns_law="constant")
