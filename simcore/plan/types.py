"""The plan: a scenario with every default made explicit, in SI, ready for the engines.

Frozen dataclasses made by `plan()` alone. `terms` holds the Why tree of every closed-form metric; the
digest names everything that can change a result, so equal digests mean equal results.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from simcore.catalog.kernels import Residuals
from simcore.catalog.types import Calibration, Chip, LlmArchitecture, Server
from simcore.compute.drafting import DraftShares
from simcore.compute.step_table import StepTimeTable
from simcore.compute.steps import StepModel
from simcore.cost import CostModel
from simcore.errors import Message
from simcore.fabric import Fabric
from simcore.memory.allocators import Reservation
from simcore.memory.budget import KvBudget
from simcore.memory.engines import EngineConstants
from simcore.parallelism import Parallelism
from simcore.plan.slices import SlicePlan
from simcore.plan.training import TrainingPlan
from simcore.reliability.life_inputs import LifeInputs
from simcore.scenario import Scenario
from simcore.scenario.schema import Serving
from simcore.serving.capacity import Curve
from simcore.serving.estimate import LaneLoad
from simcore.serving.handover import KvLink
from simcore.serving.pools import Role
from simcore.serving.schedulers import SchedulerParameters
from simcore.serving.schedulers.disaggregated import MAIN_POOL, Disaggregated
from simcore.serving.tiers import KvTiers
from simcore.why import Term, leaf, minimum, total
from simcore.workload.requests import Requests

CollectiveTier = Literal["scaleup", "scaleout"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolPlan:
    """Equal replicas of one model on one kind of chip."""

    role: Role
    chip: Chip
    calibration: Calibration
    parallelism: Parallelism
    replica_count: int
    scheduler: SchedulerParameters
    step_table: StepTimeTable  # of one lane
    kv: KvBudget
    speculation: SpeculationPlan | None
    reservation: Reservation | None  # what the allocator promises each request; None: blocks as they grow
    tiers: KvTiers | None  # what a lane sends KV to
    operating_point: OperatingPoint
    bound: str  # what most of a decode step waits for
    collective_tier: CollectiveTier  # what tensor parallel ranks talk over
    exchange_tier: (
        CollectiveTier | None
    )  # what experts get their tokens over; None: they are where tokens are
    step_model: StepModel
    terms: Mapping[str, Term]

    @property
    def lane_count(self) -> int:
        """Each data parallel rank, and each of its `pp` batches in flight, is a lane: its own KV and sequences."""
        return self.replica_count * self.parallelism.lanes_per_replica

    @property
    def coupled_chip_count(self) -> int:
        """Chips that stop together: ranks that share no experts run on where another's host is down."""
        cut = self.parallelism
        return cut.rank_chip_count if self.exchange_tier is None else cut.replica_chip_count

    @property
    def chip_count(self) -> int:
        return self.replica_count * self.parallelism.replica_chip_count


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeculationPlan:
    """Draft tokens of a pool: how many, how good, and what a pass of the draft takes."""

    draft_tokens: int
    acceptance_rate: float
    shares: DraftShares | None  # of the step of `model`; None: drafts cost nothing
    model: StepModel | None
    capacity_request_per_s: float  # of all lanes without speculation


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatingPoint:
    """Where the closed forms are evaluated: the mean batch of one lane, and what it can carry."""

    batch: float
    context_tokens: float
    input_tokens: float
    capacity_request_per_s: float  # all lanes, saturated
    offered_request_per_s: float | None  # None for a closed loop
    latency_terms: Mapping[str, Term]  # what queueing expects there
    curve: Curve  # the steady states of one lane
    load: LaneLoad | None = None  # of a lane that only prefills or decodes


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolInputs:
    """Everything a pool depends on beside the chip, so that another chip can be tried."""

    architecture: LlmArchitecture
    server: Server
    fabric: Fabric
    calibration: Calibration
    default_residuals: Mapping[str, Residuals]  # of steps on chips that were not measured
    reference_scaleup_bytes_per_s: float | None
    spec: Serving
    engine: EngineConstants
    parallelism: Parallelism
    weights_dtype: str
    kv_dtype: str
    replica_count: int
    requests: Requests
    draft: LlmArchitecture | None  # the model that drafts, where one is named
    role: Role = "both"
    chips: str = MAIN_POOL  # the name of the pool of chips
    owned_chip_count: int  # in that pool, busy or idle
    request_fraction: float = 1.0  # of all requests, what these replicas get
    other_chips: Mapping[str, Chip]  # what a suggestion may name where the model does not fit
    explained: bool = (
        True  # with trees of steps and waits; a re-plan that is asked for its capacity alone has none
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class KvLinkPlan:
    """What KV moves over between two pools: as the engine takes it, and its closed forms."""

    link: KvLink
    transfer_s: Term  # of a mean prompt, nobody else sending
    capacity_request_per_s: Term


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefillPlan:
    """The pool that prefills, and the link from it."""

    inputs: PoolInputs
    pool: PoolPlan
    link: KvLinkPlan
    scheduler: Disaggregated


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingPlan:
    """The pools, what they were made from, and what is left over."""

    inputs: PoolInputs
    pool: PoolPlan
    idle_chip_count: int
    prefill: PrefillPlan | None = None  # where `pool` only decodes
    beside: tuple[tuple[PoolInputs, PoolPlan], ...] = ()  # unlike replicas that serve beside those of `pool`
    undisturbed: Requests | None = None  # as they would arrive without shocks; None: as they do

    @property
    def sides(self) -> tuple[tuple[PoolInputs, PoolPlan], ...]:
        """The pools in the order in which a request passes them, or all that it may come to."""
        own = (self.inputs, self.pool)
        if self.prefill is not None:
            return (self.prefill.inputs, self.prefill.pool), own
        return own, *self.beside

    @property
    def pools(self) -> tuple[PoolPlan, ...]:
        return tuple(pool for _, pool in self.sides)

    @property
    def replica_count(self) -> int:
        return sum(pool.replica_count for pool in self.pools)

    @property
    def chip_count(self) -> int:
        return sum(pool.chip_count for pool in self.pools)

    @property
    def capacity(self) -> Term:
        """Requests per second at saturation: what the pools carry side by side, or the least of those that pass
        requests on, and of the link between them."""
        each = [
            leaf(
                pool.operating_point.capacity_request_per_s,
                "capacity_request_per_s" if pool.role == "both" else f"{pool.role}_capacity_request_per_s",
                kind="derived",
                source="the best steady state of the mean request, closed form (serving/capacity.py)",
            )
            for pool in self.pools
        ]
        if self.prefill is None:
            return each[0] if len(each) == 1 else total(*each)
        return minimum(*each, self.prefill.link.capacity_request_per_s)

    @property
    def front_end_s(self) -> float:
        """Every pool has servers of its own in front; a mean request passes one of those that serve side by side."""
        return sum(inputs.request_fraction * pool.step_table.front_end_s for inputs, pool in self.sides)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything resolved. `scenario` is kept for its specs and its name; engines never see it."""

    scenario: Scenario
    resolved: Mapping[str, Any]  # what `auto` became, by scenario path
    digest: str
    seed: int
    chip: Chip
    server: Server
    fabric: Fabric
    slices: SlicePlan
    life: LifeInputs | None
    serving: ServingPlan | None
    training: TrainingPlan | None
    cost: CostModel
    terms: Mapping[str, Term]
    table_terms: Mapping[str, Term]  # of numbers that stand in tables alone
    tables: Mapping[str, Any]
    series: Mapping[str, Any]
    warnings: tuple[Message, ...]

    @property
    def metrics(self) -> dict[str, float | str]:
        """The closed-form metrics: known before anything is simulated."""
        return {name: term.value for name, term in self.terms.items()}

    @property
    def why(self) -> dict[str, Term]:
        """The tree of every closed-form number, of metrics and in tables."""
        return {**self.terms, **self.table_terms}
