"""The groups whose collectives a scenario pays for, and what each algorithm would make of them.

Serving: tensor parallel ranks at the mean decode step and the mean prefill chunk of each pool, and the exchange with
experts. Training: the groups of one step, with their payload of one call, in the fullest stage. A row per algorithm
that can run there; `taken` marks the one that the step is charged for, whose time is then that of the step.
Bus bandwidth is payload × bus factor ÷ time, as in nccl-tests; of an exchange with experts, the bytes that one chip
sends over its busiest tier. Limits: what hides behind kernels is not taken off here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from simcore.compute.ops import bottleneck_stage
from simcore.fabric import Fabric
from simcore.fabric.collectives import (
    OPERATIONS,
    Curve,
    Interconnect,
    Operation,
    bus_factor,
    collective_s,
    curves,
    every_curve,
)
from simcore.fabric.exchange import KERNELS, PHASES, ExpertExchange, curve_of
from simcore.plan.exchange import expert_exchange
from simcore.plan.resolve import Hardware
from simcore.plan.serving import BYTES_OF_ACTIVATION, lane_network, mean_batch, mean_chunk
from simcore.plan.training import TrainingPlan, network_of
from simcore.plan.types import PoolInputs, PoolPlan, ServingPlan
from simcore.training import TrainingInputs
from simcore.training.communication import group_network
from simcore.training.experts import dispatched
from simcore.training.payloads import activation_bytes, data_groups, gathered_kv_bytes

Row = dict[str, Any]
COLLECTIVE_PAYLOAD_BYTES: Final = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Ranks that run one collective, and what over."""

    name: str
    operation: Operation
    ranks: int
    payload_bytes: float
    network: Interconnect


def collective_rows(
    hardware: Hardware, fabric: Fabric, serving: ServingPlan | None, training: TrainingPlan | None
) -> list[Row]:
    """Of the groups that the work has, and last of all chips at once."""
    found = serving_rows(serving) if serving else []
    found += training_rows(training.inputs) if training else []
    return found + cluster_rows(hardware, fabric)


def group_rows(group: Group) -> list[Row]:
    """A row for each algorithm that can run it, the one that is taken first."""
    bus = group.payload_bytes * bus_factor(group.operation, group.ranks)
    where = (group.operation, group.ranks, group.network)
    by_name = _fastest(every_curve(*where), group.payload_bytes, bus)
    allowed = _fastest(curves(*where), group.payload_bytes, bus)
    chosen = min(allowed, key=lambda name: allowed[name])
    by_name[chosen] = collective_s(group.operation, group.payload_bytes, group.ranks, group.network).value
    return [
        {
            "group": group.name,
            "operation": group.operation,
            "algorithm": name,
            "ranks": group.ranks,
            "payload_bytes": group.payload_bytes,
            "s": seconds,
            "bus_bytes_per_s": bus / seconds,
            "taken": name == chosen,
        }
        for name, seconds in sorted(by_name.items(), key=lambda item: (item[0] != chosen, item[1]))
    ]


def _fastest(found: list[Curve], payload_bytes: float, bus_bytes: float) -> dict[str, float]:
    """Seconds by algorithm, each in its quicker protocol."""
    best: dict[str, float] = {}
    for curve in found:
        if payload_bytes <= curve.limit_bytes:
            seconds = float(curve.times_s(np.asarray(bus_bytes)))
            best[curve.algorithm] = min(seconds, best.get(curve.algorithm, seconds))
    return best


def cluster_rows(hardware: Hardware, fabric: Fabric) -> list[Row]:
    """Of all chips at once, for comparison; none where they cannot all reach each other."""
    if fabric.chip_count < 2 or fabric.island_count > 1:
        return []
    network = network_of(hardware, fabric, hardware.chip)
    return [
        row
        for operation in OPERATIONS
        for row in group_rows(
            Group(
                name="all",
                operation=operation,
                ranks=fabric.chip_count,
                payload_bytes=COLLECTIVE_PAYLOAD_BYTES,
                network=network,
            )
        )
    ]


def serving_rows(serving: ServingPlan) -> list[Row]:
    """Of every pool that serves."""
    return [row for inputs, pool in serving.sides for row in _pool_rows(inputs, pool)]


