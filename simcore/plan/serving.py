"""From specs to a pool of replicas: what fits, how long a step takes, where it will run.

`build_pool` is also what the analysis calls again with a changed chip: a doubling is a re-plan, not a
guess. Pipeline stages keep `pp` batches in flight; each is planned as a *lane* whose step passes all
stages (pp × the slowest one) and which has its share of KV blocks and seats. Data parallel ranks are lanes with
KV and seats of their own, whose experts take the tokens of all (`exchange.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np

from simcore.catalog.types import Chip
from simcore.compute.drafting import draft_pass, drafted, verifying
from simcore.compute.ops import bottleneck_stage
from simcore.compute.step_table import OF_STEP, StepTimeTable, build_step_table, scaled
from simcore.compute.steps import (
    StepModel,
    decode_step,
    draft_passes,
    prefill_step,
    roofline_bound,
    step_model,
)
from simcore.errors import InfeasibleError
from simcore.fabric.collectives import Interconnect, collective_s, collective_times_s, interconnect
from simcore.memory.allocators import Reservation, reservation
from simcore.memory.budget import KvBudget, kv_budget
from simcore.memory.fit import require_fit
from simcore.parallelism import Parallelism
from simcore.plan.cutting import budget_options, check_divides
from simcore.plan.exchange import exchange_tier, expert_exchange, step_exchange, step_exchanges_s
from simcore.plan.kv_tiers import lane_tiers
from simcore.plan.prefixes import expected_hit_fraction
from simcore.plan.speculation import check_speculation, drafting_inputs, shares_of, speculation_terms
from simcore.plan.types import CollectiveTier, OperatingPoint, PoolInputs, PoolPlan, SpeculationPlan
from simcore.scenario.schema import Serving
from simcore.serving.capacity import throughput_curve
from simcore.serving.estimate import LaneLoad, latency_terms
from simcore.serving.pools import LanePool
from simcore.serving.records import Integers
from simcore.serving.routers import lanes_used
from simcore.serving.schedulers import SchedulerParameters
from simcore.serving.speculation import tokens_per_iteration
from simcore.serving.tiers import KvTiers, quicker_blocks
from simcore.why import Term, constant, leaf
from simcore.workload.requests import Requests

BYTES_OF_ACTIVATION: Final = 2.0


def build_pool(inputs: PoolInputs, chip: Chip) -> PoolPlan:
    """The pool on this chip. Raises InfeasibleError where the model or one sequence does not fit."""
    kv = require_fit(budget(inputs, chip), path="serving")
    scheduler = lane_scheduler(inputs.spec, kv)
    network = lane_network(inputs, chip)
    check_speculation(inputs, scheduler)
    plain = _lane_table(inputs, chip, scheduler, network)
    table = plain if inputs.spec.speculative is None else lane_table(inputs, chip, scheduler, network)
    promised = _reservation(inputs, kv)
    behind = lane_tiers(inputs, chip, kv, inputs.parallelism)
    point = _operating_point(inputs, table, scheduler, kv, promised, behind)
    model = _step_model(inputs, chip, scheduler)
    terms = _step_terms(inputs, model, scheduler, network, point) if inputs.explained else {}
    terms |= point.latency_terms
    speculation = None
    if inputs.spec.speculative is not None:
        without = _operating_point(inputs, plain, scheduler, kv, promised, behind).capacity_request_per_s
        speculation = _speculation(inputs, chip, scheduler, capacity_without=without)
        if inputs.explained:
            terms |= _speculation_terms(inputs, speculation, model, network, point, terms)
    return PoolPlan(
        role=inputs.role,
        chip=chip,
        calibration=inputs.calibration,
        parallelism=inputs.parallelism,
        replica_count=inputs.replica_count,
        scheduler=scheduler,
        step_table=table,
        kv=kv,
        speculation=speculation,
        reservation=promised,
        tiers=behind,
        operating_point=point,
        bound=roofline_bound(table, batch=max(1, round(point.batch)), context_tokens=point.context_tokens),
        collective_tier=_all_reduce_tier(inputs, network),
        exchange_tier=exchange_tier(expert_exchange(inputs, chip, network)),
        step_model=model,
        terms=terms,
    )


def _all_reduce_tier(inputs: PoolInputs, network: Interconnect) -> CollectiveTier:
    return "scaleout" if inputs.parallelism.tp_ranks > network.domain_size else "scaleup"


def budget(inputs: PoolInputs, chip: Chip) -> KvBudget:
    """The KV budget on a chip; where it does not fit, with the changes that would, other chips included."""
    fitting = partial(
        kv_budget,
        inputs.architecture,
        chip,
        inputs.parallelism,
        **budget_options(inputs.spec, inputs.engine, inputs.weights_dtype, inputs.kv_dtype, inputs.draft),
        num_gpu_blocks_override=inputs.spec.num_gpu_blocks_override,
        kv_cache_memory_bytes=inputs.spec.kv_cache_memory_bytes,
    )
    found = fitting()
    return found if found.fits else fitting(other_chips=tuple(inputs.other_chips.values()))


def lane_scheduler(spec: Serving, kv: KvBudget) -> SchedulerParameters:
    """What a lane batches by: its share of the seats, and the token budget."""
    lanes = _pp(kv)
    assert spec.scheduler.kind != "disaggregated", "each of its pools batches by a scheduler of its own"
    return SchedulerParameters(
        kind=spec.scheduler.kind,
        max_num_seqs=max(1, kv.max_num_seqs // lanes),
        max_num_batched_tokens=kv.max_num_batched_tokens,
        long_prefill_token_threshold=getattr(spec.scheduler, "long_prefill_token_threshold", 0),
        queue=getattr(spec.scheduler, "queue", "fcfs"),
    )


def _pp(kv: KvBudget) -> int:
    return len(kv.ranks)


def lane_network(inputs: PoolInputs, chip: Chip) -> Interconnect:
    """What the ranks of a lane talk over."""
    return interconnect(
        chip,
        inputs.server,
        inputs.calibration,
        fabric=inputs.fabric,
        reference_scaleup_bytes_per_s=inputs.reference_scaleup_bytes_per_s,
    )


def lane_table(
    inputs: PoolInputs, chip: Chip, scheduler: SchedulerParameters, network: Interconnect
) -> StepTimeTable:
    """The step times of a lane, with what drafts and verifies where it speculates."""
    if inputs.spec.speculative is None:
        return _lane_table(inputs, chip, scheduler, network)
    return _speculating(inputs, chip, scheduler, network)


def _lane_table(
    inputs: PoolInputs, chip: Chip, scheduler: SchedulerParameters, network: Interconnect, *, rows: int = 1
) -> StepTimeTable:
    """`rows` of a sequence pass the LM head in a step."""
    parallelism = inputs.parallelism
    tokens = np.arange(scheduler.max_num_batched_tokens + 1, dtype=np.float64)
    payload = tokens * inputs.architecture.hidden * BYTES_OF_ACTIVATION
    reduced_s = all_reduces_per_step(inputs) * collective_times_s(
        "all_reduce", payload, parallelism.tp_ranks, network
    )
    exchange = expert_exchange(inputs, chip, network)
    exchanged_s = step_exchanges_s(inputs, exchange, tokens)
    table = build_step_table(
        inputs.architecture,
        chip,
        inputs.calibration,
        parallelism,
        weights_dtype=inputs.weights_dtype,
        kv_dtype=inputs.kv_dtype,
        max_tokens=scheduler.max_num_batched_tokens,
        max_sequences=scheduler.max_num_seqs * rows,
        communication_s=reduced_s,
        exchange_s=exchanged_s,
        attention=inputs.spec.attention,
        engine=inputs.engine.name,
    )
    if _all_reduce_tier(inputs, network) == "scaleout":
        table = replace(table, scaleout_s=table.comm_s)
    elif exchange_tier(exchange) == "scaleout":
        table = replace(table, scaleout_s=exchanged_s)
    return table if parallelism.pp == 1 else _all_stages(table, parallelism.pp)


def _speculating(
    inputs: PoolInputs, chip: Chip, scheduler: SchedulerParameters, network: Interconnect
) -> StepTimeTable:
    """The table of steps that verify drafts, with the passes of what drafts them."""
    spec = inputs.spec.speculative
    assert spec is not None, "only a pool that speculates has such a table"
    drafts = spec.num_speculative_tokens
    table = verifying(
        _lane_table(inputs, chip, scheduler, network, rows=1 + drafts),
        draft_tokens=drafts,
        gained_tokens=tokens_per_iteration(spec.acceptance_rate, drafts),
    )
    shares = shares_of(spec, inputs.architecture)
    if shares is None:
        return table
    own = drafting_inputs(inputs)
    check_divides(own.parallelism, own.architecture)
    return drafted(table, draft_pass(_lane_table(own, chip, scheduler, network), shares))


def _speculation(
    inputs: PoolInputs, chip: Chip, scheduler: SchedulerParameters, *, capacity_without: float
) -> SpeculationPlan:
    spec = inputs.spec.speculative
    assert spec is not None, "only a pool that speculates has one"
    shares = shares_of(spec, inputs.architecture)
    return SpeculationPlan(
        draft_tokens=spec.num_speculative_tokens,
        acceptance_rate=spec.acceptance_rate,
        shares=shares,
        model=None if shares is None else _step_model(drafting_inputs(inputs), chip, scheduler),
        capacity_request_per_s=capacity_without,
    )


def _speculation_terms(
    inputs: PoolInputs,
    plan: SpeculationPlan,
    model: StepModel,
    network: Interconnect,
    point: OperatingPoint,
    steps: Mapping[str, Term],
) -> dict[str, Term]:
    """An iteration with drafts beside the plain decode step, at the operating point."""
    batch, rows = mean_batch(point), 1 + plan.draft_tokens
    gained = tokens_per_iteration(plan.acceptance_rate, plan.draft_tokens)
    context_tokens = point.context_tokens + rows - 0.5 * (gained + 1.0)
    communication_s, exchange_s = _step_waits(inputs, model, network, batch * rows)
    verifying_step = decode_step(
        model,
        batch=batch,
        context_tokens=context_tokens,
        communication_s=communication_s,
        exchange_s=exchange_s,
        verified_tokens=rows,
    )
    passes = None
    if plan.model is not None:
        own = drafting_inputs(inputs)
        passes = draft_passes(
            plan.model,
            batch=batch,
            context_tokens=context_tokens,
            draft_tokens=plan.draft_tokens,
            first_waits=_step_waits(own, plan.model, network, batch * rows),
            further_waits=_step_waits(own, plan.model, network, batch),
        )
    return speculation_terms(
        plan, plain=steps["compute.decode_step_s"], verifying=verifying_step, passes=passes
    )


def _step_waits(
    inputs: PoolInputs, model: StepModel, network: Interconnect, tokens: float
) -> tuple[Term | None, Term | None]:
    """All-reduces of a step with so many tokens, and their way to experts and back."""
    exchange = expert_exchange(inputs, model.chip, network)
    return step_communication(inputs, network, tokens), step_exchange(inputs, exchange, tokens)


def all_reduces_per_step(inputs: PoolInputs) -> float:
    """One per block of the slowest stage: after attention (or a state) and after the MLP or experts."""
    return 2.0 * bottleneck_stage(inputs.architecture, inputs.parallelism.pp).depth


def _all_stages(table: StepTimeTable, pp: int) -> StepTimeTable:
    """A lane's step passes every stage; its work counts on all of them."""
    return scaled(table, dict.fromkeys(OF_STEP, pp))


