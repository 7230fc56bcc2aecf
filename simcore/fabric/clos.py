"""Folded Clos (fat tree) of one to three switch tiers, any even radix, oversubscription per tier.

`tiers: auto` takes the fewest tiers that hold the endpoints: one up to k, two up to k·k/2, three up to
k·k/2·k/2 (non-blocking). Endpoints fill leaves server by server. Beyond three tiers: infeasible, with the
inequality. Counting: `simcore.fabric.base`.
"""

from __future__ import annotations

from typing import Literal

from simcore.fabric.base import Fabric, Site
from simcore.fabric.hops import Histogram, nested_histogram
from simcore.fabric.specs import PlanedSpec
from simcore.fabric.switched import Counted, clos_counted, finish, single_server


class Clos(PlanedSpec):
    """Folded Clos; leaves hold whole servers."""

    kind: Literal["clos"] = "clos"


def build(spec: Clos, site: Site) -> Fabric:
    if site.needs_no_network:
        return single_server(spec, site, spec.kind)
    counted = clos_counted(spec, site)
    return finish(spec, site, counted, kind=spec.kind, hop_histogram=_histogram(site, counted))


def _histogram(site: Site, counted: Counted) -> Histogram:
    plane = counted.planes[0]
    groups = [(plane.endpoint_count, 2 * counted.tier_count)]
    size = 1
    for level, down in enumerate(plane.down_port_counts[:-1]):
        size *= down
        groups.append((size, 2 * (level + 1)))
    if site.domain_endpoint_count > 1:
        groups.append((site.domain_endpoint_count, 1))
    return nested_histogram(plane.endpoint_count, groups)
