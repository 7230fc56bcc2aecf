"""`trimtab bench flows`: two million random flows over 32,768 endpoints of a 3-tier Clos, shared max-min fairly.

Each flow takes one hashed path, so that there are some 11.5 million pairs of flow and link. Timed apart are the
choice of paths and the rates that share the links (with the index from links to flows). Warm; the best of three
counts.
"""

from __future__ import annotations

import time
from typing import Final

import numpy as np

from simcore.bench.serving import peak_rss_bytes
from simcore.catalog import default_catalog
from simcore.fabric import Clos, build_fabric
from simcore.fabric.flows import max_min_rates
from simcore.fabric.network import Network, network_of
from simcore.fabric.routing import paths_of
from simcore.fabric.traffic import FlowGroup, Flows
from simcore.fabric.warm import warm
from simcore.streams import stream

CHIPS: Final = 32_768
FLOWS: Final = 2_000_000
ROUNDS: Final = 3


def run_flows() -> dict[str, float]:
    """Seconds of paths and of rates, and how many pairs they share out."""
    warm()
    catalog = default_catalog()
    fabric = build_fabric(
        Clos(radix=128),
        chip_count=CHIPS,
        server=catalog.servers["dgx-h100"],
        scaleup_bytes_per_s=catalog.chips["nvidia-h100-sxm"].scaleup_bytes_per_s,
    )
    network, flows = network_of(fabric), _flows()
    found = min((_measured(network, flows) for _ in range(ROUNDS)), key=lambda one: one["seconds"])
    return found | {"peak_rss_bytes": peak_rss_bytes()}


def _measured(network: Network, flows: Flows) -> dict[str, float]:
    begin = time.perf_counter()
    paths = paths_of(network, flows, routing="hashed")
    ready = time.perf_counter()
    rates = max_min_rates(paths, flows.group_of, "max_min")
    done = time.perf_counter()
    return {
        "flows": len(flows),
        "links": len(network),
        "flow_link_pairs": len(paths.resource),
        "mean_rate_bytes_per_s": float(rates.mean()),
        "paths_seconds": ready - begin,
        "seconds": done - ready,
    }


def _flows() -> Flows:
    draw = stream(0, "flows of the benchmark")
    return Flows(
        source=draw.integers(0, CHIPS, FLOWS),
        target=draw.integers(0, CHIPS, FLOWS),
        moved_bytes=np.ones(FLOWS),
        group_of=np.zeros(FLOWS, np.int64),
        groups=(FlowGroup(name="random", traffic_class="core"),),
    )
