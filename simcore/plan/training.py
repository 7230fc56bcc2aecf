"""From the training section to a step: what `auto` becomes, what fits, how long a step takes.

`build_training` is also what the analysis calls again with a changed chip. There is no event engine behind
it: every number of a training run is a closed form, so the plan knows them all.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from simcore.catalog import Catalog
from simcore.catalog.parameters import active_parameter_count, parameter_count
from simcore.catalog.types import Chip, LlmArchitecture
from simcore.compute.calibration import arithmetic_dtype
from simcore.cost import CostModel
from simcore.errors import InfeasibleError, InputError, Message
from simcore.fabric import Fabric
from simcore.fabric.collectives import Interconnect, interconnect
from simcore.parallelism import Parallelism
from simcore.plan.resolve import Hardware, resolve_model
from simcore.plan.slices import job_goodput
from simcore.plan.training_operators import training_operator_tables
from simcore.scenario import Scenario
from simcore.training import (
    Training,
    TrainingInputs,
    TrainingMemory,
    TrainingRow,
    TrainingStep,
    check_inputs,
    memory_rows,
    phase_terms,
    require_fit,
    training_memory,
    training_rows,
    training_step,
)
from simcore.why import Term, leaf, with_paths

_PATHS: Final = {"serving.parallelism.tp": "training.parallelism.tp"}
LARGEST_TP: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingPlan:
    """One run on the chips: what it was made from, its step, its memory, and how much time survives."""

    inputs: TrainingInputs
    hardware: Hardware
    fabric: Fabric
    step: TrainingStep
    memory: TrainingMemory
    goodput: Term  # share of time that failures and checkpoints leave
    idle_chip_count: int
    rows: list[TrainingRow]  # of one iteration, by operator

    @property
    def allocated_fraction(self) -> float:
        return self.inputs.chip_count / (self.inputs.chip_count + self.idle_chip_count)


def plan_training(
    scenario: Scenario, catalog: Catalog, hardware: Hardware, fabric: Fabric
) -> tuple[TrainingPlan | None, list[Message]]:
    """The training run of a scenario, where it trains."""
    if scenario.workload.kind != "training":
        return None, []
    architecture, warnings = resolve_model(scenario.model, catalog)
    inputs = _resolved_inputs(scenario, architecture, hardware, fabric)
    check_inputs(inputs, owned_chip_count=scenario.hardware.chip_count)
    memory = training_memory(inputs)
    if not memory.fits:
        require_fit(inputs, memory, tuple(catalog.chips.values()))
    step = training_step(inputs)
    planned = TrainingPlan(
        inputs=inputs,
        hardware=hardware,
        fabric=fabric,
        step=step,
        rows=training_rows(inputs, step),
        memory=memory,
        goodput=job_goodput(scenario.reliability, hardware.server, chip_count=inputs.chip_count),
        idle_chip_count=scenario.hardware.chip_count - inputs.chip_count,
    )
    return planned, [*warnings, *_warnings(planned)]


def network_of(hardware: Hardware, fabric: Fabric, chip: Chip) -> Interconnect:
    return interconnect(
        chip,
        hardware.server,
        hardware.calibration,
        fabric=fabric,
        reference_scaleup_bytes_per_s=hardware.reference_scaleup_bytes_per_s,
    )


def build_training(
    planned: TrainingPlan, chip: Chip, *, scaleout_factor: float = 1.0, latency_ratio: float = 1.0
) -> TrainingStep:
    """The same run on a changed chip, with NICs so many times as fast, or latencies so many times as long."""
    network = replace(network_of(planned.hardware, planned.fabric, chip), latency_ratio=latency_ratio)
    if scaleout_factor != 1.0:
        rate = network.scaleout_bytes_per_s * leaf(scaleout_factor, "scaleout_factor", kind="assumption")
        network = replace(network, scaleout_bytes_per_s=rate)
    return training_step(replace(planned.inputs, chip=chip, network=network))


def _resolved_inputs(
    scenario: Scenario, architecture: LlmArchitecture, hardware: Hardware, fabric: Fabric
) -> TrainingInputs:
    """`tp: auto` is the smallest power of two that fits in the scale-up domain, `dp: auto` takes all chips."""
    spec, chip_count = scenario.training, scenario.hardware.chip_count
    network = network_of(hardware, fabric, hardware.chip)

    def with_tp(tp: int) -> TrainingInputs:
        return TrainingInputs(
            arch=architecture,
            chip=hardware.chip,
            calibration=hardware.calibration,
            network=network,
            spec=spec,
            parallelism=_degrees(spec, tp=tp, chip_count=chip_count),
        )

    wanted = spec.parallelism.tp
    if wanted != "auto":
        return with_tp(wanted)
    largest = min(network.domain_size, LARGEST_TP)
    options = [2**power for power in range(7) if 2**power <= largest and architecture.heads % 2**power == 0]
    options = [tp for tp in options if tp * spec.parallelism.pp * spec.parallelism.cp <= chip_count] or [1]
    for tp in options:
        found = with_tp(tp)
        if is_possible(found) and training_memory(found).fits:
            return found
    return with_tp(options[-1])


def is_possible(inputs: TrainingInputs) -> bool:
    """Whether the batch and the model can be cut this way."""
    try:
        check_inputs(inputs)
    except InputError:
        return False
    return True


def _degrees(spec: Training, *, tp: int, chip_count: int) -> Parallelism:
    asked = spec.parallelism
    each = tp * asked.pp * asked.cp
    if each > chip_count:
        raise InfeasibleError.at(
            "hardware.chip_count",
            "chips.too_few",
            "one replica needs tp × pp × cp = {needed} chips and {got} are owned; own {needed} or lower tp or pp",
            needed=each,
            got=chip_count,
        )
    dp = chip_count // each if asked.dp == "auto" else asked.dp
    return Parallelism(tp=tp, pp=asked.pp, dp=dp, cp=asked.cp, ep=asked.ep)


def _warnings(planned: TrainingPlan) -> list[Message]:
    inputs, parallelism = planned.inputs, planned.inputs.parallelism
    batches, virtual = inputs.micro_batch_count, inputs.spec.virtual_stages
    found = []
    if planned.idle_chip_count:
        found.append(
            Message(
                code="training.idle_chips",
                template="{idle:,} of {owned:,} chips are idle: tp × pp × cp × dp = {used:,} use the rest",
                params={
                    "idle": planned.idle_chip_count,
                    "owned": planned.idle_chip_count + inputs.chip_count,
                    "used": inputs.chip_count,
                },
                path="hardware.chip_count",
            )
        )
    if inputs.calibration.content_sha256:
        found.append(
            Message(
                code="training.own_calibration",
                template="of the calibration {name} a training step takes the collectives; its products and attention "
                "keep the rooflines that training was fitted with",
                params={"name": inputs.calibration.name},
                path="hardware.calibration",
            )
        )
    if parallelism.tp_ranks > inputs.network.domain_size:
        found.append(
            Message(
                code="training.tp_crosses_domain",
                template="{tp} tensor parallel ranks do not share one scale-up domain of {domain}: every layer's "
                "collectives cross the network; pipeline stages need far less of it",
                params={"tp": parallelism.tp_ranks, "domain": inputs.network.domain_size},
                path="training.parallelism.tp",
            )
        )
    if batches < parallelism.pp:
        found.append(
            Message(
                code="training.short_pipeline",
                template="{batches} micro-batches do not fill {stages} stages: the bubble is {bubble:.0%} of the "
                "schedule; a larger batch or fewer stages fills them",
                params={
                    "batches": batches,
                    "stages": parallelism.pp,
                    "bubble": planned.step.bubble_fraction.value,
                },
                path="training.parallelism.pp",
            )
        )
    if virtual > 1 and batches % parallelism.pp:
        found.append(
            Message(
                code="training.interleaving",
                template="interleaving runs micro-batches in groups of pp, and {batches} is no multiple of {stages}",
                params={"batches": batches, "stages": parallelism.pp},
                path="training.virtual_stages",
            )
        )
    if arithmetic_dtype(inputs.chip, inputs.spec.dtype) == "bf16" and inputs.spec.dtype not in (
        "bf16",
        "fp16",
    ):
        found.append(
            Message(
                code="training.no_such_units",
                template="{chip} has no units for {dtype}; products run in bf16",
                params={"chip": inputs.chip.name, "dtype": inputs.spec.dtype},
                path="training.dtype",
            )
        )
    return found


def training_terms(planned: TrainingPlan, cost: CostModel) -> dict[str, Term]:
    """The run's metrics as trees, with its price."""
    arch, memory = planned.inputs.arch, planned.memory
    found: dict[str, Term] = {
        "model.parameter_count": parameter_count(arch),
        "model.active_parameter_count": active_parameter_count(arch),
        "memory.weight_bytes_per_chip": memory.uses["weights"],
        "training.memory_bytes_per_chip": memory.used,
        "training.free_bytes_per_chip": memory.free,
        "training.chip_count": leaf(
            planned.inputs.chip_count,
            "training_chip_count",
            kind="derived",
            source="tp × pp × cp × dp",
            dimension="count",
        ),
        **planned.step.terms,
        **phase_terms(planned.rows),
        **cost.training_terms(
            token_per_s=planned.step.token_per_s,
            total_tokens=_total_tokens(planned.inputs),
            goodput=planned.goodput,
            utilisation=utilisation_term(planned),
        ),
    }
    return with_paths({name: term.named(name) for name, term in found.items()}, _PATHS)


