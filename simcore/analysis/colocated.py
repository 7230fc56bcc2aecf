"""Two jobs on one fabric: what each costs the other in the time of its traffic.

Both are planned alone; then their flows start together on the links of one fabric that holds all chips, with max-min
fair shares (`fabric/flows.py`), each flow as many times as its job has periods in the longer of the two. What a job
pays is

    slowdown = time until its last flow between domains ends, beside the other ÷ the same alone, in the same places
    step     = 1 + exposed share of its step · (slowdown − 1)

Two placements: *blocks*, the second job's domains behind the first's, and *mixed*, domains dealt out in turn, as a
cluster becomes that was never emptied. Flows inside a domain meet nobody; monitoring and checkpoints take part.
Limits: a fluid without order in time, so phases that would miss each other meet here, an upper bound; a job that serves
waits in the decode step, and sends as many bytes as it is offered; what overlaps kernels alone stays hidden beside the
other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import numpy as np

from simcore.catalog import Catalog
from simcore.compute.steps import decode_shares
from simcore.errors import InfeasibleError, InputError, Message
from simcore.fabric import Fabric
from simcore.fabric.flows import completion, sharing_of
from simcore.fabric.network import network_of
from simcore.fabric.routing import routing_of
from simcore.fabric.traffic import Flows, Ints, joined
from simcore.plan import Plan, plan
from simcore.plan.traffic import Traffic, traffic_of
from simcore.scenario import Scenario, apply_overrides
from simcore.why import Term, constant, leaf

Placing = Literal["blocks", "mixed"]
PLACINGS: Final[tuple[Placing, ...]] = ("blocks", "mixed")
MOST_FLOWS: Final = 200_000
NOTICEABLE_RATIO: Final = 1.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbour:
    """One of the two jobs in one placement, alone and beside the other; no time where nothing leaves its domains."""

    name: str
    chip_count: int
    placing: Placing
    alone: Term | None
    beside: Term | None
    exposed_fraction: float

    @property
    def slowdown(self) -> Term:
        if self.alone is None or self.beside is None:
            return constant(1.0, "analysis.colocated.slowdown_ratio")
        return (self.beside / self.alone).named("analysis.colocated.slowdown_ratio", "ratio")

    @property
    def step(self) -> Term:
        """Its step beside the other over its step alone."""
        share = leaf(
            self.exposed_fraction, "exposed_fraction", kind="derived", source="the plan of the job alone"
        )
        longer = constant(1.0) + share * (self.slowdown - constant(1.0))
        return longer.named("analysis.colocated.step_ratio", "ratio")

    def as_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "chip_count": self.chip_count,
            "placing": self.placing,
            "alone_s": None if self.alone is None else self.alone.value,
            "beside_s": None if self.beside is None else self.beside.value,
            "exposed_fraction": self.exposed_fraction,
            "slowdown_ratio": self.slowdown.value,
            "step_ratio": self.step.value,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    """A plan's flows on chips of its own, numbered from 0."""

    planned: Plan
    traffic: Traffic

    @property
    def chip_count(self) -> int:
        return self.planned.fabric.chip_count


def colocated(first: Plan, second: Plan, catalog: Catalog) -> list[Neighbour]:
    """Both jobs in both placements, on the first one's kind of fabric made large enough for both.

    Raises InputError or InfeasibleError where one of them sends nothing, or the fabric cannot hold both.
    """
    jobs = [_job(first), _job(second)]
    fabric = _shared_fabric(first.scenario, jobs, catalog)
    longest = max(job.traffic.period_s for job in jobs)
    found = []
    for placing in PLACINGS:
        chips = _placed(jobs, placing, max(1, fabric.hb_domain_size))
        flows = [_on(job, own, longest / job.traffic.period_s) for job, own in zip(jobs, chips, strict=True)]
        found += _beside(jobs, flows, fabric, placing)
    return found


def message_of(found: Sequence[Neighbour]) -> Message:
    """The worst of it, or that they do not meet."""
    worst = max(found, key=lambda one: one.slowdown.value)
    if worst.slowdown.value < NOTICEABLE_RATIO:
        return Message(
            code="colocated.apart",
            template="on one fabric the two don't slow each other down",
        )
    params = {"job": worst.name, "ratio": worst.slowdown.value, "step": worst.step.value}
    if worst.placing == "mixed":
        return Message(
            code="colocated.mixed",
            template="mixed on one fabric, {job} waits {ratio:.2f} times as long for its traffic, and its steps last "
            "{step:.2f} times as long",
            params=params,
        )
    return Message(
        code="colocated.blocks",
        template="on one fabric, even in blocks, {job} waits {ratio:.2f} times as long for its traffic, and its steps "
        "last {step:.2f} times as long",
        params=params,
    )


