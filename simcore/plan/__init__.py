"""`plan(scenario, catalog)`: every default made explicit, every closed form evaluated, nothing simulated.

The plan looks the names up, resolves `auto`, builds the fabric and the pool, and gathers the closed
forms as Why trees. It raises InputError where a name or a value is wrong and InfeasibleError where the
system cannot exist or cannot hold its work.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from simcore.catalog import Catalog, default_catalog
from simcore.catalog.catalog import CLASS_DEFAULT
from simcore.catalog.types import LlmArchitecture
from simcore.cost import CostModel, Machines, cost_model, switch_for
from simcore.errors import InputError, Message
from simcore.fabric import Fabric
from simcore.fabric.routing import default_routing
from simcore.memory.allocators import READS_TRUE_LENGTH, AllocatorKind
from simcore.memory.engines import engine_constants
from simcore.parallelism import Parallelism
from simcore.plan.autoscaling import scaling_notes
from simcore.plan.bands import extrapolation
from simcore.plan.circuits import plan_circuits
from simcore.plan.closed_forms import (
    cluster_tables,
    cluster_terms,
    pool_table_terms,
    pool_tables,
    pool_terms,
)
from simcore.plan.cutting import resolve_parallelism
from simcore.plan.digest import ENGINE_VERSION, digest_of, topology_entry
from simcore.plan.disaggregated import plan_apart
from simcore.plan.faults import plan_faults
from simcore.plan.groups import collective_rows
from simcore.plan.kv_tiers import tier_warnings
from simcore.plan.life import plan_life
from simcore.plan.lockstep import lockstep_ratio
from simcore.plan.prefixes import check_prefix_caching, prefix_warnings
from simcore.plan.requests import requests_of, under_shocks
from simcore.plan.resolve import Hardware, OwnedChips, length_warnings, resolve_hardware, resolve_model
from simcore.plan.sessions import session_warnings
from simcore.plan.shocks import check_shocks
from simcore.plan.slices import plan_slices
from simcore.plan.speculation import speculation_warnings
from simcore.plan.together import plan_together, unlike_warnings
from simcore.plan.training import (
    TrainingPlan,
    plan_training,
    resolved_training,
    time_metrics,
    training_tables,
    training_terms,
)
from simcore.plan.training_bands import training_extrapolation
from simcore.plan.training_shocks import training_shock_notes
from simcore.plan.types import OperatingPoint, Plan, PoolInputs, PoolPlan, ServingPlan
from simcore.plan.unmet import unmet_topology
from simcore.plan.unused import unused_inputs
from simcore.plan.wiring import built
from simcore.scenario import Scenario
from simcore.scenario.schema import Serving, Workload
from simcore.serving.schedulers.disaggregated import Disaggregated
from simcore.serving.speculation import DraftModel, Speculative
from simcore.workload.arrivals import ArrivalPreset, Trace
from simcore.workload.fitted import Fitted
from simcore.workload.lengths import Preset
from simcore.workload.presets import length_presets
from simcore.workload.requests import Requests
from simcore.workload.traces import TraceTable

__all__ = [
    "ENGINE_VERSION",
    "OperatingPoint",
    "Plan",
    "PoolPlan",
    "ServingPlan",
    "TrainingPlan",
    "plan",
    "priced",
]

OPTICAL_SWITCH = "palomar-136"
Traces = Callable[[Trace], TraceTable]


def plan(scenario: Scenario, catalog: Catalog | None = None, traces: Traces | None = None) -> Plan:
    """The scenario, resolved. `traces` reads the trace that the scenario names, with its reader's rights."""
    catalog = catalog or default_catalog()
    hardware = resolve_hardware(scenario, catalog)
    fabric = built(hardware)
    trace = _trace(scenario, traces)
    serving, warnings = _serving(scenario, catalog, hardware, fabric, trace)
    training, training_warnings = plan_training(scenario, catalog, hardware, fabric)
    slices = plan_slices(scenario.reliability, hardware.server, chip_count=scenario.hardware.chip_count)
    circuits = plan_circuits(scenario.reliability, fabric, catalog.optical_switches[OPTICAL_SWITCH])
    faults = plan_faults(scenario.reliability, hardware.server, fabric)
    cost = _cost(scenario, catalog, hardware, fabric)
    terms = cluster_terms(hardware, fabric, slices, cost) | dict(circuits.terms) | dict(faults.terms)
    terms |= pool_terms(serving) if serving else {}
    table_terms = pool_table_terms(serving) if serving else {}
    tables = (
        cluster_tables(hardware, fabric, cost)
        | dict(slices.tables)
        | dict(circuits.tables)
        | dict(faults.tables)
        | (pool_tables(serving, table_terms) if serving else {})
    )
    if training:
        terms |= training_terms(training, cost) | time_metrics(training)
        tables |= training_tables(training)
    tables["collectives"] = collective_rows(hardware, fabric, serving, training)
    return Plan(
        scenario=scenario,
        resolved=_resolved(hardware, fabric, serving) | (resolved_training(training) if training else {}),
        digest=_digest(scenario, hardware, serving, training, cost, trace),
        seed=scenario.run.seed,
        chip=hardware.chip,
        server=hardware.server,
        fabric=fabric,
        slices=slices,
        life=plan_life(
            scenario.reliability,
            hardware.server,
            fabric,
            kind=hardware.topology.kind,
            chip_count=scenario.hardware.chip_count,
        ),
        serving=serving,
        training=training,
        cost=cost,
        terms=terms,
        table_terms=table_terms,
        tables=tables,
        series=slices.series,
        warnings=(
            *hardware.warnings,
            *fabric.warnings,
            *fabric.notes,
            *warnings,
            *training_warnings,
            *(training_extrapolation(training.inputs) if training else ()),
            *(
                training_shock_notes(training, scenario.reliability, seed=scenario.run.seed)
                if training
                else ()
            ),
            *slices.warnings,
            *unused_inputs(scenario, fabric),
            *unmet_topology(scenario, fabric, serving, training),
            *cost.warnings,
        ),
    )


