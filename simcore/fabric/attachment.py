"""On which switch each endpoint hangs: in order, by rail, or rail by rail.

`clos` fills leaves with whole servers. `rail_optimized` takes as many scale-up domains as a leaf has ports
downwards and fills leaves with their rails in turn, so that a leaf has one rail where the group is full.
`rail_only` gives each rail its own plane, and where rails are short and one tier holds them several share a switch
(as many as its ports hold). Islands of one-tier rails stand next to each other.
"""

from __future__ import annotations

import numpy as np

from simcore.fabric.base import Fabric, Plane
from simcore.fabric.wiring import Ints


def switches_of_endpoints(fabric: Fabric) -> Ints:
    """The leaf (by its number in the whole fabric) of each endpoint of a switched fabric."""
    endpoints = np.arange(fabric.endpoint_count)
    rails = rail_count(fabric)
    down = fabric.planes[0].down_port_counts[0]
    if fabric.kind == "rail_optimized":
        return _by_rail(endpoints, rails, down)
    if fabric.kind == "rail_only":
        if len(fabric.tiers) > 1:
            return _rail_by_rail(fabric, endpoints, rails)
        return _islands(fabric.planes, endpoints, rails)
    return endpoints // down


def rail_count(fabric: Fabric) -> int:
    """Endpoints of one scale-up domain."""
    return max(1, fabric.hb_domain_size // fabric.chips_per_nic)


def _by_rail(endpoints: Ints, rails: int, down: int) -> Ints:
    domain, rail = endpoints // rails, endpoints % rails
    place = np.empty_like(endpoints)
    place[np.lexsort((domain, rail, domain // down))] = endpoints
    return place // down


def _rail_by_rail(fabric: Fabric, endpoints: Ints, rails: int) -> Ints:
    """Planes are the rails in turn; the longer ones come first, as endpoints fill domains in order."""
    down = fabric.planes[0].down_port_counts[0]
    lengths = np.array([plane.endpoint_count for plane in fabric.planes for _ in range(plane.count)])
    leaves = -(-lengths // down)
    first = np.concatenate([[0], np.cumsum(leaves)])
    return first[endpoints % rails] + endpoints // rails // down


def _islands(planes: tuple[Plane, ...], endpoints: Ints, rails: int) -> Ints:
    radix = planes[0].down_port_counts[0]
    island, rail = endpoints // (rails * radix), endpoints % rails
    rest = len(endpoints) % (rails * radix)
    shared = radix // -(-rest // rails) if rest else 1  # rails of the last island that a switch holds
    last = island == len(endpoints) // (rails * radix)
    return island * rails + np.where(last, rail // shared, rail)
