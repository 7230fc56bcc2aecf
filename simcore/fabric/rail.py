"""Fabrics built by rail: chip i of every scale-up domain hangs on rail i.

`rail_optimized` is a folded Clos whose leaves each serve one rail: the same counts, shorter paths.
`rail_only` has no tier that joins the rails; off-rail traffic crosses the scale-up domain first (NCCL's
PXN), which slows an all-to-all by `nic / scale-up` bandwidth (Wang et al., Rail-only, arXiv 2307.12169).
A rail of N/K endpoints (K = domain size) is one switch when `N ≤ K·k`, else a folded Clos of its own;
several small rails share a switch (`floor(k / rail)` of them). `tiers: 1` beyond the limit is built as
islands of K·k endpoints, with a warning that carries the inequality.
Limits: rails that share a switch are kept apart (separate broadcast domains), as on separate switches.
"""

from __future__ import annotations

from typing import Literal

from simcore.errors import Message
from simcore.fabric.base import (
    TIER_NAMES,
    Fabric,
    Plane,
    Site,
    capacity,
    fewest_tiers,
    stages,
    sum_of,
)
from simcore.fabric.hops import Histogram, rail_histogram
from simcore.fabric.specs import PlanedSpec, SwitchedSpec
from simcore.fabric.switched import (
    Counted,
    clos_counted,
    finish,
    path_terms,
    plane_of,
    radix_term,
    single_server,
    too_many,
)
from simcore.why import Term, ceil, constant, floor, leaf, maximum, minimum


class RailOptimized(PlanedSpec):
    """Folded Clos with leaves by rail."""

    kind: Literal["rail_optimized"] = "rail_optimized"


class RailOnly(SwitchedSpec):
    """One network per rail; rails meet only in the scale-up domains."""

    kind: Literal["rail_only"] = "rail_only"


