"""How the program answers a fact about collectives: latencies, factors, times on measured systems, SimAI's table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np

from simcore.catalog import default_catalog
from simcore.fabric.collectives import (
    Interconnect,
    bus_factor,
    collective_s,
    curves,
    hierarchical_all_reduce_s,
    interconnect,
)
from simcore.fabric.curves import SCALEOUT_FRACTION
from simcore.fabric.exchange import LOW_LATENCY, PHASES, ExpertExchange, curve_of
from simcore.fabric.nccl import ring_latency_s, tree_latency_s
from simcore.why import constant

Inputs = Mapping[str, Any]


def _network(slug: str) -> Interconnect:
    """A chip in its default server, on a fabric that slows nothing."""
    catalog = default_catalog()
    chip = catalog.chip(slug)
    return interconnect(chip, catalog.server(chip.default_server), catalog.calibration_for(chip))


def _nccl_latency(inputs: Inputs) -> float:
    if inputs["algorithm"] == "tree":
        return tree_latency_s(inputs["protocol"], inputs["ranks"], servers=inputs["servers"])
    return ring_latency_s(inputs["protocol"], inputs["ranks"], servers=inputs["servers"])


def _gather_bytes_per_s(inputs: Inputs) -> float:
    """Gathered bytes per second where each of so many members has a link of this rate."""
    return float(inputs["link_bytes_per_s"]) / bus_factor("all_gather", inputs["ranks"])


def _time_s(inputs: Inputs) -> float:
    network = _network(inputs["chip"])
    return collective_s(
        inputs["operation"],
        inputs["payload_bytes"],
        inputs["ranks"],
        network,
        algorithm=inputs.get("algorithm", "auto"),
    ).value


def _bus_bytes_per_s(inputs: Inputs) -> float:
    factor = bus_factor(inputs["operation"], inputs["ranks"])
    return float(inputs["payload_bytes"]) * factor / _time_s(inputs)


def _ring_share(inputs: Inputs) -> float:
    """Of the scale-up link, what a ring's bus bandwidth reaches."""
    ring = {**inputs, "operation": "all_reduce", "algorithm": "ring"}
    return _bus_bytes_per_s(ring) / _network(inputs["chip"]).scaleup_bytes_per_s.value


def _in_network_gain(inputs: Inputs) -> float:
    """An all-reduce in the switches, as measured, over the same one on the ring."""
    both = [
        _time_s({**inputs, "operation": "all_reduce", "algorithm": name}) for name in ("ring", "in_network")
    ]
    return both[0] / both[1]


def _nic_efficiency_error(inputs: Inputs) -> float:
    """A quantile of |got ÷ table − 1|, over payloads (rows) and servers (columns) of a ring in the Simple protocol.

    `reached_fraction` is what that system's NICs reach; without it, what is assumed of all.
    """
    network, errors, whole = _network("nvidia-h100-sxm"), [], inputs["domain_bytes_per_s"]
    if reached := inputs.get("reached_fraction"):
        each = constant(whole * reached / network.domain_size / SCALEOUT_FRACTION, "scaleout_bytes_per_s")
        network = replace(network, scaleout_bytes_per_s=each)
    for payload, *row in inputs["table"]:
        for servers, share in zip(inputs["servers"], row, strict=True):
            ranks = network.domain_size * servers
            moved = payload * bus_factor("all_gather", ranks)
            (ring,) = (
                curve
                for curve in curves("all_gather", ranks, network, algorithm="ring")
                if curve.protocol == "simple"
            )
            errors.append(abs(moved / whole / float(ring.times_s(np.asarray(moved))) / share - 1))
    return float(np.quantile(errors, inputs["quantile"]))


def _rows_of_experts(inputs: Inputs) -> ExpertExchange:
    """Each chip with its own experts, on servers of eight H200; a byte per element goes out and two come back."""
    width = float(inputs["hidden"])
    return ExpertExchange(
        ranks=inputs["ranks"],
        groups=inputs["ranks"],
        chosen=inputs["chosen"],
        dispatch_row_bytes=constant(width),
        combine_row_bytes=constant(2.0 * width),
        network=_network("nvidia-h200-sxm"),
    )


def _expert_rows_s(inputs: Inputs) -> float:
    """The low-latency kernel, one way."""
    rows = _rows_of_experts(inputs)
    payload = np.asarray(inputs["tokens"] * rows.row_bytes(inputs["phase"]).value)
    return float(curve_of(rows, inputs["phase"], LOW_LATENCY).times_s(payload))


def _expert_bytes_s(inputs: Inputs) -> float:
    """Both ways at the link's full rate (a NIC's unless said), without latency, as if nothing stayed in its server."""
    rows = _rows_of_experts(inputs)
    copies = float(rows.chosen * inputs["tokens"])
    sent = sum(copies * rows.row_bytes(phase).value for phase in PHASES)
    rate = inputs.get("link_bytes_per_s", rows.network.scaleout_bytes_per_s.value)
    return float(inputs.get("exchanges", 1) * sent / rate)


COLLECTIVE_CHECKS: Final[Mapping[str, Callable[[Inputs], float]]] = {
    "bus_bytes_per_s": _bus_bytes_per_s,
    "bus_factor": lambda inputs: bus_factor(**inputs),
    "collective_s": _time_s,
    "expert_bytes_s": _expert_bytes_s,
    "expert_rows_s": _expert_rows_s,
    "gather_bytes_per_s": _gather_bytes_per_s,
    "hierarchical": lambda inputs: hierarchical_all_reduce_s(**inputs).value,
    "in_network_gain": _in_network_gain,
    "nccl_latency": _nccl_latency,
    "nic_efficiency_error": _nic_efficiency_error,
    "ring_share": _ring_share,
}
