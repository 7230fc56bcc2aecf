"""A step that verifies draft tokens, and the draft's own passes, as one step table.

With k draft tokens a decoding sequence puts 1 + k tokens into a step: linear layers and the LM head run over all of
them, attention reads a context once for all 1 + k queries, at the pace of memory until their arithmetic is slower.
The draft runs k passes beside it: the first over the tokens of the step (what was accepted, and prompts, which it
must have read as well), k - 1 over the newest token of each sequence; its head and its attention run in all of them.

    linear[t] = target[t] + draft[t]          by tokens of the step
    head[m]   = target head[(1 + k) m] + (k - 1) draft linear[m] + k draft head[m]     by sequences

Limits: a prompt that ends is charged 1 + k rows of the head, where it has one; the draft's layers with another
window than the target's are charged for whole contexts; passes carry the launches of their kernels and, where they
are a share of the target's step, the same share of the engine's work.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from simcore.compute.roofline import Floats
from simcore.compute.step_table import OF_STEP, StepTimeTable, scaled

_OF_HEAD: Final = frozenset(name for name in OF_STEP if name.startswith("head_"))
_OF_HOST: Final = frozenset({"overhead_s", "overhead_s_per_sequence"})


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftShares:
    """What one pass of the draft takes of a step of some table: of its layers, its head, its host work."""

    layer_ratio: float
    head_ratio: float
    host_ratio: float


def draft_pass(table: StepTimeTable, shares: DraftShares) -> StepTimeTable:
    """The step table of one pass of a draft that costs these shares of another table's step."""
    factors = dict.fromkeys(OF_STEP, shares.layer_ratio)
    factors |= dict.fromkeys(_OF_HEAD, shares.head_ratio) | dict.fromkeys(_OF_HOST, shares.host_ratio)
    return scaled(table, factors)


def verifying(table: StepTimeTable, *, draft_tokens: int, gained_tokens: float) -> StepTimeTable:
    """The table of steps that verify drafts; its head must reach to 1 + `draft_tokens` rows of each sequence."""
    rows = 1 + draft_tokens
    busy = rows * table.decode_attention_compute_fraction
    slower = max(1.0, busy)
    return replace(
        table,
        head_s=table.head_s[::rows],
        head_compute_s=table.head_compute_s[::rows],
        head_hbm_s=table.head_hbm_s[::rows],
        decode_attention_s_per_token=table.decode_attention_s_per_token * slower,
        decode_attention_s_per_window_token=table.decode_attention_s_per_window_token * slower,
        decode_attention_compute_fraction=busy / slower,
        verified_tokens=rows,
        gained_tokens=gained_tokens,
    )


def drafted(table: StepTimeTable, draft: StepTimeTable) -> StepTimeTable:
    """Steps that verify, with the passes of the draft that makes their tokens."""
    passes = table.verified_tokens - 1
    each = len(table.head_s)
    per_window, own = draft.decode_attention_s_per_window_token, draft.decode_attention_s_per_token
    prefill_window, prefill_own = (
        draft.prefill_attention_s_per_window_token,
        draft.prefill_attention_s_per_token_context,
    )
    if draft.window_tokens != table.window_tokens:
        own, per_window = own + per_window, 0.0
        prefill_own, prefill_window = prefill_own + prefill_window, 0.0

    def further(of_layers: Floats, of_head: Floats) -> Floats:
        return (passes - 1) * of_layers[:each] + passes * of_head[:each]

    without = np.zeros(each)
    return replace(
        table,
        linear_s=table.linear_s + draft.linear_s,
        linear_compute_s=table.linear_compute_s + draft.linear_compute_s,
        linear_hbm_s=table.linear_hbm_s + draft.linear_hbm_s,
        linear_launch_s=table.linear_launch_s + draft.linear_launch_s,
        comm_s=table.comm_s + draft.comm_s,
        scaleout_s=_of_both(table.scaleout_s, draft.scaleout_s),
        head_s=table.head_s + further(draft.linear_s + draft.comm_s, draft.head_s),
        head_compute_s=table.head_compute_s + further(draft.linear_compute_s, draft.head_compute_s),
        head_hbm_s=table.head_hbm_s + further(draft.linear_hbm_s, draft.head_hbm_s),
        head_comm_s=further(draft.comm_s, without),
        decode_attention_s_per_token=table.decode_attention_s_per_token + passes * own,
        decode_attention_s_per_window_token=table.decode_attention_s_per_window_token + passes * per_window,
        decode_attention_s_per_sequence=(
            table.decode_attention_s_per_sequence + passes * draft.decode_attention_s_per_sequence
        ),
        decode_attention_s=table.decode_attention_s + passes * draft.decode_attention_s,
        decode_attention_compute_fraction=_share_of_both(
            table.decode_attention_compute_fraction,
            table.decode_attention_s_per_token,
            draft.decode_attention_compute_fraction,
            passes * own,
        ),
        prefill_attention_s_per_token_context=table.prefill_attention_s_per_token_context + prefill_own,
        prefill_attention_s_per_window_token=table.prefill_attention_s_per_window_token + prefill_window,
        prefill_attention_s=table.prefill_attention_s + draft.prefill_attention_s,
        overhead_s=table.overhead_s + passes * draft.overhead_s,
        overhead_s_per_sequence=table.overhead_s_per_sequence + passes * draft.overhead_s_per_sequence,
        weight_bytes_per_step=table.weight_bytes_per_step + passes * draft.weight_bytes_per_step,
        kv_bytes_per_context_token=table.kv_bytes_per_context_token
        + passes * draft.kv_bytes_per_context_token,
    )


def _of_both(first: Floats | None, second: Floats | None) -> Floats | None:
    if first is None or second is None:
        return second if first is None else first
    return first + second


def _share_of_both(first: float, first_s: float, second: float, second_s: float) -> float:
    whole = first_s + second_s
    return (first * first_s + second * second_s) / whole if whole > 0 else first
