"""A fabric's graph, expanded on demand: a layer into its parts, a part into its members, a device into its ports.

`expanded(fabric, "leaf")` shows the leaves in parts that belong together (planes, pods, else even runs), with
what they are joined to above and below; `"leaf.64-127"` the members of such a part, `"leaf.70"` one switch with
all its neighbours: the ego view, where the recursion ends. Members of one layer that are joined to the same
parts stand together as one vertex, so that no expansion has more than 200 vertices. `link_count` on an edge is
the number of cables between two vertices. An address is `layer`, `layer.number`, `layer.first-last` or
`layer.first-last.step` (every step-th member, such as the chips of one rail).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from simcore.errors import InfeasibleError, InputError
from simcore.fabric.base import Fabric
from simcore.fabric.layers import Joined, Layered, layered

Ints = NDArray[np.int64]
VERTEX_LIMIT: Final = 200
CHIP_LIMIT: Final = 300_000  # whose cables are laid out while a reader waits
PART_LIMIT: Final = 64  # of what is opened
_RUNS: Final = 16  # where nothing belongs together
_ADDRESS: Final = re.compile(r"^([a-z]+)(?:\.(\d{1,9})(?:-(\d{1,9})(?:\.(\d{1,9}))?)?)?$")


def expanded(fabric: Fabric, node: str) -> nx.Graph[Any]:
    """The part of the graph around one node, at most 200 vertices; refused where there is no such node."""
    if fabric.chip_count > CHIP_LIMIT:
        raise InfeasibleError.at(
            "hardware.chip_count",
            "graph.too_many_chips",
            "{count:,} chips are not laid out one by one; up to {limit:,} are",
            count=fabric.chip_count,
            limit=CHIP_LIMIT,
        )
    found = layered(fabric)
    layer, members = _members(found, node)
    rows = {layer: _parts(members, found.units.get(layer, ()))}
    graph: nx.Graph[Any] = nx.Graph(
        node=address(found, layer, members), shape=found.shape, trail=_trail(found, layer, members)
    )
    beside = [one for one in found.joined if layer in (one.lower, one.upper)]
    room = (VERTEX_LIMIT - len(rows[layer])) // max(1, len(beside) + (layer == "server"))
    _add(graph, found, layer, rows[layer], opened=True)
    for joined in beside:
        _join(graph, found, joined, rows, layer, room)
    if layer == "server":  # the switches of its chips too: how a domain hangs on its rails
        above = next((one for one in found.joined if one.lower == "chip" and one.upper != "chip"), None)
        if above is not None:
            _join(graph, found, above, rows, "chip", room)
    return graph


def _members(found: Layered, node: str) -> tuple[str, Ints]:
    matched = _ADDRESS.match(node)
    layer = matched[1] if matched else ""
    count = found.counts.get(layer, 0)
    if matched and count:
        first, step = int(matched[2] or 0), int(matched[4] or 1)
        last = count - 1 if matched[2] is None else int(matched[3] or first)
        if first <= last < count and step:
            return layer, np.arange(first, last + 1, step)
    raise InputError.at(
        "node",
        "graph.unknown_node",
        "got {got!r}; there are {layers}, such as {example}",
        got=node[:40],
        layers=", ".join(f"{name} 0 to {size - 1:,}" for name, size in found.counts.items() if size),
        example=", ".join(f"{name}.0" for name in found.counts),
    )


def _parts(members: Ints, units: Sequence[int]) -> list[Ints]:
    """Each by itself where there are few, else by the largest unit that makes some parts of it, else even runs."""
    if len(members) <= PART_LIMIT:
        return list(members[:, None])
    for unit in sorted(set(units), reverse=True):
        owner = members // max(1, unit)
        starts = np.flatnonzero(np.diff(owner)) + 1
        if 0 < len(starts) < PART_LIMIT:
            return np.split(members, starts)
    return np.array_split(members, _RUNS)


def _trail(found: Layered, layer: str, members: Ints) -> list[str]:
    """The way from the whole layer to these members, each step a part of the one before it."""
    inside, way = np.arange(found.counts[layer]), []
    while len(inside) > len(members):
        way.append(address(found, layer, inside))
        parts = _parts(inside, found.units.get(layer, ()))
        inside = next((part for part in parts if members[0] in part), members)
    return way


def _join(
    graph: nx.Graph[Any], found: Layered, joined: Joined, rows: dict[str, list[Ints]], layer: str, room: int
) -> None:
    """Add what one layer's parts are joined to over these cables, and the edges between."""
    mine, theirs = (joined.tail, joined.head) if joined.lower == layer else (joined.head, joined.tail)
    other = joined.upper if joined.lower == layer else joined.lower
    if other == layer:  # both directions of cables within a layer
        mine, theirs = np.concatenate([mine, theirs]), np.concatenate([theirs, mine])
    owner = _owners(rows[layer], found.counts[layer])
    touching = owner[mine] >= 0
    mine, theirs = owner[mine[touching]], theirs[touching]
    inside = owner[theirs] >= 0 if other == layer else np.zeros(len(theirs), bool)
    beyond = _grouped(mine[~inside], theirs[~inside], room)
    names = [address(found, layer, part) for part in rows[layer]]
    if other == layer:
        _edges(graph, names, names, mine[inside], owner[theirs[inside]], within=True)
        _add(graph, found, other, beyond, beside=True)
    else:
        rows[other] = beyond
        _add(graph, found, other, beyond)
    place = _owners(beyond, found.counts[other])
    others = [address(found, other, part) for part in beyond]
    _edges(graph, names, others, mine[~inside], place[theirs[~inside]])


