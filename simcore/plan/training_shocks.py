"""What a timeline of shocks takes from a training job: replicas that are down, and steps that last longer.

Ranks lie tensor first, then context, data, pipeline, from the first server on, as in `training_traffic.py`; a server
that is down takes along every data parallel replica with a chip on it. Without so many of them the same batch goes
over those that are left, unevenly where it must: the step is that of the replica with most micro-batches. A link, or a
switch of a rail, takes its share of the NICs of a chip, or of a torus's links; a switch further up is taken out of the
fabric. Either way the step is planned anew, and the job goes at the pace of its slowest chip.

What a stop costs (`reliability/job_line.py`): with interval τ and write time C, (τ + C)/2 of work and `restart_s`.
With state in the memory of another server (*data*; assumption: copied after each step behind the next, and nothing
is lost with its copy), half a step of work; of the restart, reading the checkpoint, taken to last as long as writing
it, becomes sending a chip's weights and optimiser states over its NICs.

Limits: idle chips are no spares; a slowdown and missing replicas multiply.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache

from simcore.errors import Message
from simcore.fabric.specs import Degraded
from simcore.plan.shock_site import SHOCKS_PATH, shock_site, shock_timeline, spares_note
from simcore.plan.slices import job_interval
from simcore.plan.training import TrainingPlan, build_training, is_possible
from simcore.reliability import (
    Abilities,
    CapacityEvent,
    Down,
    JobLine,
    ReliabilitySpec,
    Rescue,
    ShockSite,
    Slow,
    job_line,
)
from simcore.training import TrainingInputs, TrainingStep, training_memory, training_step
from simcore.why import Term, leaf

_ALL: frozenset[int] = frozenset()
_SERVED = frozenset({"load", "prompt_length", "model_swap"})  # nothing that a job feels


@dataclass(frozen=True, slots=True, kw_only=True)
class ShockedJob:
    """A training job, and what its scenario says about shocks."""

    planned: TrainingPlan
    spec: ReliabilitySpec
    site: ShockSite
    seed: int
    left_ratio: Callable[[int], float]  # pace without so many replicas
    pace_ratio: Callable[[CapacityEvent], float]  # pace under an event that takes a share of links

    def line(self, able: Abilities) -> JobLine:
        """The job's pace under the shocks, with these abilities."""
        events = self.events(able)
        return job_line(
            self.downs(events),
            [
                Slow(begin_s=one.begin_s, end_s=one.end_s, pace_ratio=self.pace_ratio(one))
                for one in events
                if one.lost_fraction < 1.0
            ],
            self.rescue(able),
            left_ratio=self.left_ratio,
            shrinks=able.task,
        )

    @property
    def first_shock_s(self) -> float:
        """When the first comes that the job can feel; of all, where it feels none."""
        felt = [one.at_s for one in self.spec.shocks if one.kind not in _SERVED]
        return min(felt or [one.at_s for one in self.spec.shocks])

    def events(self, able: Abilities) -> tuple[CapacityEvent, ...]:
        return shock_timeline(self.spec, able, self.site, seed=self.seed).capacity

    def downs(self, events: tuple[CapacityEvent, ...]) -> list[Down]:
        """Which replicas each event takes along that takes servers."""
        inputs, chips = self.planned.inputs, self.planned.hardware.server.chips_per_server
        return [
            Down(
                begin_s=one.begin_s,
                end_s=one.end_s,
                replicas=_ALL.union(*(_replicas_on(inputs, server, chips) for server in one.servers)),
                is_planned=one.drains,
            )
            for one in events
            if one.lost_fraction >= 1.0
        ]

    def rescue(self, able: Abilities) -> Rescue:
        """What a stop costs: state comes from the last checkpoint, or from another server's memory."""
        spec = self.spec
        if not able.data:
            return Rescue(
                rework_s=(self.interval.value + spec.checkpoint_write_s) / 2,
                save_s=spec.checkpoint_write_s,
                restart_s=spec.restart_s,
            )
        uses, network = self.planned.memory.uses, self.planned.inputs.network
        sent_s = (uses["weights"].value + uses["optimizer"].value) / network.scaleout_bytes_per_s.value
        return Rescue(
            rework_s=self.planned.step.step_s.value / self.saving_ratio.value / 2,
            save_s=0.0,
            restart_s=min(spec.restart_s, max(0.0, spec.restart_s - spec.checkpoint_write_s) + sent_s),
        )

    @property
    def interval(self) -> Term:
        server = self.planned.hardware.server
        return job_interval(self.spec, server, chip_count=self.planned.inputs.chip_count)

    @property
    def saving_ratio(self) -> Term:
        """Share of undisturbed time that checkpoints leave."""
        write = leaf(
            self.spec.checkpoint_write_s, "checkpoint_write_s", path="reliability.checkpoint_write_s"
        )
        return self.interval / (self.interval + write)

    @property
    def steady_token_per_s(self) -> Term:
        return self.planned.step.token_per_s * self.saving_ratio


