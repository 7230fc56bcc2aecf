"""The tiers that a scenario sends KV to: their figures, a lane's share of them, and what they came to.

`serving.kv.offload` names them, nearest first; figures that it leaves out are the catalog's. Swapping without a
tier takes the server's memory. Every chip moves its own share of the KV at the same time, at the bandwidth and
out of the capacity of one chip; pipeline lanes share the capacity evenly and, as nothing waits for another
lane's transfer here, each has the whole bandwidth.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from simcore.catalog.types import Chip, Server
from simcore.errors import InputError, Message
from simcore.memory.budget import KvBudget
from simcore.memory.tiers import OffloadTier, Tier, tier_of, tiers
from simcore.parallelism import Parallelism
from simcore.plan.types import PoolInputs, ServingPlan
from simcore.scenario.schema import KvCache
from simcore.serving.records import Totals
from simcore.serving.tiers import UNLIMITED_BLOCKS, KvTier, KvTiers
from simcore.why import Term, leaf

_PATH: Final = "serving.kv.offload"


def swaps(kv: KvCache) -> bool:
    return kv.preemption == "swap" and kv.allocator == "paged"


def stows(kv: KvCache) -> bool:
    return bool(kv.offload) and kv.enable_prefix_caching


def offload_tiers(kv: KvCache, chip: Chip, server: Server) -> tuple[Tier, ...]:
    """The tiers in use, nearest first, as one chip sees them. Raises InputError where a figure is missing."""
    if not (swaps(kv) or stows(kv)):
        return ()
    names = [given.tier for given in kv.offload]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError.at(
            _PATH,
            "offload.twice",
            "{tier} is named twice; name each tier once, the nearest first",
            tier=twice,
        )
    known = {tier.name: tier for tier in tiers(chip, server)}
    if kv.offload:
        return tuple(_with_figures(given, known.get(given.tier), chip) for given in kv.offload)
    if "host_dram" not in known:
        raise InputError.at(
            "serving.kv.preemption",
            "swap.no_link",
            "the catalog has no link from {chip} to its host; name a tier in serving.kv.offload with bytes_per_s, or "
            "use recompute",
            chip=chip.slug,
        )
    return (known["host_dram"],)


def _with_figures(given: OffloadTier, known: Tier | None, chip: Chip) -> Tier:
    missing = [
        name for name in ("capacity_bytes", "bytes_per_s") if known is None and getattr(given, name) == "auto"
    ]
    if missing:
        raise InputError.at(
            _PATH,
            "offload.no_figure",
            "the catalog has no {figures} of {tier} for {chip}; give it, for one chip",
            figures=", ".join(missing),
            tier=given.tier,
            chip=chip.slug,
        )
    rate: Term | None = known.bytes_per_s if known else None
    if given.bytes_per_s != "auto":
        rate = leaf(given.bytes_per_s, f"{given.tier}_bytes_per_s", path=_PATH)
    capacity: Term | None = known.capacity_bytes if known else None
    if given.capacity_bytes != "auto":
        capacity = leaf(given.capacity_bytes, f"{given.tier}_capacity_bytes", path=_PATH)
    assert rate is not None, "a missing figure was refused"
    assert capacity is not None, "a missing figure was refused"
    return tier_of(
        given.tier,
        capacity_bytes=capacity,
        bytes_per_s=rate,
        latency_s=None if given.latency_s == "auto" else given.latency_s,
    )


def kv_bytes_per_token_per_chip(kv: KvBudget) -> Term:
    """KV of one token of context on the rank that has least room."""
    return (kv.rank.kv_bytes / kv.token_capacity).named("kv_bytes_per_token_per_chip")


def lane_tiers(inputs: PoolInputs, chip: Chip, kv: KvBudget, parallelism: Parallelism) -> KvTiers | None:
    """What the engine of one lane sends KV to; None: nothing."""
    spec = inputs.spec.kv
    used = offload_tiers(spec, chip, inputs.server)
    if not used:
        return None
    bytes_per_token = kv_bytes_per_token_per_chip(kv).value
    through = {str(given.tier) for given in spec.offload if given.write == "through"}
    block_bytes = bytes_per_token * kv.block_size_tokens * parallelism.pp
    return KvTiers(
        tiers=tuple(
            KvTier(
                name=tier.name,
                capacity_blocks=int(min(tier.capacity_bytes.value / block_bytes, UNLIMITED_BLOCKS)),
                s_per_token=bytes_per_token / tier.bytes_per_s.value,
                latency_s=tier.latency_s,
                write_through=tier.name in through,
            )
            for tier in used
        ),
        swap=swaps(spec),
        stow=stows(spec),
    )


def tier_warnings(kv: KvCache) -> Iterator[Message]:
    """Tiers that nothing is sent to, and a way of preemption where nobody is preempted."""
    if kv.preemption == "swap" and not swaps(kv):
        yield Message(
            code="input.no_effect",
            template="has no effect: {allocator} promises memory at admission, so no sequence is preempted",
            params={"allocator": kv.allocator},
            path="serving.kv.preemption",
        )
    if kv.offload and not (swaps(kv) or stows(kv)):
        yield Message(
            code="input.no_effect",
            template="has no effect: no KV is sent to a tier; set serving.kv.enable_prefix_caching or "
            "serving.kv.preemption=swap",
            path=_PATH,
        )


def tier_metrics(serving: ServingPlan, totals: Totals, output_tokens: float) -> dict[str, float]:
    """`compute.moved_bytes_per_output_token.<tier>`: in and out, on all chips of a replica."""
    if not output_tokens:
        return {}
    replica = _replica_bytes_per_token(serving)
    return {
        f"compute.moved_bytes_per_output_token.{use.name}": (
            (use.read_token_sum + use.written_token_sum) * replica / output_tokens
        )
        for use in totals.tiers
    }


def tier_rows(serving: ServingPlan, totals: Totals, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows of `kv_tiers` with what the engine did with each tier: bytes, hits, and how full it got."""
    replica = _replica_bytes_per_token(serving)
    did: dict[str, dict[str, Any]] = {
        use.name: {
            "read_bytes": use.read_token_sum * replica,
            "written_bytes": use.written_token_sum * replica,
            "hit_fraction": (
                use.hit_token_sum / totals.prompt_token_sum
                if use.hit_token_sum is not None and totals.prompt_token_sum
                else None
            ),
            "used_max_fraction": use.used_max_fraction,
        }
        for use in totals.tiers
    }
    return [row | did.get(row["tier"], {}) for row in rows]


def _replica_bytes_per_token(serving: ServingPlan) -> float:
    pool = serving.pool
    chips = pool.parallelism.tp_ranks * pool.parallelism.pp
    return kv_bytes_per_token_per_chip(pool.kv).value * chips
