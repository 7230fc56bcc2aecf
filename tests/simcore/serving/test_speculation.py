"""Speculative decoding: tokens per iteration, what it costs and brings, in closed form and simulated."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simcore.compute.drafting import DraftShares, draft_pass, drafted, verifying
from simcore.compute.step_table import StepTimeTable
from simcore.serving.attribution import seconds_by_resource
from simcore.serving.capacity import throughput_curve
from simcore.serving.engine import Engine
from simcore.serving.estimate import LaneLoad, latency_terms
from simcore.serving.pools import LanePool
from simcore.serving.schedulers import SchedulerParameters
from simcore.serving.speculation import mean_iterations, tokens_per_iteration
from simcore.workload.requests import Requests
from tests.simcore.serving.tables import (
    POLICIES,
    SCHEDULERS,
    affine_table,
    closed_requests,
    constant_table,
    engine,
    poisson_requests,
    speculating_table,
)

BLOCK = 16


def constant_step(draft_tokens: int, acceptance_rate: float, step_s: float = 0.01) -> StepTimeTable:
    table = constant_table(step_s, max_tokens=512, max_sequences=64 * (1 + draft_tokens))
    gained = tokens_per_iteration(acceptance_rate, draft_tokens)
    return verifying(table, draft_tokens=draft_tokens, gained_tokens=gained)


def ran(requests: Requests, table: StepTimeTable, **options: object) -> Engine:
    run = engine(requests, table, **options)  # type: ignore[arg-type]
    run.run()
    return run


@given(rate=st.floats(0, 0.999), drafts=st.integers(1, 16))
def test_the_mean_of_accepted_tokens_is_leviathans(rate: float, drafts: int) -> None:
    assert tokens_per_iteration(rate, drafts) == pytest.approx((1 - rate ** (drafts + 1)) / (1 - rate))


def test_the_token_that_the_target_samples_itself_is_counted() -> None:
    """Without it, as some pages print, five positions at 0.8 would give 2.36 tokens instead of 3.36."""
    assert tokens_per_iteration(0.8, 4) == pytest.approx(3.3616)


@given(tokens=st.integers(1, 60), gained=st.floats(1.0, 9.0))
def test_iterations_of_an_answer_are_the_mean_over_where_a_lane_stands(tokens: int, gained: float) -> None:
    standing = (np.arange(20_000) + 0.5) / 20_000
    counted = np.ceil((tokens - standing) / gained - 1e-12).mean()
    found = float(mean_iterations(np.array([float(tokens)]), gained)[0])
    assert found == pytest.approx(counted, abs=2e-3)
    assert found >= max(1.0, tokens / gained) - 1e-9


@pytest.mark.parametrize(("kind", "router"), POLICIES)
def test_drafts_that_are_never_accepted_change_nothing_but_what_they_cost(kind: str, router: object) -> None:
    requests = poisson_requests(80, rate=30.0, most_in=20)
    options = {"kind": kind, "router": router, "replica_count": 2, "max_num_batched_tokens": 512}
    plain, drafts = (ran(requests, constant_step(count, 0.0), **options) for count in (0, 3))
    np.testing.assert_allclose(plain.records().finish_s, drafts.records().finish_s, rtol=1e-12)
    assert plain.totals().iteration_count == drafts.totals().iteration_count


@pytest.mark.parametrize("kind", SCHEDULERS)
def test_drafts_that_are_always_accepted_give_all_of_them_and_one_more(kind: str) -> None:
    requests = closed_requests(30, concurrency=4, input_tokens=20, output_tokens=1 + 5 * 8)
    totals = ran(requests, speculating_table(4, 1.0), kind=kind).totals()
    assert totals.decode_sequence_sum == 30 * 8
    assert totals.drafted_token_sum == 30 * 40


@pytest.mark.parametrize(("kind", "router"), POLICIES)
def test_as_many_tokens_come_out_as_were_asked_for(kind: str, router: object) -> None:
    requests = poisson_requests(150, rate=40.0)
    run = ran(requests, speculating_table(4, 0.63), kind=kind, router=router, replica_count=2)
    totals = run.totals()
    assert totals.completed_count == 150
    assert totals.preemption_count == 0
    assert totals.drafted_token_sum == (requests.output_tokens - 1).sum()


@pytest.mark.parametrize("acceptance_rate", [0.0, 0.4, 0.8, 1.0])
def test_time_per_token_is_an_iteration_over_what_it_gives(acceptance_rate: float) -> None:
    requests = Requests(arrival_s=np.zeros(1), input_tokens=np.array([5]), output_tokens=np.array([20_001]))
    records = ran(requests, constant_step(4, acceptance_rate)).records()
    tpot_s = (records.finish_s - records.first_token_s)[0] / 20_000
    assert tpot_s == pytest.approx(0.01 / tokens_per_iteration(acceptance_rate, 4), rel=2e-4)


def test_tokens_of_one_iteration_reach_the_client_together_as_one_gap() -> None:
    """As vLLM's benchmark sees it: a streamed piece may hold several tokens, and its ITL is the time between pieces."""
    requests = closed_requests(10, concurrency=2, input_tokens=20, output_tokens=101)
    totals = ran(requests, constant_step(3, 0.5)).totals()
    assert totals.gap_count == totals.decode_sequence_sum
    assert totals.gap_sum_s / totals.gap_count == pytest.approx(0.01)


