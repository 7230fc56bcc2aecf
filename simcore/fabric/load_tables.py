"""Loads of links as tables: how many links of each layer carry how much, and which are the hottest.

A link's load is its bytes over what it can carry in the period: 1 is a link that is busy all the time, more than 1 a
period that is too short for these flows. Links of one layer whose loads nobody could tell apart are one row, named by
the first.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from simcore.fabric.links import Network
from simcore.fabric.routing import Loads
from simcore.fabric.traffic import TRAFFIC_CLASSES

Floats = NDArray[np.float64]
BINS: Final = 20
HOTTEST: Final = 20
_SAME: Final = 4  # digits of the greatest load in which links are alike


def busiest_s(network: Network, loads: Loads) -> float:
    """The time that the busiest link needs for its bytes: no completion can be sooner."""
    return float(busy_s(network, loads).max(initial=0.0))


def load_tables(network: Network, loads: Loads, period_s: float) -> dict[str, list[dict[str, Any]]]:
    """`link_loads` (a histogram by layer) and `hottest_links` over a period."""
    fraction = busy_s(network, loads) / period_s
    return {
        "link_loads": _histogram(network, fraction),
        "hottest_links": _hottest(network, loads, fraction),
    }


def busy_s(network: Network, loads: Loads) -> Floats:
    """Dead links carry nothing and are never busy."""
    capacity = network.capacity_bytes_per_s
    return np.divide(loads.moved_bytes, capacity, out=np.zeros(len(capacity)), where=capacity > 0)


def _histogram(network: Network, fraction: Floats) -> list[dict[str, Any]]:
    """Rows of every layer that has links, idle ones first, by twentieths of the greatest load."""
    edges = np.linspace(0.0, float(fraction.max(initial=0.0)) or 1.0, BINS + 1)
    rows: list[dict[str, Any]] = []
    for index, layer in enumerate(network.layers):
        of_layer = fraction[network.layer_of == index]
        idle = int((of_layer == 0).sum())
        counts = [(0.0, 0.0, idle)]
        found, _ = np.histogram(of_layer[of_layer > 0], edges)
        counts += [(float(a), float(b), int(n)) for a, b, n in zip(edges[:-1], edges[1:], found, strict=True)]
        rows += [
            {
                "layer": layer.name,
                "medium": layer.medium,
                "low_fraction": low,
                "high_fraction": high,
                "link_count": count,
            }
            for low, high, count in counts
            if count
        ]
    return rows


def _hottest(network: Network, loads: Loads, fraction: Floats) -> list[dict[str, Any]]:
    """The greatest loads, each with how many links of its layer carry the same."""
    digits = _SAME - 1 - np.floor(np.log10(float(fraction.max(initial=0.0)) or 1.0))
    loaded = np.flatnonzero(fraction > 0)
    rounded = np.round(fraction[loaded] * 10.0**digits).astype(np.int64)
    keys = network.layer_of[loaded] - rounded * len(network.layers)
    _, first, alike = np.unique(keys, return_index=True, return_counts=True)
    return [
        {
            "link": network.link_name(link),
            "alike_count": int(count),
            "layer": network.layers[network.layer_of[link]].name,
            "medium": network.layers[network.layer_of[link]].medium,
            "load_fraction": float(fraction[link]),
            "moved_bytes": float(loads.moved_bytes[link]),
            "capacity_bytes_per_s": float(network.capacity_bytes_per_s[link]),
        }
        | {f"{kind}_bytes": float(loads.class_bytes[row, link]) for row, kind in enumerate(TRAFFIC_CLASSES)}
        for link, count in zip(loaded[first[:HOTTEST]].tolist(), alike[:HOTTEST].tolist(), strict=True)
    ]
