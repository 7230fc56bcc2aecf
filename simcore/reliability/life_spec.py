"""What a scenario may say about a cluster's life: how long, who is given what, how it is repaired and restarted.

`auto` rates are published: of links and optical switches those of TPU v4 (Zu et al., NSDI 2024: 0.005 % of ICI cables
and 0.04 % of optical switches fail on a day; recalled), of leaf switches Gill et al., SIGCOMM 2011 (below 5 % of
top-of-rack switches fail in a year; recalled). A server's published rate covers its chips, NICs and own cables.
Assumptions, not sourced: `swap_s`, `host_restart_s` and `link_slowdown_ratio`.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field

from simcore.spec import Spec

_DAY_S: Final = 86_400.0
LINK_MTBF_S: Final = _DAY_S / 0.00005
OCS_MTBF_S: Final = _DAY_S / 0.0004
SWITCH_MTBF_S: Final = 365 * _DAY_S / 0.05
MOST_SIZES: Final = 8

Rate = Literal["auto"] | Annotated[float, Field(gt=0, le=1e12)] | None


class _Life(Spec):
    """What both kinds of life have."""

    duration_s: float = Field(default=365 * _DAY_S, ge=3600, le=3650 * _DAY_S)
    allocation: Literal["auto", "ocs", "static", "servers"] = "auto"
    restart_scope: Literal["job", "host"] = "job"
    host_restart_s: float = Field(default=60.0, ge=0, le=7 * _DAY_S)
    recover_from: Literal["checkpoint", "peer"] = "checkpoint"
    swap_s: float = Field(default=60.0, ge=0, le=7 * _DAY_S)
    repair_cv: float = Field(default=1.0, ge=0, le=10)
    crew_count: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    fault_tolerant_routing: bool = True
    link_slowdown_ratio: float = Field(default=1.05, ge=1, le=1000)
    chip_mtbf_s: Annotated[float, Field(gt=0, le=1e12)] | None = None
    link_mtbf_s: Rate = "auto"
    switch_mtbf_s: Rate = "auto"
    ocs_mtbf_s: Rate = "auto"
    maintenance_period_s: Annotated[float, Field(gt=0, le=3650 * _DAY_S)] | None = None
    maintenance_window_s: float = Field(default=4 * 3600.0, gt=0, le=30 * _DAY_S)
    maintenance_fraction: float = Field(default=0.125, gt=0, le=1)


class FullLife(_Life):
    """The cluster is always full of slices of `reliability.slice_chips`."""

    kind: Literal["always_full"] = "always_full"


class QueueLife(_Life):
    """Jobs come at random, each of one of the sizes, and end when their work is done."""

    kind: Literal["queue"] = "queue"
    slice_chips: tuple[Annotated[int, Field(ge=1, le=10_000_000)], ...] = Field(
        default=(1024,), min_length=1, max_length=MOST_SIZES
    )
    interarrival_s: float = Field(default=_DAY_S, gt=0, le=3650 * _DAY_S)
    work_s: float = Field(default=2 * _DAY_S, gt=0, le=3650 * _DAY_S)
    work_cv: float = Field(default=1.0, ge=0, le=20)


Life = Annotated[FullLife | QueueLife, Field(discriminator="kind")]
