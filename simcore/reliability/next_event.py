"""Which of many clocks strikes next: a tournament over their instants, as one flat array.

Leaf i holds the instant of clock i (infinity: it is off); every inner place holds the number of the leaf that
strikes first below it, the lower number where two strike at once. Setting a clock costs log2(n) comparisons,
and the next one stands at the root: no entry is ever stale, and ties are settled by number alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from simcore.compiled import compiled_in_place


def clocks(count: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """`count` clocks that are off, and the tournament over them.

    >>> at_s, winner = clocks(3)
    >>> set_clock(at_s, winner, 2, 5.0); set_clock(at_s, winner, 0, 7.0); int(winner[1])
    2
    """
    leaves = 1
    while leaves < count:
        leaves *= 2
    winner = np.zeros(2 * leaves, np.int64)
    winner[leaves:] = np.arange(leaves)
    for place in range(leaves - 1, 0, -1):
        winner[place] = winner[2 * place]
    return np.full(leaves, np.inf), winner


@compiled_in_place
def set_clock(at_s: Any, winner: Any, number: int, instant_s: float) -> None:
    """Clock `number` strikes at this instant."""
    at_s[number] = instant_s
    place = (len(at_s) + number) // 2
    while place >= 1:
        left, right = winner[2 * place], winner[2 * place + 1]
        winner[place] = right if at_s[right] < at_s[left] else left
        place //= 2
