"""Who sends how much to whom: sparse flows, grouped by what they are for.

A flow is one sender, one receiver and the bytes between them in one step (of training, of a batch, or over the
time that a matrix was measured). Ranks are chips, numbered along the fabric: chip i of a server stands next to
chip i + 1. Never a dense N² array: 32,768 chips have a thousand million pairs and some hundred thousand flows.

Traffic classes: *core* is on the critical path of a step, *inter_domain* coordinates work between domains
(KV on its way, gradients that hide), *management* is all else (checkpoints, monitoring).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

TrafficClass = Literal["core", "inter_domain", "management"]
TRAFFIC_CLASSES: Final[tuple[TrafficClass, ...]] = ("core", "inter_domain", "management")

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowGroup:
    """What a set of flows is for: `tensor`, `data`, `pipeline`, `expert`, `context`, `kv`, `checkpoint`, …"""

    name: str
    traffic_class: TrafficClass


@dataclass(frozen=True, slots=True, kw_only=True)
class Flows:
    """Columns, one row per flow; `group_of` points into `groups`."""

    source: Ints  # rank that sends
    target: Ints  # rank that receives
    moved_bytes: Floats
    group_of: Ints
    groups: tuple[FlowGroup, ...]

    def __len__(self) -> int:
        return len(self.source)

    @property
    def total_bytes(self) -> float:
        return float(self.moved_bytes.sum())


def joined(parts: list[Flows]) -> Flows:
    """Several sets of flows as one; groups of one name and class become one."""
    groups = tuple(dict.fromkeys(group for part in parts for group in part.groups))
    place = {group: index for index, group in enumerate(groups)}
    empty = np.zeros(0, np.int64)
    return Flows(
        source=np.concatenate([empty, *(part.source for part in parts)]),
        target=np.concatenate([empty, *(part.target for part in parts)]),
        moved_bytes=np.concatenate([np.zeros(0), *(part.moved_bytes for part in parts)]),
        group_of=np.concatenate(
            [empty, *(np.array([place[g] for g in part.groups], np.int64)[part.group_of] for part in parts)]
        ),
        groups=groups,
    )
