"""What the size of the scale-up domain does to a rail-only fabric: the guard rail of its saving, in numbers.

One tier of k-port switches joins `N ≤ K·k` chips, K being the domain; beyond that it falls into
`ceil(N / (K·k))` islands, and a Clos on each rail (`tiers: auto`) buys them back with further switches. Each
row builds both fabrics for one K; None stands where even three tiers do not hold the rail.
"""

from __future__ import annotations

from typing import Any, Final

from simcore.catalog.types import Server
from simcore.errors import InfeasibleError
from simcore.fabric.base import Fabric, Site
from simcore.fabric.rail import RailOnly, build_rail_only

SIZES: Final = (8, 72, 256)  # servers of eight, NVL72, and what the published saving takes


def domain_rows(spec: RailOnly, fabric: Fabric, server: Server) -> list[dict[str, Any]]:
    """The result's `scaleup_domains` table: SIZES and the scenario's own, the smallest first."""
    sizes = sorted({*SIZES, fabric.hb_domain_size})
    return [_row(spec, fabric, server, size) for size in sizes if size < fabric.chip_count]


def _row(spec: RailOnly, fabric: Fabric, server: Server, size: int) -> dict[str, Any]:
    one_tier = _built(spec, fabric, server, size, tiers=1)
    joined = _built(spec, fabric, server, size, tiers="auto")
    return {
        "hb_domain_size": size,
        "is_own": size == fabric.hb_domain_size,
        "limit_chip_count": size * spec.radix,
        **_counts("one_tier", one_tier),
        **_counts("joined", joined),
    }


def _built(spec: RailOnly, fabric: Fabric, server: Server, size: int, *, tiers: int | str) -> Fabric | None:
    wanted = RailOnly.model_validate({**spec.model_dump(), "hb_domain_size": size, "tiers": tiers})
    site = Site.of(server, chip_count=fabric.chip_count, hb_domain_size=size, scaleup_bytes_per_s=None)
    try:
        return build_rail_only(wanted, site)
    except InfeasibleError:
        return None


def _counts(prefix: str, built: Fabric | None) -> dict[str, int | None]:
    return {
        f"{prefix}_{name}": getattr(built, name) if built else None
        for name in ("island_count", "island_size", "switch_count", "transceiver_count")
    }
