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
from simcore.compute.step_table import StepTimeTable
from simcore.compute.steps import StepModel
from simcore.cost import CostModel
from simcore.errors import Message
from simcore.fabric import Fabric
from simcore.memory.allocators import Reservation
from simcore.memory.budget import KvBudget
from simcore.memory.engines import EngineConstants
from simcore.parallelism import Parallelism
from simcore.plan.training import TrainingPlan
from simcore.scenario import Scenario
from simcore.scenario.schema import Serving
from simcore.serving.schedulers import SchedulerParameters
from simcore.serving.tiers import KvTiers
from simcore.why import Term
from simcore.workload.requests import Requests

CollectiveTier = Literal["scaleup", "scaleout"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolPlan:
    """Equal replicas of one model on one kind of chip."""

    role: Literal["both", "prefill", "decode"]
    chip: Chip
    calibration: Calibration
    parallelism: Parallelism
    replica_count: int
    scheduler: SchedulerParameters
    step_table: StepTimeTable  # of one lane
    kv: KvBudget
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
    def chip_count(self) -> int:
        return self.replica_count * self.parallelism.replica_chip_count


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatingPoint:
    """Where the closed forms are evaluated: the mean batch of one lane, and what it can carry."""

    batch: float
    context_tokens: float
    input_tokens: float
    capacity_request_per_s: float  # all lanes, saturated
    offered_request_per_s: float | None  # None for a closed loop
    latency_terms: Mapping[str, Term]  # what queueing expects there


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
    other_chips: Mapping[str, Chip]  # what a suggestion may name where the model does not fit


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingPlan:
    """The pool, what it was made from, and what is left over."""

    inputs: PoolInputs
    pool: PoolPlan
    idle_chip_count: int


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
