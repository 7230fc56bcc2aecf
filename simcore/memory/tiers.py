"""The memory tiers that bytes can live in, as one chip sees them.

A tier has a capacity, a bandwidth per direction and a latency; moving bytes costs
`latency + bytes / bandwidth`. Tiers whose figures the catalog lacks are left out rather than guessed.
Limits: one transfer at a time; the host's memory is shared evenly among the chips of a server.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from simcore.catalog.types import Chip, Server
from simcore.spec import Spec
from simcore.why import Term, constant, leaf

TierName = Literal["hbm", "peer_hbm", "host_dram", "nvme", "remote"]
# Latency of one access or message, orders of magnitude as vendors and micro-benchmarks print them.
_LATENCY_S: dict[TierName, float] = {
    "hbm": 0.6e-6,
    "peer_hbm": 2e-6,
    "host_dram": 10e-6,
    "nvme": 100e-6,
    "remote": 20e-6,
}


class OffloadTier(Spec):
    """A tier that takes KV, with the figures of one chip's share of it; auto: those of the catalog."""

    tier: Literal["host_dram", "nvme", "remote"]
    capacity_bytes: Literal["auto"] | Annotated[float, Field(ge=0, le=1e18)] = "auto"
    bytes_per_s: Literal["auto"] | Annotated[float, Field(gt=0, le=1e15)] = "auto"
    latency_s: Literal["auto"] | Annotated[float, Field(ge=0, le=3_600)] = "auto"
    write: Literal["back", "through"] = "back"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier:
    """One place for bytes, with what it costs to reach."""

    name: TierName
    capacity_bytes: Term  # infinite where nothing bounds it
    bytes_per_s: Term
    latency_s: float


def tiers(chip: Chip, server: Server) -> tuple[Tier, ...]:
    """Tiers of one chip in its server, nearest first."""
    chips = max(1, server.chips_per_server)
    visible = chip.leaf("hbm_visible_bytes")
    found = [_tier("hbm", visible, chip.leaf("hbm_bytes_per_s"))]
    peers = server.scaleup_domain_chip_count - 1
    if chip.scaleup_bytes_per_s and peers > 0:
        found.append(_tier("peer_hbm", peers * visible, chip.leaf("scaleup_bytes_per_s")))
    if chip.pcie_bytes_per_s:
        held = server.leaf("host_memory_bytes") / server.leaf("chips_per_server")
        found.append(_tier("host_dram", held, chip.leaf("pcie_bytes_per_s")))
    share = server.nic_count / chips * server.leaf("nic_bytes_per_s")
    found.append(_tier("remote", constant(math.inf), share.named("remote_bytes_per_s")))
    return tuple(found)


def tier_of(
    name: TierName, *, capacity_bytes: Term, bytes_per_s: Term, latency_s: float | None = None
) -> Tier:
    """A tier with figures of its own, such as NVMe drives, which servers are sold with or without."""
    return Tier(
        name=name,
        capacity_bytes=capacity_bytes,
        bytes_per_s=bytes_per_s,
        latency_s=_LATENCY_S[name] if latency_s is None else latency_s,
    )


def _tier(name: TierName, capacity_bytes: Term, bytes_per_s: Term) -> Tier:
    return tier_of(name, capacity_bytes=capacity_bytes, bytes_per_s=bytes_per_s)


def latency_leaf(tier: Tier) -> Term:
    name = f"{tier.name}_latency_s"
    if tier.latency_s != _LATENCY_S[tier.name]:
        return leaf(tier.latency_s, name, kind="assumption", source="given for this tier")
    return leaf(tier.latency_s, name, kind="assumption", source="order of magnitude")


def transfer_s(tier: Tier, moved_bytes: float) -> Term:
    """Time to bring bytes from a tier to the chip."""
    moved = leaf(moved_bytes, "moved_bytes", kind="derived", source="size of the transfer")
    return (latency_leaf(tier) + moved / tier.bytes_per_s).named("transfer_s")