def _reservation(inputs: PoolInputs, kv: KvBudget) -> Reservation | None:
    """What the allocator promises; a lane must have room for one slot of the full length."""
    blocks, block_size = lane_block_count(kv, inputs.parallelism), kv.block_size_tokens
    if inputs.spec.kv.allocator == "contiguous_max" and blocks * block_size < kv.max_model_len:
        raise InfeasibleError.at(
            "serving.kv.allocator",
            "allocator.no_slot",
            "a batch in flight has room for {tokens:,} tokens, less than one slot of {length:,}; lower "
            "serving.max_model_len or use paged",
            tokens=blocks * block_size,
            length=kv.max_model_len,
        )
    return reservation(
        inputs.spec.kv.allocator,
        inputs.requests.input_tokens,
        inputs.requests.output_tokens,
        max_model_len=kv.max_model_len,
        block_size_tokens=block_size,
        block_count=blocks,
        pool_count=_lanes_used(inputs),
    )


def _lanes_used(inputs: PoolInputs) -> int:
    """Lanes that can get a request. Raises InputError where the router cannot look after so many."""
    return lanes_used(inputs.spec.router, len(inputs.requests), _lane_count(inputs))


def _lane_count(inputs: PoolInputs) -> int:
    return inputs.replica_count * inputs.parallelism.lanes_per_replica


