"""Reliability: what failures leave of a fleet. Closed forms of slice availability, interruptions and
checkpointing; a spec of what a scenario may say about them."""

from __future__ import annotations

from simcore.reliability.availability import (
    SliceGoodput,
    SliceSystem,
    kept_fraction,
    needed_cube_availability,
    slice_goodput,
    spares_series,
)
from simcore.reliability.failures import (
    FAILURE_RATES,
    FailureRate,
    host_availability_term,
    mtbf_term,
    small_job_warning,
)
from simcore.reliability.goodput import (
    checkpoint_interval_term,
    daly_interval_s,
    goodput_term,
    replica_availability_term,
    slice_goodput_grid,
    slice_goodput_series,
    slice_goodput_terms,
    waste_fraction,
    young_interval_s,
)
from simcore.reliability.job_line import Down, JobLine, Rescue, Slow, job_line
from simcore.reliability.recovery import Recovery, Slices, recovery, shapley
from simcore.reliability.shock_kinds import LOAD_KINDS, Abilities, Shock
from simcore.reliability.shocks import (
    CapacityEvent,
    ShockSite,
    SwitchTier,
    Timeline,
    lengthened,
    timeline,
    warped,
)
from simcore.reliability.slices import AnyBoxGoodput, any_box_goodput, any_box_series, has_any_box
from simcore.reliability.spec import ReliabilitySpec

__all__ = [
    "FAILURE_RATES",
    "LOAD_KINDS",
    "Abilities",
    "AnyBoxGoodput",
    "CapacityEvent",
    "Down",
    "FailureRate",
    "JobLine",
    "Recovery",
    "ReliabilitySpec",
    "Rescue",
    "Shock",
    "ShockSite",
    "SliceGoodput",
    "SliceSystem",
    "Slices",
    "Slow",
    "SwitchTier",
    "Timeline",
    "any_box_goodput",
    "any_box_series",
    "checkpoint_interval_term",
    "daly_interval_s",
    "goodput_term",
    "has_any_box",
    "host_availability_term",
    "job_line",
    "kept_fraction",
    "lengthened",
    "mtbf_term",
    "needed_cube_availability",
    "recovery",
    "replica_availability_term",
    "shapley",
    "slice_goodput",
    "slice_goodput_grid",
    "slice_goodput_series",
    "slice_goodput_terms",
    "small_job_warning",
    "spares_series",
    "timeline",
    "warped",
    "waste_fraction",
    "young_interval_s",
]
