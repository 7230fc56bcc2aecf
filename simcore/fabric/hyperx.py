"""HyperX: switches on a lattice, those of a line joined all to all (Ahn et al., SC 2009); 2-D: flattened butterfly.

With sizes s₁ … s_L, K links per pair of a line and p endpoints per switch: `Π sᵢ` switches, `Σ K·(sᵢ − 1)` links of
a switch, `p + Σ K·(sᵢ − 1) ≤ k` ports. Hops between two switches are the coordinates in which they differ, so
pairs by hops follow from how many endpoints share each set of coordinates. Two far switches have `L!·K^L` shortest
paths, `L·K` of them disjoint. The Laplacian of a line has the gap `K·s`, the lattice that of its shortest line.
Auto: the fewest dimensions and the smallest sizes, alike or one apart, whose switches carry p = K·s endpoints each:
as many as fill the links with even traffic to all. Limits: switches are built whole.
"""

from __future__ import annotations

import itertools
import math
from functools import lru_cache
from typing import Annotated, Final, Literal

import numpy as np
from pydantic import Field, field_validator

from simcore.fabric import direct
from simcore.fabric.base import Fabric, Site
from simcore.fabric.specs import AutoCount, NetworkSpec
from simcore.fabric.switch_graph import Ints
from simcore.fabric.switched import single_server
from simcore.why import Term, constant, leaf, minimum, product

MOST_DIMENSIONS: Final = 4
Sizes = tuple[int, ...]


class HyperX(NetworkSpec):
    """A lattice of switches with every line joined all to all."""

    kind: Literal["hyperx"] = "hyperx"
    sizes: Literal["auto"] | tuple[Annotated[int, Field(ge=1, le=4096)], ...] = Field(
        default="auto",
        description="switches along each dimension; auto: the fewest and smallest that hold all",
    )
    p: AutoCount = Field(default="auto", description="endpoints per switch; auto: K times the longest size")
    links_per_pair: int = Field(
        default=1, ge=1, le=64, description="parallel links of two switches of a line"
    )

    @field_validator("sizes")
    @classmethod
    def _one_to_four(cls, sizes: Literal["auto"] | Sizes) -> Literal["auto"] | Sizes:
        if sizes != "auto" and not 1 <= len(sizes) <= MOST_DIMENSIONS:
            raise ValueError(f"got {list(sizes)}; allowed are one to four sizes, such as [8, 8]")
        return sizes


