"""How far apart endpoints are: shares of ordered pairs by the number of links between them.

Groups are filled in order, so the pairs inside groups of size s among n are
`q·s·(s−1) + r·(r−1)` with `q, r = divmod(n, s)`. A pair inside one scale-up domain takes one link. In a
fabric built by rail, a pair on different rails crosses its scale-up domain first (NCCL's PXN): one more.
"""

from __future__ import annotations

from collections.abc import Sequence

Histogram = tuple[tuple[int, float], ...]


def pairs_within(count: int, size: int) -> int:
    """Ordered pairs of distinct members that share a group of `size`.

    >>> pairs_within(5, 2)
    4
    """
    full, rest = divmod(count, max(1, size))
    return full * size * (size - 1) + rest * (rest - 1)


def nested_histogram(count: int, groups: Sequence[tuple[int, int]]) -> Histogram:
    """Pairs by hops for nested groups (size, hops); a pair takes the cheapest group that holds it."""
    ordered = sorted(groups)
    counts: dict[int, int] = {}
    inner = 0
    for index, (size, _) in enumerate(ordered):
        hops = min(hop for _, hop in ordered[index:])
        within = pairs_within(count, size)
        counts[hops] = counts.get(hops, 0) + max(0, within - inner)
        inner = max(inner, within)
    return _normalised(counts)


def rail_histogram(count: int, *, rails: int, levels: Sequence[tuple[int, int, int]]) -> Histogram:
    """Pairs by hops in a fabric built by rail; `levels`: (domains of the group, hops on rail, off rail)."""
    domain_pairs = pairs_within(count, rails)
    base, longer = divmod(count, rails)
    counts: dict[int, int] = {1: domain_pairs}
    on_inner = off_inner = 0
    for domains, on_hops, off_hops in levels:
        on = longer * pairs_within(base + 1, domains) + (rails - longer) * pairs_within(base, domains)
        off = max(0, pairs_within(count, domains * rails) - domain_pairs - on)
        counts[on_hops] = counts.get(on_hops, 0) + max(0, on - on_inner)
        counts[off_hops] = counts.get(off_hops, 0) + max(0, off - off_inner)
        on_inner, off_inner = max(on, on_inner), max(off, off_inner)
    return _normalised(counts)


def _normalised(counts: dict[int, int]) -> Histogram:
    everything = sum(counts.values())
    return tuple((hops, counts[hops] / everything) for hops in sorted(counts) if counts[hops])
