"""Checkpoints under exponential failures, exactly: Daly's complete model, its efficiency and its best interval.

A job works τ, saves for C, and so on; failures come at rate 1/M whatever it does, also while it saves or restarts.
After one it restarts for R and goes on from its last checkpoint. The expected time of one interval is

    T(τ) = M · e^(R/M) · (e^((τ + C)/M) − 1),

so the share of time that makes progress is τ / T(τ). It is largest where e^(−(τ + C)/M) = 1 − τ/M, that is at
τ = M · (1 + W(−e^(−C/M − 1))), W being Lambert's function; here by Newton's method. Young's and Daly's intervals
(`goodput`) are its expansions for C ≪ M. Source: Daly, Future Generation Computer Systems 22 (2006), eq. 13 and 20.
"""

from __future__ import annotations

import math


def expected_interval_s(interval_s: float, write_s: float, mtbf_s: float, restart_s: float = 0.0) -> float:
    """Mean time from one checkpoint to the next.

    >>> round(expected_interval_s(657.3, 30, 7200), 1)
    721.2
    """
    return mtbf_s * math.exp(restart_s / mtbf_s) * math.expm1((interval_s + write_s) / mtbf_s)


def efficiency_fraction(interval_s: float, write_s: float, mtbf_s: float, restart_s: float = 0.0) -> float:
    """Share of time that makes progress.

    >>> round(efficiency_fraction(657.3, 30, 7200), 4)
    0.9114
    """
    return interval_s / expected_interval_s(interval_s, write_s, mtbf_s, restart_s)


def exact_interval_s(write_s: float, mtbf_s: float) -> float:
    """The best interval; Young says 657.3 s and Daly 637.4 s here.

    >>> round(exact_interval_s(30, 7200), 1)
    637.4
    """
    ratio = write_s / mtbf_s
    share = min(math.sqrt(2 * ratio), 0.5)  # of the time between failures: where the search begins
    for _ in range(60):
        left = math.exp(-share - ratio)
        step = (left - 1 + share) / (1 - left)
        share -= step
        if abs(step) < 1e-14 * share:
            break
    return share * mtbf_s
