"""The serving engine: requests, and pools of lanes with their step tables, in; slices, records and totals out.

`Engine` lays out the records of `state.py`, calls the compiled kernel a slice at a time, and reads the
outcome. It draws nothing but the picks of a router, and knows no scenario. The same inputs give the same
records bit for bit, in one go or in slices, in every process.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from simcore.compiled import HAVE_COMPILER
from simcore.memory.allocators import Reservation
from simcore.serving import state
from simcore.serving.admission import Admission
from simcore.serving.astray import Interrupted
from simcore.serving.autoscaling import Autoscaler, Autoscaling
from simcore.serving.capacity import capacity_request_per_s
from simcore.serving.columns import columns
from simcore.serving.follow_up import follow_ups
from simcore.serving.handover import KvLink, empty_handover
from simcore.serving.interruptions import Interruptions, Outages, keep
from simcore.serving.kernel import advance
from simcore.serving.layout import enter_link, free_runs, put_behind, setups_of, step_times
from simcore.serving.pools import LanePool
from simcore.serving.prefix import PrefixChains, laid_out
from simcore.serving.queue_order import Line
from simcore.serving.records import Floats, Integers, Records, Replicas, Slice, Totals, Transfers
from simcore.serving.routers import Router, lanes_used, routing_state, set_up
from simcore.serving.seating import empty_lanes, widened
from simcore.serving.stranding import strand
from simcore.serving.tiers import tier_bases, tier_use
from simcore.workload.requests import Requests

SAMPLES_PER_RUN = 600
_HORIZON_REQUESTS = 4096


class Engine:
    """One run. `slices()` drives it; `records()` and `totals()` read it, at any time."""

    def __init__(
        self,
        pools: Sequence[LanePool],
        *,
        block_size_tokens: int,
        router: Router,
        requests: Requests,
        reservation: Reservation | None = None,
        chains: PrefixChains | None = None,
        admission: Admission | None = None,
        seed: int = 1,
        line: Line | None = None,
        link: KvLink | None = None,
        autoscaling: Autoscaling | None = None,
        outages: Outages | None = None,
    ) -> None:
        """Without a reservation, blocks are taken as sequences grow; with chains, prompts share their prefixes.

        The router chooses among the lanes of all pools; admission bounds the line of a replica; `line` orders
        who waits, first come first served without it. With a link, the first of two pools prefills and the second
        decodes, and KV is held in pages. Raises InputError where the router cannot look after so many lanes.
        """
        roles = ["both"] * len(pools) if link is None else ["prefill", "decode"]
        if [pool.role for pool in pools] != roles or (link is not None and reservation is not None):
            raise ValueError("KV moves in pages from one pool that prefills to one that decodes")
        if autoscaling is not None and len(pools) > 1:
            raise ValueError("the replicas of one pool are scaled")
        if outages is not None and autoscaling is not None:
            raise ValueError("lanes go down where none is scaled")
        if line is not None and any(pool.scheduler.kind == "static_batch" for pool in pools):
            raise ValueError("static batches are formed first come first served")
        if chains is not None and reservation is not None:
            raise ValueError("prefixes are shared between pages, so there is no reservation beside chains")
        self._pools = pools = tuple(pools)
        self._requests = requests
        self._block_size = block_size_tokens
        self._reservation = reservation
        lane_counts = self._lanes_used(router) if outages is None else [pool.lane_count for pool in pools]
        used = sum(lane_counts)
        self._setup = setups_of(
            pools, lane_counts, block_size_tokens, reservation, shared=chains is not None, admission=admission
        )
        if link is not None:
            enter_link(self._setup, link)
        for head in self._setup:
            if head.role != state.DECODE:  # the lanes that the router chooses among, of every pool
                set_up(head, router, self._entry_lane_count)
        self._handover = empty_handover(len(requests), lane_counts[1] if link is not None else 0)
        share = max(1, -(-len(requests) // used))
        self._lanes, self._seats, self._room = empty_lanes(self._setup, share=share)
        self._order = np.zeros(used, np.int64)
        self._phases = np.zeros(used * block_size_tokens, np.int64)
        self._totals = state.records(state.TOTALS, len(pools))
        tiers = [pool.tiers for pool in pools]
        self._prefix = laid_out(chains, lane_counts, len(requests), tiers)
        self._tier_bases = tier_bases(tiers, lane_counts)
        self._routing = routing_state(
            router,
            requests=requests,
            lane_count=int(self._setup[0].replica_count),
            entry_count=len(self._prefix.blocks),
            flow_count=0 if line is None else line.flow_count,
            seed=seed,
        )
        self._lanes["cell_base"] = np.arange(used) * len(self._prefix.blocks)
        self._tier_names = [
            put_behind(head, pool.tiers, pool.table) for head, pool in zip(self._setup, pools, strict=True)
        ]
        tier_counts = np.array([one.count if one is not None else 0 for one in tiers])
        self._lanes["tier_base"] = np.append(0, np.cumsum(np.repeat(tier_counts, lane_counts)))[:-1]
        if outages is not None and outages.copy is not None:
            keep(self._setup, outages.copy)
        self._setup["finding"] = self._setup["caching"] + self._setup["tiers"] + self._setup["keeping"] > 0
        self._tree = free_runs(self._setup, self._lanes)
        self._follow = follow_ups(requests.turns)
        self._arrival = np.array(requests.arrival_s, np.float64)
        self._inputs = np.require(requests.input_tokens, np.int64, ["C", "W"])
        self._outputs = np.require(requests.output_tokens, np.int64, ["C", "W"])
        self._rows = self._new_rows(line)
        self._token_s, self._sampled_s = step_times(pools)
        self._token_iterations = np.zeros(len(self._token_s))
        self._sampled_iterations = np.zeros(len(self._sampled_s))
        self._gaps = np.zeros(state.GAP_BINS, np.int64)
        self._samples = state.records(state.SAMPLE, state.SAMPLE_ROWS)
        self._clock = self._new_clock(self._horizon_s())
        self._given: tuple[Any, ...] | None = None
        self._autoscaler = None if autoscaling is None else self._scaled(autoscaling)
        self._interruptions = None if outages is None else self._interrupted(outages)

    def _scaled(self, spec: Autoscaling) -> Autoscaler:
        found = Autoscaler(
            spec,
            lanes=self._lanes,
            setups=self._setup,
            routing=self._routing,
            prefix=self._prefix,
            begin_s=float(self._arrival[0]) if len(self._arrival) else 0.0,
        )
        self._halt_at(found.next_s)
        return found

    def _interrupted(self, outages: Outages) -> Interruptions:
        arrays = Interrupted(
            self._clock,
            self._lanes,
            self._order,
            self._rows,
            self._inputs,
            self._setup,
            self._totals,
            self._prefix,
            self._routing,
            self._phases,
            self._handover,
        )
        found = Interruptions(outages, arrays, widen=self._widen)
        self._halt_at(found.next_s)
        return found

    def _halt_at(self, instant_s: float) -> None:
        clock = self._clock[0]
        clock.halt_s = instant_s
        clock.watch_s = min(clock.sample_s, instant_s)

    @property
    def _entry_lane_count(self) -> int:
        """Lanes that the router chooses among."""
        return sum(pool.lane_count for pool in self._pools if pool.role != "decode")

    def _lanes_used(self, router: Router) -> list[int]:
        """By pool, the lanes that can get a request at all; one of each is kept."""
        left, found = lanes_used(router, len(self._requests), self._entry_lane_count), []
        for pool in self._pools:
            here = len(self._requests) if pool.role == "decode" else left
            found.append(max(1, min(pool.lane_count, here)))
            left -= found[-1]
        return found

    def _new_rows(self, line: Line | None) -> Any:
        blank = state.records(state.ROW, 1)
        blank["replica"] = -1
        for name in ("first_token_s", "finish_s", "scheduled_s"):
            blank[name] = math.nan
        rows = np.repeat(blank, len(self._requests))  # rows are long, so they are written in one pass
        if line is not None:
            self._setup["ranked"] = 1
            self._setup["flows"] = line.flow_count
            self._setup["preempts_lowest"] = int(line.preempts_lowest)
            rows["rank"] = line.ranks
            rows["flow"] = 0 if line.flows is None else line.flows
        if self._reservation is not None:
            rows["reserved"] = np.minimum(self._reservation.blocks, self._setup["block_count"].min() + 1)
        return rows

    def _horizon_s(self) -> float:
        """A guess of the simulated time that the run will take, for the spacing of samples only."""
        if len(self._requests) == 0:
            return 1.0
        some = slice(None, None, -(-len(self._requests) // _HORIZON_REQUESTS))
        capacity = sum(
            self._capacity_request_per_s(pool, some) for pool in self._pools if pool.role != "prefill"
        )
        served_s = len(self._requests) / capacity if capacity > 0 else 1.0
        return max(float(self._arrival[: self._requests.start_count].max()), served_s, 1e-6)

    def _capacity_request_per_s(self, pool: LanePool, some: slice) -> float:
        return pool.lane_count * capacity_request_per_s(
            pool.table,
            scheduler=pool.scheduler,
            block_count=pool.block_count,
            block_size_tokens=self._block_size,
            input_tokens=self._inputs[some],
            output_tokens=self._outputs[some],
            reserved_blocks=None if self._reservation is None else self._reservation.blocks[some],
        )

    def _new_clock(self, horizon_s: float) -> Any:
        clock = state.records(state.CLOCK, 1)
        head = clock[0]
        head.count = self._requests.start_count
        head.last_lane = head.lined_up = -1
        head.last_target = self._setup[-1].first_lane - 1
        head.most_blocks = self._setup["block_count"][self._setup["role"] != state.PREFILL].min()
        head.closed_loop = int(self._requests.concurrency > 0)
        head.released = min(self._requests.concurrency, head.count) if head.closed_loop else head.count
        if self._requests.turns is not None:
            head.sessions, head.starts, head.released = 1, head.released, 0
        head.sample_interval_s = horizon_s / SAMPLES_PER_RUN
        head.samples_until_wider = 2 * SAMPLES_PER_RUN
        head.halt_s = math.inf
        return clock

    @property
    def done_count(self) -> int:
        """Requests that are finished or rejected."""
        return int(self._clock[0].completed + self._clock[0].rejected)

    @property
    def _block_count(self) -> float:
        """Of all lanes."""
        return float(sum(pool.block_count * pool.lane_count for pool in self._pools))

    @property
    def hit_tokens(self) -> Integers:
        """Prompt tokens that were resident when each request was first admitted; empty without chains."""
        found: Integers = self._prefix.hit_tokens
        return found

    def slices(self, *, target_count: int = 40) -> Iterator[Slice]:
        """Run to the end, handing out about `target_count` slices as simulated time goes on."""
        count = len(self._requests)
        share = max(1, -(-count // max(1, target_count)))
        done = self.done_count
        while done < count:
            self._clock[0].until = until = min(count, done + share)
            parts = []
            while done < until:
                parts.append(self._advance())
                done = self.done_count
            taken = np.concatenate(parts)
            yield Slice(
                columns=self._columns(taken),
                kv_map=self._kv_map(taken),
                completed_count=int(self._clock[0].completed),
                progress_fraction=done / count,
            )

    def run(self) -> None:
        """Run to the end in one go, keeping no series."""
        for _ in self.slices(target_count=1):
            pass

    def _advance(self) -> Any:
        """One call of the kernel, and what must be done between events; returns the samples that it took."""
        outcome = self._on()
        while outcome in (state.MORE_SEATS, state.HALTED, state.LOST):
            if outcome == state.HALTED:
                self._halted(float(self._clock[0].halt_s))
            elif outcome == state.LOST:
                self._strand(int(self._clock[0].growing))
            else:
                self._widen(int(self._clock[0].growing))
            outcome = self._on()
        if outcome == state.STUCK or (outcome == state.DONE and self.done_count < len(self._requests)):
            clock = self._clock[0]
            raise RuntimeError(
                f"the serving engine makes no progress at {clock.now_s} s with {self.done_count} of "
                f"{len(self._requests)} requests done; this is a fault of the scheduler, please report it"
            )
        clock = self._clock[0]
        taken = self._samples.view(np.ndarray)[: clock.samples].copy()
        clock.samples = 0
        return taken

    def _halted(self, now_s: float) -> None:
        """What was to change at this instant does."""
        if self._autoscaler is not None:
            self._autoscaler.at(now_s, self._phases)
            self._halt_at(self._autoscaler.next_s)
        else:
            assert self._interruptions is not None, "nobody else asks for a halt"
            self._interruptions.at(now_s)
            self._halt_at(self._interruptions.next_s)

    def _strand(self, index: int) -> None:
        """A lane that is down has ended its last step."""
        assert self._interruptions is not None, "nothing else takes a lane down"
        self._interruptions.recall(index)
        strand(
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
            index,
        )
        self._interruptions.stranded()

    def _widen(self, index: int) -> None:
        """Twice the seats for a lane."""
        most = int(self._setup[self._lanes[index].pool].most_seats)
        self._seats, self._room = widened(self._lanes, self._seats, self._room, index, most=most)
        self._given = None

    def _on(self) -> int:
        """One call of the kernel; why it returned."""
        if self._given is None:
            self._given = self._arguments()
        outcome: int = advance(*self._given)
        return outcome

    def _arguments(self) -> tuple[Any, ...]:
        """What the kernel works on. Records go to compiled code as plain arrays, whose types numba tells sooner."""
        arrays = (
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
            self._handover,
            self._follow,
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
        if not HAVE_COMPILER:
            return arrays
        return tuple(each.view(np.ndarray) if isinstance(each, np.recarray) else each for each in arrays)

    def _columns(self, taken: Any) -> dict[str, Floats]:
        """The time series of some samples."""
        blocks = self._block_count
        columns = {
            "time_s": taken["time_s"].copy(),
            "running": taken["running"].astype(np.float64),
            "waiting": taken["waiting"].astype(np.float64),
            "kv_usage_fraction": taken["used_blocks"] / blocks,
            "batch_tokens": taken["batch_tokens"].astype(np.float64),
            "preemption_count": taken["preemptions"].astype(np.float64),
        }
        if self._setup[0].caching:
            columns["kv_cached_fraction"] = taken["cached_blocks"] / blocks
        if self._setup[0].role == state.PREFILL:
            columns["handing_over"] = taken["handing_over"].astype(np.float64)
        if self._autoscaler is not None:
            columns |= self._autoscaler.columns(columns["time_s"])
        if self._interruptions is not None:
            columns["lanes_down"] = self._interruptions.lanes_down(columns["time_s"])
        return columns

    def _kv_map(self, taken: Any) -> dict[str, Floats]:
        """Shares of all KV blocks by what is in them, and of each of the first lanes that are in use."""
        blocks = self._block_count
        columns = {
            "time_s": taken["time_s"].copy(),
            "held_fraction": np.minimum(taken["held_tokens"] / self._block_size, taken["used_blocks"])
            / blocks,
            "used_fraction": taken["used_blocks"] / blocks,
            "cached_fraction": taken["cached_blocks"] / blocks,
        }
        for index in range(min(state.MAPPED_LANES, len(self._lanes))):
            place = int(self._lanes[index].pool)
            head, pool = self._setup[place], self._pools[place]
            columns[f"{pool.role}.{index - head.first_lane}"] = (
                taken["lane_blocks"][:, index] / pool.block_count
            )
        return columns

    def records(self) -> Records:
        """One record per request, as far as the run has come."""
        scheduled_s, first_token_s, finish_s, preemptions, replica, status = columns(self._rows)
        return Records(
            arrival_s=self._arrival,
            scheduled_s=scheduled_s,
            first_token_s=first_token_s,
            finish_s=finish_s,
            input_tokens=self._inputs,
            output_tokens=self._outputs,
            preemption_count=preemptions,
            replica=replica,
            status=status,
        )

    def transfers(self) -> Transfers | None:
        """The way of the KV from prefill to decode; None where every lane does both."""
        if self._setup[0].role != state.PREFILL:
            return None
        hops = self._handover.hops
        return Transfers(
            prefilled_s=np.ascontiguousarray(hops.prefilled_s),
            pulled_s=np.ascontiguousarray(hops.pulled_s),
            landed_s=self._handover.landed_s,
        )

    def replicas(self) -> Replicas | None:
        """What the autoscaler did so far; None without one."""
        return None if self._autoscaler is None else self._autoscaler.use(float(self._clock[0].now_s))

    def starting_at(self, time_s: Floats) -> Floats:
        """Replicas that were starting at these instants; none without an autoscaler."""
        if self._autoscaler is None:
            return np.zeros(len(time_s))
        return self._autoscaler.columns(time_s)["replicas_starting"]

    def totals(self) -> Totals:
        """Sums over all iterations so far, of all pools."""
        return Totals.of_all(self.pool_totals())

    def pool_totals(self) -> list[Totals]:
        """Sums over all iterations so far, pool by pool; what is counted by request stands in the first."""
        return [self._totals_of(place) for place in range(len(self._pools))]

    def _totals_of(self, place: int) -> Totals:
        sums, head, clock, pool = self._totals[place], self._setup[place], self._clock[0], self._pools[place]
        first = place == 0
        begin_s = float(self._arrival[0]) if len(self._arrival) else 0.0
        makespan_s = float(clock.now_s) - begin_s if clock.completed else 0.0
        blocks = float(pool.block_count) * pool.lane_count
        by_tokens = slice(int(head.token_base), int(head.token_base + head.token_last) + 1)
        by_sampled = slice(int(head.sampled_base), int(head.sampled_base) + pool.scheduler.max_num_seqs + 1)
        tiers = self._prefix.tiers[self._tier_bases[place] : self._tier_bases[place + 1]]
        return Totals(
            replica_count=pool.lane_count,
            iteration_count=int(sums.iterations),
            decode_iteration_count=int(sums.decode_iterations),
            prefill_iteration_count=int(sums.prefill_iterations),
            busy_s=float(sums.busy_s),
            moved_s=float(sums.moved_s),
            slowed_s=float(sums.slowed_s),
            makespan_s=makespan_s,
            iterations_by_tokens=self._token_iterations[by_tokens].copy(),
            iterations_by_sampled=self._sampled_iterations[by_sampled].copy(),
            decode_sequence_sum=int(sums.decode_sequences),
            drafted_token_sum=int(sums.drafted_tokens),
            sequence_sum=int(sums.sequences),
            decode_context_token_sum=float(sums.decode_context_tokens),
            decode_window_token_sum=float(sums.decode_window_tokens),
            prefill_token_sum=int(sums.prefill_tokens),
            prefill_work_sum=float(sums.prefill_work),
            prefill_window_work_sum=float(sums.prefill_window_work),
            discarded_token_sum=int(sums.discarded_tokens),
            preemption_count=int(sums.preemptions),
            stranded_count=int(sums.stranded),
            swap_count=int(sums.swaps) if head.swapping else None,
            tiers=tier_use(tiers, self._tier_names[place], stowing=bool(head.stowing)),
            completed_count=int(clock.completed) if first else 0,
            rejected_count=int(clock.rejected) if first else 0,
            refused_count=int(clock.refused) if first else 0,
            unsent_count=int(clock.unsent) if first else 0,
            kv_block_count=blocks,
            kv_usage_max_fraction=float(sums.most_blocks) / pool.block_count,
            kv_held_token_s=float(sums.held_s),
            kv_taken_token_s=float(sums.block_s) * self._block_size,
            kv_blocked_token_s=float(sums.blocked_s) * self._block_size,
            kv_block_s=float(sums.block_s),
            hit_token_sum=int(sums.hit_tokens),
            prompt_token_sum=int(sums.prompt_tokens),
            evicted_block_sum=int(sums.evicted_blocks),
            gap_count=int(sums.gaps),
            gap_sum_s=float(sums.gap_s),
            gap_edges_s=gap_edges_s(),
            gap_histogram=self._gaps.copy() if first else np.zeros_like(self._gaps),
        )


def gap_edges_s() -> Floats:
    """Edges of the gap histogram: octaves, each divided evenly."""
    parts = 1 << state.GAP_BINS_PER_OCTAVE_LOG2
    place = np.arange(state.GAP_BINS + 1)
    octave = 2.0 ** (place // parts + state.GAP_LOWEST_EXPONENT)
    return octave * (1.0 + (place % parts) / parts)