def test_a_sequence_never_needs_more_memory_than_it_was_admitted_for() -> None:
    """Alone in a pool that holds it to the block, and with an iteration that reaches beyond its end."""
    for blocks, done in ((4, 0), (5, 1)):  # 64 tokens and, of an iteration, at most 4 too many
        requests = Requests(arrival_s=np.zeros(1), input_tokens=np.array([34]), output_tokens=np.array([31]))
        totals = ran(requests, speculating_table(4, 1.0), block_count=blocks).totals()
        assert totals.completed_count == done
        assert totals.preemption_count == 0


@pytest.mark.parametrize("kind", SCHEDULERS)
@pytest.mark.parametrize(("drafts", "acceptance_rate"), [(1, 0.6), (4, 0.3), (4, 0.8), (7, 0.9)])
def test_capacity_in_closed_form_is_what_a_saturated_lane_serves(
    kind: str, drafts: int, acceptance_rate: float
) -> None:
    table = speculating_table(drafts, acceptance_rate)
    draws = np.random.default_rng(3)
    requests = Requests(
        arrival_s=np.zeros(3_000),
        input_tokens=draws.integers(20, 200, 3_000),
        output_tokens=draws.integers(2, 300, 3_000),
    )
    scheduler = SchedulerParameters(kind=kind, max_num_seqs=16, max_num_batched_tokens=512)
    curve = throughput_curve(
        table,
        scheduler=scheduler,
        block_count=4096,
        block_size_tokens=BLOCK,
        input_tokens=requests.input_tokens,
        output_tokens=requests.output_tokens,
    )
    totals = ran(requests, table, kind=kind, max_num_batched_tokens=512).totals()
    assert totals.completed_count / totals.makespan_s == pytest.approx(curve.capacity_request_per_s, rel=0.05)


@pytest.mark.parametrize("kind", ["chunked_prefill", "continuous"])
def test_latencies_in_closed_form_stand_beside_the_simulation(kind: str) -> None:
    table, draws = speculating_table(4, 0.7), np.random.default_rng(7)
    inputs, outputs = draws.integers(20, 200, 6_000), draws.integers(30, 120, 6_000)
    scheduler = SchedulerParameters(kind=kind, max_num_seqs=16, max_num_batched_tokens=256)
    curve = throughput_curve(
        table,
        scheduler=scheduler,
        block_count=4096,
        block_size_tokens=BLOCK,
        input_tokens=inputs,
        output_tokens=outputs,
    )
    rate = 0.5 * curve.capacity_request_per_s
    requests = Requests(
        arrival_s=np.cumsum(draws.exponential(1 / rate, 6_000)), input_tokens=inputs, output_tokens=outputs
    )
    lane = LaneLoad(curve=curve, request_per_s=rate, input_tokens=inputs, output_tokens=outputs)
    records = ran(requests, table, kind=kind).records()
    terms = latency_terms(lane, table, scheduler)
    tpot_s = ((records.finish_s - records.first_token_s) / (outputs - 1)).mean()
    assert terms["serving.estimate.tpot_s"].value == pytest.approx(tpot_s, rel=0.1)
    assert terms["serving.estimate.ttft_s"].value == pytest.approx(records.ttft_s.mean(), rel=0.25)


@pytest.mark.parametrize("kind", SCHEDULERS)
def test_busy_time_is_shared_out_with_the_drafts_passes_in_it(kind: str) -> None:
    shares = DraftShares(layer_ratio=0.2, head_ratio=1.0, host_ratio=0.1)
    table = drafted(speculating_table(3, 0.7), draft_pass(affine_table(max_sequences=256), shares))
    totals = ran(poisson_requests(200, rate=20.0), table, kind=kind).totals()
    seconds = seconds_by_resource(totals, table)
    whole = totals.replica_count * totals.makespan_s
    assert sum(seconds.values()) == pytest.approx(whole, rel=1e-9)
    assert min(seconds.values()) >= 0


@pytest.mark.parametrize(
    ("acceptance_rate", "drafts", "cost"), [(0.75, 7, 0.02), (0.65, 5, 0.05), (0.8, 4, 0.3)]
)
def test_where_verifying_is_free_the_speed_up_is_leviathans(
    acceptance_rate: float, drafts: int, cost: float
) -> None:
    """(1 - a^(k+1)) / ((1 - a) (k c + 1)): theorem 3.8, for an answer long enough that nothing is lost at its end."""
    requests = Requests(arrival_s=np.zeros(1), input_tokens=np.array([5]), output_tokens=np.array([20_001]))
    step = constant_table(0.01, max_tokens=512, max_sequences=1024)
    shares = DraftShares(layer_ratio=cost, head_ratio=cost, host_ratio=cost)
    table = drafted(constant_step(drafts, acceptance_rate), draft_pass(step, shares))
    plain, faster = (ran(requests, one).totals().busy_s for one in (constant_step(0, 0.0), table))
    expected = (1 - acceptance_rate ** (drafts + 1)) / ((1 - acceptance_rate) * (drafts * cost + 1))
    assert plain / faster == pytest.approx(expected, rel=1e-3)


def test_a_lane_whose_budget_cannot_verify_all_drafts_is_refused() -> None:
    with pytest.raises(ValueError, match="budget of 80 tokens"):
        LanePool(
            table=speculating_table(4, 0.7),
            scheduler=SchedulerParameters(kind="chunked_prefill", max_num_seqs=16, max_num_batched_tokens=64),
            block_count=10,
            lane_count=1,
        )


def test_the_end_of_an_answer_wastes_part_of_its_last_iteration() -> None:
    requests = closed_requests(40, concurrency=1, input_tokens=20, output_tokens=2)
    totals = ran(requests, replace(constant_step(4, 1.0), gained_tokens=5.0)).totals()
    assert totals.drafted_token_sum == 40
    assert totals.decode_sequence_sum == 40
