"""What each layer of links is made of: its medium, how far it must reach, the optical modules at its ends.

The convention says how many modules: two on every link (`both_ends`), none on the endpoints' own links
(`copper_first_hop`), or one per link and a shared one per two ports at the switch (`twin_port`; between
switches twin modules stand at both ends, half a module each). A fibre to an optical circuit switch has one
module, at the chip. Reach is an assumption by layer: 3 m of copper inside a rack, 30 m to the leaf in the
row (active cables reach), 100 m to the spine, 500 m to the core and between groups.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal

from simcore.fabric.base import Fabric
from simcore.fabric.specs import TransceiverConvention

LinkMedium = Literal["copper", "optical_30m", "optical_100m", "optical_500m", "scaleup"]
BY_LAYER: Final[tuple[LinkMedium, ...]] = ("optical_30m", "optical_100m", "optical_500m")
TO_OPTICAL_SWITCH: Final[LinkMedium] = "optical_100m"


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkLayer:
    """All links of one segment under a convention."""

    lower: str
    upper: str
    tier: str  # what the links are named by: their kind, else their upper end
    link_count: int
    medium: LinkMedium
    module_count: int


def link_layers(fabric: Fabric, convention: TransceiverConvention | None = None) -> tuple[LinkLayer, ...]:
    """Segments from the chips up, under the fabric's own convention or another."""
    counted = convention or fabric.transceiver_convention
    found = []
    for level, segment in enumerate(fabric.segments):
        medium = _medium(fabric, level, counted)
        found.append(
            LinkLayer(
                lower=segment.lower,
                upper=segment.upper,
                tier=segment.name or segment.upper,
                link_count=segment.link_count,
                medium=medium,
                module_count=_modules(fabric, level, medium, counted),
            )
        )
    return tuple(found)


def _medium(fabric: Fabric, level: int, convention: TransceiverConvention) -> LinkMedium:
    segment = fabric.segments[level]
    if not fabric.tiers:
        if segment.medium == "optical":
            return TO_OPTICAL_SWITCH
        return "copper" if segment.medium == "copper" else "scaleup"
    if level == 0 and convention == "copper_first_hop":
        return "copper"
    return BY_LAYER[min(level, len(BY_LAYER) - 1)]


def _modules(fabric: Fabric, level: int, medium: LinkMedium, convention: TransceiverConvention) -> int:
    links = fabric.segments[level].link_count
    if medium in ("copper", "scaleup"):
        return 0
    if not fabric.tiers:
        return links
    if convention != "twin_port":
        return 2 * links
    return links + math.ceil(links / 2) if level == 0 else links
