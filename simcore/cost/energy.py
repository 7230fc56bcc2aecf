"""Power and energy: chips by how busy they are, servers, switches, optics, times PUE.

`P = (chips·TDP·(idle + (loaded − idle)·u) + servers + switches + optics)·PUE`, u the share of time that
kernels run. Idle and loaded shares of TDP are assumptions; hosts and network draw the same at any load.
Where the catalog has no switch of the radix: 18 W per port and 9.3 W per transceiver, which is what the
4.7 MW published for a 32k-GPU Clos implies.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from simcore.catalog.types import Chip, Optic, OpticalSwitch, Server, Switch
from simcore.fabric import Fabric
from simcore.fabric.base import sum_of
from simcore.why import Term, ceil, constant, leaf

IDLE_TDP_FRACTION = 0.15
LOADED_TDP_FRACTION = 0.85
PORT_POWER_W = 18.0
TRANSCEIVER_POWER_W = 9.3
OCS_POWER_W = 108.0
IMPLIED = "implied by 4.7 MW for a 32k-GPU three-tier Clos (arXiv 2307.12169, second-hand)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Machines:
    """Equal chips in equal servers."""

    chip: Chip
    server: Server
    chip_count: int
    path: str = "hardware"  # where the scenario describes them

    @property
    def chips(self) -> Term:
        return leaf(self.chip_count, "chip_count", path=f"{self.path}.chip_count")


def chip_power_term(machines: Machines, utilisation: Term) -> Term:
    """All chips of one kind at a utilisation of 0 to 1."""
    idle = _assumed(IDLE_TDP_FRACTION, "idle_tdp_fraction", "an idle accelerator draws 10 to 20 % of its TDP")
    loaded = _assumed(LOADED_TDP_FRACTION, "loaded_tdp_fraction", "inference and training draw below TDP")
    share = (idle + (loaded - idle) * utilisation).named("tdp_fraction")
    return (machines.chips * machines.chip.leaf("tdp_w") * share).named("chips_w")


def host_power_term(machines: Machines) -> Term:
    """Chassis without chips: CPUs, memory, NICs, fans."""
    servers = ceil(machines.chips / machines.server.leaf("chips_per_server")).named("server_count")
    return (servers * machines.server.leaf("host_power_w")).named("hosts_w")


def network_power_terms(
    fabric: Fabric,
    *,
    switch: Switch | None = None,
    optic: Optic | None = None,
    optical_switch: OpticalSwitch | None = None,
) -> Mapping[str, Term]:
    """Switches, transceivers and optical switches; only those that the fabric has."""
    found: dict[str, Term] = {}
    if fabric.tiers:
        radix = leaf(fabric.tiers[0].radix, "radix", path="topology.radix")
        each = switch.leaf("power_w") if switch else radix * _assumed(PORT_POWER_W, "switch_port_w", IMPLIED)
        found["switches"] = (fabric.terms["fabric.switch_count"] * each).named("switches_w")
    if "fabric.transceiver_count" in fabric.terms and fabric.transceiver_count:
        each = optic.leaf("power_w") if optic else _assumed(TRANSCEIVER_POWER_W, "transceiver_w", IMPLIED)
        found["transceivers"] = (fabric.terms["fabric.transceiver_count"] * each).named("transceivers_w")
    if "fabric.ocs_count" in fabric.terms:
        known = optical_switch.leaf("power_w") if optical_switch else None
        each = known or _assumed(OCS_POWER_W, "ocs_w", "Palomar, at most")
        found["optical_switches"] = (fabric.terms["fabric.ocs_count"] * each).named("optical_switches_w")
    return found


def network_power_term(parts: Mapping[str, Term]) -> Term:
    if not parts:
        return constant(0, "fabric_power_w")
    return sum_of(list(parts.values())).named("fabric_power_w")


def _assumed(value: float, name: str, source: str) -> Term:
    return leaf(value, name, kind="assumption", source=source)