def build(spec: HyperX, site: Site) -> Fabric:
    if site.needs_no_network:
        return single_server(spec, site, spec.kind)
    sizes = _smallest(spec, site) if spec.sizes == "auto" else spec.sizes
    p, trunk, lengths = _terms(spec, sizes)
    below = int(p.value)
    direct.check_ports(spec, _ports(spec, sizes), "p + Σ K × (size − 1)", path="topology.radix")
    direct.check_size(spec, site, math.prod(sizes) * below, "p × switches", path="topology.sizes")
    direct.check_pairs(math.prod(sizes) * sum(size - 1 for size in sizes) // 2, path="topology.sizes")
    switches = product(*lengths).named("switch_count")
    lines = [length for length in lengths if length.value > 1]
    edges = wiring(sizes)
    counted = direct.Counted(
        endpoints_per_switch=p,
        switches=switches,
        links={
            f"dimension {axis}": (switches * trunk * (length - 1) / 2).named("dimension_link_count")
            for axis, length in enumerate(lengths, start=1)
        },
        gap=trunk * _shortest(lines),
        edges=edges,
        edge_links=np.full(len(edges), spec.links_per_pair),
        pairs_by_hops=_pairs_by_hops(site.endpoint_count, below, sizes),
        path_count=product(math.factorial(len(lines)), *[trunk] * len(lines)),
        disjoint_path_count=len(lines) * trunk if lines else constant(1, "one switch"),
    )
    return direct.finish(spec, site, counted, kind=spec.kind, chosen={"p": below}, sizes=sizes)


def _terms(spec: HyperX, sizes: Sizes) -> tuple[Term, Term, list[Term]]:
    """Endpoints per switch, links per pair, and the sizes."""
    trunk = leaf(spec.links_per_pair, "links_per_pair", path="topology.links_per_pair")
    if spec.sizes == "auto":
        lengths = [
            leaf(size, "size", kind="derived", source="the smallest that holds the endpoints")
            for size in sizes
        ]
    else:
        lengths = [leaf(size, "size", path="topology.sizes") for size in sizes]
    if spec.p != "auto":
        return leaf(spec.p, "p", path="topology.p"), trunk, lengths
    return (trunk * lengths[sizes.index(max(sizes))]).named("p"), trunk, lengths


def _shortest(lines: list[Term]) -> Term:
    if not lines:
        return constant(1, "one switch")
    return lines[0] if len(lines) == 1 else minimum(*lines)


def _below(spec: HyperX, sizes: Sizes) -> int:
    return spec.links_per_pair * max(sizes) if spec.p == "auto" else spec.p


def _ports(spec: HyperX, sizes: Sizes) -> int:
    return _below(spec, sizes) + spec.links_per_pair * sum(size - 1 for size in sizes)


def _capacity(spec: HyperX, sizes: Sizes) -> int:
    return math.prod(sizes) * _below(spec, sizes)


def _smallest(spec: HyperX, site: Site) -> Sizes:
    """The first lattice that holds the endpoints, cut back by one where it still does; else the largest there is."""
    largest: Sizes = (1,)
    for dimensions in range(1, MOST_DIMENSIONS + 1):
        for size in itertools.count(2):
            sizes = (size,) * dimensions
            if _ports(spec, sizes) > spec.radix:
                break
            if _capacity(spec, sizes) >= site.endpoint_count:
                return _cut_back(spec, site, sizes)
            largest = max(largest, sizes, key=lambda found: _capacity(spec, found))
    return largest


def _cut_back(spec: HyperX, site: Site, sizes: Sizes) -> Sizes:
    for axis in range(len(sizes) - 1):
        shorter = (*sizes[:axis], sizes[axis] - 1, *sizes[axis + 1 :])
        if _capacity(spec, shorter) < site.endpoint_count:
            break
        sizes = shorter
    return sizes


@lru_cache(maxsize=8)
def wiring(sizes: Sizes) -> Ints:
    """All pairs of switches of every line; the last coordinate runs fastest."""
    places = np.arange(math.prod(sizes)).reshape(sizes)
    found = [np.zeros((0, 2), np.int64)]
    for axis, size in enumerate(sizes):
        lines = np.moveaxis(places, axis, -1).reshape(-1, size)
        near, far = np.triu_indices(size, 1)
        found.append(np.stack([lines[:, near].ravel(), lines[:, far].ravel()], axis=1))
    return np.concatenate(found)


def _pairs_by_hops(endpoint_count: int, p: int, sizes: Sizes) -> list[int]:
    """Ordered pairs of distinct endpoints by coordinates that differ.

    Pairs that agree in at least a set of coordinates are counted by the squares of what each of its values
    carries; inclusion and exclusion leaves those that agree in exactly k.
    """
    dimensions = len(sizes)
    carried = np.clip(endpoint_count - p * np.arange(math.prod(sizes)), 0, p).reshape(sizes)
    at_least = [0] * (dimensions + 1)
    for shared in range(dimensions + 1):
        for summed in itertools.combinations(range(dimensions), dimensions - shared):
            at_least[shared] += int(np.square(carried.sum(axis=summed)).sum())
    exactly = [
        sum((-1) ** (j - k) * math.comb(j, k) * at_least[j] for j in range(k, dimensions + 1))
        for k in range(dimensions + 1)
    ]
    return [exactly[dimensions] - endpoint_count, *reversed(exactly[:dimensions])]
