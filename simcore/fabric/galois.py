"""Finite fields GF(q), q = prime power, as tables: what the McKay-Miller-Širáň graphs are built from.

An element is a polynomial over the integers mod p, written as the number whose digits in base p are its
coefficients; products are taken modulo an irreducible polynomial that makes x a generator (found by trial).
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """`powers[i]` is the i-th power of the generator; sums and products by table."""

    powers: tuple[int, ...]
    sums: Ints
    products: Ints


def prime_power(q: int) -> tuple[int, int] | None:
    """(p, n) with q = pⁿ, or None.

    >>> prime_power(27), prime_power(28)
    ((3, 3), None)
    """
    prime = next((d for d in range(2, math.isqrt(q) + 1) if q % d == 0), q)
    power = round(math.log(q, prime)) if q > 1 else 0
    return (prime, power) if power and prime**power == q else None


@lru_cache(maxsize=16)
def field(q: int) -> Field:
    """GF(q); `q` must be a prime power."""
    found = prime_power(q)
    assert found is not None, f"{q} is no prime power"
    prime, degree = found
    digits = np.array(list(itertools.product(range(prime), repeat=degree)))[:, ::-1]
    weights = prime ** np.arange(degree)
    powers = _powers(prime, degree)
    logs = np.zeros(q, np.int64)
    logs[list(powers)] = np.arange(q - 1)
    products = np.zeros((q, q), np.int64)
    products[1:, 1:] = np.array(powers)[(logs[1:, None] + logs[None, 1:]) % (q - 1)]
    return Field(powers=powers, sums=(digits[:, None] + digits) % prime @ weights, products=products)


def _powers(prime: int, degree: int) -> tuple[int, ...]:
    """Powers of a generator, from 1: the first that takes q − 1 steps to come back."""
    if degree == 1:
        candidates = ([pow(g, i, prime) for i in range(prime - 1)] for g in range(1, prime))
    else:
        tails = itertools.product(range(prime), repeat=degree)
        candidates = (_powers_of_x(prime, tail) for tail in tails)
    return next(
        tuple(found) for found in candidates if len(set(found)) == prime**degree - 1 and 0 not in found
    )


def _powers_of_x(prime: int, tail: tuple[int, ...]) -> list[int]:
    """Powers of x where xⁿ = Σ tail[i]·xⁱ, as numbers in base p."""
    element, found = [1, *[0] * (len(tail) - 1)], []
    for _ in range(prime ** len(tail) - 1):
        found.append(sum(digit * prime**place for place, digit in enumerate(element)))
        top = element[-1]
        element = [(low + top * more) % prime for low, more in zip([0, *element[:-1]], tail, strict=True)]
    return found