def priced(scenario: Scenario, fabric: Fabric, catalog: Catalog | None = None) -> CostModel:
    """The money side alone of a plan whose fabric is known: all that other prices or energy can change."""
    catalog = catalog or default_catalog()
    return _cost(scenario, catalog, resolve_hardware(scenario, catalog), fabric)


def _cost(scenario: Scenario, catalog: Catalog, hardware: Hardware, fabric: Fabric) -> CostModel:
    economics = scenario.economics
    radix = fabric.tiers[0].radix if fabric.tiers else 0
    return cost_model(
        economics=economics,
        chip=hardware.chip,
        server=hardware.server,
        chip_count=scenario.hardware.chip_count,
        fabric=fabric,
        book=catalog.price_book(economics.price_book).scaled(economics.price_ratio),
        fabric_book=catalog.price_book(hardware.topology.price_book, path="topology.price_book").scaled(
            economics.network_price_ratio
        ),
        switch=switch_for(catalog.switches, radix=radix, port_bytes_per_s=fabric.link_bytes_per_s),
        optical_switch=catalog.optical_switches[OPTICAL_SWITCH] if fabric.ocs_count else None,
        model=scenario.model.name if scenario.workload.kind == "serving" else "",
        further=[
            Machines(chip=pool.chip, server=pool.server, chip_count=pool.chip_count, path=pool.path)
            for pool in hardware.pools[1:]
        ],
    )


def _trace(scenario: Scenario, traces: Traces | None) -> TraceTable | None:
    arrivals = scenario.workload.arrivals
    if scenario.workload.kind != "serving" or not isinstance(arrivals, Trace):
        return None
    if traces is None:
        raise InputError.at(
            "workload.arrivals",
            "trace.no_reader",
            "a trace cannot be read here; upload it, or run `trimtab run`",
        )
    return traces(arrivals)


