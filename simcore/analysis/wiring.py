"""What a scenario without work is told: how many switches, fibres and islands its fabric comes to."""

from __future__ import annotations

from simcore.errors import Message
from simcore.plan import Plan


def wiring_messages(plan: Plan) -> list[Message]:
    fabric = plan.fabric
    if fabric.island_count > 1:
        return [
            Message(
                code="finding.islands",
                template="{switches:,} switches join {chips:,} chips in {islands} islands of {size:,}",
                params={
                    "switches": fabric.switch_count,
                    "chips": fabric.chip_count,
                    "islands": fabric.island_count,
                    "size": fabric.island_size,
                },
                path="topology",
            )
        ]
    if fabric.ocs_count:
        return [
            Message(
                code="finding.ocs",
                template="{ocs} optical switches and {transceivers:,} transceivers join {chips:,} chips in cubes "
                "that can be re-wired",
                params={
                    "ocs": fabric.ocs_count,
                    "transceivers": fabric.transceiver_count,
                    "chips": fabric.chip_count,
                },
                path="topology",
            )
        ]
    return [
        Message(
            code="finding.fabric",
            template="{switches:,} switches and {transceivers:,} transceivers join {chips:,} chips in one fabric",
            params={
                "switches": fabric.switch_count,
                "transceivers": fabric.transceiver_count,
                "chips": fabric.chip_count,
            },
            path="topology",
        )
    ]
