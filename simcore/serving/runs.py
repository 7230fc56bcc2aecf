"""Where a run of decode steps stands at an instant, in closed form. Its j-th step takes `rate + slope * j`."""

from __future__ import annotations

import math

from simcore.compiled import compiled_in_place


@compiled_in_place
def steps_until(rate: float, slope: float, seconds: float, most: int) -> int:
    """Fewest steps, from 1 to `most`, whose sum reaches `seconds`."""
    if seconds <= 0.0:
        return 1
    linear = rate + 0.5 * slope
    estimate = 2.0 * seconds / (linear + math.sqrt(linear * linear + 2.0 * slope * seconds))
    if estimate >= most:
        return most
    steps = max(1, math.ceil(estimate))
    while steps < most and rate * steps + slope * 0.5 * steps * (steps + 1) < seconds:
        steps += 1
    while steps > 1 and rate * (steps - 1) + slope * 0.5 * steps * (steps - 1) >= seconds:
        steps -= 1
    return steps
