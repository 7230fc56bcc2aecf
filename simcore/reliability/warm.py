"""Compile the kernels of reliability, so that the first user does not wait for it."""

from __future__ import annotations

from simcore.reliability.availability import SliceSystem
from simcore.reliability.slices import any_box_goodput


def warm() -> None:
    """Draw one pod; the types of all arguments are the same for every pod."""
    any_box_goodput(SliceSystem(host_availability_fraction=0.99), 1024, draws=1, seed=0)
