"""What the scale-up domains themselves are built of: switch chips, links and copper cables.

`domains = ceil(chips / K)`; each has the switches, links (`chips × links per chip`) and cables of the machine
as sold (catalog, `scaleup_domains`). These are bought with the servers, so they carry no price of their own
here. A domain of a size that no known machine has is counted as domains alone: a fabric that relies on it
buys something that the bill does not show, and the table says so. On TPUs the scale-up links are the fabric.
"""

from __future__ import annotations

from typing import Any

from simcore.catalog.types import ScaleupDomain
from simcore.fabric.base import Fabric
from simcore.why import Term, ceil, leaf


def scaleup_terms(fabric: Fabric, domain: ScaleupDomain | None) -> dict[str, Term]:
    """Switches, links and cables of all domains; none where the machine is not known."""
    if domain is None or domain.chip_count != fabric.hb_domain_size:
        return {}
    domains = _domains(fabric)
    ends = domains * domain.leaf("chip_count") * domain.leaf("links_per_chip")
    found = {
        "fabric.scaleup_switch_count": domains * domain.leaf("switch_count"),
        "fabric.scaleup_link_count": ends if domain.switch_count else ends / 2,  # chip to chip: two ends each
        "fabric.scaleup_cable_count": domains * domain.leaf("cable_count"),
    }
    return {name: term.named(name.rpartition(".")[2]) for name, term in found.items() if term.value}


def _domains(fabric: Fabric) -> Term:
    chips = leaf(fabric.chip_count, "chip_count", path="hardware.chip_count")
    size = leaf(fabric.hb_domain_size, "hb_domain_size", path="topology.hb_domain_size")
    return ceil(chips / size).named("domain_count")


def scaleup_rows(fabric: Fabric, domain: ScaleupDomain | None) -> list[dict[str, Any]]:
    """The result's `scaleup` table: one row, or none where the fabric is itself the scale-up network."""
    if fabric.hb_domain_size < 2 or (domain is None and not fabric.tiers):
        return []
    counted = {
        name.rpartition(".")[2]: int(term.value) for name, term in scaleup_terms(fabric, domain).items()
    }
    row: dict[str, Any] = {
        "domain_count": int(_domains(fabric).value),
        "chip_count": fabric.hb_domain_size,
        "is_known": bool(counted),
        **counted,
    }
    if counted and domain is not None:
        row |= {
            "name": domain.name,
            "switch_port_count": domain.switch_port_count,
            "links_per_chip": domain.links_per_chip,
            "link_bytes_per_s": domain.link_bytes_per_s,
            "domain_bytes_per_s": domain_bytes_per_s(domain),
        }
    return [row]


def domain_bytes_per_s(domain: ScaleupDomain) -> float:
    """Of all links of one domain, both directions together, as vendors print it."""
    return 2 * domain.chip_count * domain.links_per_chip * domain.link_bytes_per_s