def _job(planned: Plan) -> _Job:
    traffic = traffic_of(planned)
    if traffic is None:
        raise InputError.at(
            "hardware.chip_count",
            "colocated.silent",
            "nothing moves between the chips of {name}; choose a scenario that runs on several",
            name=planned.scenario.name,
        )
    return _Job(planned=planned, traffic=traffic)


def _shared_fabric(first: Scenario, jobs: list[_Job], catalog: Catalog) -> Fabric:
    """The first one's topology for all chips, whole domains to each job."""
    domain = max(1, jobs[0].planned.fabric.hb_domain_size)
    chips = sum(-(-job.chip_count // domain) * domain for job in jobs)
    edited, _ = apply_overrides(
        first.model_dump(mode="json"),
        {"workload.kind": "none", "hardware.pools": [], "hardware.chip_count": chips},
    )
    fabric = plan(Scenario.parse(edited), catalog).fabric
    if not fabric.is_wired or sum(len(job.traffic.flows) for job in jobs) > MOST_FLOWS:
        raise InfeasibleError.at(
            "topology",
            "colocated.no_links",
            "the links between {chips:,} chips are not known one by one, or too many flows share them; choose smaller "
            "jobs or another topology",
            chips=chips,
        )
    return fabric


def _placed(jobs: list[_Job], placing: Placing, domain: int) -> list[Ints]:
    """The chip that each rank of each job lies on."""
    counts = [-(-job.chip_count // domain) for job in jobs]
    owner = np.repeat([0, 1], counts)
    if placing == "mixed":
        turns = np.concatenate([(np.arange(count) + 0.5) / count for count in counts])
        owner = owner[np.argsort(turns, kind="stable")]
    found = []
    for place, job in enumerate(jobs):
        starts = np.flatnonzero(owner == place) * domain
        ranks = (starts[:, None] + np.arange(domain)).ravel()
        found.append(ranks[: job.chip_count].astype(np.int64))
    return found


def _on(job: _Job, chips: Ints, times: float) -> Flows:
    flows = job.traffic.flows
    return replace(
        flows,
        source=chips[flows.source],
        target=chips[flows.target],
        moved_bytes=flows.moved_bytes * times,
    )


def _beside(jobs: list[_Job], flows: list[Flows], fabric: Fabric, placing: Placing) -> list[Neighbour]:
    network = network_of(fabric)
    routing, sharing = routing_of(fabric, network), sharing_of(fabric)
    both = completion(network, joined(flows), routing=routing, sharing=sharing).finish_s
    cut = len(flows[0])
    found = []
    for job, own, finish_s in zip(jobs, flows, (both[:cut], both[cut:]), strict=True):
        alone = completion(network, own, routing=routing, sharing=sharing).finish_s
        crosses = _crosses(own, max(1, fabric.hb_domain_size)) & np.isfinite(alone)
        found.append(
            Neighbour(
                name=job.planned.scenario.name,
                chip_count=job.chip_count,
                placing=placing,
                alone=_time(alone[crosses], "alone_s"),
                beside=_time(finish_s[crosses], "beside_s"),
                exposed_fraction=_exposed(job.planned),
            )
        )
    return found


def _crosses(flows: Flows, domain: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Flows between domains that somebody waits for."""
    waited = np.array([group.traffic_class != "management" for group in flows.groups], np.bool_)
    found: np.ndarray[Any, np.dtype[np.bool_]] = (flows.source // domain != flows.target // domain) & waited[
        flows.group_of
    ]
    return found


def _time(finish_s: np.ndarray[Any, np.dtype[np.float64]], name: str) -> Term | None:
    if not len(finish_s):
        return None
    return leaf(float(finish_s.max()), name, kind="derived", source="max-min fair shares of all links")


def _exposed(planned: Plan) -> float:
    """Share of its step that a job waits for NICs."""
    if planned.training is not None:
        parts = {name: part.value for name, part in planned.training.step.split.parts.items()}
        return parts.get("scaleout", 0.0) / sum(parts.values())
    assert planned.serving is not None, "a job with traffic trains or serves"
    pool = planned.serving.pool
    point = pool.operating_point
    batch = min(max(1, round(point.batch)), pool.scheduler.max_num_seqs)
    shares = decode_shares(pool.step_table, batch=batch, context_tokens=point.context_tokens)
    return shares.scaleout_s / shares.step_s