def build_optimized(spec: RailOptimized, site: Site) -> Fabric:
    if site.needs_no_network:
        return single_server(spec, site, spec.kind)
    counted = clos_counted(spec, site)
    rails = site.domain_endpoint_count
    levels, domains = [], 1
    for level, down in enumerate(counted.planes[0].down_port_counts):
        # A leaf holds one endpoint of `down` domains; a pod holds `down` leaves, shared by all rails.
        domains = down if level == 0 else max(domains, domains * down // rails)
        top = level == counted.tier_count - 1
        on = 2 * (level + 1)
        off = on if top or level > 0 else on + 1
        levels.append((site.endpoint_count if top else domains, on, off))
    histogram = rail_histogram(site.endpoint_count, rails=rails, levels=levels)
    return finish(spec, site, counted, kind=spec.kind, hop_histogram=histogram)


def build_rail_only(spec: RailOnly, site: Site) -> Fabric:
    if site.needs_no_network:
        return single_server(spec, site, spec.kind)
    tiers = _tiers(spec, site)
    counted = _one_tier(spec, site) if tiers == 1 else _clos_per_rail(spec, site, tiers)
    return finish(
        spec,
        site,
        counted,
        kind=spec.kind,
        hop_histogram=_rail_only_histogram(site, counted),
        all_to_all_slowdown=_slowdown(site),
        warnings=_warnings(spec, site, counted),
        notes=(_guard_rail(spec, site),) if tiers == 1 and counted.island_count.value == 1 else (),
    )


def _tiers(spec: RailOnly, site: Site) -> int:
    """The tiers asked for; `auto`: the fewest that keep all chips in one island."""
    radix, ratios, rails = radix_term(spec), spec.ratio_terms(), site.domain_endpoint_count
    longest = -(-site.endpoint_count // rails)
    needed = fewest_tiers(longest, radix, ratios)
    tiers = needed if spec.tiers == "auto" else spec.tiers
    if tiers == 1:
        return 1
    if needed is None or tiers is None or tiers < needed:
        limit = capacity(radix, ratios, tiers or 3)
        raise too_many(site.endpoint_count, limit, spec.radix, tiers or 3, rails=rails)
    return tiers


def _domain_term(site: Site) -> Term:
    domain = leaf(site.hb_domain_size, "hb_domain_size", path="topology.hb_domain_size")
    if site.chips_per_nic == 1:
        return domain
    share = leaf(site.chips_per_nic, "chips_per_nic", kind="catalog", source="server")
    return maximum(constant(1), floor(domain / share))


def _one_tier(spec: RailOnly, site: Site) -> Counted:
    """Full islands of K·k endpoints on K switches each, and a last one whose small rails share switches."""
    endpoints, radix, rails = site.endpoints(), radix_term(spec), _domain_term(site)
    island = (rails * radix).named("island_size")
    islands = ceil(endpoints / island).named("island_count")
    count, size = int(rails.value), int(island.value)
    full, rest = divmod(site.endpoint_count, size)
    if rest == 0:
        switches = islands * rails
    elif full == 0:
        switches = _packed(endpoints, rails, radix)
    else:
        whole = floor(endpoints / island).named("full_island_count")
        switches = whole * rails + _packed(
            (endpoints - whole * island).named("last_island_size"), rails, radix
        )
    planes = [Plane(count=full * count, endpoint_count=spec.radix, **_flat(spec))]
    planes += [
        Plane(count=rails_count, endpoint_count=length, **_flat(spec))
        for rails_count, length in _rails(rest, count)
    ]
    return Counted(
        tier_names=("rail",),
        switches=(switches.named("rail_switch_count"),),
        links=(endpoints,),
        planes=tuple(plane for plane in planes if plane.count),
        island_count=islands,
        island_size=min(size, site.endpoint_count),
        paths=(constant(1, "one switch"), constant(1, "one switch")),
    )


def _packed(endpoints: Term, rails: Term, radix: Term) -> Term:
    """Switches of rails shorter than a switch: each takes as many whole rails as its ports hold."""
    length = ceil(endpoints / rails).named("rail_endpoint_count")
    return ceil(minimum(rails, endpoints) / floor(radix / length).named("rails_per_switch"))


def _flat(spec: RailOnly) -> dict[str, tuple[int, ...]]:
    return {"down_port_counts": (spec.radix,), "up_port_counts": (0,)}


def _rails(endpoint_count: int, rails: int) -> list[tuple[int, int]]:
    """Rails by length: (how many, endpoints each); the longer ones first."""
    base, longer = divmod(endpoint_count, rails)
    return [
        (count, length) for count, length in ((longer, base + 1), (rails - longer, base)) if count and length
    ]


def _clos_per_rail(spec: RailOnly, site: Site, tiers: int) -> Counted:
    radix, ratios, rails = radix_term(spec), spec.ratio_terms(), _domain_term(site)
    endpoints = site.endpoints()
    length = endpoints / rails
    if site.endpoint_count % int(rails.value) == 0:
        groups = [(rails, length)]
    else:
        longer = (endpoints - rails * floor(length)).named("longer_rail_count")
        groups = [(longer, ceil(length)), ((rails - longer).named("shorter_rail_count"), floor(length))]
    counted = [
        (count, stages(size.named("rail_endpoint_count"), radix, ratios, tiers)) for count, size in groups
    ]
    return Counted(
        tier_names=TIER_NAMES[:tiers],
        switches=tuple(_sum([(n, s.switch_counts[level]) for n, s in counted]) for level in range(tiers)),
        links=tuple(_sum([(n, s.down_links[level]) for n, s in counted]) for level in range(tiers)),
        planes=tuple(plane_of(s, int(n.value), int(s.down_links[0].value)) for n, s in counted),
        island_count=constant(1, "one island"),
        island_size=site.endpoint_count,
        paths=path_terms(counted[0][1]),
    )


def _sum(products: list[tuple[Term, Term]]) -> Term:
    return sum_of([count * each for count, each in products])


def _rail_only_histogram(site: Site, counted: Counted) -> Histogram:
    """Within one (full) island."""
    downs = counted.planes[0].down_port_counts
    levels, domains = [], 1
    for level, down in enumerate(downs):
        domains *= down
        on = 2 * (level + 1)
        levels.append((site.endpoint_count if level == len(downs) - 1 else domains, on, on + 1))
    return rail_histogram(counted.island_size, rails=site.domain_endpoint_count, levels=levels)


def _slowdown(site: Site) -> Term | None:
    """Extra time of an all-to-all: off-rail bytes cross the scale-up domain once more."""
    if not site.scaleup_bytes_per_s or site.domain_endpoint_count == 1:
        return None
    scaleup = leaf(site.scaleup_bytes_per_s, "scaleup_bytes_per_s", kind="catalog", source="chip")
    return site.nic_rate() / scaleup


def _limit(spec: RailOnly, site: Site) -> dict[str, int | str]:
    limit = site.domain_endpoint_count * spec.radix
    return {
        "chip_count": site.chip_count,
        "hb_domain_size": site.hb_domain_size,
        "radix": spec.radix,
        "limit": limit * site.chips_per_nic,
        "island_count": -(-site.endpoint_count // limit),
        "island_size": min(site.chip_count, limit * site.chips_per_nic),
        "nearest": -(-site.endpoint_count // spec.radix) * site.chips_per_nic,
    }


def _guard_rail(spec: RailOnly, site: Site) -> Message:
    return Message(
        code="fabric.guard_rail",
        template="one rail tier joins only N ≤ hb_domain_size × radix chips: "
        "{hb_domain_size:,} × {radix} = {limit:,}, and N is {chip_count:,}",
        params=_limit(spec, site),
        path="topology.tiers",
    )


def _warnings(spec: RailOnly, site: Site, counted: Counted) -> tuple[Message, ...]:
    if counted.island_count.value == 1:
        return ()
    return (
        Message(
            code="fabric.islands",
            template="{island_count} islands of {island_size:,} chips that cannot reach each other: "
            "N ≤ hb_domain_size × radix fails, {chip_count:,} > {hb_domain_size:,} × {radix} = {limit:,}. "
            "hb_domain_size: {nearest:,} makes one island; tiers: auto puts a Clos on each rail",
            params=_limit(spec, site),
            path="topology.tiers",
        ),
    )
