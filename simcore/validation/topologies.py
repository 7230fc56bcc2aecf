"""How the program answers facts on shapes: what `auto` became, what a twist gains, what an optical switch holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
from pydantic import TypeAdapter

from simcore.catalog import default_catalog
from simcore.fabric import AnyTopology, Fabric, Topology, Torus, build_fabric
from simcore.fabric.network import network_of
from simcore.fabric.routing import link_loads
from simcore.fabric.traffic import FlowGroup, Flows

Inputs = Mapping[str, Any]
_TOPOLOGY: Final[TypeAdapter[AnyTopology]] = TypeAdapter(Topology)


def _built(spec: AnyTopology, chip_count: int) -> Fabric:
    catalog = default_catalog()
    return build_fabric(
        spec,
        chip_count=chip_count,
        server=catalog.server("dgx-h100"),
        scaleup_bytes_per_s=catalog.chip("tpu-v4").scaleup_bytes_per_s,
    )


def _topology_choice(inputs: Inputs) -> float:
    """What `auto` became."""
    spec = {key: value for key, value in inputs.items() if key not in ("ask", "chip_count")}
    return float(_built(_TOPOLOGY.validate_python(spec), inputs["chip_count"]).chosen[inputs["ask"]])


def _busiest_link_bytes(spec: Torus, chip_count: int) -> float:
    """One byte from every chip to every other, split evenly over the shortest paths."""
    source, target = np.divmod(np.arange(chip_count**2), chip_count)
    apart = source != target
    flows = Flows(
        source=source[apart],
        target=target[apart],
        moved_bytes=np.ones(int(apart.sum())),
        group_of=np.zeros(int(apart.sum()), np.int64),
        groups=(FlowGroup(name="expert", traffic_class="core"),),
    )
    loads = link_loads(network_of(_built(spec, chip_count)), flows, routing="ecmp")
    return float(loads.moved_bytes.max())


def _twist_gain(inputs: Inputs) -> float:
    """The busiest link of an all-to-all on the torus, over that on the twisted one."""
    shape, count = tuple(inputs["shape"]), inputs["chip_count"]
    plain, twisted = (Torus(shape=shape, twisted=twisted) for twisted in (False, True))
    return _busiest_link_bytes(plain, count) / _busiest_link_bytes(twisted, count)


def _twist_efficiency(inputs: Inputs) -> float:
    """A measured gain over that bound."""
    return float(inputs["measured_ratio"]) / _twist_gain(inputs)


def _fibres_per_ocs(inputs: Inputs) -> float:
    spec = {"kind": "ocs_pod", "generation": inputs["generation"]}
    fabric = _built(_TOPOLOGY.validate_python(spec), inputs["chip_count"])
    return fabric.transceiver_count / fabric.ocs_count


TOPOLOGY_CHECKS: Final[Mapping[str, Callable[[Inputs], float]]] = {
    "fibres_per_ocs": _fibres_per_ocs,
    "topology_choice": _topology_choice,
    "twist_efficiency": _twist_efficiency,
    "twist_gain": _twist_gain,
}
