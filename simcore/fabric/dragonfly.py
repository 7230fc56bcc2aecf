"""Dragonfly: groups of switches joined all to all, inside by local links and between by global ones.

A switch has p endpoints, a − 1 local and h global links: `p + a − 1 + h ≤ k` ports (Kim et al., ISCA 2008).
Balanced: `a = 2p = 2h`, so `p = ⌊(k + 1) / 4⌋`, and no more than √N, so that the mesh of a single small group
carries what its endpoints send. At most `a·h + 1` groups; `N ≤ p·a·(a·h + 1)`. With g groups:
`a·g` switches, `g·a·(a − 1)/2` local and `g·a·h/2` global links.

Fewer groups than a·h + 1 leave no global port idle: every pair of groups has `⌊a·h / (g − 1)⌋` links and what
is left joins the nearest groups of the ring of groups (one port per group stays spare where g and a·h are both
odd). Links of one pair are spread over different switches. The wiring looks alike from every group, so the
distances from one group's switches are all distances; they are those of the graph, where two global links in a
row may be shorter than local-global-local. Limits: groups and switches are built whole.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from simcore.errors import InfeasibleError
from simcore.fabric import direct
from simcore.fabric.base import Fabric, FailureDomain, Site
from simcore.fabric.specs import AutoCount, NetworkSpec
from simcore.fabric.switch_graph import Ints, disjoint_paths, distances, merged, shortest_paths
from simcore.fabric.switched import single_server
from simcore.why import Term, ceil, constant, floor, leaf, maximum, minimum, power, sqrt


class Dragonfly(NetworkSpec):
    """Groups of switches, all to all inside and between."""

    kind: Literal["dragonfly"] = "dragonfly"
    p: AutoCount = Field(
        default="auto", description="endpoints per switch; auto: balanced, a quarter of the ports"
    )
    a: AutoCount = Field(default="auto", description="switches per group; auto: 2p")
    h: AutoCount = Field(default="auto", description="global links per switch; auto: p")
    g: AutoCount = Field(default="auto", description="groups; auto: as many as the endpoints need")


def build(spec: Dragonfly, site: Site) -> Fabric:
    if site.needs_no_network:
        return single_server(spec, site, spec.kind)
    p, a, h, g = _parameters(spec, site)
    size = tuple(int(term.value) for term in (a, h, g))
    edges, links = wiring(*size)
    paths, disjoint = _path_counts(*size)
    counted = direct.Counted(
        endpoints_per_switch=p,
        switches=(g * a).named("switch_count"),
        links={
            "local": (g * a * (a - 1) / 2).named("local_link_count"),
            "global": _global_links(a, h, g).named("global_link_count"),
        },
        gap=_gap(a, h, g),
        edges=edges,
        edge_links=links,
        pairs_by_hops=_pairs_by_hops(site.endpoint_count, int(p.value), *size),
        path_count=leaf(paths, "path_count", kind="derived", source="counted on the switch graph"),
        disjoint_path_count=leaf(disjoint, "disjoint_path_count", kind="derived", source="maximum flow"),
    )
    group = FailureDomain(
        component="group",
        count=size[2],
        chip_count=min(site.chip_count, int(p.value) * size[0] * site.chips_per_nic),
        capacity_loss_fraction=1 / size[2],
    )
    chosen = {"p": int(p.value), "a": size[0], "h": size[1], "g": size[2]}
    return direct.finish(
        spec, site, counted, kind=spec.kind, chosen=chosen, failure_domains=(group,) if size[2] > 1 else ()
    )


def _parameters(spec: Dragonfly, site: Site) -> tuple[Term, Term, Term, Term]:
    """p, a, h, g as given or balanced; refused where ports or groups do not suffice."""
    endpoints = site.endpoints()
    p = _given(spec, "p") or _balanced(spec, endpoints)
    a = _given(spec, "a") or (2 * p if spec.g != "auto" else minimum(2 * p, ceil(endpoints / p))).named("a")
    h = _given(spec, "h") or (p * 1).named("h")
    values = [int(term.value) for term in (p, a, h)]
    direct.check_ports(spec, values[0] + values[1] - 1 + values[2], "p + a − 1 + h", path="topology.radix")
    most = values[1] * values[2] + 1
    g = _given(spec, "g") or ceil(endpoints / (p * a)).named("g")
    if spec.g == "auto":
        direct.check_size(spec, site, values[0] * values[1] * most, "p × a × (a × h + 1)", path="topology")
    elif spec.g > most:
        raise _too_many_groups(spec.g, most)
    else:
        direct.check_size(spec, site, values[0] * values[1] * spec.g, "p × a × g", path="topology.g")
    size = int(g.value)
    direct.check_pairs(size * values[1] * (values[1] - 1 + values[2]) // 2, path="topology")
    return p, a, h, g


def _balanced(spec: Dragonfly, endpoints: Term) -> Term:
    direct.check_ports(spec, 3, "p + a − 1 + h", path="topology.radix")
    quarter = floor((leaf(spec.radix, "radix", path="topology.radix") + 1) / 4)
    return minimum(quarter, ceil(sqrt(endpoints))).named("p")


def _too_many_groups(groups: int, most: int) -> InfeasibleError:
    return InfeasibleError.at(
        "topology.g",
        "fabric.dragonfly_groups",
        "{groups:,} groups cannot all be joined: g ≤ a × h + 1 = {most:,}; use at most {most:,} groups",
        groups=groups,
        most=most,
    )


def _given(spec: Dragonfly, key: Literal["p", "a", "h", "g"]) -> Term | None:
    value = getattr(spec, key)
    return None if value == "auto" else leaf(value, key, path=f"topology.{key}")


def _global_links(a: Term, h: Term, g: Term) -> Term:
    if g.value == 1:
        return constant(0, "one group")
    ports = a * h
    return g * floor(ports / 2) if g.value % 2 else g * ports / 2


def _gap(a: Term, h: Term, g: Term) -> Term:
    """The larger of two lower bounds: by the graph's spectrum, and by the cheaper of two ways to cut.

    A cut between groups, each pair of which has m links, meets m⌊g/2⌋² of them; one through every group ⌊a²/4⌋
    in each. With S = a·g switches, a cut of C links is a gap of 4C / S.
    """
    size = tuple(int(term.value) for term in (a, h, g))
    spectral = leaf(
        algebraic_connectivity(*size),
        "algebraic_connectivity_count",
        kind="derived",
        source="eigenvalues of the switch graph",
    )
    if g.value == 1:
        return spectral
    trunk = floor(a * h / (g - 1)).named("links_per_pair_of_groups_count")
    between = 4 * trunk * power(floor(g / 2), constant(2)) / (a * g)
    if a.value == 1:
        return maximum(spectral, between)
    return maximum(spectral, minimum(between, 4 * floor(a * a / 4) / a))


@lru_cache(maxsize=16)
def wiring(a: int, h: int, g: int) -> tuple[Ints, Ints]:
    """The switch graph: joined pairs and their parallel links; switch x of group G has the number `G·a + x`."""
    inside = np.stack(np.triu_indices(a, 1), axis=1)
    groups = a * np.arange(g)
    local = (groups[:, None, None] + inside).reshape(-1, 2)
    return merged(np.concatenate([local, _global_pairs(a, h, g)]).astype(np.int64))


def _global_pairs(a: int, h: int, g: int) -> Ints:
    """Each global link once. Trunk t of a group goes `offset[t]` groups onward around the ring of groups.

    Ends take the group's global ports in order; a shift by row keeps links of one pair on different switches.
    """
    if g == 1:
        return np.zeros((0, 2), np.int64)
    each, more = divmod(a * h, g - 1)
    ring = (g - 1) // 2
    onward = np.concatenate([np.tile(np.arange(1, ring + 1), each), np.arange(1, more // 2 + 1)])
    row, column = np.divmod(np.arange(len(onward)), a)
    leaving = column
    arriving = (len(onward) + _shifted(column + row, column, len(onward), a)) % a
    found = [_joined(np.arange(g), onward, leaving, arriving, a=a, g=g)]
    if g % 2 == 0:
        across = np.arange(each + more % 2)
        row, column = np.divmod(across, a)
        other = _shifted(row - column, column, len(across), a)
        first = 2 * len(onward)
        opposite = np.full(len(across), g // 2)
        found.append(
            _joined(np.arange(g // 2), opposite, (first + column) % a, (first + other) % a, a=a, g=g)
        )
    return np.concatenate(found)


def _shifted(moved: Ints, column: Ints, count: int, a: int) -> Ints:
    """The moved columns in whole rows of a; an unfinished row stays as it is."""
    return np.where(np.arange(count) < count // a * a, moved % a, column)


def _joined(groups: Ints, offsets: Ints, leaving: Ints, arriving: Ints, *, a: int, g: int) -> Ints:
    near = groups[:, None] * a + leaving
    far = (groups[:, None] + offsets) % g * a + arriving
    return np.stack([near.ravel(), far.ravel()], axis=1)


@lru_cache(maxsize=16)
def _hops(a: int, h: int, g: int) -> NDArray[np.int8]:
    """Hops from each switch of the first group to each of the group that lies so many groups onward."""
    edges, _ = wiring(a, h, g)
    return distances(edges, a * g, np.arange(a)).reshape(a, g, a)


@lru_cache(maxsize=16)
def algebraic_connectivity(a: int, h: int, g: int) -> float:
    """The second smallest eigenvalue of the Laplacian.

    All groups look alike, so a Fourier transform around the ring of groups leaves one a × a block per frequency,
    and opposite frequencies the same. A full mesh of a switches has a.
    """
    if g == 1:
        return float(a)
    edges, links = wiring(a, h, g)
    both, weights = np.concatenate([edges, edges[:, ::-1]]), np.concatenate([links, links])
    onward = both[:, 0] < a
    near, (offset, far) = both[onward, 0], np.divmod(both[onward, 1], a)
    joined = np.zeros((g, a, a))
    np.add.at(joined, (offset, near, far), weights[onward])
    degrees = np.diag(joined.sum(axis=(0, 2)))
    values = np.linalg.eigvalsh(degrees - np.fft.rfft(joined, axis=0))
    return float(np.sort(values.ravel())[1])


@lru_cache(maxsize=16)
def _path_counts(a: int, h: int, g: int) -> tuple[int, int]:
    """Shortest paths from the first switch to the far one that has the fewest, all and disjoint."""
    edges, links = wiring(a, h, g)
    hops, paths = shortest_paths(edges, links, a * g, 0)
    far = np.flatnonzero(hops == hops.max())
    target = int(far[np.argmin(paths[far])])
    if not target:
        return 1, 1
    return int(paths[target]), disjoint_paths(edges, links, a * g, source=0, target=target)


def _pairs_by_hops(endpoint_count: int, p: int, a: int, h: int, g: int) -> list[int]:
    """Ordered pairs of distinct endpoints by hops: pairs of full groups by offset, then those of the last group."""
    hops = _hops(a, h, g)
    full, rest = divmod(endpoint_count, p * a)
    offsets = np.arange(g)
    pairs = np.maximum(0, full - offsets) + np.where(offsets, np.maximum(0, full - g + offsets), 0)
    last = np.clip(rest - p * np.arange(a), 0, p)
    from_last = (np.arange(full) - full) % g
    found = []
    for step in range(int(hops.max()) + 1):
        at = (hops == step).astype(np.int64)
        whole = p * p * int(at.sum(axis=(0, 2)) @ pairs)
        mixed = 2 * p * int(last @ at[:, from_last].sum(axis=(1, 2)))
        found.append(whole + mixed + int(last @ at[:, 0] @ last))
    found[0] -= endpoint_count
    return found