def _total_tokens(inputs: TrainingInputs) -> Term | None:
    wanted = inputs.spec.total_tokens
    return None if wanted is None else inputs.leaf("total_tokens", wanted)


def utilisation_term(planned: TrainingPlan) -> Term:
    """Share of owned chip time in which a step runs."""
    share = leaf(
        planned.allocated_fraction,
        "allocated_fraction",
        kind="derived",
        source="chips of the run ÷ chips owned",
    )
    return (share * planned.goodput).named("utilisation_fraction", "fraction")


def chip_time(planned: TrainingPlan) -> dict[str, float]:
    """Shares of owned chip time by resource; they sum to 1. Idle chips wait in `queue`, lost time in `failure`."""
    allocated, up = planned.allocated_fraction, planned.goodput.value
    step_s = planned.step.step_s.value
    found = {name: part.value / step_s * allocated * up for name, part in planned.step.split.parts.items()}
    return found | {"queue": (1.0 - allocated) * up, "failure": 1.0 - up}


def time_metrics(planned: TrainingPlan) -> dict[str, Term]:
    """The partition of chip time and effective utilisation, as metrics."""
    shares = chip_time(planned)
    run = leaf(shares["compute"], "busy", kind="derived", source="compute ÷ step × chips in use × goodput")
    found = {"analysis.busy_fraction": run}
    for name, share in shares.items():
        if name != "compute" and (share > 0 or name in ("hbm", "overhead", "queue")):
            found[f"analysis.waiting.{name}_fraction"] = leaf(
                share, name, kind="derived", source="share of the step × chips in use × goodput"
            )
    effective = planned.step.mfu_fraction * utilisation_term(planned)
    found["analysis.effective_utilisation_fraction"] = effective
    return with_paths({name: term.named(name) for name, term in found.items()}, _PATHS)


def training_tables(planned: TrainingPlan) -> dict[str, Any]:
    """Where the step's time and the chip's memory go."""
    parts = {name: part.value for name, part in planned.step.split.parts.items()}
    rows = [
        {"resource": name, "fraction": share, "s_per_iteration": parts.get(name)}
        for name, share in chip_time(planned).items()
        if share > 0
    ]
    operators = training_operator_tables(planned.inputs, planned.rows, phase_terms(planned.rows))
    return {"where_time_goes": rows, "training_memory": memory_rows(planned.memory), **operators}


def resolved_training(planned: TrainingPlan) -> dict[str, Any]:
    """What `auto` became, by scenario path."""
    return {
        "training.parallelism.tp": planned.inputs.parallelism.tp_ranks,
        "training.parallelism.dp": planned.inputs.parallelism.dp,
    }
