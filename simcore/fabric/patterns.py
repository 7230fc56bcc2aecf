"""Flows of the communication patterns: from groups of ranks and payloads to senders, receivers and bytes.

`members` is an array (groups, ranks): each row a group in its own order, whose ranks fill scale-up domains `inside` at
a time. Payloads are those of nccl-tests (`fabric/collectives.py`): an all-reduce of P bytes moves `2(n−1)P` in its
group, whichever way it goes, a reduce-scatter or all-gather `(n−1)P`.
- ring: each rank sends to the next. Over d domains of m ranks there are m channels, as NCCL makes one per NIC: each
  walks all m ranks of a domain and leaves by another one, for its like in the next domain (same rail). So a rank
  sends `(m−1)/m` of its bytes to its neighbour and `1/m` to the next domain.
- tree: chains inside domains, NCCL's double binary tree between them, in as many channels; half the bytes each tree.
- hierarchical: scatter inside each domain, all-reduce of each shard along its rail, gather inside.
- all to all: every rank to every other, the same bytes each. The flows are `groups × n (n−1)`.
- by domain: once to each rank of one's domain and once to the like rank of each other one (DeepEP, PXN): `m + d − 2`
  flows a rank.
Limits: groups fill domains evenly; bytes of a whole step, no order in time.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from simcore.fabric.traffic import Floats, FlowGroup, Flows, Ints

Edges = tuple[Ints, Ints, Floats]  # source, target, bytes


def flows(group: FlowGroup, edges: Sequence[Edges]) -> Flows:
    """Edges as flows of one group; those that carry nothing, or stay on their rank, are left out."""
    columns = [np.concatenate(column) for column in zip(*edges, strict=True)] if edges else _NOTHING
    source, target, moved = columns
    kept = (moved > 0) & (source != target)
    count = int(kept.sum())
    return Flows(
        source=source[kept].astype(np.int64),
        target=target[kept].astype(np.int64),
        moved_bytes=moved[kept].astype(np.float64),
        group_of=np.zeros(count, np.int64),
        groups=(group,),
    )


_NOTHING: Edges = (np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))


def sent(source: Ints, target: Ints, moved_bytes: float) -> Edges:
    """The same bytes from each source to the target at its place."""
    return source.ravel(), target.ravel(), np.full(source.size, moved_bytes)


def ring(members: Ints, each_bytes: float, *, inside: int) -> list[Edges]:
    """Every rank sends `each_bytes` onwards: payload × bus factor."""
    blocks = _by_domain(members, inside)
    _, domains, ranks = blocks.shape
    found = []
    if ranks > 1:
        share = 1.0 if domains == 1 else (ranks - 1) / ranks
        found.append(sent(blocks, np.roll(blocks, -1, axis=2), each_bytes * share))
    if domains > 1:
        found.append(sent(blocks, np.roll(blocks, -1, axis=1), each_bytes / ranks))
    return found


def tree(members: Ints, payload_bytes: float, *, inside: int) -> list[Edges]:
    """An all-reduce up the trees and down again."""
    blocks = _by_domain(members, inside)
    _, domains, ranks = blocks.shape
    found = []
    if ranks > 1:
        share = payload_bytes * (ranks - 1) / ranks
        found += [sent(blocks, np.roll(blocks, step, axis=2), share) for step in (1, -1)]
    for parent in double_tree(domains) if domains > 1 else ():
        children = np.flatnonzero(parent >= 0)
        lower, upper = blocks[:, children], blocks[:, parent[children]]
        half = payload_bytes / (2 * ranks)
        found += [sent(lower, upper, half), sent(upper, lower, half)]
    return found


def double_tree(count: int) -> tuple[Ints, Ints]:
    """Parents in NCCL's two binary trees (trees.cc), −1 at roots; inner ranks of one are leaves of the other."""
    rank = np.arange(count)
    low = rank & -rank
    parent = (rank ^ low) | (low << 1)
    parent = np.where(parent >= count, rank ^ low, parent)
    parent[0] = -1
    if count % 2:  # shifted by one
        moved = np.roll(np.where(parent < 0, -1, (parent + 1) % count), 1)
    else:  # mirrored
        moved = np.where(parent < 0, -1, count - 1 - parent)[::-1]
    return parent, moved.astype(np.int64)


def hierarchical(members: Ints, payload_bytes: float, *, inside: int) -> list[Edges]:
    """An all-reduce in three steps."""
    blocks = _by_domain(members, inside)
    _, domains, ranks = blocks.shape
    within = ring(blocks.reshape(-1, ranks), 2 * (ranks - 1) / ranks * payload_bytes, inside=ranks)
    rails = blocks.transpose(0, 2, 1).reshape(-1, domains)
    shard = payload_bytes / ranks
    return within + ring(rails, 2 * (domains - 1) / domains * shard, inside=1)


def all_to_all(members: Ints, each_bytes: float) -> list[Edges]:
    """Every rank sends `each_bytes` to all others together."""
    ranks = members.shape[1]
    if ranks == 1:
        return []
    onward = (np.arange(ranks)[:, None] + np.arange(1, ranks)) % ranks
    source = np.broadcast_to(members[:, :, None], (*members.shape, ranks - 1))
    return [sent(source, members[:, onward], each_bytes / (ranks - 1))]


def by_domain(members: Ints, local_bytes: float, remote_bytes: float, *, inside: int) -> list[Edges]:
    """Every rank sends the one to the other ranks of its domain together, the other to other domains together."""
    blocks = _by_domain(members, inside)
    ranks, domains = blocks.shape[2], blocks.shape[1]
    rails = blocks.transpose(0, 2, 1).reshape(-1, domains)
    return all_to_all(blocks.reshape(-1, ranks), local_bytes) + all_to_all(rails, remote_bytes)


def line(members: Ints, forward_bytes: float, backward_bytes: float) -> list[Edges]:
    """Each stage sends to the next, and back."""
    before, after = members[:, :-1], members[:, 1:]
    return [sent(before, after, forward_bytes), sent(after, before, backward_bytes)]


def hand_over(sources: Ints, targets: Ints, total_bytes: float, *, most: int = 64) -> list[Edges]:
    """Each row of `sources` (a replica) sends to rows of `targets`, evenly over all; `total_bytes` in all.

    A replica's chips send to the chips that stand at the same share of the other's. Where there are more than `most`
    rows to send to, each sends to that many, spread so that all send and all get the same.
    """
    (senders, width), (receivers, other) = sources.shape, targets.shape
    pieces = np.arange(max(width, other))
    from_chip, to_chip = pieces * width // len(pieces), pieces * other // len(pieces)
    pairs = min(most, max(senders, receivers)) if senders * receivers > most * senders else receivers
    row = np.repeat(np.arange(senders), pairs)
    onward = np.tile(np.arange(pairs) * receivers // pairs, senders)
    to = (onward + row * receivers // senders) % receivers
    each = total_bytes / (len(row) * len(pieces))
    return [sent(sources[row][:, from_chip], targets[to][:, to_chip], each)]


def shifted(ranks: Ints, distance: int, each_bytes: float) -> list[Edges]:
    """Every rank sends to the one so many places on, round the end."""
    return [sent(ranks, np.roll(ranks, -distance), each_bytes)]


def _by_domain(members: Ints, inside: int) -> Ints:
    """(groups, domains, ranks of each)."""
    groups, ranks = members.shape
    within = min(inside, ranks)
    assert ranks % within == 0, "groups fill domains evenly"
    return members.reshape(groups, ranks // within, within)
