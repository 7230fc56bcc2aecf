"""The scenario document: an untrusted description of hardware, topology, model, workload and knobs.

It is made of the engines' own specification classes, so a new topology, scheduler or arrival law enters
the schema by joining its union. Every section has a default; the smallest scenario is `{name: x}`.
Unknown keys, wrong units and impossible values are refused with the full path. A scenario knows no
catalog: whether a chip exists and whether the model fits is for the plan to say.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationError

from simcore.compute.attention import Attention, Flash
from simcore.cost import EconomicsSpec
from simcore.errors import InputError
from simcore.fabric import Topology
from simcore.memory.allocators import AllocatorKind
from simcore.memory.tiers import OffloadTier
from simcore.parallelism import Parallelism
from simcore.reliability import ReliabilitySpec
from simcore.scenario.migrate import migrate
from simcore.serving.admission import Admission
from simcore.serving.autoscaling import Autoscaling
from simcore.serving.routers import Router
from simcore.serving.routers.round_robin import RoundRobin
from simcore.serving.schedulers import Scheduler
from simcore.serving.schedulers.chunked_prefill import ChunkedPrefill
from simcore.serving.schedulers.disaggregated import MAIN_POOL
from simcore.serving.speculation import Speculative
from simcore.spec import Spec, as_input_error
from simcore.training import Training
from simcore.workload.arrivals import Arrivals, Poisson
from simcore.workload.classes import RequestClasses, Slo
from simcore.workload.lengths import Lengths, LogNormal
from simcore.workload.sessions import Sessions

MAX_CHIPS = 1_048_576
MAX_POOLS = 8
MAX_REQUESTS = 5_000_000
MAX_REPLICATIONS = 32

Slug = Annotated[str, Field(min_length=1, max_length=80, pattern=r"^[a-z0-9][a-z0-9.\-]*$")]


class ChipPool(Spec):
    """Further chips, of their own kind and in servers of their own, beside the main ones."""

    name: Slug
    chip: Slug
    server: Slug = "auto"
    chip_count: int = Field(ge=1, le=MAX_CHIPS)


class Hardware(Spec):
    """Chips, servers and how many of them."""

    chip: Slug = "nvidia-h100-sxm"
    chip_overrides: dict[str, Annotated[float, Field(strict=True)] | str] = Field(default_factory=dict)
    server: Slug = "auto"
    calibration: str = Field(default="auto", min_length=1, max_length=400)  # "auto": the chip's own
    chip_count: int = Field(default=8, ge=1, le=MAX_CHIPS)
    pools: tuple[ChipPool, ...] = Field(default=(), max_length=MAX_POOLS)


class ModelChoice(Spec):
    """A catalog name, or a Hugging Face config.json (the config wins; the name is then a label)."""

    name: str = Field(default="llama-3.1-8b", min_length=1, max_length=200)
    config: dict[str, Any] | None = None


class Workload(Spec):
    """What runs. `kind: training` takes the training section, `none` asks for fabric, reliability and cost."""

    kind: Literal["serving", "training", "none"] = "serving"
    arrivals: Arrivals = Field(default_factory=lambda: Poisson(request_per_s=8.0))
    lengths: Lengths = Field(
        default_factory=lambda: LogNormal(
            input_mean_tokens=1024, input_cv=1.0, output_mean_tokens=256, output_cv=1.0
        )
    )
    request_count: int = Field(default=10_000, ge=1, le=MAX_REQUESTS)
    slo: Slo = Field(default_factory=Slo)
    classes: RequestClasses = ()
    sessions: Sessions | None = None


class KvCache(Spec):
    """The KV cache, in vLLM's own option names."""

    allocator: AllocatorKind = "paged"
    block_size: int = Field(default=16, ge=1, le=1024)
    dtype: Literal["auto", "bf16", "fp16", "fp8"] = "auto"
    gpu_memory_utilization: float = Field(default=0.9, gt=0, le=1)
    enable_prefix_caching: bool = False
    preemption: Literal["recompute", "swap"] = "recompute"
    offload: tuple[OffloadTier, ...] = Field(default=(), max_length=3)  # nearest first


