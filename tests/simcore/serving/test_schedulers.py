"""The policies on cases small enough to work out by hand, with a step that always takes one second."""

import numpy as np
import pytest

from simcore.errors import InputError
from simcore.serving.schedulers import SchedulerParameters
from simcore.workload.requests import Requests
from tests.simcore.serving.tables import SCHEDULERS, constant_table, engine

TABLE = constant_table(1.0, max_tokens=16, max_sequences=8)


def requests(*rows: tuple[float, int, int]) -> Requests:
    columns = np.array(rows)
    return Requests(
        arrival_s=columns[:, 0],
        input_tokens=columns[:, 1].astype(np.int64),
        output_tokens=columns[:, 2].astype(np.int64),
    )


def run(
    kind: str, *rows: tuple[float, int, int], seats: int = 4, budget: int = 8, blocks: int = 100, cap: int = 0
):
    ran = engine(
        requests(*rows),
        TABLE,
        kind=kind,
        max_num_seqs=seats,
        max_num_batched_tokens=budget,
        block_count=blocks,
        block_size=4,
        longest_chunk=cap,
    )
    ran.run()
    return ran.records(), ran.totals()


def test_chunked_prefill_cuts_a_prompt_to_what_decodes_leave_of_the_budget() -> None:
    """A decodes from t=1. B's 12 tokens take chunks of 7 and 5 beside it, so B answers at t=3."""
    records, totals = run("chunked_prefill", (0.0, 8, 6), (0.5, 12, 2))
    assert records.first_token_s.tolist() == [1.0, 3.0]
    assert records.finish_s.tolist() == [6.0, 4.0]
    assert totals.iterations_by_tokens[8] == 2  # A's prompt; A and 7 tokens of B
    assert totals.iterations_by_tokens[6] == 1  # A and 5 tokens of B


def test_a_cap_on_chunks_lets_a_short_prompt_pass_a_long_one() -> None:
    """Budget 8, cap 4: A's 12 tokens take three iterations; B's 6 end in the second, C's 2 wait for budget."""
    records, _ = run("chunked_prefill", (0.0, 12, 1), (0.0, 6, 1), (0.0, 2, 1), cap=4)
    assert records.first_token_s.tolist() == [3.0, 2.0, 2.0]
    uncapped, _ = run("chunked_prefill", (0.0, 12, 1), (0.0, 6, 1), (0.0, 2, 1))
    assert uncapped.first_token_s.tolist() == [2.0, 3.0, 3.0]


def test_continuous_batching_stalls_decodes_while_a_prompt_runs() -> None:
    """B's prompt runs alone in [1, 2), so A's second token comes at t=3 and its gap is 2 s."""
    records, totals = run("continuous", (0.0, 8, 3), (0.5, 8, 2))
    assert records.first_token_s.tolist() == [1.0, 2.0]
    assert records.finish_s.tolist() == [4.0, 3.0]
    gaps = dict(
        zip(
            totals.gap_edges_s[:-1][totals.gap_histogram > 0],
            totals.gap_histogram[totals.gap_histogram > 0],
            strict=True,
        )
    )
    assert gaps == {1.0: 2, 2.0: 1}


def test_continuous_batching_runs_a_prompt_above_the_budget_alone() -> None:
    records, totals = run("continuous", (0.0, 14, 1), (0.0, 2, 1))
    assert records.finish_s.tolist() == [1.0, 2.0]
    assert totals.prefill_iteration_count == 2


def test_a_static_batch_is_joined_by_nobody_until_its_longest_answer_has_ended() -> None:
    """A and B start at t=0. B ends at t=2, C comes at t=0.5 and must wait for A, although a seat is free."""
    records, totals = run("static_batch", (0.0, 4, 5), (0.0, 4, 2), (0.5, 4, 2))
    assert records.scheduled_s.tolist() == [0.0, 0.0, 5.0]
    assert records.finish_s.tolist() == [5.0, 2.0, 7.0]
    assert totals.busy_s == 7.0


def test_a_static_batch_is_prefilled_in_whole_prompts_within_the_budget() -> None:
    """Budget 8: A with B, then C alone; they decode together from t=2. D came too late."""
    records, totals = run("static_batch", (0.0, 4, 3), (0.0, 4, 3), (0.0, 6, 3), (0.5, 4, 1))
    assert records.first_token_s.tolist() == [1.0, 1.0, 2.0, 5.0]
    assert records.finish_s.tolist() == [4.0, 4.0, 4.0, 5.0]
    assert totals.prefill_iteration_count == 3


def test_a_full_house_waits_for_a_seat() -> None:
    records, _ = run("chunked_prefill", (0.0, 4, 5), (0.0, 4, 3), (0.0, 4, 1), seats=2)
    assert records.scheduled_s.tolist() == [0.0, 0.0, 3.0]


@pytest.mark.parametrize("kind", SCHEDULERS)
def test_the_latest_sequence_is_preempted_and_recomputes_what_it_had(kind: str) -> None:
    """Four blocks of 4 tokens. A and B hold 4 tokens each and grow; at 8 tokens each the pool is full."""
    records, totals = run(kind, (0.0, 4, 9), (0.0, 4, 9), blocks=4)
    assert records.preemption_count.tolist() == [0, 1]
    assert records.finish_s[0] == 9.0  # A never waits
    # B had its prompt and four decoded tokens computed when it was evicted at t=5.
    assert totals.discarded_token_sum == 8
    assert totals.prefill_token_sum == 4 + 4 + 9
    assert records.first_token_s[1] == 1.0


def test_requests_that_arrive_at_one_instant_share_their_first_iteration() -> None:
    records, _ = run("chunked_prefill", (2.0, 4, 1), (2.0, 4, 1))
    assert records.finish_s.tolist() == [3.0, 3.0]


def test_a_budget_below_the_seats_is_refused_with_a_next_step() -> None:
    with pytest.raises(InputError, match="raise it or lower max_num_seqs") as caught:
        SchedulerParameters(kind="chunked_prefill", max_num_seqs=16, max_num_batched_tokens=8)
    assert caught.value.message.path == "serving.scheduler.max_num_batched_tokens"
