"""Compile the kernels of routing and sharing, so that the first user does not wait for it.

The types of all arguments are the same for every network, so a few flows over a small one compile everything.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from simcore.fabric.base import Site
from simcore.fabric.flows import completion
from simcore.fabric.network import network_of
from simcore.fabric.routing import ROUTINGS, link_loads
from simcore.fabric.torus import Torus, build
from simcore.fabric.traffic import FlowGroup, Flows

_SITE: Final = Site(
    chip_count=8,
    chips_per_server=4,
    nic_count_per_server=4,
    nic_bytes_per_s=1.0,
    hb_domain_size=1,
    scaleup_bytes_per_s=1.0,
)


def warm() -> None:
    """Every routing once, on a torus of eight chips, which all of them take."""
    network = network_of(build(Torus(), _SITE))
    flows = Flows(
        source=np.zeros(2, np.int64),
        target=np.array([1, 7]),
        moved_bytes=np.ones(2),
        group_of=np.zeros(2, np.int64),
        groups=(FlowGroup(name="warm", traffic_class="core"),),
    )
    for routing in ROUTINGS:
        link_loads(network, flows, routing=routing)
        completion(network, flows, routing=routing)
