"""Where the time of the replicas went: dot products of the engine's sums with the step table.

    busy  = iterations · (linear + comm + overhead) + sampled · head + attention · sums + moved + slowed
    total = replica_count × makespan = busy + queue

compute is `flop / (e_c · peak)`; hbm is what memory adds to it; scaleup the exposed collectives, scaleout those of
them that cross scale-up domains, with what failed links slow; overhead launches and host work per iteration; host the
wait for KV on its way from or to a tier, whichever it is; queue the time in which no iteration runs. The parts sum to
the total (a law test holds it). FLOP and bytes of the table are those of one chip of the replica.
"""

from __future__ import annotations

import numpy as np

from simcore.compute.step_table import StepTimeTable
from simcore.serving.records import Totals


def seconds_by_resource(totals: Totals, table: StepTimeTable) -> dict[str, float]:
    """Replica-seconds by resource; the sum is `replica_count × makespan_s`."""
    tokens, sampled = totals.iterations_by_tokens, totals.iterations_by_sampled
    size = len(sampled)
    head_s = float(sampled @ table.head_s[:size])
    head_compute_s = float(sampled @ table.head_compute_s[:size])
    head_hbm_s = float(sampled @ table.head_hbm_s[:size])
    decode_s = _decode_attention_s(totals, table)
    prefill_s = (
        table.prefill_attention_s_per_token_context * totals.prefill_work_sum
        + table.prefill_attention_s_per_window_token * totals.prefill_window_work_sum
    )
    decode_compute_s = table.decode_attention_compute_fraction * decode_s
    prefill_compute_s = table.prefill_attention_compute_fraction * prefill_s
    head_comm_s = 0.0 if table.head_comm_s is None else float(sampled @ table.head_comm_s[:size])
    launch_s = float(tokens @ table.linear_launch_s) + (head_s - head_compute_s - head_hbm_s - head_comm_s)
    fixed_s = (
        table.decode_attention_s * totals.decode_iteration_count
        + table.prefill_attention_s * totals.prefill_iteration_count
    )
    host_s = table.overhead_s * totals.iteration_count + table.overhead_s_per_sequence * totals.sequence_sum
    return {
        "compute": float(tokens @ table.linear_compute_s)
        + head_compute_s
        + decode_compute_s
        + prefill_compute_s,
        "hbm": (
            float(tokens @ table.linear_hbm_s)
            + head_hbm_s
            + (decode_s - decode_compute_s)
            + (prefill_s - prefill_compute_s)
        ),
        **_collectives_s(totals, table, head_comm_s),
        "host": totals.moved_s,
        "overhead": launch_s + fixed_s + host_s,
        "queue": max(0.0, totals.replica_count * totals.makespan_s - totals.busy_s),
    }


def _collectives_s(totals: Totals, table: StepTimeTable, head_comm_s: float) -> dict[str, float]:
    """Those of further passes of a draft, which the head's times hold, count as scale-up."""
    tokens = totals.iterations_by_tokens
    if table.scaleout_s is None:
        found = {"scaleup": float(tokens @ table.comm_s) + head_comm_s}
        return found | ({"scaleout": totals.slowed_s} if totals.slowed_s > 0 else {})
    return {
        "scaleup": float(tokens @ (table.comm_s - table.scaleout_s)) + head_comm_s,
        "scaleout": float(tokens @ table.scaleout_s) + totals.slowed_s,
    }


def flop_per_chip(totals: Totals, table: StepTimeTable) -> float:
    """FLOP done by one chip of each replica, summed over replicas; recomputed tokens included, and refused drafts,
    but not what the draft model itself does."""
    token_sum = totals.prefill_token_sum + table.verified_tokens * totals.decode_sequence_sum
    sampled_sum = float(totals.iterations_by_sampled @ np.arange(len(totals.iterations_by_sampled)))
    pairs = table.verified_tokens * totals.decode_context_token_sum + totals.prefill_work_sum
    window_pairs = table.verified_tokens * totals.decode_window_token_sum + totals.prefill_window_work_sum
    return (
        table.flop_per_token * token_sum
        + table.head_flop_per_sequence * table.verified_tokens * sampled_sum
        + table.flop_per_context_token * (pairs + _window_share(table) * window_pairs)
    )


def moved_bytes_per_chip(totals: Totals, table: StepTimeTable) -> float:
    """HBM bytes that must be read: the weights once per iteration and the KV cache once per decode."""
    kv_tokens = totals.decode_context_token_sum + _window_share(table) * totals.decode_window_token_sum
    return (
        float(totals.iterations_by_tokens @ table.weight_bytes_per_step)
        + table.kv_bytes_per_context_token * kv_tokens
    )


def _decode_attention_s(totals: Totals, table: StepTimeTable) -> float:
    return (
        table.decode_attention_s_per_token * totals.decode_context_token_sum
        + table.decode_attention_s_per_window_token * totals.decode_window_token_sum
        + table.decode_attention_s_per_sequence * totals.decode_sequence_sum
    )


def _window_share(table: StepTimeTable) -> float:
    """Window layers per full layer, from their times per token (one kernel, one head layout)."""
    full_s = table.decode_attention_s_per_token
    return table.decode_attention_s_per_window_token / full_s if full_s > 0 else 0.0
