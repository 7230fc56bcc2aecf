"""Reliability: what failures leave of a fleet. Closed forms of slice availability, interruptions and
checkpointing; a spec of what a scenario may say about them."""

from __future__ import annotations

from simcore.reliability.availability import SliceGoodput, SliceSystem, slice_goodput
from simcore.reliability.failures import FAILURE_RATES, FailureRate, mtbf_term, small_job_warning
from simcore.reliability.goodput import (
    checkpoint_interval_term,
    daly_interval_s,
    goodput_term,
    replica_availability_term,
    slice_goodput_series,
    slice_goodput_terms,
    waste_fraction,
    young_interval_s,
)
from simcore.reliability.spec import ReliabilitySpec

__all__ = [
    "FAILURE_RATES",
    "FailureRate",
    "ReliabilitySpec",
    "SliceGoodput",
    "SliceSystem",
    "checkpoint_interval_term",
    "daly_interval_s",
    "goodput_term",
    "mtbf_term",
    "replica_availability_term",
    "slice_goodput",
    "slice_goodput_series",
    "slice_goodput_terms",
    "small_job_warning",
    "waste_fraction",
    "young_interval_s",
]
