"""The flows of one training step: who sends what to whom, by group, from the cut and the placement.

Ranks lie tensor first, then context, data, pipeline (`training/communication.py`), from chip 0 on; payloads and
counts are those that the step is charged for (`training/payloads.py`). Rings are taken for what is reduced and
gathered: of the ways of `fabric/patterns.py` all move the same bytes. What delays the step is *core*; gradients and
weights that overlap kernels are *inter_domain*; checkpoints and monitoring are *management*.
Assumptions: a checkpoint (weights and optimiser states) goes to the memory of the chip half a run away, as in-memory
checkpoints do, so many bytes a step as the interval gives; chips report `MONITORING_BYTES_PER_S` to the first.
Limits: adapters and multi-token prediction exchange as their layers do; bytes of a whole step, no order in time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from simcore.catalog.types import Server
from simcore.fabric import patterns
from simcore.fabric.collectives import bus_factor
from simcore.fabric.patterns import Edges
from simcore.fabric.traffic import FlowGroup, Flows, Ints, TrafficClass, joined
from simcore.parallelism import PipelineStage, pipeline_stages
from simcore.plan.training import TrainingPlan
from simcore.reliability import ReliabilitySpec, checkpoint_interval_term, mtbf_term
from simcore.reliability.failures import servers_of
from simcore.training import TrainingInputs
from simcore.training.communication import group_network
from simcore.training.experts import dispatched, exchanges
from simcore.training.payloads import (
    activation_bytes,
    data_groups,
    gathered_kv_bytes,
    passes,
    stage_payload_bytes,
    tensor_calls,
)

MONITORING_BYTES_PER_S: Final = 10e3  # assumption: some hundred counters of a chip, each second
GATHERS_OF_KV: Final = 3.0  # forward gathers, backward gathers again and scatters gradients


def training_flows(planned: TrainingPlan, reliability: ReliabilitySpec, server: Server) -> Flows:
    """All flows of a step."""
    inputs = planned.inputs
    cut = inputs.parallelism
    grid = np.arange(inputs.chip_count).reshape(cut.pp, cut.dp, cut.cp, cut.tp_ranks)
    stages = pipeline_stages(inputs.arch, cut.pp)
    parts = [
        _group(name, traffic_class, edges)
        for stage, ranks in zip(stages, grid, strict=True)
        for name, traffic_class, edges in _of_stage(inputs, stage, ranks)
    ]
    parts.append(_group("pipeline", "core", _between_stages(inputs, grid)))
    parts += _management(planned, reliability, server, grid.ravel())
    return joined([part for part in parts if len(part)])


def _group(name: str, traffic_class: TrafficClass, edges: list[Edges]) -> Flows:
    return patterns.flows(FlowGroup(name=name, traffic_class=traffic_class), edges)


def _of_stage(
    inputs: TrainingInputs, stage: PipelineStage, ranks: Ints
) -> Iterator[tuple[str, TrafficClass, list[Edges]]]:
    """What the chips of a stage (dp, cp, tp) send each other."""
    yield ("sequence" if inputs.splits_sequence else "tensor"), "core", _tensor(inputs, stage, ranks)
    yield "context", "core", _context(inputs, stage, ranks)
    yield "expert", "core", _expert(inputs, stage, ranks)
    hides: TrafficClass = "inter_domain" if inputs.spec.overlap.dp else "core"
    for group in data_groups(inputs, stage):
        members = _members(ranks, group.ranks, group.stride)
        inside = group_network(inputs, stride=group.stride, ranks=group.ranks).domain_size
        each = sum(
            call.count * call.payload_bytes.value * bus_factor(call.operation, group.ranks)
            for call in group.calls
        )
        yield group.name, hides, patterns.ring(members, each, inside=inside)


def _members(ranks: Ints, size: int, stride: int) -> Ints:
    """Groups of `size` ranks that stand `stride` apart in a stage (dp, cp, tp)."""
    return ranks.reshape(-1, size, stride).transpose(0, 2, 1).reshape(-1, size)


def _tensor(inputs: TrainingInputs, stage: PipelineStage, ranks: Ints) -> list[Edges]:
    tp = inputs.parallelism.tp_ranks
    calls = tensor_calls(inputs, stage).value * inputs.micro_batch_count
    each = calls * activation_bytes(inputs).value * bus_factor("all_reduce", tp)
    inside = group_network(inputs, stride=1, ranks=tp).domain_size
    return patterns.ring(ranks.reshape(-1, tp), each, inside=inside)


def _context(inputs: TrainingInputs, stage: PipelineStage, ranks: Ints) -> list[Edges]:
    cut = inputs.parallelism
    if cut.cp == 1:
        return []
    calls = GATHERS_OF_KV * stage.layers * inputs.micro_batch_count
    each = calls * gathered_kv_bytes(inputs).value * bus_factor("all_gather", cut.cp)
    inside = group_network(inputs, stride=cut.tp_ranks, ranks=cut.cp).domain_size
    return patterns.ring(_members(ranks, cut.cp, cut.tp_ranks), each, inside=inside)


def _expert(inputs: TrainingInputs, stage: PipelineStage, ranks: Ints) -> list[Edges]:
    ep = inputs.parallelism.ep
    if ep == 1 or not stage.moe_layers:
        return []
    calls = exchanges(inputs, stage, passes(inputs)).value * inputs.micro_batch_count
    each, members = dispatched(inputs), ranks.reshape(-1, ep)
    if each.routed_bytes is not None:
        return patterns.all_to_all(members, calls * each.routed_bytes.value * bus_factor("all_to_all", ep))
    local, remote = each.local_bytes, each.remote_bytes
    return patterns.by_domain(
        members,
        calls * local.value * bus_factor("all_to_all", each.inside) if local is not None else 0.0,
        calls * remote.value * bus_factor("all_to_all", each.domains) if remote is not None else 0.0,
        inside=each.inside,
    )


def _between_stages(inputs: TrainingInputs, grid: Ints) -> list[Edges]:
    """Activations forward and gradients backward, once per virtual stage; the last one wraps to the first."""
    stages, virtual = inputs.parallelism.pp, inputs.spec.virtual_stages
    if stages == 1:
        return []
    members = grid.reshape(stages, -1).T
    each = stage_payload_bytes(inputs).value * inputs.micro_batch_count
    wraps = patterns.line(members[:, [-1, 0]], (virtual - 1) * each, (virtual - 1) * each)
    return patterns.line(members, virtual * each, virtual * each) + wraps


def _management(
    planned: TrainingPlan, reliability: ReliabilitySpec, server: Server, ranks: Ints
) -> list[Flows]:
    step_s, uses = planned.step.step_s.value, planned.memory.uses
    servers = servers_of(len(ranks), server.chips_per_server)
    interval = checkpoint_interval_term(
        reliability.checkpoint_interval_s,
        write_s=reliability.checkpoint_write_s,
        mtbf=mtbf_term(server_count=servers, failures=reliability.failures),
    )
    saved = (uses["weights"].value + uses["optimizer"].value) * step_s / interval.value
    return [
        _group("checkpoint", "management", patterns.shifted(ranks, len(ranks) // 2, saved)),
        monitoring(ranks, step_s),
    ]


def monitoring(ranks: Ints, period_s: float) -> Flows:
    """Every chip reports to the first."""
    return _group(
        "monitoring",
        "management",
        [patterns.sent(ranks, np.full_like(ranks, ranks[0]), MONITORING_BYTES_PER_S * period_s)],
    )
