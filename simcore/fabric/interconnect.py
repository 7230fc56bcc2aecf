"""What a collective runs over: a chip's scale-up link, its share of NICs, the fabric beyond, and measured curves.

The scale-up bandwidth stays a leaf of every tree: doubling it speeds a fitted curve up, its latency stays.
Where chips are joined by their own links (a torus), curves measured over a switch do not apply.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from simcore.catalog.measured import MeasuredTables
from simcore.catalog.types import Calibration, Chip, CollectiveFit, Server
from simcore.fabric.base import Fabric
from simcore.fabric.box import torus_shape
from simcore.fabric.lattice import best_shape
from simcore.fabric.nccl import Link
from simcore.fabric.reach import HOP_LATENCY_S, HOP_SOURCE, Reach
from simcore.why import Term, leaf


@dataclass(frozen=True, slots=True, kw_only=True)
class Interconnect:
    """The links of one rank of a group whose ranks stand `stride` chips apart."""

    domain_size: int
    link: Link
    scaleup_bytes_per_s: Term
    scaleout_bytes_per_s: Term
    reference_bytes_per_s: float  # the scale-up bandwidth that the fits were measured on
    fits: Mapping[tuple[str, int], CollectiveFit]
    off_rail_slowdown: Term | None = None
    torus: tuple[int, ...] = ()  # chips along each dimension of a torus; empty: one switch joins a domain
    fabric: Fabric | None = None  # None: non-blocking, one switch away
    stride: int = 1
    chip_year: int  # the generation that NCCL's limits go by
    runs_nccl: bool = True  # elsewhere its latencies stand in, as an assumption
    measured: MeasuredTables | None = None  # what the curves inside a domain are scaled to
    latency_ratio: float = 1.0  # over what was measured

    def reached_bytes_per_s(self, ranks: int) -> Term:
        """What the fabric leaves of a chip's share of NICs to a group that leaves its domain."""
        slowdown = self._reach.slowdown(ranks * self.stride) if self._reach else 1.0
        if slowdown == 1.0:
            return self.scaleout_bytes_per_s
        return self.scaleout_bytes_per_s / leaf(
            slowdown,
            "network_slowdown_ratio",
            kind="derived",
            source="bytes beyond each layer of the fabric over its links",
        )

    def further_hops_s(self, ranks: int) -> Term | None:
        """Of a step over the network, what goes beyond the trip through one switch."""
        hops = self._reach.further_hops(ranks * self.stride) if self._reach else 0.0
        if not hops:
            return None
        passed = leaf(
            hops,
            "further_hops",
            kind="derived",
            source="mean of the group's pairs, counted",
            dimension="count",
        )
        each = leaf(HOP_LATENCY_S, "hop_latency_s", kind="calibrated", source=HOP_SOURCE)
        return (passed * each).named("further_hops_s", "s")

    def latency(self, measured_s: Term) -> Term:
        """What is left of a latency where the analysis tries shorter ones."""
        if self.latency_ratio == 1.0:
            return measured_s
        return measured_s * leaf(self.latency_ratio, "latency_ratio", kind="assumption", source="tried")

    @property
    def _reach(self) -> Reach | None:
        return None if self.fabric is None or self.torus else Reach(fabric=self.fabric)


def interconnect(
    chip: Chip,
    server: Server,
    calibration: Calibration,
    *,
    fabric: Fabric | None = None,
    reference_scaleup_bytes_per_s: float | None = None,
) -> Interconnect:
    """The links of a chip in its server and fabric.

    `reference_scaleup_bytes_per_s` is the catalog's own figure where the scenario overrides the chip's.
    """
    over_pcie = chip.scaleup_bytes_per_s is None
    scaleup = chip.leaf("pcie_bytes_per_s") if over_pcie else chip.leaf("scaleup_bytes_per_s")
    domain = server.chips_per_server if over_pcie else server.scaleup_domain_chip_count
    if fabric is not None and not over_pcie:
        domain = fabric.hb_domain_size
    torus = () if over_pcie else _torus(server, fabric)
    over_switch = not torus or server.scaleup_kind == "ici"
    return Interconnect(
        domain_size=max(1, domain),
        link="pcie" if over_pcie else "nvlink",
        scaleup_bytes_per_s=scaleup,
        scaleout_bytes_per_s=_scaleout(server),
        reference_bytes_per_s=reference_scaleup_bytes_per_s or scaleup.value,
        fits=calibration.collectives if over_switch else {},
        off_rail_slowdown=fabric.terms.get("fabric.all_to_all_slowdown_ratio") if fabric else None,
        torus=torus,
        fabric=fabric,
        chip_year=chip.year,
        runs_nccl=chip.vendor == "NVIDIA",
        measured=calibration.measured if over_switch else None,
        latency_ratio=calibration.latency_ratio,
    )


def _torus(server: Server, fabric: Fabric | None) -> tuple[int, ...]:
    """The fabric's, or that of a whole pod where the fabric only joins pods."""
    found = torus_shape(fabric) if fabric is not None else ()
    return found or (best_shape(server.scaleup_domain_chip_count, 3) if server.scaleup_kind == "ici" else ())


def _scaleout(server: Server) -> Term:
    """A chip's share of its server's NICs, at most one NIC."""
    nic = server.leaf("nic_bytes_per_s")
    share = min(server.nic_count, server.chips_per_server) / server.chips_per_server
    return nic if share == 1 else nic * leaf(share, "nics_per_chip_ratio", kind="catalog", source="server")
