"""Buddy allocation of contiguous runs of units, as compiled operations on a flat tree of integers.

A run of `2**order` units starts at a multiple of its size; taking one splits the smallest free run that is
large enough (lowest address first), and giving it back joins it with its free twin as far up as it goes.
Node `i` of a tree has children `2 i` and `2 i + 1`; it holds the set of orders that are free below it, as
bits, exclusive-or its own order's bit. So a tree of zeros is a free pool, and memory that nobody uses is
never touched. Limits: up to 2**30 units; a pool that is no power of two has its missing end taken.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from simcore.compiled import compiled_in_place


@compiled_in_place
def order_for(units: int) -> int:
    """Order of the smallest run that holds `units`.

    >>> int(order_for(1)), int(order_for(8)), int(order_for(9))
    (0, 3, 4)
    """
    order = 0
    while (1 << order) < units:
        order += 1
    return order


@compiled_in_place
def _settle(tree: Any, base: int, levels: int, node: int, order: int) -> None:
    """A node has changed: set what its ancestors say is free below them."""
    while order < levels:
        node >>= 1
        whole = 1 << order
        left = tree[base + 2 * node] ^ whole
        right = tree[base + 2 * node + 1] ^ whole
        order += 1
        free = (1 << order) if left == whole and right == whole else left | right
        tree[base + node] = free ^ (1 << order)


@compiled_in_place
def take(tree: Any, base: int, levels: int, order: int) -> int:
    """Take a run; returns its first unit, or -1 where no free run is large enough."""
    fitting = (tree[base + 1] ^ (1 << levels)) >> order
    if fitting == 0:
        return -1
    size = order
    while fitting & 1 == 0:
        fitting >>= 1
        size += 1
    node, at = 1, levels
    while at > size:
        at -= 1
        node *= 2
        if ((tree[base + node] ^ (1 << at)) >> size) & 1 == 0:
            node += 1
    node <<= size - order
    tree[base + node] = 1 << order
    _settle(tree, base, levels, node, order)
    return (node << order) - (1 << levels)


@compiled_in_place
def give(tree: Any, base: int, levels: int, first: int, order: int) -> None:
    """Give a run back."""
    node = (first + (1 << levels)) >> order
    tree[base + node] = 0
    _settle(tree, base, levels, node, order)


@compiled_in_place
def largest_order(tree: Any, base: int, levels: int) -> int:
    """Order of the largest free run, or -1."""
    free = tree[base + 1] ^ (1 << levels)
    order = -1
    while free > 0:
        free >>= 1
        order += 1
    return order


@compiled_in_place
def cut_to(tree: Any, base: int, levels: int, units: int) -> None:
    """Take the units from `units` on: they do not exist."""
    first = units
    while first < 1 << levels:
        order = 0
        while (first >> order) & 1 == 0 and first + (1 << (order + 1)) <= 1 << levels:
            order += 1
        node = (first + (1 << levels)) >> order
        tree[base + node] = 1 << order
        _settle(tree, base, levels, node, order)
        first += 1 << order


def levels_for(units: int) -> int:
    return max(0, (units - 1).bit_length())


def trees(pool_count: int, units: int) -> NDArray[np.int32]:
    """Free pools of `units` each, one after the other, `2 << levels_for(units)` nodes apiece."""
    levels = levels_for(units)
    found = np.zeros(pool_count * (2 << levels), np.int32)
    for pool in range(pool_count if units != 1 << levels else 0):
        cut_to(found, pool * (2 << levels), levels, units)
    return found
