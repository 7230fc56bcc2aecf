"""Steps that verify drafts, and what the draft's passes add to them."""

from dataclasses import replace

import numpy as np
import pytest

from simcore.compute.drafting import DraftShares, draft_pass, drafted, verifying
from simcore.compute.step_table import StepTimeTable
from tests.simcore.serving.tables import affine_table

DRAFTS = 3
ROWS = 1 + DRAFTS


def plain(**options: int) -> StepTimeTable:
    return affine_table(max_sequences=64 * ROWS, **options)


def verified(**options: int) -> StepTimeTable:
    return verifying(plain(**options), draft_tokens=DRAFTS, gained_tokens=2.0)


def shares(layer_ratio: float, head_ratio: float, host_ratio: float) -> DraftShares:
    return DraftShares(layer_ratio=layer_ratio, head_ratio=head_ratio, host_ratio=host_ratio)


def test_the_head_of_a_sequence_has_a_row_for_each_draft_and_one_more() -> None:
    table = verified()
    np.testing.assert_array_equal(table.head_s, plain().head_s[::ROWS])
    assert len(table.head_s) == 65
    np.testing.assert_array_equal(table.linear_s, plain().linear_s)


def test_attention_reads_a_context_once_until_its_arithmetic_is_slower() -> None:
    for fraction, slower in ((0.1, 1.0), (0.25, 1.0), (0.5, 2.0)):
        of_one = replace(plain(window_tokens=50), decode_attention_compute_fraction=fraction)
        table = verifying(of_one, draft_tokens=DRAFTS, gained_tokens=2.0)
        for name in ("decode_attention_s_per_token", "decode_attention_s_per_window_token"):
            assert getattr(table, name) == slower * getattr(of_one, name)
        busy_s = table.decode_attention_compute_fraction * table.decode_attention_s_per_token
        assert busy_s == pytest.approx(ROWS * fraction * of_one.decode_attention_s_per_token)


def test_a_draft_that_costs_nothing_leaves_the_table_as_it_is() -> None:
    table = verified(window_tokens=50)
    free = drafted(table, draft_pass(plain(window_tokens=50), shares(0.0, 0.0, 0.0)))
    for name in ("linear_s", "head_s", "comm_s", "weight_bytes_per_step"):
        np.testing.assert_array_equal(getattr(free, name), getattr(table, name))
    for name in ("overhead_s", "decode_attention_s_per_token", "prefill_attention_s_per_token_context"):
        assert getattr(free, name) == getattr(table, name)
    assert free.decode_attention_compute_fraction == pytest.approx(table.decode_attention_compute_fraction)


def test_a_step_holds_one_pass_over_its_tokens_and_the_rest_over_its_sequences() -> None:
    of_draft = draft_pass(plain(), shares(0.25, 0.5, 0.125))
    table = drafted(verified(), of_draft)
    batch, tokens = 5, 5 * ROWS
    step_s = table.linear_s[tokens] + table.comm_s[tokens] + table.head_s[batch] + table.overhead_s
    one = plain()

    def layers_s(count: int) -> float:
        return float(one.linear_s[count] + one.comm_s[count])

    by_hand = layers_s(tokens) + one.head_s[tokens] + one.overhead_s
    by_hand += 0.25 * layers_s(tokens) + (DRAFTS - 1) * 0.25 * layers_s(batch)
    by_hand += DRAFTS * (0.5 * one.head_s[batch] + 0.125 * one.overhead_s)
    assert step_s == pytest.approx(by_hand, rel=1e-12)
    assert table.decode_attention_s_per_token == pytest.approx((1 + DRAFTS * 0.25) * 6.1e-8)


@pytest.mark.parametrize("window_tokens", [0, 50])
def test_parts_of_a_drafted_step_sum_to_it(window_tokens: int) -> None:
    table = drafted(verified(window_tokens=window_tokens), draft_pass(plain(), shares(0.2, 1.0, 0.0)))
    parts = table.linear_compute_s + table.linear_hbm_s + table.linear_launch_s
    np.testing.assert_allclose(parts, table.linear_s, rtol=1e-12)
    assert table.head_comm_s is not None
    assert (table.head_s >= table.head_compute_s + table.head_hbm_s + table.head_comm_s - 1e-15).all()
    assert table.linear_s[0] == table.head_s[0] == 0.0


def test_a_draft_with_another_window_is_charged_for_whole_contexts() -> None:
    windowed = affine_table(max_sequences=256, window_tokens=50)
    table = drafted(verified(), draft_pass(windowed, shares(1.0, 1.0, 0.0)))
    assert table.decode_attention_s_per_window_token == 0.0
    assert table.decode_attention_s_per_token == pytest.approx(6.1e-8 + DRAFTS * (6.1e-8 + 2.3e-8))
