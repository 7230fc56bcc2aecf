"""`simulate(plan, on_event)`: run what the plan describes and say what came out, as it comes.

Stages, cheapest first: the plan's closed forms at once, the fabric under the plan's traffic, then the
serving engine in slices of simulated time, then its statistics, the partition of chip time and the money per
token. `on_event(kind, payload)` hears each; whoever listens may raise to stop the run. Same plan, same result,
bit for bit.

The partition (unit: owned chip-seconds; the parts sum to 1): *compute* is flop/(e_c·peak), *hbm* what
memory adds, *scaleup* exposed collectives, *overhead* launch and host work, *queue* no iteration running or
chip not allocated, *failure* the share of time a replica's hosts are down, by which the rest is scaled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from simcore.cost.offers import TokenMix
from simcore.errors import Message
from simcore.glossary import statistic
from simcore.plan import ENGINE_VERSION, Plan, PoolPlan, ServingPlan, TrainingPlan
from simcore.plan.bands import serving_bands
from simcore.plan.fabric_load import fabric_load
from simcore.plan.kv_tiers import tier_metrics, tier_rows
from simcore.plan.life_stage import lived
from simcore.plan.prefixes import prefix_chains
from simcore.plan.requests import replications
from simcore.plan.serving import lane_pool
from simcore.plan.shocks import outages_of
from simcore.plan.slices import drawn_slices, host_availability, replica_hosts
from simcore.plan.training import utilisation_term
from simcore.plan.training_bands import training_bands
from simcore.plan.types import PoolInputs
from simcore.reliability import replica_availability_term
from simcore.serving.apart import apart_metrics
from simcore.serving.by_class import class_rows, promised_times
from simcore.serving.class_series import class_series
from simcore.serving.engine import Engine
from simcore.serving.estimate import disagreement
from simcore.serving.interruptions import Outages
from simcore.serving.intervals import mean_metrics, replication_rows, steady_rows
from simcore.serving.latencies import Promise
from simcore.serving.metrics import PoolUse, ServingMetrics, serving_metrics
from simcore.serving.queue_order import starvation, waiting_line
from simcore.serving.records import Floats, Records, Replicas, Totals, Transfers
from simcore.serving.scaling import scaling_metrics, slow_starts
from simcore.serving.state import FINISHED
from simcore.why import Term, leaf, simulated

OnEvent = Callable[[str, dict[str, Any]], None]
SLICE_COUNT = 40
RESOURCES = ("compute", "hbm", "scaleup", "scaleout", "host", "bubble", "overhead", "queue", "failure")


class FindingsLike(Protocol):
    """What `analyse` returns, as far as a result is concerned (analysis stands above simulation)."""

    @property
    def metrics(self) -> Mapping[str, float | str]: ...
    @property
    def tables(self) -> Mapping[str, Any]: ...
    @property
    def why(self) -> Mapping[str, Term]: ...
    @property
    def messages(self) -> Sequence[Message]: ...
    @property
    def series(self) -> Mapping[str, Mapping[str, Any]]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What came out. `as_dict` is the Result document of the interface; arrays are columns."""

    scenario: str
    inputs: Mapping[str, Any]  # the scenario with all its defaults
    digest: str
    seed: int
    metrics: Mapping[str, float | int | str]
    series: Mapping[str, Mapping[str, Any]]
    tables: Mapping[str, Any]
    warnings: tuple[Message, ...]
    why: Mapping[str, Term]
    findings: tuple[Message, ...] = ()
    bands: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    records: Records | None = None
    engine_version: str = ENGINE_VERSION

    def as_dict(self) -> dict[str, Any]:
        tables = dict(self.tables)
        if self.findings:
            tables["findings"] = [finding.as_dict() | {"text": finding.text} for finding in self.findings]
        return {
            "schema_version": 1,
            "engine_version": self.engine_version,
            "digest": self.digest,
            "seed": self.seed,
            "scenario": self.scenario,
            "inputs": dict(self.inputs),
            "metrics": {name: _plain(value) for name, value in self.metrics.items()},
            "bands": {name: dict(band) for name, band in self.bands.items()},
            "warnings": [warning.as_dict() for warning in self.warnings],
            "series": {name: plain_columns(columns) for name, columns in self.series.items()},
            "tables": tables,
        }

    def with_findings(self, findings: FindingsLike) -> Result:
        return replace(
            self,
            metrics={**self.metrics, **findings.metrics},
            tables={**self.tables, **findings.tables},
            series={**self.series, **findings.series},
            why={**self.why, **findings.why},
            findings=tuple(findings.messages),
        )


