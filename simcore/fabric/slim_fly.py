"""Slim Fly: every switch reaches every other over at most one between (Besta & Hoefler, SC 2014).

The switches are a McKay-Miller-Širáň graph: for a prime power `q = 4w + δ`, δ ∈ {−1, 0, 1}, there are `2q²` of
degree `(3q − δ)/2`: (0, x, y) joins (0, x, y′) where y − y′ lies in X, (1, m, c) joins (1, m, c′) where c − c′
lies in X′, and (0, x, y) joins (1, m, c) where y = mx + c, over GF(q), with X and X′ halves of its powers.
Balanced: p is half the degree. Diameter 2, so the degrees give all distances, and of two far switches some have
one switch between them, hence one shortest path. The algebraic connectivity is q.
Limits: where q is no prime power no such graph is known. If `q` is given so, switches and links are counted by
the same formulas (published tables do), with a note; distances then take the endpoints as evenly spread.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Final, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator

from simcore.errors import Message
from simcore.fabric import direct
from simcore.fabric.base import Fabric, Site
from simcore.fabric.galois import field, prime_power
from simcore.fabric.specs import AutoCount, NetworkSpec
from simcore.fabric.switch_graph import Ints, merged
from simcore.fabric.switched import single_server
from simcore.why import Term, ceil, constant, leaf

LARGEST: Final = 128
DELTA: Final = {3: -1, 0: 0, 1: 1}  # by q mod 4


class SlimFly(NetworkSpec):
    """Switches of diameter 2, as many as their degree allows but for a few."""

    kind: Literal["slim_fly"] = "slim_fly"
    q: Literal["auto"] | Annotated[int, Field(ge=3, le=LARGEST)] = Field(
        default="auto", description="2q² switches; auto: the least prime power that holds the endpoints"
    )
    p: AutoCount = Field(default="auto", description="endpoints per switch; auto: half of a switch's links")

    @field_validator("q")
    @classmethod
    def _of_the_form(cls, q: Literal["auto"] | int) -> Literal["auto"] | int:
        if q != "auto" and q % 4 == 2:
            raise ValueError(f"got {q}; q must be 4w − 1, 4w or 4w + 1, such as {q - 1} or {q + 1}")
        return q


def build(spec: SlimFly, site: Site) -> Fabric:
    if site.needs_no_network:
        return single_server(spec, site, spec.kind)
    size = spec.q if spec.q != "auto" else _least(spec, site)
    q = _given(spec) or leaf(
        size, "q", kind="derived", source="the least prime power that holds the endpoints"
    )
    degree = ((3 * q - constant(DELTA[size % 4], "delta")) / 2).named("degree_count")
    p = ceil(degree / 2).named("p") if spec.p == "auto" else leaf(spec.p, "p", path="topology.p")
    direct.check_ports(spec, int(p.value + degree.value), "p + (3q − δ)/2", path="topology.radix")
    direct.check_size(spec, site, 2 * size**2 * int(p.value), "2q² × p", path="topology.q")
    switches = (2 * q * q).named("switch_count")
    known = prime_power(size) is not None
    edges, links = wiring(size) if known else direct.NO_GRAPH
    one = constant(1, "diameter of two")
    counted = direct.Counted(
        endpoints_per_switch=p,
        switches=switches,
        links={"between": (switches * degree / 2).named("links_between_switches_count")},
        gap=q,
        edges=edges,
        edge_links=links,
        pairs_by_hops=_pairs_by_hops(site.endpoint_count, int(p.value), int(degree.value), size, edges),
        path_count=one,
        disjoint_path_count=one,
    )
    chosen = {"q": size, "p": int(p.value)}
    notes = () if known else (_no_graph(size),)
    return direct.finish(spec, site, counted, kind=spec.kind, chosen=chosen, notes=notes)


def _given(spec: SlimFly) -> Term | None:
    return None if spec.q == "auto" else leaf(spec.q, "q", path="topology.q")


def _least(spec: SlimFly, site: Site) -> int:
    """The least prime power whose graph holds the endpoints within the ports; else the largest that has ports."""
    fitting = [
        q for q in range(3, LARGEST + 1) if q % 4 != 2 and prime_power(q) and _ports(spec, q) <= spec.radix
    ]
    return next(
        (q for q in fitting if 2 * q**2 * _below(spec, q) >= site.endpoint_count), max(fitting, default=3)
    )


def _degree(q: int) -> int:
    return (3 * q - DELTA[q % 4]) // 2


def _below(spec: SlimFly, q: int) -> int:
    return -(-_degree(q) // 2) if spec.p == "auto" else spec.p


def _ports(spec: SlimFly, q: int) -> int:
    return _degree(q) + _below(spec, q)


def _no_graph(q: int) -> Message:
    known = [n for n in range(3, LARGEST + 1) if n % 4 != 2 and prime_power(n)]
    return Message(
        code="fabric.no_such_graph",
        template="q = {q} is no prime power: no such graph is known, switches and links are counted by formula; "
        "the nearest that can be built are {below} and {above}",
        params={"q": q, "below": max(n for n in known if n < q), "above": min(n for n in known if n > q)},
        path="topology.q",
    )


@lru_cache(maxsize=8)
def wiring(q: int) -> tuple[Ints, Ints]:
    """The switch graph; (0, x, y) has the number q·x + y and (1, m, c) the number q² + q·m + c."""
    numbers = field(q)
    columns = q * np.arange(q)
    parts = []
    for side, generators in enumerate(_generators(q, numbers.powers)):
        onward = numbers.sums[:, generators]  # y + u, for each y and each u of the set
        near = np.repeat(np.arange(q), len(generators))
        rows = np.stack([near, onward.ravel()], axis=1)
        parts.append((side * q * q + columns[:, None, None] + rows).reshape(-1, 2))
    x, m, c = (part.ravel() for part in np.meshgrid(*[np.arange(q)] * 3, indexing="ij"))
    y = numbers.sums[numbers.products[m, x], c]
    across = np.stack([q * x + y, q * q + q * m + c], axis=1)
    inside = np.unique(np.sort(np.concatenate(parts), axis=1), axis=0)
    return merged(np.concatenate([inside, across]))


def _generators(q: int, powers: tuple[int, ...]) -> tuple[list[int], list[int]]:
    """X and X′: both are their own negatives, and together they are all powers."""
    if q % 4 == 3:
        half = (q + 1) // 2
        exponents = [*range(0, half - 1, 2), *range(half - 1, q - 1, 2)]
        others = [*range(1, half, 2), *range(half, q - 1, 2)]
    else:
        exponents, others = list(range(0, q - 1, 2)), list(range(1, q, 2))
    return [powers[i] for i in exponents], [powers[i % (q - 1)] for i in others]


def _pairs_by_hops(endpoint_count: int, p: int, degree: int, q: int, edges: NDArray[np.int64]) -> list[int]:
    """Ordered pairs of distinct endpoints on one switch, on joined ones, and on all others."""
    carried = np.clip(endpoint_count - p * np.arange(2 * q * q), 0, p)
    together = int(carried @ carried)
    joined = 2 * int(carried[edges[:, 0]] @ carried[edges[:, 1]])
    if not len(edges):
        joined = round((endpoint_count**2 - together) * degree / (2 * q * q - 1))
    return [together - endpoint_count, joined, endpoint_count**2 - together - joined]
