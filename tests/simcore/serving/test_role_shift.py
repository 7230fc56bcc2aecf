"""Lanes that change between prefill and decode while others are down: who, when, and that nothing is lost by it."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from simcore.serving.engine import Engine
from simcore.serving.interruptions import Outages
from simcore.serving.role_shift import Shift
from simcore.serving.routers.least_outstanding import LeastOutstanding
from simcore.serving.state import FINISHED
from tests.simcore.serving.tables import engine, poisson_requests
from tests.simcore.serving.test_astray import DECODE, LOADS, OUTAGES, PREFILL, check_conserved, down, shocked
from tests.simcore.serving.test_interruptions import same

EVEN = Shift(prefill_request_per_s=10.0, decode_request_per_s=10.0, lanes_per_unit=1)
SHORT_OF_DECODE = replace(EVEN, decode_request_per_s=5.0)
SHORT_OF_PREFILL = replace(EVEN, prefill_request_per_s=5.0)


def served(shift: Shift | None, *outages, reroutes: bool = True, rate: float = 60.0) -> Engine:
    return engine(
        poisson_requests(600, rate=rate, seed=4),
        kind="disaggregated",
        replica_count=3,
        router=LeastOutstanding(),
        outages=Outages(outages=outages, reroutes=reroutes, shift=shift),
    )


@pytest.mark.parametrize("lanes_per_unit", [1, 3])
@settings(deadline=None, max_examples=60)
@given(load=LOADS, outages=OUTAGES)
def test_nothing_is_lost_when_lanes_change_their_role(lanes_per_unit, load, outages):
    shift = replace(SHORT_OF_DECODE, lanes_per_unit=lanes_per_unit)
    check_conserved(shocked(load, replace(outages, shift=shift)), load)


@settings(deadline=None, max_examples=20)
@given(load=LOADS, outages=OUTAGES)
def test_slices_and_one_go_give_the_same_bits(load, outages):
    whole, sliced = (shocked(load, replace(outages, shift=SHORT_OF_PREFILL)) for _ in range(2))
    whole.run()
    for _ in sliced.slices(target_count=17):
        pass
    same(whole, sliced)


def used(run: Engine, begin_s: float, end_s: float) -> set[int]:
    """Lanes that ended a prompt, or were sent one, in between."""
    hops = run._handover.hops
    sent = hops.target[(hops.pulled_s > begin_s) & (hops.pulled_s < end_s)]
    ended = hops.source[(hops.prefilled_s > begin_s) & (hops.prefilled_s < end_s)]
    return set(np.concatenate([sent, ended]).tolist())


def test_a_lane_of_the_pool_that_can_spare_one_takes_the_place_until_the_repair():
    run = served(SHORT_OF_DECODE, down(4, begin_s=1.0, end_s=7.0))
    run.run()
    assert (run.records().status == FINISHED).all()
    during = used(run, 3.0, 7.0)
    assert 4 in during  # somebody else stands there
    assert set(DECODE) < during
    assert len(during & set(PREFILL)) == 2
    assert used(run, 8.0, math.inf) == {*PREFILL, *DECODE}
    assert not run._lanes.down.any()


def test_nobody_is_lent_where_the_other_pool_is_as_short_or_shorter_or_nothing_is_sent_elsewhere():
    outage = down(4, begin_s=1.0, end_s=7.0)
    for shift, reroutes in ((EVEN, True), (SHORT_OF_PREFILL, True), (SHORT_OF_DECODE, False)):
        plain, shifting = (served(one, outage, reroutes=reroutes) for one in (None, shift))
        plain.run()
        shifting.run()
        same(plain, shifting)


def test_the_last_lane_of_a_pool_is_never_lent_and_a_pool_that_is_gone_is_refilled():
    gone = served(EVEN, down(*PREFILL, begin_s=1.0, end_s=200.0))
    gone.run()
    assert gone.records().finish_s.max() < 60.0
    assert len(used(gone, 3.0, math.inf)) == 3  # one or two of each
    last = served(EVEN, down(*PREFILL, 3, 4, begin_s=1.0, end_s=50.0))
    last.run()
    assert used(last, 3.0, 50.0) <= {5}


def test_where_who_was_lent_fails_too_its_place_is_empty_again():
    first, second = down(0, begin_s=1.0, end_s=20.0), down(3, 4, 5, begin_s=5.0, end_s=20.0)
    run = served(SHORT_OF_PREFILL, first, second)
    run.run()
    assert (run.records().status == FINISHED).all()
    assert 0 in used(run, 3.0, 5.0)
    assert len(used(run, 8.0, 20.0) - {1, 2}) <= 1


def test_a_shift_serves_sooner_where_the_pool_that_lost_a_lane_is_the_short_one():
    outage = down(3, 4, begin_s=1.0, end_s=30.0)
    plain, shifting = (served(one, outage, rate=120.0) for one in (None, replace(EVEN, lanes_per_unit=1)))
    plain.run()
    shifting.run()
    assert shifting.records().e2e_s.mean() < plain.records().e2e_s.mean()
