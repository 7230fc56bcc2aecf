"""What a scenario may say about failures."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from simcore.reliability.life_spec import Life
from simcore.reliability.shock_kinds import Abilities, Shock
from simcore.spec import Spec

ChipsAlong = Annotated[int, Field(ge=1, le=1024)]


class SliceJob(Spec):
    """Equal slices that run at one time: so many chips, as cubic as can be, or a shape in chips."""

    chips: int | None = Field(default=None, ge=1, le=10_000_000, description="chips of one slice")
    shape: tuple[ChipsAlong, ChipsAlong, ChipsAlong] | None = Field(
        default=None, description="chips along each dimension, instead of chips"
    )
    count: int = Field(default=1, ge=1, le=1024, description="slices of this kind")
    twisted: bool = Field(default=False, description="wraps of the short dimensions shift the long ones")

    @model_validator(mode="after")
    def _one_size(self) -> SliceJob:
        if (self.chips is None) == (self.shape is None):
            raise ValueError("got chips and shape, or neither; give one of them, such as chips: 512")
        return self


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
    failures_per_thousand_node_days_ratio: Literal["auto"] | Annotated[float, Field(gt=0, le=100_000)] = (
        Field(default="auto", description="own failure rate of a server; auto: that of failures")
    )
    mttr_s: Literal["auto"] | Annotated[float, Field(ge=0, le=31_536_000)] = Field(
        default="auto",
        description="time to repair a server; host availability then follows from it and the failure rate",
    )
    bring_up_s: float = Field(
        default=30.0, ge=0, le=86400, description="train the links and set the routes of a re-wired slice"
    )
    jobs: tuple[SliceJob, ...] = Field(
        default=(), max_length=64, description="slices that the optical switches join; none: as many as fit"
    )
    life: Life | None = Field(default=None, description="a simulated life of the cluster; none by default")
    shocks: tuple[Shock, ...] = Field(
        default=(), max_length=32, description="timeline of failures, drains and bursts"
    )
    abilities: Abilities = Field(
        default_factory=Abilities, description="what can be re-arranged after a shock"
    )
