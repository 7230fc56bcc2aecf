"""Networks whose switches are joined to each other without tiers: what dragonfly, slim fly and hyperx share.

Endpoints fill switches in order, p to each. Links are the endpoints' own and those between switches; a path is
as long as the switch graph's shortest plus its two endpoint links. Chips of one scale-up domain take one link:
domains are runs of neighbours, so the nearest pairs of switches are taken to be theirs.

Bisection per direction: a half of the endpoints stands on at least `s = N / 2p` of the S switches, and a cut
that leaves s of them meets at least `gap · s · (S − s) / S` links (Fiedler 1973), never more than N/2, the
endpoints' own. `gap` is the algebraic connectivity, or what the best cut known makes of it: each topology says.
Limits: all links have the NIC's rate; a domain that straddles switches unevenly is counted as if nested.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from simcore.errors import InfeasibleError, Message
from simcore.fabric.base import (
    Fabric,
    FailureDomain,
    Medium,
    Segment,
    Site,
    Tier,
    sum_of,
    transceiver_terms,
)
from simcore.fabric.hops import Histogram, pairs_within
from simcore.fabric.specs import NetworkSpec
from simcore.fabric.switch_graph import Ints
from simcore.fabric.switched import endpoint_failures
from simcore.why import Term, constant, minimum

SWITCH = "switch"
MOST_PAIRS = 4_000_000  # of joined switches: what is wired in seconds and some hundred MB
NO_GRAPH: tuple[Ints, Ints] = (np.zeros((0, 2), np.int64), np.zeros(0, np.int64))


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """A direct network, counted: terms, the switch graph, and what its paths are."""

    endpoints_per_switch: Term
    switches: Term
    links: Mapping[str, Term]  # between switches, by what they join
    gap: Term  # of the switch graph, as above
    edges: Ints  # pairs of joined switches
    edge_links: Ints  # parallel links of each pair
    pairs_by_hops: Sequence[int]  # ordered pairs of distinct endpoints by hops between their switches
    path_count: Term
    disjoint_path_count: Term


def check_ports(spec: NetworkSpec, needed: int, formula: str, *, path: str) -> None:
    """The ports that one switch spends, against those it has."""
    if needed > spec.radix:
        raise InfeasibleError.at(
            path,
            "fabric.direct_ports",
            "a switch needs {formula} ≤ radix ports, but {needed} > {radix}; "
            "use a radix of {needed} or smaller parameters",
            formula=formula,
            needed=needed,
            radix=spec.radix,
        )


def check_size(spec: NetworkSpec, site: Site, limit: int, formula: str, *, path: str) -> None:
    """The endpoints that the topology is to hold, against those that it can."""
    if site.endpoint_count > limit:
        raise InfeasibleError.at(
            path,
            "fabric.direct_endpoints",
            "{count:,} endpoints do not fit: with {radix}-port switches N ≤ {formula} = {limit:,}; "
            "use at most {limit:,} endpoints, a larger radix or larger parameters",
            count=site.endpoint_count,
            radix=spec.radix,
            formula=formula,
            limit=limit,
        )


def check_pairs(pairs: int, *, path: str) -> None:
    """Switch graphs that are too large to be wired are refused before they are."""
    if pairs > MOST_PAIRS:
        raise InfeasibleError.at(
            path,
            "fabric.direct_pairs",
            "{pairs:,} pairs of switches would be joined; at most {limit:,} are wired, so use smaller parameters",
            pairs=pairs,
            limit=MOST_PAIRS,
        )


def check_wired(fabric: Fabric) -> None:
    """Loads and pictures need the graph, which counting does not."""
    if not fabric.is_wired:
        raise InfeasibleError.at(
            "topology",
            "fabric.no_graph",
            "this network is counted by formula and no graph of it is known; choose one that can be built",
        )


def finish(
    spec: NetworkSpec,
    site: Site,
    counted: Counted,
    *,
    kind: str,
    chosen: Mapping[str, int],
    sizes: tuple[int, ...] = (),
    failure_domains: Sequence[FailureDomain] = (),
    notes: Sequence[Message] = (),
) -> Fabric:
    endpoints = site.endpoints()
    modules = transceiver_terms((endpoints, *counted.links.values()))
    between = sum_of(tuple(counted.links.values())).named("links_between_switches_count")
    bisection = (bisection_links(endpoints, counted) * site.nic_rate()).named("bisection_bytes_per_s")
    links = int(between.value)
    return Fabric(
        kind=kind,
        chip_count=site.chip_count,
        endpoint_count=site.endpoint_count,
        hb_domain_size=site.hb_domain_size,
        tiers=(_tier(spec, site, counted, links),),
        segments=_segments(spec, site, counted),
        link_bytes_per_s=site.nic_bytes_per_s,
        transceiver_convention=spec.transceiver_convention,
        transceivers={convention: int(term.value) for convention, term in modules.items()},
        island_count=1,
        island_size=site.chip_count,
        hop_histogram=_histogram(site, counted.pairs_by_hops),
        reachable_fraction=1.0,
        bisection_bytes_per_s=bisection.value,
        failure_domains=(*_failure_domains(site, counted, links), *failure_domains),
        switch_edges=counted.edges,
        switch_edge_links=counted.edge_links,
        endpoints_per_switch=int(counted.endpoints_per_switch.value),
        chosen=chosen,
        sizes=sizes,
        notes=tuple(notes),
        terms=_terms(spec, endpoints, counted, between=between, bisection=bisection),
    )


def _terms(
    spec: NetworkSpec, endpoints: Term, counted: Counted, *, between: Term, bisection: Term
) -> dict[str, Term]:
    modules = transceiver_terms((endpoints, *counted.links.values()))
    return {
        "fabric.switch_count": counted.switches.named("switch_count"),
        "fabric.link_count": sum_of((endpoints, *counted.links.values())).named("link_count"),
        "fabric.transceiver_count": modules[spec.transceiver_convention].named("transceiver_count"),
        "fabric.island_count": constant(1, "one island"),
        "fabric.bisection_bytes_per_s": bisection,
        "fabric.routing_adjacency_count": between.named("routing_adjacency_count"),
        "fabric.path_count": counted.path_count.named("path_count"),
        "fabric.disjoint_path_count": counted.disjoint_path_count.named("disjoint_path_count"),
    }


def bisection_links(endpoints: Term, counted: Counted) -> Term:
    own = (endpoints / 2).named("half_of_endpoint_links_count")
    if counted.switches.value == 1:
        return own
    side = (own / counted.endpoints_per_switch).named("switches_of_a_half_count")
    cut = counted.gap * side * (counted.switches - side) / counted.switches
    return minimum(own, cut.named("cut_links"))


def _tier(spec: NetworkSpec, site: Site, counted: Counted, links: int) -> Tier:
    """One tier; its ports up are those to other switches."""
    return Tier(
        name=SWITCH,
        switch_count=int(counted.switches.value),
        radix=spec.radix,
        down_port_count=site.endpoint_count,
        up_port_count=2 * links,
    )


def _segments(spec: NetworkSpec, site: Site, counted: Counted) -> tuple[Segment, ...]:
    first: Medium = "copper" if spec.transceiver_convention == "copper_first_hop" else "optical"
    own = Segment(lower="chip", upper=SWITCH, link_count=site.endpoint_count, medium=first)
    return own, *(
        Segment(name=name, lower=SWITCH, upper=SWITCH, link_count=int(links.value), medium="optical")
        for name, links in counted.links.items()
        if links.value
    )


def _histogram(site: Site, pairs_by_hops: Sequence[int]) -> Histogram:
    """Shares by links on the path; a scale-up domain takes the nearest pairs, at one link each."""
    within = pairs_within(site.endpoint_count, site.domain_endpoint_count)
    counts = {1: within}
    for hops, pairs in enumerate(pairs_by_hops):
        inside = min(within, pairs)
        within -= inside
        counts[hops + 2] = pairs - inside
    everything = sum(counts.values())
    return tuple((hops, pairs / everything) for hops, pairs in sorted(counts.items()) if pairs)


def _failure_domains(site: Site, counted: Counted, links: int) -> tuple[FailureDomain, ...]:
    switches, below = int(counted.switches.value), int(counted.endpoints_per_switch.value)
    cut_off = min(site.chip_count, below * site.chips_per_nic)
    found = (
        *endpoint_failures(site),
        FailureDomain(
            component="switch", count=switches, chip_count=cut_off, capacity_loss_fraction=1 / switches
        ),
    )
    if not links:
        return found
    between = FailureDomain(
        component="link between switches", count=links, chip_count=0, capacity_loss_fraction=1 / links
    )
    return (*found, between)
