"""How the program answers facts on scale-up domains and on the power of optical circuit switches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from simcore.catalog import default_catalog
from simcore.fabric.scaleup import domain_bytes_per_s

Inputs = Mapping[str, Any]


def _scaleup_domain(inputs: Inputs) -> float:
    """Ports of the chips' side, ports of the switches' side, or all bandwidth of a domain both ways."""
    domain = default_catalog().scaleup_domains[inputs["domain"]]
    answers = {
        "chip_ports": float(domain.chip_count * domain.links_per_chip),
        "switch_ports": float(domain.switch_count * domain.switch_port_count),
        "bytes_per_s": domain_bytes_per_s(domain),
    }
    return answers[inputs["ask"]]


def _ocs_power(inputs: Inputs) -> float:
    return default_catalog().optical_switch(inputs["ocs"]).power_w


def _ocs_power_ratio(inputs: Inputs) -> float:
    """An electrical switch with a module in every port, over an optical circuit switch."""
    catalog = default_catalog()
    switch, optic = catalog.switch(inputs["switch"]), catalog.optic(inputs["optic"])
    return (switch.power_w + switch.radix * optic.power_w) / _ocs_power(inputs)


WIRING_CHECKS: Final[Mapping[str, Callable[[Inputs], float]]] = {
    "ocs_power": _ocs_power,
    "ocs_power_ratio": _ocs_power_ratio,
    "scaleup_domain": _scaleup_domain,
}
