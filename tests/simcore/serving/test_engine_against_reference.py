"""The engine agrees with the slow reference on every request, whatever the policy, the pool and the load."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from simcore.serving.admission import Admission
from simcore.serving.queue_order import Line
from simcore.serving.routers import Router
from simcore.serving.state import REJECTED
from simcore.workload.requests import Requests
from tests.simcore.serving.reference import Reference
from tests.simcore.serving.tables import POLICIES, engine, in_sessions, speculating_table

CASES = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 2**32 - 1),
        "count": st.integers(1, 40),
        "rate": st.sampled_from([1.0, 30.0, 300.0, 1e9]),
        "most_in": st.sampled_from([1, 20, 120, 400]),
        "most_out": st.sampled_from([1, 3, 40, 150]),
        "concurrency": st.sampled_from([0, 0, 1, 5, 40]),
        "seats": st.sampled_from([1, 2, 7, 16]),
        "budget": st.sampled_from([16, 64, 256]),
        "block_size": st.sampled_from([1, 5, 16]),
        "tightness": st.sampled_from([0.6, 1.0, 1.7, 50.0]),
        "replica_count": st.sampled_from([1, 1, 2, 3]),
        "window": st.sampled_from([0, 0, 30, 200]),
        "order": st.sampled_from(["arrival", "rank", "lowest goes", "fair"]),
        "longest_chunk": st.sampled_from([0, 0, 1, 9, 50]),
        "drafts": st.sampled_from([0, 0, 1, 4]),
        "acceptance": st.sampled_from([0.0, 0.55, 1.0]),
        "thinks_s": st.sampled_from([None, None, 0.0, 0.05, 3.0]),
        "longest_line": st.sampled_from([None, None, 0, 2, 9]),
    }
)


def drawn(case: dict) -> Requests:
    draws = np.random.default_rng(case["seed"])
    count = case["count"]
    instants = np.cumsum(draws.exponential(1 / case["rate"], count))
    requests = Requests(
        arrival_s=np.zeros(count) if case["concurrency"] else instants,
        input_tokens=draws.integers(1, case["most_in"] + 1, count),
        output_tokens=draws.integers(1, case["most_out"] + 1, count),
        concurrency=case["concurrency"],
    )
    return requests if case["thinks_s"] is None else in_sessions(requests, case["seed"], case["thinks_s"])


def lined_up(order: str, seed: int, count: int) -> Line | None:
    draws = np.random.default_rng(seed + 1)
    ranks = draws.integers(0, 9, count).astype(float)
    if order == "fair":
        return Line(ranks=ranks + 1, flows=draws.integers(0, 3, count))
    return None if order == "arrival" else Line(ranks=ranks, preempts_lowest=order == "lowest goes")


@pytest.mark.parametrize(("kind", "router"), POLICIES)
@settings(deadline=None, max_examples=60)
@given(case=CASES)
def test_every_request_fares_as_in_the_reference(kind: str, router: Router, case: dict) -> None:
    requests = drawn(case)
    largest = int((requests.input_tokens + requests.output_tokens).max())
    options = {
        "kind": kind,
        "max_num_seqs": min(case["seats"], case["budget"] // (1 + case["drafts"])),
        "max_num_batched_tokens": case["budget"],
        "block_count": max(1, int(case["tightness"] * largest / case["block_size"])),
        "block_size": case["block_size"],
        "replica_count": case["replica_count"],
        "longest_chunk": case["longest_chunk"] if kind == "chunked_prefill" else 0,
        "line": None if kind == "static_batch" else lined_up(case["order"], case["seed"], len(requests)),
    }
    table = speculating_table(
        case["drafts"], case["acceptance"], max_tokens=case["budget"], window_tokens=case["window"]
    )
    if case["drafts"]:  # drafts that reach beyond the window are read as if they did not
        table = replace(table, decode_attention_s_per_window_token=0.0)
    if not table.gained_tokens.is_integer():  # the engine's contexts grow by the mean number of tokens
        table = replace(table, decode_attention_s_per_token=0.0)
    expected = Reference(
        requests, table, router=router.kind, max_queue_length=case["longest_line"], **options
    )
    if case["concurrency"] or case["thinks_s"] is not None:
        assume(not expected.tied)  # who is asked first matters only where replicas feed each other
    admission = Admission(max_queue_length=case["longest_line"])
    run = engine(requests, table, router=router, admission=admission, **options)
    run.run()
    records, totals = run.records(), run.totals()
    np.testing.assert_array_equal(records.status == REJECTED, expected.rejected)
    np.testing.assert_array_equal(records.replica, expected.replica)
    assert totals.refused_count == expected.refused.sum()
    assert totals.unsent_count == expected.unsent.sum()
    np.testing.assert_allclose(records.arrival_s, expected.arrival, rtol=1e-9, atol=1e-9)
    for got, known in (
        (records.scheduled_s, expected.scheduled),
        (records.first_token_s, expected.first),
        (records.finish_s, expected.finish),
    ):
        np.testing.assert_allclose(got, known, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(records.preemption_count, expected.preemptions)
    assert totals.iteration_count == expected.iterations
    assert totals.busy_s == pytest.approx(expected.busy_s, rel=1e-9)
    assert totals.gap_count == len(expected.gaps)
    assert totals.gap_sum_s == pytest.approx(sum(expected.gaps), rel=1e-9)
    counted, _ = np.histogram(expected.gaps, totals.gap_edges_s)
    assert np.abs(np.cumsum(counted - totals.gap_histogram)).max() <= 0.02 * len(expected.gaps) + 2
