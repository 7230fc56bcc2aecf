"""Published failure rates, and the time between interruptions that follows.

A job on n servers that each fail at rate r is interrupted every `1 / (n·r)`. With r = 6.50 per 1,000
node-days that is Meta's 1.8 h at 16,384 GPUs. Limit: the same figure does not hold for small jobs (7.9 h
was measured at 1,024 GPUs, the formula says 28.8 h), so below 2,000 chips a warning says so.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from simcore.errors import Message
from simcore.why import Term, constant, leaf

SECONDS_PER_DAY: Final = 86_400
SMALL_JOB_CHIP_COUNT: Final = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureRate:
    """Failures of one server over time, as published."""

    slug: str
    per_thousand_node_days_ratio: float
    source: str


FAILURE_RATES: Final[Mapping[str, FailureRate]] = {
    rate.slug: rate
    for rate in (
        FailureRate(
            slug="meta-rsc-1",
            per_thousand_node_days_ratio=6.50,
            source="Revisiting reliability in large-scale ML research clusters, arXiv 2410.21680: RSC-1",
        ),
        FailureRate(
            slug="meta-rsc-2",
            per_thousand_node_days_ratio=2.34,
            source="Revisiting reliability in large-scale ML research clusters, arXiv 2410.21680: RSC-2",
        ),
        FailureRate(
            slug="llama-3",
            per_thousand_node_days_ratio=419 / 54 / 2048 * 1000,
            source="Llama 3, arXiv 2407.21783 Table 5: 419 unexpected interruptions in 54 days on 2,048 servers",
        ),
    )
}


def mtbf_term(*, server_count: int, failures: str) -> Term:
    """Mean time between failures that touch the job."""
    rate = FAILURE_RATES[failures]
    per_thousand = leaf(
        rate.per_thousand_node_days_ratio,
        "failures_per_thousand_node_days",
        kind="catalog",
        source=rate.source,
        path="reliability.failures",
        dimension="",
    )
    servers = leaf(server_count, "server_count", kind="derived", source="servers that hold the slice")
    second = constant(1000 * SECONDS_PER_DAY, "seconds in 1,000 days")
    return (second / (servers * per_thousand)).named("mtbf_s")


def small_job_warning(*, chip_count: int) -> Message | None:
    if chip_count >= SMALL_JOB_CHIP_COUNT:
        return None
    return Message(
        code="reliability.small_job",
        template="time between failures of {chip_count:,} chips follows from rates of large jobs; "
        "below about {limit:,} chips it is not confirmed by measurement",
        params={"chip_count": chip_count, "limit": SMALL_JOB_CHIP_COUNT},
        path="reliability.failures",
    )


def servers_of(chip_count: int, chips_per_server: int) -> int:
    return math.ceil(chip_count / max(1, chips_per_server))
