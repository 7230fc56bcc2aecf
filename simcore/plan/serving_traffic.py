"""The flows of a second of serving, from the cut and the placement, at the offered load or what can be carried of it.

Replicas lie one behind the other, pool after pool; in a replica tensor ranks first, then stages, then data parallel
ranks. Bytes per token are those that steps are charged for (`plan/serving.py`, `plan/exchange.py`): an all-reduce after
each block, rows of experts there and back, activations to the next stage; KV from every prefill replica to every decode
replica. A closed loop runs at its capacity.
Limits: prompts from a cache and drafts that are thrown away count as tokens that are made; KV that is offloaded stays
in its server; monitoring as in `training_traffic.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from simcore.fabric import patterns
from simcore.fabric.collectives import bus_factor
from simcore.fabric.patterns import Edges
from simcore.fabric.traffic import FlowGroup, Flows, Ints, TrafficClass, joined
from simcore.parallelism import pipeline_stages
from simcore.plan.exchange import exchanged_bytes_per_token, expert_exchange
from simcore.plan.kv_tiers import kv_bytes_per_token_per_chip
from simcore.plan.serving import BYTES_OF_ACTIVATION, lane_network, mean_batch
from simcore.plan.training_traffic import monitoring
from simcore.plan.types import PoolInputs, PoolPlan, ServingPlan


def serving_flows(serving: ServingPlan, first_chips: Mapping[str, int]) -> Flows:
    """All flows of a second; `first_chips` are where the pools of chips begin."""
    placed, free = [], dict(first_chips)
    for inputs, pool in serving.sides:
        first = free[inputs.chips]
        free[inputs.chips] = first + pool.chip_count
        placed.append((inputs, pool, np.arange(first, first + pool.chip_count)))
    rate = served_request_per_s(serving)
    parts = [
        patterns.flows(FlowGroup(name=name, traffic_class=traffic_class), edges)
        for inputs, pool, chips in placed
        for name, traffic_class, edges in _of_pool(inputs, pool, chips, rate * inputs.request_fraction)
    ]
    if serving.prefill is not None:
        (inputs, before, senders), (_, after, receivers) = placed
        edges = _kv(inputs, (before, senders), (after, receivers), rate)
        parts.append(patterns.flows(FlowGroup(name="kv", traffic_class="inter_domain"), edges))
    parts.append(monitoring(np.concatenate([chips for *_, chips in placed]), 1.0))
    return joined([part for part in parts if len(part)])


def served_request_per_s(serving: ServingPlan) -> float:
    """What is served: all that is offered, up to the capacity."""
    capacity = serving.capacity.value
    offered = [pool.operating_point.offered_request_per_s for pool in serving.pools]
    if serving.prefill is not None:
        offered = offered[:1]
    return min(capacity, sum(capacity if one is None else one for one in offered))


def _of_pool(
    inputs: PoolInputs, pool: PoolPlan, chips: Ints, request_per_s: float
) -> Iterator[tuple[str, TrafficClass, list[Edges]]]:
    """Tokens pass all stages of one data parallel rank."""
    cut, arch = pool.parallelism, inputs.architecture
    grid = chips.reshape(pool.replica_count, cut.dp, cut.pp, cut.cp * cut.tp_ranks)
    token_per_s = _tokens_of_request(inputs, pool) * request_per_s / (pool.replica_count * cut.dp)
    payload = token_per_s * arch.hidden * BYTES_OF_ACTIVATION
    network = lane_network(inputs, pool.chip)
    for place, stage in enumerate(pipeline_stages(arch, cut.pp)):
        each = 2.0 * stage.depth * payload * bus_factor("all_reduce", cut.tp_ranks)
        members = grid[:, :, place].reshape(-1, cut.tp_ranks)
        inside = _even_share(cut.tp_ranks, network.domain_size)
        yield "tensor", "core", patterns.ring(members, each, inside=inside)
    exchange = expert_exchange(inputs, pool.chip, network)
    if exchange is not None:
        sent = exchanged_bytes_per_token(inputs, exchange, mean_batch(pool.operating_point))
        members = grid.transpose(0, 2, 1, 3).reshape(-1, exchange.ranks)
        inside = _even_share(exchange.ranks, exchange.inside)
        local, remote = (token_per_s * sent.get(tier, 0.0) for tier in ("scaleup", "scaleout"))
        yield "expert", "core", patterns.by_domain(members, local, remote, inside=inside)
    stages = grid.transpose(0, 1, 3, 2).reshape(-1, cut.pp)
    yield "pipeline", "core", patterns.line(stages, payload / cut.tp_ranks, 0.0)


def _even_share(ranks: int, domain: int) -> int:
    """Ranks of a group in each domain, where it fills domains evenly."""
    return next(inside for inside in range(min(ranks, domain), 0, -1) if ranks % inside == 0)


def _tokens_of_request(inputs: PoolInputs, pool: PoolPlan) -> float:
    """Tokens that a mean request has in this pool's steps."""
    asked, answered = (
        float(tokens.mean()) for tokens in (inputs.requests.input_tokens, inputs.requests.output_tokens)
    )
    return {"both": asked + answered, "prefill": asked, "decode": answered}[pool.role]


def _kv(
    inputs: PoolInputs, prefill: tuple[PoolPlan, Ints], decode: tuple[PoolPlan, Ints], request_per_s: float
) -> list[Edges]:
    """The prompt's KV, from the chips that made it to those that read it."""
    (before, senders), (after, receivers) = prefill, decode
    tokens = float(inputs.requests.input_tokens.mean()) * request_per_s
    of_lane = kv_bytes_per_token_per_chip(before.kv).value * before.parallelism.tp_ranks
    total_bytes = tokens * of_lane * before.parallelism.pp
    return patterns.hand_over(
        senders.reshape(before.replica_count, -1), receivers.reshape(after.replica_count, -1), total_bytes
    )