def _pool_rows(inputs: PoolInputs, pool: PoolPlan) -> Iterator[Row]:
    network, point = lane_network(inputs, pool.chip), pool.operating_point
    steps = {
        "decode": ("decode", mean_batch(point)),
        "prefill": ("prefill", mean_chunk(point, pool.scheduler)),
    }
    wanted = steps.values() if inputs.role == "both" else (steps[inputs.role],)
    for step, tokens in wanted:
        if inputs.parallelism.tp_ranks > 1:
            yield from group_rows(
                Group(
                    name=f"tensor_{step}",
                    operation="all_reduce",
                    ranks=inputs.parallelism.tp_ranks,
                    payload_bytes=tokens * inputs.architecture.hidden * BYTES_OF_ACTIVATION,
                    network=network,
                )
            )
        exchange = expert_exchange(inputs, pool.chip, network)
        if exchange is not None and exchange.groups > 1:
            yield from _exchange_rows(f"experts_{step}", exchange, tokens)


def _exchange_rows(name: str, exchange: ExpertExchange, tokens: float) -> list[Row]:
    """Dispatch and combine by either kernel; each phase takes the quicker one, marked where it is so in both."""
    payloads = {phase: tokens * exchange.row_bytes(phase).value for phase in PHASES}
    found = []
    for kernel in KERNELS:
        seconds = [
            float(curve_of(exchange, phase, kernel).times_s(np.asarray(payloads[phase]))) for phase in PHASES
        ]
        sent = max(exchange.copies(kernel)) * sum(payloads.values())
        found.append((kernel.name, sum(seconds), sent))
    chosen = min(found, key=lambda one: one[1])[0]
    return [
        {
            "group": name,
            "operation": "all_to_all",
            "algorithm": kernel_name,
            "ranks": exchange.ranks,
            "payload_bytes": sum(payloads.values()),
            "s": seconds,
            "bus_bytes_per_s": sent / seconds,
            "taken": kernel_name == chosen,
        }
        for kernel_name, seconds, sent in sorted(found, key=lambda one: one[1])
    ]


def training_rows(inputs: TrainingInputs) -> list[Row]:
    """Of one step's groups, one call each."""
    return [row for group in _training_groups(inputs) for row in group_rows(group)]


def _training_groups(inputs: TrainingInputs) -> Iterator[Group]:
    cut, network = inputs.parallelism, inputs.scaled_network
    stage = bottleneck_stage(inputs.arch, cut.pp)
    if cut.tp_ranks > 1:
        operations: tuple[Operation, ...] = (
            ("reduce_scatter", "all_gather") if inputs.splits_sequence else ("all_reduce",)
        )
        for operation in operations:
            yield Group(
                name="tensor",
                operation=operation,
                ranks=cut.tp_ranks,
                payload_bytes=activation_bytes(inputs).value,
                network=network,
            )
    if cut.cp > 1:
        yield Group(
            name="context",
            operation="all_gather",
            ranks=cut.cp,
            payload_bytes=gathered_kv_bytes(inputs).value,
            network=group_network(inputs, stride=cut.tp_ranks, ranks=cut.cp),
        )
    if cut.ep > 1 and stage.moe_layers:
        yield from _expert_groups(inputs, network)
    for data in data_groups(inputs, stage):
        for call in data.calls:
            yield Group(
                name=data.name,
                operation=call.operation,
                ranks=data.ranks,
                payload_bytes=call.payload_bytes.value,
                network=group_network(inputs, stride=data.stride, ranks=data.ranks),
            )


def _expert_groups(inputs: TrainingInputs, network: Interconnect) -> Iterator[Group]:
    """Rows of tokens: to every rank, or once to each in their domain and once to each other domain."""
    sent = dispatched(inputs)
    ways = (
        (sent.routed_bytes, inputs.parallelism.ep, network),
        (sent.local_bytes, sent.inside, network),
        (sent.remote_bytes, sent.domains, replace(network, domain_size=1, stride=sent.inside)),
    )
    for payload, ranks, over in ways:
        if payload is not None and ranks > 1:
            yield Group(
                name="experts", operation="all_to_all", ranks=ranks, payload_bytes=payload.value, network=over
            )