class Serving(Spec):
    """The engine and its knobs, in vLLM's own option names."""

    engine: str = Field(default="vLLM 0.19", min_length=3, max_length=40)
    max_model_len: Literal["auto"] | Annotated[int, Field(ge=1, le=16_777_216)] = "auto"
    num_gpu_blocks_override: Annotated[int, Field(ge=1, le=1_000_000_000)] | None = None
    kv_cache_memory_bytes: Annotated[float, Field(gt=0, le=1e15)] | None = None
    parallelism: Parallelism = Field(default_factory=Parallelism)
    replica_count: Literal["auto"] | Annotated[int, Field(ge=1, le=MAX_CHIPS)] = "auto"
    scheduler: Scheduler = Field(default_factory=ChunkedPrefill)
    router: Router = Field(default_factory=RoundRobin)
    admission: Admission = Field(default_factory=Admission)
    kv: KvCache = Field(default_factory=KvCache)
    weights_dtype: Literal["auto", "bf16", "fp16", "fp8", "int8", "int4", "mxfp4", "nvfp4"] = "auto"
    attention: Attention = Field(default_factory=Flash)
    speculative: Speculative | None = None
    autoscaling: Autoscaling | None = None
    kernels: Literal["fitted", "measured"] = "fitted"


class RunOptions(Spec):
    """Seed of the random streams, and how many seeds are run."""

    seed: int = Field(default=1, ge=0, le=2**63 - 1)
    replications: int = Field(default=1, ge=1, le=MAX_REPLICATIONS)


class Scenario(Spec):
    """One what-if: everything a plan needs, and nothing that a plan decides."""

    schema_version: Literal[1] = 1
    name: str = Field(min_length=1, max_length=200)
    description: str = Field(default="", max_length=20_000)
    hardware: Hardware = Field(default_factory=Hardware)
    topology: Topology | None = None  # None: the server's own
    model: ModelChoice = Field(default_factory=ModelChoice)
    workload: Workload = Field(default_factory=Workload)
    serving: Serving = Field(default_factory=Serving)
    training: Training = Field(default_factory=Training)
    reliability: ReliabilitySpec = Field(default_factory=ReliabilitySpec)
    economics: EconomicsSpec = Field(default_factory=EconomicsSpec)
    run: RunOptions = Field(default_factory=RunOptions)

    @classmethod
    def parse(cls, document: Mapping[str, Any]) -> Self:
        """A document as a scenario. Raises InputError with one message per problem."""
        if not isinstance(document, Mapping):
            raise InputError.at(
                "",
                "document.not_mapping",
                "got {kind}; a scenario is a mapping of keys such as name, hardware, workload",
                kind=type(document).__name__,
            )
        try:
            scenario = cls.model_validate(migrate(dict(document)))
        except ValidationError as error:
            raise as_input_error(error, document=document) from None
        _refuse_context_parallel_serving(scenario)
        _refuse_lengths_beside_a_trace(scenario)
        _refuse_sessions_beside_a_trace(scenario)
        _refuse_pools_of_one_name(scenario)
        _refuse_pools_that_train(scenario)
        return scenario


def _refuse_context_parallel_serving(scenario: Scenario) -> None:
    """`Parallelism` is shared with training, which has a degree that a serving replica does not."""
    if scenario.serving.parallelism.cp != 1:
        raise InputError.at(
            "serving.parallelism.cp",
            "parallelism.cp",
            "got {got}; context parallel serving is not modelled; remove cp",
            got=scenario.serving.parallelism.cp,
        )


def _refuse_lengths_beside_a_trace(scenario: Scenario) -> None:
    """A trace brings the length of each request, so a class can only part what was promised."""
    if scenario.workload.arrivals.kind != "trace":
        return
    for place, one in enumerate(scenario.workload.classes):
        if one.lengths is not None:
            raise InputError.at(
                f"workload.classes.{place}.lengths",
                "classes.lengths_of_trace",
                "class {name!r} has lengths, and the trace brings its own; remove them",
                name=one.name,
            )


def _refuse_sessions_beside_a_trace(scenario: Scenario) -> None:
    """A trace brings the instant of each request, whoever sent it."""
    if scenario.workload.sessions is not None and scenario.workload.arrivals.kind == "trace":
        raise InputError.at(
            "workload.sessions",
            "sessions.of_trace",
            "the trace brings the instant of each request, so no sessions can be drawn; remove sessions, or use "
            "arrivals of another kind",
        )


def _refuse_pools_of_one_name(scenario: Scenario) -> None:
    """A role of a scheduler names its pool, and `main` is that of `hardware.chip`."""
    taken = {MAIN_POOL}
    for place, pool in enumerate(scenario.hardware.pools):
        if pool.name in taken:
            raise InputError.at(
                f"hardware.pools.{place}.name",
                "pools.name_taken",
                "got {got!r}, which another pool has ({main} are the chips of hardware.chip); use another name",
                got=pool.name,
                main=MAIN_POOL,
            )
        taken.add(pool.name)


def _refuse_pools_that_train(scenario: Scenario) -> None:
    if scenario.workload.kind == "training" and scenario.hardware.pools:
        raise InputError.at(
            "hardware.pools",
            "pools.training",
            "got {count} pool(s); a training step runs on equal chips, so remove them or plan each alone",
            count=len(scenario.hardware.pools),
        )
