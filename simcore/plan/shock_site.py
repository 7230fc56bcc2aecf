"""Where shocks hit: the servers at work, their links and cubes, and the switches above them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from simcore.catalog.types import Server
from simcore.errors import Message
from simcore.fabric import Fabric
from simcore.plan.slices import CHIPS_PER_CUBE
from simcore.reliability import Abilities, ReliabilitySpec, ShockSite, SwitchTier, Timeline, timeline

SHOCKS_PATH: Final = "reliability.shocks"
_RAILS: Final = frozenset({"rail_optimized", "rail_only"})


def shock_site(fabric: Fabric, server: Server, *, server_count: int) -> ShockSite:
    """What can fail of so many servers."""
    is_torus = server.scaleup_kind == "ici"
    links = 2 * len(fabric.shape or (1, 1, 1)) if is_torus else max(1, server.nic_count)
    return ShockSite(
        server_count=server_count,
        links_per_server=links * (server.chips_per_server if is_torus else 1),
        link_lost_fraction=1.0 / links,
        servers_per_cube=CHIPS_PER_CUBE // server.chips_per_server if is_torus else None,
        tiers=_tiers(fabric, server, server_count),
    )


def _tiers(fabric: Fabric, server: Server, server_count: int) -> dict[str, SwitchTier]:
    """A leaf switch takes its servers' only way out, or one rail of each of them; a higher one its share of all."""
    found: dict[str, SwitchTier] = {}
    domains = {one.component: one for one in fabric.failure_domains}
    for tier in fabric.tiers:
        domain = domains.get(f"{tier.name} switch")
        if domain is None:
            continue
        if domain.chip_count == 0:
            below, lost = server_count, domain.capacity_loss_fraction
        elif fabric.kind in _RAILS:
            below, lost = domain.chip_count, 1.0 / max(1, server.nic_count)
        else:
            below, lost = math.ceil(domain.chip_count / server.chips_per_server), 1.0
        found[tier.name] = SwitchTier(
            switch_count=tier.switch_count, server_count=min(below, server_count), lost_fraction=lost
        )
    return found


def shock_timeline(spec: ReliabilitySpec, able: Abilities, site: ShockSite, *, seed: int) -> Timeline:
    """The scenario's shocks as events; spares are used by those who can re-wire."""
    return timeline(
        spec.shocks,
        site,
        seed=seed,
        spares=spec.spares if able.physical else 0,
        reconfiguration_s=able.reconfiguration_s,
    )


def spares_note(spec: ReliabilitySpec) -> Iterator[Message]:
    """Said where re-wiring is turned on and nothing is held back for it."""
    replaceable = any(one.kind in ("host_failure", "cube_failure", "drain") for one in spec.shocks)
    if replaceable and spec.abilities.physical and not spec.spares:
        yield Message(
            code="shocks.no_spares",
            template="nothing can be re-wired: no spare is held back, so what failed waits for its repair; set "
            "reliability.spares",
            path="reliability.spares",
        )