def _operating_point(
    inputs: PoolInputs,
    table: StepTimeTable,
    scheduler: SchedulerParameters,
    kv: KvBudget,
    promised: Reservation | None,
    behind: KvTiers | None,
) -> OperatingPoint:
    """The steady state that the offered load, or the users of a closed loop, keep one lane in."""
    requests, lanes = inputs.requests, _lane_count(inputs)
    kept = lane_block_count(kv, inputs.parallelism) + quicker_blocks(behind, table, requests.input_tokens)
    answers = _tokens_made(inputs)
    curve = throughput_curve(
        table,
        scheduler=scheduler,
        block_count=lane_block_count(kv, inputs.parallelism),
        block_size_tokens=kv.block_size_tokens,
        input_tokens=requests.input_tokens,
        output_tokens=answers,
        prompts_come_computed=inputs.role == "decode",
        reserved_blocks=None if promised is None else promised.blocks,
        cached_fraction=expected_hit_fraction(inputs, kept),
    )
    share = inputs.request_fraction
    offered = None if inputs.requests.concurrency else share * offered_request_per_s(requests)
    latency: dict[str, Term] = {}
    lane: LaneLoad | None = None
    if offered is None:
        batch = curve.batch_of_users(share * requests.concurrency / lanes, _think_s(requests))
    else:
        batch = curve.batch_at(offered / lanes)
        lane = LaneLoad(
            curve=curve,
            request_per_s=offered / lanes,
            input_tokens=requests.input_tokens,
            output_tokens=answers,
        )
        # Of prefill and decode apart, what a request waits for is put together in plan/disaggregated.py; queueing
        # theory for a number of replicas that follows the load there is none.
        if inputs.role == "both" and inputs.spec.autoscaling is None and inputs.explained:
            latency = latency_terms(lane, table, scheduler)
    return OperatingPoint(
        batch=max(1.0, batch),
        context_tokens=curve.mix.context_tokens or curve.mix.input_tokens,
        input_tokens=curve.mix.input_tokens,
        capacity_request_per_s=curve.capacity_request_per_s * lanes,
        offered_request_per_s=offered,
        latency_terms=latency,
        curve=curve,
        load=lane if inputs.role != "both" else None,
    )