def _serving(
    scenario: Scenario, catalog: Catalog, hardware: Hardware, fabric: Fabric, trace: TraceTable | None
) -> tuple[ServingPlan | None, list[Message]]:
    if scenario.workload.kind != "serving":
        return None, []
    spec = scenario.serving
    check_prefix_caching(spec.kv, hashed=scenario.workload.sessions is None)
    architecture, warnings = resolve_model(scenario.model, catalog)
    engine = engine_constants(spec.engine)
    weights_dtype = architecture.weights_dtype if spec.weights_dtype == "auto" else spec.weights_dtype
    kv_dtype = (architecture.kv_dtype or "bf16") if spec.kv.dtype == "auto" else spec.kv.dtype
    draft = _draft(spec.speculative, catalog)

    def resolve(wanted: Serving, chips: OwnedChips) -> Parallelism:
        return resolve_parallelism(
            wanted,
            architecture=architecture,
            chip=chips.chip,
            server=chips.server,
            chip_count=chips.chip_count,
            engine=engine,
            weights_dtype=weights_dtype,
            kv_dtype=kv_dtype,
            draft=draft,
        )

    drawn = requests_of(scenario, architecture.max_position, seed=scenario.run.seed, trace=trace)
    requests = under_shocks(drawn, scenario, architecture.max_position)
    inputs = PoolInputs(
        architecture=architecture,
        server=hardware.server,
        fabric=fabric,
        calibration=hardware.calibration,
        default_residuals=catalog.calibrations[CLASS_DEFAULT].residuals,
        reference_scaleup_bytes_per_s=hardware.reference_scaleup_bytes_per_s,
        spec=spec,
        engine=engine,
        parallelism=spec.parallelism,
        weights_dtype=weights_dtype,
        kv_dtype=kv_dtype,
        replica_count=1,
        requests=requests,
        draft=draft,
        other_chips=catalog.chips,
        owned_chip_count=hardware.main.chip_count,
    )
    planner = plan_apart if isinstance(spec.scheduler, Disaggregated) else plan_together
    planned = planner(inputs, {pool.name: pool for pool in hardware.pools}, resolve)
    if requests is not drawn:
        planned = replace(planned, undisturbed=drawn)
    return planned, [
        *warnings,
        *extrapolation(planned),
        *_trace_warnings(trace),
        *length_warnings(spec.max_model_len, architecture),
        *prefix_warnings(spec, requests),
        *session_warnings(spec, requests),
        *tier_warnings(spec.kv),
        *speculation_warnings(planned.pool),
        *unlike_warnings(planned),
        *scaling_notes(spec),
        *check_shocks(scenario, fabric, planned),
        *_serving_warnings(planned, spec.kv.allocator),
    ]


def _draft(spec: Speculative | None, catalog: Catalog) -> LlmArchitecture | None:
    """The model that drafts, where one is named."""
    if not isinstance(spec, DraftModel):
        return None
    return catalog.model(spec.model, path="serving.speculative.model")


def _trace_warnings(trace: TraceTable | None) -> list[Message]:
    if trace is None or not trace.skipped_count:
        return []
    return [
        Message(
            code="trace.rows_skipped",
            template="{count:,} rows have no token in or out and were skipped, the first on line {line:,}",
            params={"count": trace.skipped_count, "line": trace.skipped_rows[0].params["line"]},
            path="workload.arrivals",
        )
    ]


def _serving_warnings(planned: ServingPlan, allocator: AllocatorKind) -> list[Message]:
    found, requests = [], planned.inputs.requests
    if planned.idle_chip_count:
        found.append(_idle(planned))
    if requests.clipped_count:
        found.append(
            Message(
                code="requests.clipped",
                template="{count:,} of {total:,} requests are longer than the model's length and were cut to it",
                params={"count": requests.clipped_count, "total": len(requests)},
                path="workload.lengths",
            )
        )
    found += [_crossing(pool) for pool in planned.pools if pool.collective_tier == "scaleout"]
    if allocator in READS_TRUE_LENGTH:
        found.append(
            Message(
                code="allocator.reads_lengths",
                template="{allocator} reads the true length of each answer when it admits it, which no engine can: "
                "take it as a bound",
                params={"allocator": allocator},
                path="serving.kv.allocator",
            )
        )
    sharing = {pool.parallelism.dp: pool for pool in planned.pools if pool.exchange_tier is not None}
    found += [_mean_field(pool, requests) for pool in sharing.values()]
    staged = max(pool.parallelism.pp for pool in planned.pools)
    if staged > 1:
        found.append(
            Message(
                code="pipeline.lanes",
                template="{pp} batches in flight are modelled as lanes with an even share of KV and seats each",
                params={"pp": staged},
                path="serving.parallelism.pp",
            )
        )
    return found


def _idle(planned: ServingPlan) -> Message:
    owned, idle = planned.chip_count + planned.idle_chip_count, planned.idle_chip_count
    if planned.prefill is not None:
        return Message(
            code="chips.idle_apart",
            template="{idle} of {owned} chips are idle: {prefill} prefill and {decode} decode replica(s) use the rest",
            params={
                "idle": idle,
                "owned": owned,
                "prefill": planned.prefill.pool.replica_count,
                "decode": planned.pool.replica_count,
            },
            path="hardware.chip_count",
        )
    if planned.beside:
        return Message(
            code="chips.idle_pools",
            template="{idle} of {owned} chips are idle: {replicas} replicas on {pools} pools use the rest",
            params={
                "idle": idle,
                "owned": owned,
                "replicas": planned.replica_count,
                "pools": len(planned.pools),
            },
            path="hardware.chip_count",
        )
    return Message(
        code="chips.idle",
        template="{idle} of {owned} chips are idle: {replicas} replica(s) of {each} use the rest",
        params={
            "idle": idle,
            "owned": owned,
            "replicas": planned.pool.replica_count,
            "each": planned.pool.parallelism.replica_chip_count,
        },
        path="hardware.chip_count",
    )