def _owners(parts: Sequence[Ints], count: int) -> Ints:
    """The part of each member of a layer, −1 where it is in none."""
    owner = np.full(count, -1)
    for index, part in enumerate(parts):
        owner[part] = index
    return owner


def _grouped(owner: Ints, ends: Ints, room: int) -> list[Ints]:
    """Each neighbour by itself where they fit; else those together that are joined to the same parts."""
    neighbours, where = np.unique(ends, return_inverse=True)
    if len(neighbours) <= room:
        return list(neighbours[:, None])
    least, most = np.full(len(neighbours), owner.max()), np.zeros(len(neighbours), np.int64)
    np.minimum.at(least, where, owner)
    np.maximum.at(most, where, owner)
    _, kinds = np.unique(np.stack([least, most]), axis=1, return_inverse=True)
    groups = [neighbours[kinds.ravel() == kind] for kind in range(int(kinds.max()) + 1)]
    if len(groups) > room:  # too many ways to be joined: runs of neighbours
        return np.array_split(neighbours, min(room, PART_LIMIT))
    return np.array_split(neighbours, _RUNS) if len(groups) == 1 else groups


def address(found: Layered, layer: str, part: Ints) -> str:
    """How a set of members is called; members that do not follow a step are named by their first and number."""
    first, last = int(part[0]), int(part[-1])
    if len(part) == 1:
        return f"{layer}.{first}"
    if len(part) == found.counts[layer]:
        return layer
    steps = np.unique(np.diff(part))
    if len(steps) > 1:
        return f"{layer}~{first}~{len(part)}"
    return f"{layer}.{first}-{last}" if steps[0] == 1 else f"{layer}.{first}-{last}.{int(steps[0])}"


def _add(
    graph: nx.Graph[Any],
    found: Layered,
    layer: str,
    parts: Sequence[Ints],
    *,
    opened: bool = False,
    beside: bool = False,
) -> None:
    """Vertices of one layer; what lies beside the opened part in its own layer stands a row above it."""
    row = list(found.counts).index(layer) + (0.5 if beside else 0.0)
    for order, part in enumerate(parts):
        graph.add_node(
            name := address(found, layer, part),
            kind=layer,
            count=len(part),
            first=int(part[0]),
            last=int(part[-1]),
            row=row,
            order=order,
            opened=opened,
            opens="~" not in name,
        )


def _edges(
    graph: nx.Graph[Any],
    names: Sequence[str],
    others: Sequence[str],
    tail: Ints,
    head: Ints,
    *,
    within: bool = False,
) -> None:
    pairs, counts = np.unique(np.stack([tail, head]), axis=1, return_counts=True)
    for mine, theirs, count in zip(*pairs.tolist(), counts.tolist(), strict=True):
        if within and mine >= theirs:
            continue  # each cable is there twice, and what stays inside a vertex is no edge
        graph.add_edge(names[mine], others[theirs], link_count=count)
