"""The closed-form metrics of a plan as Why trees, and the tables that pages draw from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simcore.catalog.parameters import active_parameter_count, kv_bytes_per_token, parameter_count
from simcore.cost import CostModel
from simcore.fabric import Fabric, quotient_graph
from simcore.fabric.collectives import OPERATIONS, collective_s, interconnect
from simcore.fabric.operations import operation_terms
from simcore.fabric.scaleup import scaleup_terms
from simcore.memory.budget import waterfall
from simcore.memory.rank import RankBudget
from simcore.memory.weights import rank_weight_bytes
from simcore.plan.disaggregated import apart_terms
from simcore.plan.exchange import random_imbalance
from simcore.plan.groups import COLLECTIVE_PAYLOAD_BYTES
from simcore.plan.lockstep import lockstep_ratio
from simcore.plan.offload import offload_tables, offload_terms
from simcore.plan.operators import movement_terms, operator_tables
from simcore.plan.resolve import Hardware
from simcore.plan.serving import mean_batch
from simcore.plan.slices import SlicePlan
from simcore.plan.together import own_terms, together_terms
from simcore.plan.types import ServingPlan
from simcore.plan.wiring import wiring_tables
from simcore.why import Term, constant, leaf, total


def cluster_terms(hardware: Hardware, fabric: Fabric, slices: SlicePlan, cost: CostModel) -> dict[str, Term]:
    """What holds whatever runs on the cluster: wiring, slices, money."""
    return _fabric_terms(hardware, fabric) | dict(slices.terms) | cost.terms()


def _fabric_terms(hardware: Hardware, fabric: Fabric) -> dict[str, Term]:
    counted = {
        "fabric.tiers": len(fabric.tiers),
        "fabric.island_count": fabric.island_count,
        "fabric.diameter_hops": fabric.diameter_hops,
        "fabric.mean_hops": fabric.mean_hops,
        "fabric.ocs_count": fabric.ocs_count,
        "fabric.routing_adjacency_count": fabric.routing_adjacency_count,
    }
    found = {
        name: leaf(value, name, kind="derived", source=f"{fabric.kind}, counted")
        for name, value in counted.items()
    }
    if not fabric.ocs_count:
        del found["fabric.ocs_count"]
    found |= {name: term.named(name) for name, term in fabric.terms.items()}
    found |= operation_terms(fabric) | scaleup_terms(fabric, hardware.scaleup_domain)
    return found | _collective_terms(hardware, fabric)


def _collective_terms(hardware: Hardware, fabric: Fabric) -> dict[str, Term]:
    ranks = fabric.chip_count
    if ranks < 2 or fabric.island_count > 1:
        return {}
    network = interconnect(
        hardware.chip,
        hardware.server,
        hardware.calibration,
        fabric=fabric,
        reference_scaleup_bytes_per_s=hardware.reference_scaleup_bytes_per_s,
    )
    payload = leaf(
        COLLECTIVE_PAYLOAD_BYTES, "payload_bytes", kind="assumption", source="a 1 GB payload, for comparison"
    )
    return {
        f"fabric.collective.{operation}_s": collective_s(operation, payload, ranks, network).named(
            f"fabric.collective.{operation}_s"
        )
        for operation in OPERATIONS
    }


def cluster_tables(hardware: Hardware, fabric: Fabric, cost: CostModel) -> dict[str, Any]:
    graph = quotient_graph(fabric)
    return {
        "quotient_graph": {
            "nodes": [{"id": name, **data} for name, data in graph.nodes(data=True)],
            "edges": [{"source": a, "target": b, **data} for a, b, data in graph.edges(data=True)],
        },
        "calibration": [
            {
                "name": hardware.calibration.name,
                "slug": hardware.calibration.slug,
                "fitted_on": hardware.calibration.fitted_on,
                "is_own": bool(hardware.calibration.content_sha256),
            }
        ],
        "transceivers": [{"convention": name, "count": count} for name, count in fabric.transceivers.items()],
        "hop_histogram": [{"hops": hops, "fraction": share} for hops, share in fabric.hop_histogram],
        "fabric_tiers": [
            {
                "name": tier.name,
                "switch_count": tier.switch_count,
                "radix": tier.radix,
                "down_port_count": tier.down_port_count,
                "up_port_count": tier.up_port_count,
                "spare_port_count": tier.spare_port_count,
            }
            for tier in fabric.tiers
        ],
        **wiring_tables(hardware, fabric),
        "failure_domains": [
            {
                "component": domain.component,
                "count": domain.count,
                "chip_count": domain.chip_count,
                "capacity_loss_fraction": domain.capacity_loss_fraction,
            }
            for domain in fabric.failure_domains
        ],
        "bill": cost.bill_table(),
        "bill_by_tier": [line.as_dict() for line in cost.network_lines],
    }


def pool_terms(serving: ServingPlan) -> dict[str, Term]:
    """What the model needs and gets: parameters, memory, steps, capacity."""
    inputs, pool = serving.inputs, serving.pool
    arch, kv = inputs.architecture, pool.kv
    found: dict[str, Term] = {
        "model.parameter_count": parameter_count(arch),
        "model.active_parameter_count": active_parameter_count(arch),
        "model.kv_bytes_per_token": kv_bytes_per_token(arch, inputs.kv_dtype),
        "model.weight_bytes": _model_weight_bytes(serving),
        "memory.weight_bytes_per_chip": total(kv.rank.weight_bytes, kv.rank.rotary_bytes),
        "memory.kv_bytes_per_chip": kv.rank.kv_bytes,
        "memory.left_bytes_per_chip": kv.rank.left_bytes,
        **_state_terms(kv.rank),
        "memory.kv_token_capacity": _of_replica(serving, kv.token_capacity),
        "memory.kv_block_count": _of_replica(serving, kv.block_count),
        "memory.max_concurrency_at_max_len": _of_replica(serving, kv.max_concurrency),
        **own_terms(serving),
        **together_terms(serving),
        **_imbalance_terms(serving),
        **apart_terms(serving),
        **_lockstep_terms(serving),
        **movement_terms(serving),
        "serving.replica_count": leaf(
            serving.replica_count,
            "replica_count",
            path="serving.replica_count",
            source="chips ÷ chips of a replica",
        ),
        "serving.capacity_request_per_s": serving.capacity,
    }
    return {name: term.named(name) for name, term in found.items()}


def _of_replica(serving: ServingPlan, of_rank: Term) -> Term:
    """Of all data parallel ranks, each with a cache of its own."""
    dp = serving.inputs.parallelism.dp
    return of_rank if dp == 1 else leaf(dp, "dp", path="serving.parallelism.dp", dimension="") * of_rank


def _imbalance_terms(serving: ServingPlan) -> dict[str, Term]:
    """What chance alone would do to expert ranks in the mean decode step, beside the ratio that is assumed."""
    inputs = serving.inputs
    if inputs.parallelism.ep == 1:
        return {}
    batch = mean_batch(serving.pool.operating_point)
    return {"compute.random_expert_imbalance_ratio": random_imbalance(inputs, batch)}


def _lockstep_terms(serving: ServingPlan) -> dict[str, Term]:
    found = lockstep_ratio(serving.pool, serving.inputs.requests)
    return {} if found is None else {"compute.lockstep_step_ratio": found}


def _state_terms(rank: RankBudget) -> dict[str, Term]:
    """Of a model with states beside its KV: what states take, and what is left for blocks."""
    if not rank.state_bytes.value:
        return {}
    return {
        "memory.state_bytes_per_chip": rank.state_bytes,
        "memory.paged_bytes_per_chip": rank.kv_bytes - rank.state_bytes,
    }


def _model_weight_bytes(serving: ServingPlan) -> Term:
    """All weights of one copy: the ranks' own, tp times, as if there were one data parallel rank."""
    kv, parallelism, inputs = serving.pool.kv, serving.inputs.parallelism, serving.inputs
    ranks = [
        rank.weight_bytes
        if parallelism.dp == 1
        else rank_weight_bytes(
            inputs.architecture,
            parallelism.of_one_rank,
            rank.stage,
            weights_dtype=inputs.weights_dtype,
        )
        for rank in kv.ranks
    ]
    whole = ranks[0] if len(ranks) == 1 else total(*ranks)
    return whole if parallelism.tp_ranks == 1 else constant(parallelism.tp_ranks, "tp") * whole


def pool_table_terms(serving: ServingPlan) -> dict[str, Term]:
    """What stands in tables alone and is no metric."""
    return offload_terms(serving)


def pool_tables(serving: ServingPlan, terms: Mapping[str, Term]) -> dict[str, Any]:
    """`terms` as `pool_table_terms` made them."""
    return {
        "memory_waterfall": waterfall(serving.pool.kv),
        **operator_tables(serving),
        **offload_tables(serving, terms),
    }