def _tokens_made(inputs: PoolInputs) -> Integers:
    """Tokens of each answer that this pool samples, the first in prefill: a decode pool makes them all in steps."""
    outputs = inputs.requests.output_tokens
    return {"both": outputs, "prefill": np.ones_like(outputs), "decode": outputs + 1}[inputs.role]


def offered_request_per_s(requests: Requests) -> float:
    """Mean arrival rate over the span of the arrivals; of sessions, that of first turns times the turns of one."""
    starts = requests.start_count
    span = float(requests.arrival_s[starts - 1] - requests.arrival_s[0]) if starts > 1 else 0.0
    turns = len(requests) / max(1, starts)
    return (starts - 1) / span * turns if span > 0 else float("inf") if starts > 1 else 0.0


def _think_s(requests: Requests) -> float:
    """Mean time before a request in which its user does nothing but think."""
    return 0.0 if requests.turns is None else float(requests.turns.think_s.mean())


def lane_block_count(kv: KvBudget, parallelism: Parallelism) -> int:
    return max(1, kv.sequence_block_count // parallelism.pp)


def lane_pool(pool: PoolPlan) -> LanePool:
    """What the engine runs of a pool."""
    return LanePool(
        table=pool.step_table,
        scheduler=pool.scheduler,
        block_count=lane_block_count(pool.kv, pool.parallelism),
        lane_count=pool.lane_count,
        lanes_per_replica=pool.parallelism.lanes_per_replica,
        role=pool.role,
        tiers=pool.tiers,
    )


def mean_batch(point: OperatingPoint) -> float:
    """Sequences of the decode step that the closed forms speak of."""
    return float(max(1, round(point.batch)))


def mean_chunk(point: OperatingPoint, scheduler: SchedulerParameters) -> float:
    """Prompt tokens of the prefill step that they speak of."""
    return float(min(max(1, round(point.input_tokens)), scheduler.max_num_batched_tokens))


def _step_model(inputs: PoolInputs, chip: Chip, scheduler: SchedulerParameters) -> StepModel:
    return step_model(
        inputs.architecture,
        chip,
        inputs.calibration,
        inputs.parallelism,
        weights_dtype=inputs.weights_dtype,
        kv_dtype=inputs.kv_dtype,
        max_tokens=scheduler.max_num_batched_tokens,
        attention=inputs.spec.attention,
        engine=inputs.engine.name,
    )


def _step_terms(
    inputs: PoolInputs,
    model: StepModel,
    scheduler: SchedulerParameters,
    network: Interconnect,
    point: OperatingPoint,
) -> dict[str, Term]:
    """The steps as Why trees at the operating point."""
    batch, chunk = mean_batch(point), mean_chunk(point, scheduler)
    exchange = expert_exchange(inputs, model.chip, network)
    decode = decode_step(
        model,
        batch=batch,
        context_tokens=point.context_tokens,
        communication_s=step_communication(inputs, network, batch),
        exchange_s=step_exchange(inputs, exchange, batch),
    )
    prefill = prefill_step(
        model,
        tokens=chunk,
        communication_s=step_communication(inputs, network, chunk),
        exchange_s=step_exchange(inputs, exchange, chunk),
    )
    return {
        "compute.decode_step_s": through_stages(decode, inputs.parallelism).named("compute.decode_step_s"),
        "compute.prefill_step_s": through_stages(prefill, inputs.parallelism).named("compute.prefill_step_s"),
    }


def step_communication(inputs: PoolInputs, network: Interconnect, tokens: float) -> Term | None:
    """All-reduces of one stage's step with so many tokens; None without tensor parallelism."""
    if inputs.parallelism.tp_ranks == 1:
        return None
    width = inputs.architecture.leaf("hidden")
    in_step = leaf(tokens, "tokens", kind="derived", source="tokens of the step")
    payload = (in_step * width * constant(BYTES_OF_ACTIVATION, "bytes_per_element")).named("payload_bytes")
    each = collective_s("all_reduce", payload, inputs.parallelism.tp_ranks, network)
    calls = constant(all_reduces_per_step(inputs), "all_reduces_per_step")
    return (calls * each).named("communication_s")


def through_stages(step: Term, parallelism: Parallelism) -> Term:
    """A time of one stage, over all stages that a lane's step passes."""
    return step if parallelism.pp == 1 else step * leaf(parallelism.pp, "pp", path="serving.parallelism.pp")
