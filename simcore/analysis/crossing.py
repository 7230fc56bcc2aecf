"""How much of a chip's traffic may leave its scale-up domain before the network is full.

A chip sends `b` bytes per second, over links inside its domain and NICs, as its work is cut now. If a share `s` of them
crossed domains, NICs would be used by

    load(s) = s · b · slowdown / NIC,    full at  s* = NIC / (b · slowdown)

where the slowdown is what the fabric leaves of a NIC to groups as large as all chips (`fabric/reach.py`). The links
inside the domain carry the rest, so what they would have is (1 − s) · b ÷ scale-up.
Limits: bytes without order in time, spread evenly over chips; work that is cut otherwise sends other bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from simcore.errors import Message
from simcore.fabric.collectives import Interconnect
from simcore.fabric.locality import by_place
from simcore.plan import Plan
from simcore.plan.fabric_load import placement_of
from simcore.plan.serving import lane_network
from simcore.plan.traffic import traffic_of
from simcore.why import Term, constant, leaf, maximum

SHARES: Final = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossing:
    """The share that crosses now, the one at which NICs are full, and loads at given shares."""

    now: Term
    full: Term
    rows: tuple[Mapping[str, Any], ...]

    @property
    def message(self) -> Message:
        params = {"now": f"{self.now.value:.0%}", "full": f"{min(self.full.value, 9.99):.0%}"}
        if self.full.value >= 1:
            return Message(
                code="crossing.never",
                template="{now} of the bytes leave their domain; NICs would carry all of them",
                params=params,
            )
        if self.now.value > self.full.value:
            return Message(
                code="crossing.full",
                template="{now} of the bytes leave their domain, more than the {full} that NICs carry at this pace",
                params=params,
            )
        return Message(
            code="crossing.room",
            template="{now} of the bytes leave their domain; NICs are full at {full}",
            params=params,
        )

    def as_dict(self) -> dict[str, Any]:
        return {
            "now_fraction": self.now.value,
            "full_fraction": self.full.value,
            "rows": [dict(row) for row in self.rows],
            "message": self.message.as_dict(),
        }


def crossing(planned: Plan) -> Crossing | None:
    """None where nothing but monitoring moves, or one domain holds all chips."""
    traffic = traffic_of(planned)
    network = _network(planned)
    if traffic is None or network is None or planned.fabric.chip_count <= network.domain_size:
        return None
    flows, chips = traffic.flows, planned.fabric.chip_count
    places = by_place(placement_of(planned), flows.source, flows.target, flows.moved_bytes)
    sent, inside = float(places.sum()), float(places[0])
    if all(group.traffic_class == "management" for group in flows.groups) or not sent:
        return None
    each = leaf(
        sent / chips / traffic.period_s,
        "chip_bytes_per_s",
        kind="derived",
        source="flows of the period over chips and period",
    )
    nic = network.reached_bytes_per_s(chips)
    links = network.scaleup_bytes_per_s
    now = constant(sent - inside, "crossing_bytes") / constant(sent, "moved_bytes")
    return Crossing(
        now=now.named("analysis.crossing.now_fraction", "fraction"),
        full=(nic / each).named("analysis.crossing.full_fraction", "fraction"),
        rows=tuple(_row(share, each, nic, links) for share in SHARES),
    )


def _row(share: float, each: Term, nic: Term, links: Term) -> dict[str, Any]:
    crosses = leaf(share, "crossing_fraction", kind="assumption", source="tried")
    outside, inside = crosses * each / nic, (constant(1.0) - crosses) * each / links
    return {
        "share_fraction": share,
        "nic_load_fraction": outside.value,
        "scaleup_load_fraction": inside.value,
        "load_fraction": maximum(outside, inside).value,
    }


def _network(planned: Plan) -> Interconnect | None:
    if planned.training is not None:
        return planned.training.inputs.network
    if planned.serving is not None:
        return lane_network(planned.serving.inputs, planned.serving.pool.chip)
    return None