def shocked_job(planned: TrainingPlan, spec: ReliabilitySpec, *, seed: int) -> ShockedJob:
    """The job with its paces, each of which is planned once."""
    server, fabric = planned.hardware.server, planned.fabric
    servers = math.ceil(planned.inputs.chip_count / server.chips_per_server)
    return ShockedJob(
        planned=planned,
        spec=spec,
        site=shock_site(fabric, server, server_count=servers),
        seed=seed,
        left_ratio=cache(lambda lost: without_replicas(planned, lost)),
        pace_ratio=cache(lambda event: _pace(planned, slowed(planned, event, everybody=servers))),
    )


def without_replicas(planned: TrainingPlan, lost: int) -> float:
    """The pace over the largest number of replicas that is possible without so many; 0: none is, or none fits."""
    for dp in range(planned.inputs.parallelism.dp - lost, 0, -1):
        fewer = _with_replicas(planned.inputs, dp)
        if is_possible(fewer):
            return _pace(planned, training_step(fewer)) if training_memory(fewer).fits else 0.0
    return 0.0


def _with_replicas(inputs: TrainingInputs, dp: int) -> TrainingInputs:
    """The same batch over other replicas, filled up to the one that has most of it."""
    spec = inputs.spec
    each = spec.sequence_length * spec.micro_batch_size * dp
    filled = -(-spec.global_batch_tokens // each) * each
    return replace(
        inputs,
        spec=spec.model_copy(update={"global_batch_tokens": filled}),
        parallelism=inputs.parallelism.model_copy(update={"dp": dp}),
    )


def _pace(planned: TrainingPlan, step: TrainingStep) -> float:
    return min(1.0, planned.step.step_s.value / step.step_s.value)


def slowed(planned: TrainingPlan, event: CapacityEvent, *, everybody: int) -> TrainingStep:
    """The step while a share of links is lost."""
    chip, left = planned.inputs.chip, 1.0 - event.lost_fraction
    if event.switch and len(event.servers) == everybody:
        dead = Degraded(switch=event.switch, capacity_fraction=0.0)
        fabric = replace(planned.fabric, degraded=(*planned.fabric.degraded, dead))
        return build_training(replace(planned, fabric=fabric), chip)
    if planned.hardware.server.scaleup_kind == "ici" and chip.scaleup_bytes_per_s is not None:
        return build_training(planned, replace(chip, scaleup_bytes_per_s=chip.scaleup_bytes_per_s * left))
    return build_training(planned, chip, scaleout_factor=left)


def _replicas_on(inputs: TrainingInputs, server: int, chips_per_server: int) -> frozenset[int]:
    cut = inputs.parallelism
    last = min(inputs.chip_count, (server + 1) * chips_per_server)
    ranks = range(server * chips_per_server, last)
    return frozenset(rank // (cut.tp_ranks * cut.cp) % cut.dp for rank in ranks)


def training_shock_notes(planned: TrainingPlan, spec: ReliabilitySpec, *, seed: int) -> Iterator[Message]:
    """Raises InputError where a shock cannot happen here; what a reader should know of those that can."""
    for place, shock in enumerate(spec.shocks):
        if shock.kind in _SERVED:
            yield Message(
                code="input.no_effect",
                template="has no effect: {kind} changes what is served, and workload.kind is training",
                params={"kind": shock.kind},
                path=f"{SHOCKS_PATH}.{place}.kind",
            )
    job = shocked_job(planned, spec, seed=seed)
    events = job.events(spec.abilities)
    slowing = [one for one in events if one.lost_fraction < 1.0]
    if slowing and all(job.pace_ratio(one) == 1.0 for one in slowing):
        yield Message(
            code="shocks.no_talk",
            template="links that fail have no effect: the step does not wait for what crosses them",
            path=SHOCKS_PATH,
        )
    yield from spares_note(spec)
    yield from _stuck(job, events)


def _stuck(job: ShockedJob, events: tuple[CapacityEvent, ...]) -> Iterator[Message]:
    lost = [len(one.replicas) for one in job.downs(events) if job.left_ratio(len(one.replicas)) == 0.0]
    if lost and job.spec.abilities.task:
        yield Message(
            code="shocks.cannot_shrink",
            template="the job waits for what failed: without {lost:,} of its {dp:,} replicas it is not possible, or "
            "does not fit",
            params={"lost": min(lost), "dp": job.planned.inputs.parallelism.dp},
            path="reliability.abilities.task",
        )
