"""Suspects after one symptom: a pair of endpoints is slow, and any component on any of its paths may be why.

A pair's traffic may take any of its shortest paths (ECMP), so every component on all of them is a suspect. A class
of components that a flow crosses x times, out of n on the pair's paths, is to blame in proportion to `x·r` (share
of paths × n × rate), and whoever looks must go through all n. Over pairs of every distance (share f):
`suspects = Σ f·x·r·n / Σ f·x·r`. Fault visibility is `1 / suspects`: 1 where the symptom names its cause.
Folded Clos, up ports u per tier: a path that turns at tier t crosses 2 switches of each lower tier, of which
2·Π u lie on its paths, and one of Π u at the top, times the planes that an endpoint is on. On tori dimension-order
routing takes one path, a chip and a link per hop. On direct networks the far pairs have the fabric's own path
count, near ones one path.
A probe that halves the suspects isolates one in `ceil(log2)` of them.
Limits: one cause at a time; the symptom does not tell a NIC from a switch; the chips at both ends are trusted.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from simcore.fabric import Fabric
from simcore.reliability.blast_radius import rate_of
from simcore.why import Term, leaf, total


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossing:
    """A class of components on the paths between two endpoints."""

    name: str
    component: str
    crossed_count: float  # by one flow
    suspect_count: float  # on all paths that the flow might have taken


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspect:
    """A class over pairs of all distances."""

    name: str
    component: str
    crossed_count: float  # Σ f·x
    weighed_count: float  # Σ f·x·n
    rate: Term

    @property
    def blame(self) -> Term:
        return self.rate * _leaf(self.crossed_count, "crossed_count", self.name)

    @property
    def searched(self) -> Term:
        return self.rate * _leaf(self.weighed_count, "searched_count", self.name)


def _leaf(value: float, name: str, what: str) -> Term:
    return leaf(value, name, kind="derived", source=f"{what}: mean over pairs, counted on the fabric")


def crossings(fabric: Fabric, hops: int, *, chips_per_server: int) -> Iterator[Crossing]:
    """What a path of so many links crosses."""
    is_lattice = not fabric.tiers and fabric.segments
    is_inside = hops == 1 and not is_lattice and fabric.hb_domain_size <= chips_per_server
    servers = 1 if is_inside else 2
    yield Crossing(name="server", component="server", crossed_count=servers, suspect_count=servers)
    if is_lattice:
        yield from _lattice(hops)
    elif hops == 1:
        yield Crossing(name="scale-up link", component="link", crossed_count=2, suspect_count=2)
    else:
        yield Crossing(name="NIC", component="nic", crossed_count=2, suspect_count=2)
        planes = fabric.segments[0].link_count / fabric.endpoint_count
        yield Crossing(name="endpoint link", component="link", crossed_count=2, suspect_count=2 * planes)
        yield from _clos(fabric, hops // 2, planes) if fabric.planes else _direct(fabric, hops)


def _lattice(hops: int) -> Iterator[Crossing]:
    yield Crossing(name="link", component="link", crossed_count=hops, suspect_count=hops)
    if hops > 1:
        yield Crossing(
            name="chip on the way", component="chip", crossed_count=hops - 1, suspect_count=hops - 1
        )


def _clos(fabric: Fabric, turn: int, planes: float) -> Iterator[Crossing]:
    """Up to tier `turn` and down again, in any of the planes."""
    between = {segment.lower: segment.link_count for segment in fabric.segments}
    spread = planes
    for level, tier in enumerate(fabric.tiers[:turn], start=1):
        sides = 1 if level == turn else 2
        most = min(float(tier.switch_count), sides * spread)
        yield Crossing(
            name=f"{tier.name} switch",
            component="switch",
            crossed_count=sides,
            suspect_count=max(most, sides),
        )
        if level < turn:
            spread *= fabric.planes[0].up_port_counts[level - 1]
            links = min(float(between[tier.name]), 2 * spread)
            yield Crossing(
                name=f"{tier.name} uplink", component="link", crossed_count=2, suspect_count=max(links, 2)
            )


def _direct(fabric: Fabric, hops: int) -> Iterator[Crossing]:
    """`hops` − 2 links between `hops` − 1 switches, of which the first and the last are the endpoints' own."""
    known = fabric.terms.get("fabric.path_count")
    paths = max(1.0, known.value) if known and hops == fabric.diameter_hops else 1.0
    ends, inner, links = min(2, hops - 1), max(0, hops - 3), hops - 2
    yield Crossing(name="endpoint's switch", component="switch", crossed_count=ends, suspect_count=ends)
    if inner:
        yield Crossing(
            name="switch between", component="switch", crossed_count=inner, suspect_count=inner * paths
        )
    if links > 0:
        yield Crossing(
            name="switch–switch link", component="link", crossed_count=links, suspect_count=links * paths
        )


def suspects(fabric: Fabric, scale: Term, *, chips_per_server: int) -> list[Suspect]:
    """Classes over all pairs that can reach each other."""
    crossed: dict[tuple[str, str], float] = {}
    weighed: dict[tuple[str, str], float] = {}
    for hops, fraction in fabric.hop_histogram:
        for one in crossings(fabric, hops, chips_per_server=chips_per_server):
            key = (one.name, one.component)
            crossed[key] = crossed.get(key, 0.0) + fraction * one.crossed_count
            weighed[key] = weighed.get(key, 0.0) + fraction * one.crossed_count * one.suspect_count
    return [
        Suspect(
            name=name,
            component=component,
            crossed_count=crossed[name, component],
            weighed_count=weighed[name, component],
            rate=rate_of(component, scale),
        )
        for name, component in crossed
    ]


def suspect_terms(found: list[Suspect]) -> Mapping[str, Term]:
    """Suspects expected after a symptom, and what that leaves of visibility."""
    searched = total(*(one.searched for one in found)).named("searched_blame_count")
    blame = total(*(one.blame for one in found)).named("blame_count")
    expected = (searched / blame).named("expected_suspect_count")
    return {
        "reliability.expected_suspect_count": expected,
        "analysis.fault_visibility": (1 / expected).named("fault_visibility"),
    }


def probe_count(expected_suspects: float) -> int:
    """Probes that halve the suspects until one is left.

    >>> probe_count(1.0), probe_count(2.0), probe_count(164.0)
    (0, 1, 8)
    """
    return math.ceil(math.log2(max(1.0, expected_suspects)))


def suspect_rows(found: list[Suspect]) -> list[dict[str, float | str]]:
    """A row per class: how often it is crossed, how many stand in the line-up, and its share of the blame."""
    every = sum(one.blame.value for one in found)
    return [
        {
            "name": one.name,
            "component": one.component,
            "crossed_count": one.crossed_count,
            "suspect_count": one.weighed_count / one.crossed_count,
            "fit_count": one.rate.value,
            "blame_fraction": one.blame.value / every,
        }
        for one in found
    ]
