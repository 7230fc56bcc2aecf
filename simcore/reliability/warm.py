"""Compile the kernels of reliability, so that the first user does not wait for it."""

from __future__ import annotations

from simcore.reliability.availability import SliceSystem
from simcore.reliability.cluster_life import cluster_life
from simcore.reliability.life_draws import draw_failures, endless_jobs, maintenance_windows
from simcore.reliability.life_state import Policy
from simcore.reliability.slices import any_box_goodput


def warm() -> None:
    """Draw one pod and live one hour; the types of all arguments are the same for every other."""
    any_box_goodput(SliceSystem(host_availability_fraction=0.99), 1024, draws=1, seed=0)
    cluster_life(
        unit_count=1,
        failures=draw_failures([], unit_count=1, duration_s=3600.0, seed=0),
        windows=maintenance_windows(
            period_s=3600.0, window_s=1.0, fraction=1.0, unit_count=1, duration_s=3600.0
        ),
        jobs=endless_jobs(1, unit_count=1, interval_s=600.0),
        policy=Policy(
            duration_s=3600.0,
            write_s=60.0,
            start_s=60.0,
            swap_s=60.0,
            slowdown_ratio=1.0,
            spare_count=0,
            crew_count=0,
            is_aligned=False,
            keeps_state=False,
        ),
    )
