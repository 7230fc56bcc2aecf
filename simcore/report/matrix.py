"""A studied traffic matrix as text: what it says, then the topologies for it."""

from __future__ import annotations

from collections.abc import Iterator

from simcore.analysis.matrix import MatrixSummary
from simcore.analysis.matrix_study import MatrixStudy
from simcore.analysis.topologies import Candidate
from simcore.units import printed_text

_PLACES = {"domain": "in a scale-up domain", "rail": "along a rail", "other": "across rails"}


def matrix_text(study: MatrixStudy) -> str:
    """As `trimtab matrix` prints it."""
    lines = [
        *_said(study.summary),
        "",
        f"topologies for {study.chip.name} in {study.server.name}, best first",
    ]
    lines += [_candidate(one) for one in study.ranking]
    if any(one.is_on_front for one in study.ranking):
        lines.append("* no other is both as quick and as cheap")
    return "\n".join(lines)


def _said(summary: MatrixSummary) -> Iterator[str]:
    yield summary.pattern.message.text
    yield f"{summary.rank_count:,} ranks, {_bytes(summary.total_bytes)} between {summary.pair_count:,} pairs"
    yield f"density {summary.density_fraction:.1%} of all pairs"
    if summary.message_count is not None:
        rate = "" if summary.message_per_s is None else f", {summary.message_per_s:,.0f} a second"
        mean = "" if summary.mean_message_bytes is None else f" of {_bytes(summary.mean_message_bytes)}"
        yield f"{summary.message_count:,.0f} messages{mean} in the mean{rate}"
    if summary.latency_sensitive_fraction is not None:
        yield f"{summary.latency_sensitive_fraction:.1%} of the bytes are latency-sensitive"
    for one in summary.locality:
        yield f"  {_PLACES[one.place]:<22}{_bytes(one.moved_bytes):>12}  {one.share_fraction:>6.1%}"
    if summary.rail_affinity_fraction is not None and summary.uniform_rail_affinity_fraction is not None:
        yield (
            f"rail affinity {summary.rail_affinity_fraction:.1%} of what leaves a domain "
            f"(evenly spread: {summary.uniform_rail_affinity_fraction:.1%})"
        )
    yield (
        f"busiest rank over the mean: {summary.send_imbalance_ratio:.2f} sending, "
        f"{summary.receive_imbalance_ratio:.2f} receiving"
    )
    blocks = ", ".join(f"{size:,}: {share:.0%}" for size, share in summary.inside_blocks)
    yield f"bytes that stay in blocks of so many ranks: {blocks}"
    yield "busiest pairs"
    for source, target, moved in summary.busiest:
        yield f"  {source:>6} → {target:<6}{_bytes(moved):>12}"


def _candidate(one: Candidate) -> str:
    if one.refused is not None:
        return f"  {one.kind:<16} cannot be: {one.refused.text}"
    time = printed_text(one.busiest_link_s or 0.0, "s", digits=3)
    fair = "" if one.fair_s is None else f", fair {printed_text(one.fair_s, 's', digits=3)}"
    price = (
        "no price" if one.fabric_capex_usd is None else printed_text(one.fabric_capex_usd, "usd", digits=3)
    )
    lost = f"; {_bytes(one.unreachable_bytes)} cannot arrive" if one.unreachable_bytes else ""
    mark = "*" if one.is_on_front else " "
    said = f"{one.switch_count:,} switches, {one.busiest_link}{lost}"
    return f"{mark} {one.kind:<16}{time:>10}{fair}  {price:>12}  {said}"


def _bytes(value: float) -> str:
    return printed_text(value, "bytes", digits=3)