def simulate(plan: Plan, on_event: OnEvent | None = None) -> Result:
    """Run the plan. Events: `stage` (closed_forms, fabric, then serving or training) and `series`."""
    emit = on_event or _nobody
    emit(
        "stage",
        {
            "stage": "closed_forms",
            "metrics": {name: _plain(value) for name, value in plan.metrics.items()},
            "tables": dict(plan.tables),
            "warnings": [warning.as_dict() for warning in plan.warnings],
        },
    )
    drawn = drawn_slices(plan.slices, seed=plan.seed)
    result = Result(
        scenario=plan.scenario.name,
        inputs=plan.scenario.model_dump(mode="json", exclude={"name", "description"}),
        digest=plan.digest,
        seed=plan.seed,
        metrics={**plan.metrics, **{name: term.value for name, term in drawn.terms.items()}},
        series={**plan.series, **drawn.series},
        tables={**plan.tables, **drawn.tables},
        warnings=plan.warnings,
        why={**plan.why, **drawn.terms},
    )
    result = _with_fabric(plan, result, emit)
    result = _with_life(plan, result, emit)
    if plan.training is not None:
        return _with_training(plan, plan.training, result, emit)
    return result if plan.serving is None else _with_serving(plan, plan.serving, result, emit)


def _with_fabric(plan: Plan, result: Result, emit: OnEvent) -> Result:
    """What the chips send each other, on the links of the fabric."""
    found = fabric_load(plan)
    if found is None:
        return result
    metrics = {name: term.value for name, term in found.terms.items()}
    emit(
        "stage",
        {
            "stage": "fabric",
            "metrics": metrics,
            "tables": dict(found.tables),
            "warnings": [warning.as_dict() for warning in found.warnings],
        },
    )
    return replace(
        result,
        metrics={**result.metrics, **metrics},
        tables={**result.tables, **found.tables},
        warnings=(*result.warnings, *found.warnings),
        why={**result.why, **found.terms},
    )


def _with_life(plan: Plan, result: Result, emit: OnEvent) -> Result:
    """The cluster's life, where one is asked for."""
    life = lived(plan)
    if life is None:
        return result
    emit(
        "stage", {"stage": "life", "metrics": dict(life.metrics), "tables": dict(life.tables), "warnings": []}
    )
    for name, columns in life.series.items():
        emit("series", {"name": name, "columns": plain_columns(columns)})
    return replace(
        result,
        metrics={**result.metrics, **life.metrics},
        bands={**result.bands, **life.bands},
        series={**result.series, **life.series},
        tables={**result.tables, **life.tables},
        why={**result.why, **life.why},
    )


