"""Links that a workload hardly uses: by what they lie between, how many carry less than a share of their capacity."""

from __future__ import annotations

from typing import Any

import numpy as np

from simcore.fabric.links import Network
from simcore.fabric.load_tables import busy_s
from simcore.fabric.routing import Loads


def idle_link_rows(
    network: Network, loads: Loads, period_s: float, *, threshold_fraction: float
) -> list[dict[str, Any]]:
    """The `idle_links` table: directed links of each layer, and those below the threshold in the period."""
    light = busy_s(network, loads) / period_s < threshold_fraction
    count = len(network.layers)
    links = np.bincount(network.layer_of, minlength=count)
    idle = np.bincount(network.layer_of[light], minlength=count)
    return [
        {"layer": layer.name, "medium": layer.medium, "link_count": int(every), "idle_count": int(few)}
        for layer, every, few in zip(network.layers, links, idle, strict=True)
        if every
    ]


def idle_fraction(rows: list[dict[str, Any]], tier: str, *, of_switches: bool) -> float | None:
    """Of the links that a line of the network's bill stands for, the share that is hardly used; None: unknown.

    A tier's cables are those up to it: `chip → leaf` are the leaf's, `leaf → spine` the spine's, `local link` those of
    tier `local`. A switch is as idle as the links at it. On a lattice all links are those of its only tier.

    >>> rows = [{"layer": "chip → leaf", "link_count": 8, "idle_count": 2},
    ...         {"layer": "leaf → spine", "link_count": 8, "idle_count": 8}]
    >>> idle_fraction(rows, "spine", of_switches=False), idle_fraction(rows, "leaf", of_switches=True)
    (1.0, 0.625)
    """
    outside = [row for row in rows if "scale-up" not in row["layer"]]
    chosen = [row for row in outside if _touches(row["layer"], tier, of_switches=of_switches)]
    if not chosen:  # dimensions of a HyperX, links of a Slim Fly, circuits of a pod
        chosen = [row for row in outside if _is_between(row["layer"])] or outside
    links = sum(row["link_count"] for row in chosen)
    return sum(row["idle_count"] for row in chosen) / links if links else None


def _touches(layer: str, tier: str, *, of_switches: bool) -> bool:
    ends = layer.split(" → ")
    if len(ends) == 1:
        return layer == f"{tier} link" or (of_switches and tier == "switch")
    if of_switches:
        return tier in ends
    order = ("chip", "leaf", "rail", "switch", "spine", "core")
    known = [end for end in ends if end in order]
    return len(known) == 2 and ends[0] != ends[1] and max(known, key=order.index) == tier


def _is_between(layer: str) -> bool:
    ends = layer.split(" → ")
    return len(ends) == 2 and (ends[0] == ends[1] == "switch" or ends[1][:1] in "+−")
