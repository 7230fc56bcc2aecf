"""Published failure rates, and the time between interruptions that follows.

A job on n servers that each fail at rate r is interrupted every `1 / (n·r)`. With r = 6.50 per 1,000
node-days that is Meta's 1.8 h at 16,384 GPUs. A server that is repaired in MTTR is up `1/(1 + r·MTTR)` of the
time. Limit: the same figure does not hold for small jobs (7.9 h
was measured at 1,024 GPUs, the formula says 28.8 h), so below 2,000 chips a warning says so.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from simcore.errors import Message
from simcore.why import Term, constant, leaf

SECONDS_PER_DAY: Final = 86_400
SMALL_JOB_CHIP_COUNT: Final = 2_000
Own = Literal["auto"] | float


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


def rate_term(failures: str, own_ratio: Own = "auto") -> Term:
    """Failures of one server in 1,000 days: the published rate, or the user's own."""
    name = "failures_per_thousand_node_days"
    if own_ratio != "auto":
        return leaf(own_ratio, name, path=f"reliability.{name}_ratio", dimension="")
    rate = FAILURE_RATES[failures]
    return leaf(
        rate.per_thousand_node_days_ratio,
        name,
        kind="catalog",
        source=rate.source,
        path="reliability.failures",
        dimension="",
    )


def host_availability_term(
    *, given_fraction: float, mttr_s: Own, failures: str, own_ratio: Own = "auto"
) -> Term:
    """Share of time that one host is up: as given, or `1 / (1 + r·MTTR)` of its failure rate and its repair.

    >>> found = [
    ...     host_availability_term(given_fraction=1, mttr_s=3600.0 * hours, failures="meta-rsc-1") for hours in (4, 48)
    ... ]
    >>> [round(term.value, 4) for term in found]
    [0.9989, 0.9872]
    """
    name = "host_availability_fraction"
    if mttr_s == "auto":
        return leaf(given_fraction, name, path=f"reliability.{name}")
    repair = leaf(mttr_s, "mttr_s", path="reliability.mttr_s")
    days = constant(1000 * SECONDS_PER_DAY, "seconds in 1,000 days")
    return (1 / (1 + rate_term(failures, own_ratio) * repair / days)).named(name)


def mtbf_term(*, server_count: int, failures: str, own_ratio: Own = "auto") -> Term:
    """Mean time between failures that touch the job."""
    per_thousand = rate_term(failures, own_ratio)
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
