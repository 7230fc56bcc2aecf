"""From counted stages to a Fabric: what `clos`, `rail_optimized` and `rail_only` share after counting.

A fabric is one or more kinds of plane (a folded Clos of its own); links and switches of all planes are
summed by tier. Bisection per direction is half the links of the scarcest layer times the link rate, and
0 between islands. Failure domains: the endpoints below one switch are cut off (their NIC has one port);
a spine or core takes capacity, not endpoints.

Multi-plane: n equal folded Clos over all endpoints, each with one link of every endpoint at 1/n of its NIC's rate;
what fails in one plane takes capacity, and cuts nothing off. `radix` counts ports of that rate.

Paths between endpoints that meet at the top: a leaf reaches the T switches of the top over `Π u` ways, u links
upwards per switch of each tier below, spread evenly, so `(Π u)² / T` shortest paths lead from leaf to leaf and u of
the leaf's own links part them. Each plane adds its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from simcore.errors import InfeasibleError, Message
from simcore.fabric.base import (
    TIER_NAMES,
    Fabric,
    FailureDomain,
    Medium,
    Plane,
    Segment,
    Site,
    Stages,
    Tier,
    capacity,
    fewest_tiers,
    stages,
    sum_of,
    transceiver_terms,
)
from simcore.fabric.hops import Histogram, pairs_within
from simcore.fabric.specs import NetworkSpec, PlanedSpec, SwitchedSpec
from simcore.why import Term, constant, floor, leaf, maximum, minimum, product


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """Switches by tier and links by segment, as terms, with the planes they were counted from."""

    tier_names: tuple[str, ...]
    switches: tuple[Term, ...]
    links: tuple[Term, ...]  # the endpoints' own first
    planes: tuple[Plane, ...]
    island_count: Term
    island_size: int  # endpoints of a full island
    paths: tuple[Term, Term]  # shortest ones between far endpoints: all, and those that share no link

    @property
    def tier_count(self) -> int:
        return len(self.tier_names)


def radix_term(spec: SwitchedSpec) -> Term:
    return leaf(spec.radix, "radix", path="topology.radix")


def clos_counted(spec: PlanedSpec, site: Site) -> Counted:
    """One folded Clos over all endpoints, in the tiers asked for or the fewest that hold them."""
    radix, ratios = radix_term(spec), spec.ratio_terms()
    needed = fewest_tiers(site.endpoint_count, radix, ratios)
    tiers = needed if spec.tiers == "auto" else spec.tiers
    if needed is None or tiers is None or tiers < needed:
        raise too_many(site.endpoint_count, capacity(radix, ratios, tiers or 3), spec.radix, tiers or 3)
    counted = stages(site.endpoints(), radix, ratios, tiers)
    paths, disjoint = path_terms(counted)
    return Counted(
        tier_names=TIER_NAMES[:tiers],
        switches=tuple(_in_all_planes(spec, term) for term in counted.switch_counts),
        links=tuple(_in_all_planes(spec, term) for term in counted.down_links),
        planes=(plane_of(counted, spec.planes, site.endpoint_count),),
        island_count=constant(1, "one island"),
        island_size=site.endpoint_count,
        paths=(_in_all_planes(spec, paths), _in_all_planes(spec, disjoint)),
    )


def _planes(spec: NetworkSpec) -> int:
    return spec.planes if isinstance(spec, PlanedSpec) else 1


def _plane_term(spec: NetworkSpec) -> Term:
    return leaf(_planes(spec), "planes", path="topology.planes")


def _in_all_planes(spec: PlanedSpec, term: Term) -> Term:
    return term if spec.planes == 1 else (_plane_term(spec) * term).named(term.name)


def _link_rate(spec: NetworkSpec, site: Site) -> Term:
    return site.nic_rate() if _planes(spec) == 1 else site.nic_rate() / _plane_term(spec)


def path_terms(counted: Stages) -> tuple[Term, Term]:
    """Shortest paths from leaf to leaf by way of the top, all and disjoint."""
    ups = counted.up_ports[:-1]
    if not ups:
        return constant(1, "one switch"), constant(1, "one switch")
    ways = ups[0] if len(ups) == 1 else product(*ups)
    return maximum(1, floor(ways * ways / counted.switch_counts[-1])), ups[0]


def plane_of(counted: Stages, count: int, endpoint_count: int) -> Plane:
    return Plane(
        count=count,
        endpoint_count=endpoint_count,
        down_port_counts=tuple(int(ports.value) for ports in counted.down_ports),
        up_port_counts=tuple(int(ports.value) for ports in counted.up_ports),
    )


def too_many(count: int, limit: int, radix: int, tiers: int, *, rails: int = 1) -> InfeasibleError:
    """The inequality that fails and the nearest size that holds."""
    formula = {1: "radix", 2: "radix × down_ports", 3: "radix × down_ports × down_ports"}[tiers]
    if rails > 1:
        formula = f"hb_domain_size × {formula}"
    return InfeasibleError.at(
        "topology.tiers",
        "fabric.too_many_endpoints",
        "{count:,} endpoints do not fit: with {tiers} tier(s) of {radix}-port switches N ≤ {formula} = "
        "{limit:,}; use at most {limit:,} endpoints, a larger radix or more tiers (up to 3)",
        count=count,
        tiers=tiers,
        radix=radix,
        formula=formula,
        limit=limit * rails,
    )


def single_server(spec: NetworkSpec, site: Site, kind: str) -> Fabric:
    """All chips reach each other without a network: nothing to buy, nothing to cross."""
    note = Message(
        code="fabric.none_needed",
        template="{chip_count} chip(s) share one server or scale-up domain; no network between is built",
        params={"chip_count": site.chip_count},
        path="topology",
    )
    scaleup = site.scaleup_bytes_per_s
    rate = leaf(
        scaleup or site.nic_bytes_per_s,
        "scaleup_bytes_per_s" if scaleup else "nic_bytes_per_s",
        kind="catalog",
        source="chip" if scaleup else "server",
    )
    bisection = leaf(site.chip_count, "chip_count", path="hardware.chip_count") / 2 * rate
    zero = constant(0, "no network between servers")
    counts = ("switch", "link", "transceiver", "routing_adjacency")
    inside = constant(1, "inside the scale-up domain")
    return Fabric(
        kind=kind,
        chip_count=site.chip_count,
        endpoint_count=site.endpoint_count,
        hb_domain_size=site.hb_domain_size,
        tiers=(),
        segments=(),
        link_bytes_per_s=site.nic_bytes_per_s,
        transceiver_convention=spec.transceiver_convention,
        transceivers={"both_ends": 0, "copper_first_hop": 0, "twin_port": 0},
        island_count=1,
        island_size=site.chip_count,
        hop_histogram=((1, 1.0),) if site.chip_count > 1 else (),
        reachable_fraction=1.0,
        bisection_bytes_per_s=bisection.value,
        failure_domains=(_server_failure(site),),
        notes=(note,),
        terms={f"fabric.{name}_count": zero for name in counts}
        | {f"fabric.{name}_count": inside for name in ("path", "disjoint_path")}
        | {"fabric.bisection_bytes_per_s": bisection.named("bisection_bytes_per_s")},
    )


def finish(
    spec: SwitchedSpec,
    site: Site,
    counted: Counted,
    *,
    kind: str,
    hop_histogram: Histogram,
    all_to_all_slowdown: Term | None = None,
    warnings: Sequence[Message] = (),
    notes: Sequence[Message] = (),
) -> Fabric:
    modules = transceiver_terms(counted.links)
    islands = int(counted.island_count.value)
    rate = _link_rate(spec, site)
    bisection = bisection_term(rate, counted)
    terms = {
        "fabric.switch_count": sum_of(counted.switches).named("switch_count"),
        "fabric.link_count": sum_of(counted.links).named("link_count"),
        "fabric.transceiver_count": modules[spec.transceiver_convention].named("transceiver_count"),
        "fabric.island_count": counted.island_count.named("island_count"),
        "fabric.bisection_bytes_per_s": bisection.named("bisection_bytes_per_s"),
        "fabric.routing_adjacency_count": _between(counted).named("routing_adjacency_count"),
        "fabric.path_count": counted.paths[0].named("path_count"),
        "fabric.disjoint_path_count": counted.paths[1].named("disjoint_path_count"),
    }
    if all_to_all_slowdown is not None:
        terms["fabric.all_to_all_slowdown_ratio"] = all_to_all_slowdown.named("all_to_all_slowdown_ratio")
    return Fabric(
        kind=kind,
        chip_count=site.chip_count,
        endpoint_count=site.endpoint_count,
        hb_domain_size=site.hb_domain_size,
        tiers=_tiers(spec, counted),
        segments=_segments(spec, counted),
        link_bytes_per_s=rate.value,
        transceiver_convention=spec.transceiver_convention,
        transceivers={convention: int(term.value) for convention, term in modules.items()},
        island_count=islands,
        island_size=min(site.chip_count, counted.island_size * site.chips_per_nic),
        hop_histogram=hop_histogram,
        reachable_fraction=reachable_fraction(site.endpoint_count, counted.island_size),
        bisection_bytes_per_s=bisection.value,
        all_to_all_slowdown_ratio=all_to_all_slowdown.value if all_to_all_slowdown else 0.0,
        failure_domains=_failure_domains(site, counted, planes=_planes(spec)),
        warnings=tuple(warnings),
        notes=(*notes, *_plane_notes(spec)),
        planes=counted.planes,
        terms=terms,
    )


def _between(counted: Counted) -> Term:
    """Links between switches; each carries a routing session."""
    return sum_of(counted.links[1:]) if counted.tier_count > 1 else constant(0, "no link between switches")


def bisection_term(rate: Term, counted: Counted) -> Term:
    if counted.island_count.value > 1:
        return constant(0, "no path between islands") * rate
    scarcest = counted.links[0] if len(counted.links) == 1 else minimum(*counted.links)
    return scarcest / 2 * rate


def _plane_notes(spec: SwitchedSpec) -> tuple[Message, ...]:
    if _planes(spec) == 1:
        return ()
    return (
        Message(
            code="fabric.plane_prices",
            template="{planes} planes: ports and link ends of 1/{planes} of the NIC's rate are priced and powered "
            "as whole ones",
            params={"planes": _planes(spec)},
            path="topology.planes",
        ),
    )


def reachable_fraction(count: int, island: int) -> float:
    """Share of ordered endpoint pairs that lie in one island."""
    return pairs_within(count, island) / (count * (count - 1)) if count > 1 else 1.0


def _tiers(spec: SwitchedSpec, counted: Counted) -> tuple[Tier, ...]:
    downs = [int(link.value) for link in counted.links]
    ups = [*downs[1:], 0]
    return tuple(
        Tier(
            name=name,
            switch_count=int(switches.value),
            radix=spec.radix,
            down_port_count=down,
            up_port_count=up,
        )
        for name, switches, down, up in zip(counted.tier_names, counted.switches, downs, ups, strict=True)
    )


def _segments(spec: SwitchedSpec, counted: Counted) -> tuple[Segment, ...]:
    names = ("chip", *counted.tier_names)
    first: Medium = "copper" if spec.transceiver_convention == "copper_first_hop" else "optical"
    return tuple(
        Segment(
            lower=names[level],
            upper=names[level + 1],
            link_count=int(links.value),
            medium=first if level == 0 else "optical",
        )
        for level, links in enumerate(counted.links)
    )


def _server_failure(site: Site) -> FailureDomain:
    servers = -(-site.chip_count // site.chips_per_server)
    chips = min(site.chip_count, site.chips_per_server)
    return FailureDomain(
        component="server", count=servers, chip_count=chips, capacity_loss_fraction=1 / servers
    )


def endpoint_failures(site: Site, *, planes: int = 1) -> list[FailureDomain]:
    """A server, and one link of an endpoint, which has another in each further plane."""
    links = planes * site.endpoint_count
    return [
        _server_failure(site),
        FailureDomain(
            component="endpoint link",
            count=links,
            chip_count=site.chips_per_nic if planes == 1 else 0,
            capacity_loss_fraction=1 / links,
        ),
    ]


def _failure_domains(site: Site, counted: Counted, *, planes: int) -> tuple[FailureDomain, ...]:
    """Server, link, and one switch of each tier."""
    found = endpoint_failures(site, planes=planes)
    below = min(
        site.endpoint_count, max(min(p.endpoint_count, p.down_port_counts[0]) for p in counted.planes)
    )
    for level, (name, switches) in enumerate(zip(counted.tier_names, counted.switches, strict=True)):
        cuts_off = level == 0 and planes == 1
        found.append(
            FailureDomain(
                component=f"{name} switch",
                count=int(switches.value),
                chip_count=min(site.chip_count, below * site.chips_per_nic) if cuts_off else 0,
                capacity_loss_fraction=1 / switches.value,
            )
        )
    return tuple(found)