def _mean_field(pool: PoolPlan, requests: Requests) -> Message:
    """Pools that only prefill or only decode wait for no other kind of work."""
    lockstep = lockstep_ratio(pool, requests)
    if lockstep is not None:
        return Message(
            code="dp.mean_field",
            template="each of {dp} data parallel ranks steps at its own pace, as if the others carried as many "
            "tokens; in lockstep, waiting for each other's prompts, steps last up to {ratio:.2f} times as long",
            params={"dp": pool.parallelism.dp, "ratio": lockstep.value},
            path="serving.parallelism.dp",
        )
    return Message(
        code="dp.mean_field",
        template="each of {dp} data parallel ranks is taken to carry as many tokens as the others: waiting "
        "for a fuller rank is not modelled",
        params={"dp": pool.parallelism.dp},
        path="serving.parallelism.dp",
    )


def _crossing(pool: PoolPlan) -> Message:
    return Message(
        code="tp.crosses_domain",
        template="{tp} tensor parallel ranks do not share one scale-up domain: every all-reduce crosses "
        "the network; pipeline stages (pp) between servers need far less of it",
        params={"tp": pool.parallelism.tp_ranks},
        path="serving.parallelism.tp",
    )


def _resolved(hardware: Hardware, fabric: Fabric, serving: ServingPlan | None) -> dict[str, Any]:
    """What `auto` became, by scenario path."""
    found: dict[str, Any] = {
        "hardware.server": hardware.server.slug,
        "hardware.calibration": hardware.calibration.slug,
        **{f"{pool.path}.server": pool.server.slug for pool in hardware.pools[1:]},
    }
    for key, value in hardware.topology.model_dump(mode="json").items():
        found[f"topology.{key}"] = _chosen(key, value, fabric)
    if serving is not None:
        for pool in serving.pools[: 1 if serving.beside else None]:
            found |= _resolved_pool(pool)
        found |= {
            "serving.max_model_len": min(pool.kv.max_model_len for pool in serving.pools),
            "serving.weights_dtype": serving.inputs.weights_dtype,
            "serving.kv.dtype": serving.inputs.kv_dtype,
        }
    return found


def _resolved_pool(pool: PoolPlan) -> dict[str, Any]:
    apart = pool.role != "both"
    batching = f"serving.scheduler.{pool.role}" if apart else "serving.scheduler"
    own = batching if apart else "serving"
    return {
        f"{own}.parallelism.tp": pool.parallelism.tp_ranks,
        f"{own}.replica_count": pool.replica_count,
        f"{batching}.max_num_seqs": pool.kv.max_num_seqs,
        f"{batching}.max_num_batched_tokens": pool.kv.max_num_batched_tokens,
    }


def _chosen(key: str, value: Any, fabric: Fabric) -> Any:
    """What the fabric made of `auto`; inside one server no tier is built."""
    if value != "auto":
        return value
    found: dict[str, Any] = {
        "tiers": len(fabric.tiers),
        "hb_domain_size": fabric.hb_domain_size,
        "twisted": fabric.is_twisted,
        "routing": default_routing(is_lattice=bool(fabric.shape)),
        **fabric.chosen,
    }
    found |= {
        name: list(sizes) for name, sizes in (("shape", fabric.shape), ("sizes", fabric.sizes)) if sizes
    }
    return found.get(key, value)


def _fits(workload: Workload) -> list[Fitted]:
    """What was fitted to real traces: the lengths of a workload and its classes, and its arrivals."""
    named = [workload.lengths, *(one.lengths for one in workload.classes)]
    found: list[Fitted] = [length_presets()[one.name] for one in named if isinstance(one, Preset)]
    return [*found, workload.arrivals.fit] if isinstance(workload.arrivals, ArrivalPreset) else found


def _digest(
    scenario: Scenario,
    hardware: Hardware,
    serving: ServingPlan | None,
    training: TrainingPlan | None,
    cost: CostModel,
    trace: TraceTable | None,
) -> str:
    entries: list[Any] = [
        hardware.chip,
        hardware.server,
        hardware.calibration,
        topology_entry(hardware.topology.model_dump(mode="json")),
        cost.bill,
        cost.offers,
        *(each for pool in hardware.pools[1:] for each in (pool.chip, pool.server, pool.calibration)),
    ]
    if serving is not None:
        entries += [
            serving.inputs.architecture,
            *([serving.inputs.draft] if serving.inputs.draft else []),
            trace.content_sha256 if trace else None,
            *_fits(scenario.workload),
        ]
    if training is not None:
        entries.append(training.inputs.arch)
    return digest_of(scenario, *entries)
