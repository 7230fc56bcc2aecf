"""The roofline, written once for expression trees and for whole arrays of token counts.

    t = max(flop / (e_c·peak), bytes / (e_m·bandwidth))        per operator, summed over layers

A coefficient (FLOP per token, weight bytes) is always a `Term` with its derivation; the amount it is
multiplied by is a `Term` (one step, for Why) or an array (all batch sizes at once, for the step table).
The four helpers below are the only place where the two differ, so table and trees cannot drift apart.
Where a chip's kernels were fitted, tiles and waves stand in the place of flop/(e_c·peak): `kernels.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from simcore.why import Term, ceil, constant, maximum, minimum

Floats = NDArray[np.float64]
Amount = TypeVar("Amount", Term, NDArray[np.float64])


def times(coefficient: Term, amount: Amount) -> Amount:
    if isinstance(amount, Term):
        return coefficient * amount
    return coefficient.value * amount


def plus(fixed: Term, amount: Amount) -> Amount:
    if isinstance(amount, Term):
        return fixed + amount
    return fixed.value + amount


def over(amount: Amount, rate: Term) -> Amount:
    if isinstance(amount, Term):
        return amount / rate
    return amount / rate.value


def greatest(first: Amount, second: Amount) -> Amount:
    if isinstance(first, Term):
        return maximum(first, second)
    return np.maximum(first, second)


def least(first: Amount, second: Amount) -> Amount:
    if isinstance(first, Term):
        return minimum(first, second)
    return np.minimum(first, second)


def labelled(amount: Amount, name: str, dimension: str | None = None) -> Amount:
    """The same amount; a term under a name of its own, so that its tree can be read."""
    if isinstance(amount, Term):
        return amount.named(name, dimension)
    return amount


def rounded_up(amount: Amount) -> Amount:
    if isinstance(amount, Term):
        return ceil(amount)
    return np.ceil(amount)


def root_sum(first: Amount, second: Amount, exponent: int) -> Amount:
    """`(a^p + b^p)^(1/p)` for p = 1, 2, 4 or 8: from the sum towards the larger of both.

    >>> root_sum(np.asarray(3.0), np.asarray(4.0), 2).item()
    5.0
    """
    if exponent == 1:
        return first + second
    if isinstance(first, Term):
        p = constant(float(exponent), "overlap_exponent")
        return power(power(first, p) + power(second, p), constant(1.0 / exponent, "1/overlap_exponent"))
    doublings = exponent.bit_length() - 1
    for _ in range(doublings):
        first, second = first * first, second * second
    whole = first + second
    for _ in range(doublings):
        whole = np.sqrt(whole)
    return whole


def power(base: Term, exponent: Amount) -> Amount:
    if isinstance(exponent, Term):
        return Term(base.value**exponent.value, op="pow", args=(base, exponent))
    return np.power(base.value, exponent)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """What one operator class reaches on one chip: calibrated efficiency × catalog peak."""

    flop_per_s: Term
    bytes_per_s: Term


def roofline_s(flop: Amount, moved_bytes: Amount, rates: Rates) -> Amount:
    """Time of one kernel without its launch.

    >>> from simcore.why import constant
    >>> rates = Rates(flop_per_s=constant(1e12), bytes_per_s=constant(1e9))
    >>> roofline_s(constant(1e6), constant(1e6), rates).value
    0.001
    """
    return greatest(over(flop, rates.flop_per_s), over(moved_bytes, rates.bytes_per_s))