def _with_training(plan: Plan, training: TrainingPlan, result: Result, emit: OnEvent) -> Result:
    """A training step is a closed form: what is left is the money at the run's own utilisation."""
    money = plan.cost.terms(utilisation_term(training))
    names = [name for name in plan.terms if name.startswith(("training.", "analysis.", "memory."))]
    metrics = {name: plan.terms[name].value for name in names} | {
        name: term.value for name, term in money.items()
    }
    emit(
        "stage",
        {
            "stage": "training",
            "metrics": {name: _plain(value) for name, value in metrics.items()},
            "tables": {name: plan.tables[name] for name in ("where_time_goes", "training_memory")},
            "warnings": [],
        },
    )
    everything = {**result.metrics, **metrics}
    return replace(
        result,
        metrics=everything,
        bands={**result.bands, **training_bands(training, everything)},
        why={**result.why, **money},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Served:
    """What the engine made of the requests of one seed."""

    metrics: Mapping[str, float | int | str]
    chip_time: Mapping[str, float]
    step_s: float
    prefill_token_fraction: float
    classes: Sequence[Mapping[str, float | int | str]]
    tiers: Sequence[Mapping[str, Any]]  # `kv_tiers` with their use, where the engine used any
    outcome: ServingMetrics
    warnings: tuple[Message, ...]  # of starting replicas
    series: Mapping[str, Mapping[str, Any]]


def _with_serving(plan: Plan, serving: ServingPlan, result: Result, emit: OnEvent) -> Result:
    """The metrics are means over the replications; series, distributions and records are the first one's."""
    first, records = _served(plan, serving, emit)
    series = {**first.series, **_class_series(plan, serving, records)}
    runs = [first]
    for other in replications(plan):
        assert other.serving is not None, "a replication of what serves"
        runs.append(_served(other, other.serving, _nobody)[0])
        emit("stage", {"stage": "replication", "metrics": {}, "tables": {}, "warnings": []})
    measured = [
        {name: value for name, value in run.metrics.items() if name not in plan.terms} for run in runs
    ]
    closed = {name: value for name, value in first.metrics.items() if name in plan.terms}
    metrics = {**mean_metrics(measured), **closed}
    if serving.pool.bound:
        metrics["compute.roofline_bound"] = serving.pool.bound
    count = len(runs) * len(serving.inputs.requests)
    money = _money(plan, serving, metrics, runs, count)
    tables = _serving_tables(serving, runs, records)
    if len(runs) > 1:
        tables["replications"] = replication_rows(measured)
    warnings = (
        *first.outcome.warnings,
        *first.warnings,
        *disagreement(plan.metrics, metrics),
        *starvation(
            serving.sides[0][1].scheduler.queue, records, slo_ttft_s=plan.scenario.workload.slo.ttft_s
        ),
    )
    emit(
        "stage",
        {
            "stage": "serving",
            "metrics": {name: _plain(value) for name, value in metrics.items()}
            | {name: term.value for name, term in money.items()},
            "tables": tables,
            "warnings": [warning.as_dict() for warning in warnings],
        },
    )
    everything = {**result.metrics, **metrics, **{name: term.value for name, term in money.items()}}
    return replace(
        result,
        metrics=everything,
        bands={**result.bands, **serving_bands(serving, everything)},
        series={**result.series, **series, **first.outcome.cdfs},
        tables={**result.tables, **tables},
        warnings=(*result.warnings, *warnings),
        why={**result.why, **_simulated_terms(plan, metrics, count), **money},
        records=records,
    )


def _served(plan: Plan, serving: ServingPlan, emit: OnEvent) -> tuple[_Served, Records]:
    ran = _ran(plan, serving, emit)
    records, pool_totals = ran.records, ran.pool_totals
    totals = Totals.of_all(pool_totals)
    promise = promise_of(plan, serving)
    outcome = _outcome(plan, serving, promise, records, pool_totals)
    chip_time = partition(plan, serving, outcome)
    tokens = totals.prefill_token_sum + totals.decode_sequence_sum
    found = _Served(
        metrics={
            **outcome.metrics,
            **_time_metrics(chip_time, outcome, useful_fraction(totals)),
            "serving.replica_count": serving.replica_count,
            **({} if ran.transfers is None else apart_metrics(ran.transfers, pool_totals)),
            **_scaled(serving, ran.replicas, totals),
            **tier_metrics(serving, totals, float(records.output_tokens[records.status == FINISHED].sum())),
        },
        chip_time=chip_time,
        step_s=totals.busy_s / totals.iteration_count if totals.iteration_count else 0.0,
        prefill_token_fraction=totals.prefill_token_sum / tokens if tokens else 0.0,
        classes=_class_rows(plan, serving, records, totals),
        tiers=tier_rows(serving, totals, plan.tables.get("kv_tiers", [])) if totals.tiers else [],
        outcome=outcome,
        warnings=() if ran.starting_count is None else slow_starts(records, ran.starting_count, promise),
        series=ran.series,
    )
    return found, records


def _scaled(serving: ServingPlan, use: Replicas | None, totals: Totals) -> dict[str, float | int]:
    if use is None:
        return {}
    return scaling_metrics(use, replica_count=serving.replica_count, makespan_s=totals.makespan_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ran:
    """What is kept of an engine, which is as large, and gone when this is read."""

    series: dict[str, dict[str, Any]]
    records: Records
    pool_totals: list[Totals]
    transfers: Transfers | None
    replicas: Replicas | None
    starting_count: Floats | None  # of replicas, at each arrival; with an autoscaler


def _ran(plan: Plan, serving: ServingPlan, emit: OnEvent) -> _Ran:
    engine = _engine(plan, serving, outages_of(plan, serving))
    series = _streamed(engine, len(serving.inputs.requests), emit)
    records, replicas = engine.records(), engine.replicas()
    return _Ran(
        series=series,
        records=records,
        pool_totals=engine.pool_totals(),
        transfers=engine.transfers(),
        replicas=replicas,
        starting_count=None if replicas is None else engine.starting_at(records.arrival_s),
    )


def _serving_tables(serving: ServingPlan, runs: Sequence[_Served], records: Records) -> dict[str, Any]:
    """Where time goes; what each class got, where there are some; tiers and the steady state of the first run."""
    first = runs[0]
    found: dict[str, Any] = {
        "where_time_goes": _time_rows(
            _mean([run.chip_time for run in runs]), sum(run.step_s for run in runs) / len(runs)
        )
    }
    if first.classes:
        found["classes"] = [mean_metrics(rows) for rows in zip(*(run.classes for run in runs), strict=True)]
    if first.tiers:
        found["kv_tiers"] = list(first.tiers)
    if serving.inputs.requests.turns is not None:  # later turns stand behind all first ones
        records = records.where(np.argsort(records.arrival_s, kind="stable"))
    scaled = serving.inputs.spec.autoscaling is not None  # then nothing is steady while the load moves
    if not scaled and (steady := steady_rows(records, serving.front_end_s)):
        found["steady_state"] = steady
    return found


def _mean(shares: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {name: float(np.mean([one[name] for one in shares])) for name in shares[0]}


def records_under(plan: Plan, serving: ServingPlan, outages: Outages | None) -> Records:
    """What the requests of a plan get where this becomes of its replicas."""
    engine = _engine(plan, serving, outages)
    engine.run()
    return engine.records()


def _engine(plan: Plan, serving: ServingPlan, outages: Outages | None) -> Engine:
    (inputs, pool), prefill = serving.sides[0], serving.prefill
    return Engine(
        [lane_pool(one) for one in serving.pools],
        block_size_tokens=pool.kv.block_size_tokens,
        router=inputs.spec.router,
        requests=inputs.requests,
        reservation=pool.reservation,
        chains=prefix_chains(serving),
        admission=inputs.spec.admission,
        autoscaling=inputs.spec.autoscaling,
        seed=plan.seed,
        line=waiting_line(
            pool.scheduler.queue,
            inputs.requests,
            classes=plan.scenario.workload.classes,
            prediction_cv=getattr(inputs.spec.scheduler, "prediction_cv", 0.0),
            seed=plan.seed,
        ),
        link=None if prefill is None else prefill.link.link,
        outages=outages,
    )


def _streamed(engine: Engine, request_count: int, emit: OnEvent) -> dict[str, dict[str, Any]]:
    """Drive the engine to its end; the series as one piece."""
    parts: dict[str, list[Mapping[str, Any]]] = {"serving": [], "kv_map": []}
    for piece in engine.slices(target_count=SLICE_COUNT):
        parts["serving"].append(piece.columns)
        parts["kv_map"].append(piece.kv_map)
        emit(
            "series",
            {
                "name": "serving",
                "columns": plain_columns(piece.columns),
                "progress_fraction": piece.progress_fraction,
                "completed_count": piece.completed_count,
                "request_count": request_count,
            },
        )
    return {
        series: {name: np.concatenate([part[name] for part in found]) for name in (found[0] if found else {})}
        for series, found in parts.items()
    }


def promise_of(plan: Plan, serving: ServingPlan) -> Promise:
    """What the SLO promises each request."""
    workload = plan.scenario.workload
    ttft_s, tpot_s = promised_times(workload.classes, workload.slo, serving.inputs.requests.class_of)
    return Promise(ttft_s=ttft_s, tpot_s=tpot_s, front_end_s=serving.front_end_s)


def _outcome(
    plan: Plan, serving: ServingPlan, promise: Promise, records: Records, pool_totals: Sequence[Totals]
) -> ServingMetrics:
    requests = serving.inputs.requests
    return serving_metrics(
        records,
        [_use(*side, did) for side, did in zip(serving.sides, pool_totals, strict=True)],
        slo_ttft_s=promise.ttft_s,
        slo_tpot_s=promise.tpot_s,
        capacity_request_per_s=serving.capacity.value,
        closed_loop=requests.concurrency > 0,
        reservation=serving.pool.reservation,
        session_count=0 if requests.turns is None else requests.turns.session_count,
        chip_count=plan.fabric.chip_count,
    )


def _use(inputs: PoolInputs, pool: PoolPlan, totals: Totals) -> PoolUse:
    return PoolUse(
        totals=totals,
        table=pool.step_table,
        chips_per_lane=pool.parallelism.rank_chip_count // pool.parallelism.pp,
        peak_flop_per_s=pool.chip.peak_flop_per_s(inputs.weights_dtype),
        hbm_bytes_per_s=pool.chip.hbm_bytes_per_s,
        request_fraction=inputs.request_fraction,
    )


def partition(plan: Plan, serving: ServingPlan, outcome: ServingMetrics) -> dict[str, float]:
    """Shares of owned chip time by resource; they sum to 1."""
    allocated = serving.chip_count / plan.fabric.chip_count
    up = replica_availability_term(
        host_availability(plan.scenario.reliability),
        hosts_per_replica=replica_hosts(serving.pool.coupled_chip_count, serving.inputs.server),
    ).value
    whole = sum(outcome.seconds.values())
    if not whole:  # nothing could be served: the chips waited all the time
        allocated = 0.0
    shares = {
        name: seconds / whole * allocated if whole else 0.0 for name, seconds in outcome.seconds.items()
    }
    shares["queue"] = shares.get("queue", 0.0) + 1.0 - allocated
    found = {name: shares.get(name, 0.0) * up for name in RESOURCES if name != "failure"}
    return found | {"failure": 1.0 - up}


def useful_fraction(totals: Totals) -> float:
    """Of the tokens that passed through the layers, those that did so for the first time (none is padding)."""
    passed = totals.prefill_token_sum + totals.decode_sequence_sum
    return max(0.0, 1.0 - totals.discarded_token_sum / passed) if passed else 1.0


def _time_metrics(chip_time: Mapping[str, float], outcome: ServingMetrics, useful: float) -> dict[str, float]:
    waits = {
        f"analysis.waiting.{name}_fraction": chip_time[name]
        for name in RESOURCES
        if name != "compute" and (chip_time[name] > 0 or name in ("hbm", "overhead", "queue"))
    }
    found = {"analysis.busy_fraction": chip_time["compute"], **waits}
    mfu = outcome.metrics.get("serving.mfu_fraction")
    if isinstance(mfu, float):
        found["analysis.useful_work_fraction"] = useful
        found["analysis.effective_utilisation_fraction"] = mfu * (1.0 - chip_time["failure"]) * useful
    return found


def _time_rows(chip_time: Mapping[str, float], step_s: float) -> list[dict[str, Any]]:
    """Shares of chip time, and seconds of a mean iteration for what happens inside one."""
    inside = [name for name in RESOURCES if name not in ("queue", "failure")]
    busy = sum(chip_time[name] for name in inside) or 1.0
    return [
        {
            "resource": name,
            "fraction": chip_time[name],
            "s_per_iteration": step_s * chip_time[name] / busy if name in inside else None,
        }
        for name in RESOURCES
        if chip_time[name] > 0
    ]


def _class_rows(
    plan: Plan, serving: ServingPlan, records: Records, totals: Totals
) -> Sequence[Mapping[str, float | int | str]]:
    workload, class_of = plan.scenario.workload, serving.inputs.requests.class_of
    if class_of is None:
        return ()
    return class_rows(
        records,
        classes=workload.classes,
        common=workload.slo,
        class_of=class_of,
        front_end_s=serving.front_end_s,
        makespan_s=totals.makespan_s,
    )


def _class_series(plan: Plan, serving: ServingPlan, records: Records) -> dict[str, dict[str, Any]]:
    """`serving_classes`, of requests that have classes."""
    class_of = serving.inputs.requests.class_of
    if class_of is None:
        return {}
    found = class_series(
        records,
        classes=plan.scenario.workload.classes,
        class_of=class_of,
        front_end_s=serving.front_end_s,
    )
    return {"serving_classes": dict(found)} if found else {}


def _money(
    plan: Plan,
    serving: ServingPlan,
    metrics: Mapping[str, float | int | str],
    runs: Sequence[_Served],
    count: int,
) -> dict[str, Term]:
    """Power, running cost and cost per token at the measured utilisation and throughput.

    Input and output share the bill by the tokens that passed through the layers (a convention: a mixed
    iteration reads the weights once for both).
    """
    chip_time = _mean([run.chip_time for run in runs])
    utilisation = 1.0 - chip_time["queue"] - chip_time["failure"]
    prefill_share = sum(run.prefill_token_fraction for run in runs) / len(runs)

    def measured(value: float, name: str) -> Term:
        return simulated(value, name, statistic="mean", count=count, seed=plan.seed)

    used = measured(utilisation, "utilisation_fraction")
    rates = {
        "input_token_per_s": measured(
            float(metrics.get("serving.input_token_per_s", 0.0)), "input_token_per_s"
        ),
        "output_token_per_s": measured(
            float(metrics.get("serving.output_token_per_s", 0.0)), "output_token_per_s"
        ),
    }
    share = measured(prefill_share, "prefill_token_fraction")
    kept = measured(float(metrics.get("serving.slo_goodput_request_per_s", 0.0)), "slo_goodput_request_per_s")
    good = (kept * _mean_tokens(serving, "output")).named("good_token_per_s")
    return (
        plan.cost.terms(used)
        | plan.cost.token_terms(**rates, utilisation=used)
        | plan.cost.split_terms(prefill_share=share, **rates, utilisation=used)
        | plan.cost.serving_terms(token_mix(serving), good_token_per_s=good, utilisation=used)
    )


def token_mix(serving: ServingPlan) -> TokenMix:
    """Tokens per second where all capacity is used, at the means of the drawn requests."""
    found = {
        f"{side}_token_per_s": (serving.capacity * _mean_tokens(serving, side)).named(
            f"capacity_{side}_token_per_s"
        )
        for side in ("input", "output")
    }
    return TokenMix(**found)


def _mean_tokens(serving: ServingPlan, side: str) -> Term:
    tokens = getattr(serving.inputs.requests, f"{side}_tokens")
    return leaf(float(np.mean(tokens)), f"mean_{side}_tokens", kind="derived", source="drawn requests")


def _simulated_terms(plan: Plan, metrics: Mapping[str, float | int | str], count: int) -> dict[str, Term]:
    """Leaves for what the engine measured; a closed form keeps its own tree."""
    return {
        name: simulated(float(value), name, statistic=statistic(name), count=count, seed=plan.seed)
        for name, value in metrics.items()
        if not isinstance(value, str) and name not in plan.terms
    }


def plain_columns(columns: Mapping[str, Any]) -> dict[str, list[Any]]:
    return {name: np.asarray(values).tolist() for name, values in columns.items()}


def _plain(value: Any) -> Any:
    """Whole numbers as integers, numpy scalars as Python's."""
    if isinstance(value, str):
        return value
    number = float(value)
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def _nobody(kind: str, payload: dict[str, Any]) -> None:
    """No one listens."""
