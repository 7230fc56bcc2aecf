"""The serving engine: requests, a step table and a scheduler in; slices, records and totals out.

`Engine` lays out the records of `state.py`, calls the compiled kernel a slice at a time, and reads the
outcome. It draws nothing but the picks of a router, and knows no scenario. The same inputs give the same
records bit for bit, in one go or in slices, in every process.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from simcore.compute.step_table import StepTimeTable
from simcore.memory.allocators import Reservation
from simcore.memory.buddy import levels_for, trees
from simcore.serving import state
from simcore.serving.admission import Admission
from simcore.serving.capacity import capacity_request_per_s
from simcore.serving.kernel import advance
from simcore.serving.layout import bound_lines, put_behind, setup_of
from simcore.serving.prefix import PrefixChains, laid_out
from simcore.serving.records import Floats, Integers, Records, Slice, Totals
from simcore.serving.routers import Router, lanes_used, routing_state, set_up
from simcore.serving.schedulers import SchedulerParameters
from simcore.serving.seating import empty_lanes, widened
from simcore.serving.tiers import KvTiers, tier_use
from simcore.workload.requests import Requests

SAMPLES_PER_RUN = 600
_HORIZON_REQUESTS = 4096


class Engine:
    """One run. `slices()` drives it; `records()` and `totals()` read it, at any time."""

    def __init__(
        self,
        table: StepTimeTable,
        *,
        scheduler: SchedulerParameters,
        block_count: int,
        block_size_tokens: int,
        replica_count: int,
        router: Router,
        requests: Requests,
        reservation: Reservation | None = None,
        chains: PrefixChains | None = None,
        admission: Admission | None = None,
        lanes_per_replica: int = 1,
        seed: int = 1,
        ranks: Floats | None = None,
        tiers: KvTiers | None = None,
    ) -> None:
        """Without a reservation, blocks are taken as sequences grow; with chains, prompts share their prefixes.

        `replica_count` counts lanes, of which a replica has one for each batch in flight; admission bounds the line
        of a replica; with ranks, one per request, lines are in their order, the lowest first. Tiers are a lane's own;
        they take nothing where sequences are not preempted and prefixes not kept. Raises InputError where the router
        cannot look after so many.
        """
        if ranks is not None and scheduler.kind == "static_batch":
            raise ValueError("static batches are formed first come first served")
        if chains is not None and reservation is not None:
            raise ValueError("prefixes are shared between pages, so there is no reservation beside chains")
        if block_count < 1:
            raise ValueError(f"a replica needs at least one KV block, got {block_count}")
        if len(table.head_s) <= scheduler.max_num_seqs:
            seated = len(table.head_s) - 1
            raise ValueError(f"the step table ends at {seated} sequences, fewer than the scheduler seats")
        self._requests = requests
        self._block_size = block_size_tokens
        self._replica_count = replica_count
        used = lanes_used(router, len(requests), replica_count)
        self._reservation = reservation
        self._setup = setup_of(table, scheduler, block_count, block_size_tokens, used, reservation)
        set_up(self._setup[0], router, replica_count)
        bound_lines(self._setup[0], admission, lanes_per_replica)
        self._tree = trees(used, block_count) if self._setup[0].levels >= 0 else np.zeros(2, np.int32)
        most = scheduler.max_num_seqs
        if chains is None:  # who shares blocks may hold none of his own
            most = min(most, block_count)
        self._setup[0].most_seats = most
        share = max(1, -(-len(requests) // used))
        self._lanes, self._seats, self._room = empty_lanes(
            min(most, share), block_count=block_count, block_size_tokens=block_size_tokens, lane_count=used
        )
        self._order = np.zeros(used, np.int64)
        self._phases = np.zeros(used * block_size_tokens, np.int64)
        self._totals = state.records(state.TOTALS, 1)
        self._prefix = laid_out(chains, used, len(requests), tiers)
        self._routing = routing_state(
            router,
            request_count=len(requests),
            lane_count=used,
            entry_count=len(self._prefix.blocks),
            seed=seed,
        )
        self._setup[0].caching = int(chains is not None)
        self._lanes["cell_base"] = np.arange(used) * len(self._prefix.blocks)
        self._tier_names = put_behind(self._setup[0], self._lanes, tiers, table)
        self._arrival = np.array(requests.arrival_s, np.float64)
        self._inputs = np.require(requests.input_tokens, np.int64, ["C", "W"])
        self._outputs = np.require(requests.output_tokens, np.int64, ["C", "W"])
        self._rows = state.records(state.ROW, len(requests))
        self._rows["replica"] = -1
        for name in ("first_token_s", "finish_s", "scheduled_s"):
            self._rows[name] = math.nan
        if ranks is not None:
            self._setup[0].ranked = 1
            self._rows["rank"] = ranks
        if reservation is not None:
            self._lanes["tree_base"] = np.arange(used) * (2 << levels_for(block_count))
            self._rows["reserved"] = np.minimum(reservation.blocks, block_count + 1)
        self._token_s = np.ascontiguousarray(table.linear_s + table.comm_s + table.overhead_s)
        self._sampled_s = np.ascontiguousarray(table.head_s[: scheduler.max_num_seqs + 1])
        self._token_iterations = np.zeros(len(self._token_s))
        self._sampled_iterations = np.zeros(len(self._sampled_s))
        self._gaps = np.zeros(state.GAP_BINS, np.int64)
        self._samples = state.records(state.SAMPLE, state.SAMPLE_ROWS)
        self._clock = self._new_clock(self._horizon_s(table, scheduler, block_count))

    def _horizon_s(self, table: StepTimeTable, scheduler: SchedulerParameters, block_count: int) -> float:
        """A guess of the simulated time that the run will take, for the spacing of samples only."""
        if len(self._requests) == 0:
            return 1.0
        some = slice(None, None, -(-len(self._requests) // _HORIZON_REQUESTS))
        capacity = capacity_request_per_s(
            table,
            scheduler=scheduler,
            block_count=block_count,
            block_size_tokens=self._block_size,
            input_tokens=self._inputs[some],
            output_tokens=self._outputs[some],
            reserved_blocks=None if self._reservation is None else self._reservation.blocks[some],
        )
        served_s = len(self._requests) / (capacity * self._replica_count) if capacity > 0 else 1.0
        return max(float(self._arrival.max()), served_s, 1e-6)

    def _new_clock(self, horizon_s: float) -> Any:
        clock = state.records(state.CLOCK, 1)
        head = clock[0]
        head.count = len(self._requests)
        head.last_lane = -1
        head.closed_loop = int(self._requests.concurrency > 0)
        head.released = min(self._requests.concurrency, head.count) if head.closed_loop else head.count
        head.sample_interval_s = horizon_s / SAMPLES_PER_RUN
        head.samples_until_wider = 2 * SAMPLES_PER_RUN
        return clock

    @property
    def done_count(self) -> int:
        """Requests that are finished or rejected."""
        return int(self._clock[0].completed + self._clock[0].rejected)

    @property
    def hit_tokens(self) -> Integers:
        """Prompt tokens that were resident when each request was first admitted; empty without chains."""
        found: Integers = self._prefix.hit_tokens
        return found

    def slices(self, *, target_count: int = 40) -> Iterator[Slice]:
        """Run to the end, handing out about `target_count` slices as simulated time goes on."""
        count = len(self._requests)
        share = max(1, -(-count // max(1, target_count)))
        while self.done_count < count:
            self._clock[0].until = min(count, self.done_count + share)
            parts = [self._advance()]
            while self.done_count < self._clock[0].until:
                parts.append(self._advance())
            columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
            yield Slice(
                columns=columns,
                completed_count=int(self._clock[0].completed),
                progress_fraction=self.done_count / count,
            )

    def run(self) -> None:
        """Run to the end in one go, keeping no series."""
        for _ in self.slices(target_count=1):
            pass

    def _advance(self) -> dict[str, Floats]:
        outcome = self._on()
        while outcome == state.MORE_SEATS:
            self._seats, self._room = widened(
                self._lanes,
                self._seats,
                self._room,
                int(self._clock[0].growing),
                most=int(self._setup[0].most_seats),
            )
            outcome = self._on()
        if outcome == state.STUCK or (outcome == state.DONE and self.done_count < len(self._requests)):
            clock = self._clock[0]
            raise RuntimeError(
                f"the serving engine makes no progress at {clock.now_s} s with {self.done_count} of "
                f"{len(self._requests)} requests done; this is a fault of the scheduler, please report it"
            )
        return self._take_samples()

    def _on(self) -> int:
        """One call of the kernel; why it returned."""
        outcome: int = advance(
            self._clock,
            self._lanes,
            self._order,
            self._seats,
            self._room,
            self._rows,
            self._phases,
            self._setup,
            self._tree,
            self._totals,
            self._prefix,
            self._routing,
            self._arrival,
            self._inputs,
            self._outputs,
            self._token_s,
            self._sampled_s,
            self._token_iterations,
            self._sampled_iterations,
            self._gaps,
            self._samples,
        )
        return outcome

    def _take_samples(self) -> dict[str, Floats]:
        clock = self._clock[0]
        taken = self._samples.view(np.ndarray)[: clock.samples]
        clock.samples = 0
        blocks = float(self._setup[0].block_count) * self._replica_count
        columns = {
            "time_s": taken["time_s"].copy(),
            "running": taken["running"].astype(np.float64),
            "waiting": taken["waiting"].astype(np.float64),
            "kv_usage_fraction": taken["used_blocks"] / blocks,
            "batch_tokens": taken["batch_tokens"].astype(np.float64),
        }
        if self._setup[0].caching:
            columns["kv_cached_fraction"] = taken["cached_blocks"] / blocks
        return columns

    def records(self) -> Records:
        """One record per request, as far as the run has come."""
        rows = self._rows
        return Records(
            arrival_s=self._arrival,
            scheduled_s=np.ascontiguousarray(rows.scheduled_s),
            first_token_s=np.ascontiguousarray(rows.first_token_s),
            finish_s=np.ascontiguousarray(rows.finish_s),
            input_tokens=self._inputs,
            output_tokens=self._outputs,
            preemption_count=np.ascontiguousarray(rows.preemptions),
            replica=np.ascontiguousarray(rows.replica),
            status=np.ascontiguousarray(rows.status),
        )

    def totals(self) -> Totals:
        """Sums over all iterations so far."""
        sums, clock = self._totals[0], self._clock[0]
        blocks = float(self._setup[0].block_count)
        begin_s = float(self._arrival[0]) if len(self._arrival) else 0.0
        makespan_s = float(clock.now_s) - begin_s if clock.completed else 0.0
        lane_s = makespan_s * self._replica_count
        return Totals(
            replica_count=self._replica_count,
            iteration_count=int(sums.iterations),
            decode_iteration_count=int(sums.decode_iterations),
            prefill_iteration_count=int(sums.prefill_iterations),
            busy_s=float(sums.busy_s),
            moved_s=float(sums.moved_s),
            makespan_s=makespan_s,
            iterations_by_tokens=self._token_iterations.copy(),
            iterations_by_sampled=self._sampled_iterations.copy(),
            decode_sequence_sum=int(sums.decode_sequences),
            sequence_sum=int(sums.sequences),
            decode_context_token_sum=float(sums.decode_context_tokens),
            decode_window_token_sum=float(sums.decode_window_tokens),
            prefill_token_sum=int(sums.prefill_tokens),
            prefill_work_sum=float(sums.prefill_work),
            prefill_window_work_sum=float(sums.prefill_window_work),
            discarded_token_sum=int(sums.discarded_tokens),
            preemption_count=int(sums.preemptions),
            swap_count=int(sums.swaps) if self._setup[0].swapping else None,
            tiers=tier_use(self._prefix.tiers, self._tier_names, stowing=bool(self._setup[0].stowing)),
            completed_count=int(clock.completed),
            rejected_count=int(clock.rejected),
            refused_count=int(clock.refused),
            kv_usage_mean_fraction=float(sums.block_s) / (blocks * lane_s) if lane_s > 0 else 0.0,
            kv_usage_max_fraction=float(sums.most_blocks) / blocks,
            kv_held_token_s=float(sums.held_s),
            kv_taken_token_s=float(sums.block_s) * self._block_size,
            kv_blocked_token_s=float(sums.blocked_s) * self._block_size,
            hit_token_sum=int(sums.hit_tokens),
            prompt_token_sum=int(sums.prompt_tokens),
            evicted_block_sum=int(sums.evicted_blocks),
            gap_count=int(sums.gaps),
            gap_sum_s=float(sums.gap_s),
            gap_edges_s=gap_edges_s(),
            gap_histogram=self._gaps.copy(),
        )


def gap_edges_s() -> Floats:
    """Edges of the gap histogram: octaves, each divided evenly."""
    parts = 1 << state.GAP_BINS_PER_OCTAVE_LOG2
    place = np.arange(state.GAP_BINS + 1)
    octave = 2.0 ** (place // parts + state.GAP_LOWEST_EXPONENT)
    return octave * (1.0 + (place % parts) / parts)
