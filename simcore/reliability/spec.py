"""What a scenario may say about failures."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from simcore.spec import Spec


class ReliabilitySpec(Spec):
    """Availability of hosts, the slice a job needs, how often servers fail, how state is saved."""

    host_availability_fraction: float = Field(
        default=0.995, ge=0, le=1, description="share of time that one host (with its chips) is healthy"
    )
    slice_chips: int = Field(
        default=1024, ge=1, le=10_000_000, description="chips that one job needs together"
    )
    failures: Literal["meta-rsc-1", "meta-rsc-2", "llama-3"] = Field(
        default="meta-rsc-1", description="published failure rate per server and day"
    )
    spares: int = Field(default=0, ge=0, le=1_000_000, description="cubes or servers held back for failures")
    checkpoint_interval_s: Literal["auto"] | Annotated[float, Field(gt=0, le=31_536_000)] = Field(
        default="auto", description="time between checkpoints; auto: Daly's optimum"
    )
    checkpoint_write_s: float = Field(
        default=60.0, gt=0, le=86400, description="time to write one checkpoint"
    )
    restart_s: float = Field(default=600.0, ge=0, le=604800, description="detect, replace, reload, warm up")
    shocks: tuple[()] = Field(default=(), description="timeline of shocks; none is simulated here")
