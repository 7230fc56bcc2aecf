"""Prefill and decode apart: two pools of replicas, how the chips are dealt out, and the link between them.

Each pool is planned as a pool of its own, on the requests as it sees them: prefill makes one token of each prompt,
decode has its prompts' KV sent. Capacity is the least of the two pools' and the link's. Where replica counts are left
open, the chips are dealt out so that this least is greatest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final, Literal

import numpy as np

from simcore.catalog.types import Chip
from simcore.errors import InfeasibleError, InputError, Message, TrimtabError
from simcore.plan.autoscaling import refuse_apart
from simcore.plan.chip_pools import Pools, Resolve, chosen, on_pool, placed
from simcore.plan.kv_tiers import kv_bytes_per_token_per_chip
from simcore.plan.resolve import OwnedChips
from simcore.plan.serving import build_pool, lane_network
from simcore.plan.together import shared_out
from simcore.plan.types import KvLinkPlan, PoolInputs, PoolPlan, PrefillPlan, ServingPlan
from simcore.scenario.schema import Serving
from simcore.serving.estimate import HIGHEST_LOAD, apart_latency_terms
from simcore.serving.handover import KvLink
from simcore.serving.schedulers.chunked_prefill import ChunkedPrefill
from simcore.serving.schedulers.disaggregated import Disaggregated, RolePool
from simcore.why import Term, constant, leaf, minimum
from simcore.workload.requests import Requests

KV_LATENCY_S: Final = 1e-3  # assumption: one hop through the proxy, and the exchange of addresses
_PATH: Final = "serving.scheduler"
_Apart = Literal["prefill", "decode"]
_ROLES: Final[tuple[_Apart, _Apart]] = ("prefill", "decode")
_Side = tuple[PoolInputs, Chip]


def plan_apart(common: PoolInputs, pools: Pools, resolve: Resolve) -> ServingPlan:
    """Both roles, each on the pool that it names. `common` is what they share; `resolve` cuts the model for a role's
    own spec and chips.

    Raises InputError or InfeasibleError where they do not fit side by side.
    """
    scheduler = common.spec.scheduler
    assert isinstance(scheduler, Disaggregated), "asked only where the scheduler says so"
    refuse_apart(common.spec)
    _check_pages(common.spec)
    chips = {role: chosen(pools, getattr(scheduler, role).pool, f"{_PATH}.{role}.pool") for role in _ROLES}
    sides = {role: _alone(common, role, chips[role], resolve) for role in _ROLES}
    alone = {role: _built(sides[role], chips[role].chip, chips[role]) for role in _ROLES}
    counts = _dealt(scheduler, alone, chips)
    prefill, decode = (
        (replace(sides[role], replica_count=count), chips[role].chip)
        for role, count in zip(_ROLES, counts, strict=True)
    )
    owned = sum(pool.chip_count for pool in pools.values())
    return _joined(scheduler, prefill, decode, chip_count=owned)


def _joined(scheduler: Disaggregated, prefill: _Side, decode: _Side, *, chip_count: int) -> ServingPlan:
    """The plan of two pools whose replicas are counted."""
    before, after = _built(*prefill), _built(*decode)
    return ServingPlan(
        inputs=decode[0],
        pool=after,
        idle_chip_count=chip_count - before.chip_count - after.chip_count,
        prefill=PrefillPlan(
            inputs=prefill[0],
            pool=before,
            link=_link(scheduler, (prefill[0], before), (decode[0], after)),
            scheduler=scheduler,
        ),
    )


def rebuilt(
    serving: ServingPlan,
    *,
    requests: Requests | None = None,
    chip: Callable[[Chip], Chip] | None = None,
    inputs: Callable[[PoolInputs, PoolPlan], PoolInputs] | None = None,
) -> ServingPlan:
    """The same replicas for other requests, or with every pool's chip or whatever else it depends on changed."""
    sides = [
        (
            replace(
                own if inputs is None else inputs(own, pool),
                requests=own.requests if requests is None else requests,
            ),
            pool.chip if chip is None else chip(pool.chip),
        )
        for own, pool in serving.sides
    ]
    if serving.prefill is not None:
        owned = serving.chip_count + serving.idle_chip_count
        return _joined(serving.prefill.scheduler, sides[0], sides[1], chip_count=owned)
    (main, first), *beside = shared_out(sides)
    return replace(serving, inputs=main, pool=first, beside=tuple(beside))


def apart_terms(serving: ServingPlan) -> dict[str, Term]:
    """What the pools and the link are and carry; the prefill step is the prefill pool's."""
    prefill, decode = serving.prefill, serving.pool
    if prefill is None:
        return {}
    found = {
        "compute.prefill_step_s": prefill.pool.terms["compute.prefill_step_s"],
        "serving.kv_link_capacity_request_per_s": prefill.link.capacity_request_per_s,
        "serving.kv_transfer_alone_s": prefill.link.transfer_s,
        **_estimate(serving, prefill),
    }
    for pool in (prefill.pool, decode):
        found[f"serving.{pool.role}_replica_count"] = leaf(
            pool.replica_count,
            f"{pool.role}_replica_count",
            path=f"{_PATH}.{pool.role}.replica_count",
            source="as asked, or as the chips are dealt out",
        )
        found[f"serving.{pool.role}_capacity_request_per_s"] = leaf(
            pool.operating_point.capacity_request_per_s,
            f"{pool.role}_capacity_request_per_s",
            kind="derived",
            source="the best steady state of the mean request, closed form (serving/capacity.py)",
        )
    return found


def _estimate(serving: ServingPlan, prefill: PrefillPlan) -> dict[str, Term]:
    """TTFT and TPOT by queueing, pool after pool; empty where any of them has no steady state."""
    offered = serving.pool.operating_point.offered_request_per_s
    if (
        offered is None
        or prefill.scheduler.queue != "fcfs"
        or offered >= HIGHEST_LOAD * serving.capacity.value
    ):
        return {}
    first, second = prefill.pool.operating_point.load, serving.pool.operating_point.load
    assert first is not None, "requests are offered at a rate"
    assert second is not None, "requests are offered at a rate"
    return apart_latency_terms(
        first,
        prefill.pool.step_table,
        second,
        transfer=prefill.link.transfer_s,
        front_end_s=serving.front_end_s,
    )


def role_spec(spec: Serving, role: _Apart) -> Serving:
    """What a pool is planned from: the scenario's serving section with the pool's own cut, batch and budget."""
    scheduler = spec.scheduler
    assert isinstance(scheduler, Disaggregated), "asked only where the scheduler says so"
    own: RolePool = getattr(scheduler, role)
    first = role == "prefill"
    batching = ChunkedPrefill(
        max_num_seqs=own.max_num_seqs,
        max_num_batched_tokens=own.max_num_batched_tokens,
        queue=scheduler.queue if first else "fcfs",
        prediction_cv=scheduler.prediction_cv if first else 0.0,
    )
    caching = spec.kv.enable_prefix_caching and first
    return spec.model_copy(
        update={
            "parallelism": own.parallelism or spec.parallelism,
            "scheduler": batching,
            "speculative": None if first else spec.speculative,
            "kv": spec.kv.model_copy(update={"enable_prefix_caching": caching}),
        }
    )


def _check_pages(spec: Serving) -> None:
    if spec.kv.allocator != "paged":
        raise InputError.at(
            "serving.kv.allocator",
            "disaggregated.pages",
            "got {got}; KV moves between pools in pages, so use paged",
            got=spec.kv.allocator,
        )


def _alone(common: PoolInputs, role: _Apart, chips: OwnedChips, resolve: Resolve) -> PoolInputs:
    """One replica of a role."""
    spec = role_spec(common.spec, role)
    try:
        parallelism = resolve(spec, chips)
    except TrimtabError as error:
        raise on_pool(_at(error, common.spec, role), chips) from None
    return replace(placed(common, chips), role=role, spec=spec, parallelism=parallelism, replica_count=1)


def _built(inputs: PoolInputs, chip: Chip, chips: OwnedChips | None = None) -> PoolPlan:
    """Errors are at `chips`, where they are given."""
    try:
        return build_pool(inputs, chip)
    except TrimtabError as error:
        moved = _at(error, inputs.spec, inputs.role)
        raise (moved if chips is None else on_pool(moved, chips)) from None


def _at(error: TrimtabError, spec: Serving, role: str) -> TrimtabError:
    """The error at the pool's own fields, where it has set them."""
    owned = {f"{_PATH}.max_num": f"{_PATH}.{role}.max_num"}
    scheduler = spec.scheduler
    if isinstance(scheduler, Disaggregated) and getattr(scheduler, role).parallelism is not None:
        owned["serving.parallelism"] = f"{_PATH}.{role}.parallelism"

    def moved(message: Message) -> Message:
        path = message.path
        for general, own in owned.items():
            path = own + path.removeprefix(general) if path.startswith(general) else path
        return replace(message, path=path)

    return type(error)(*(moved(message) for message in error.messages))


def _dealt(
    scheduler: Disaggregated, alone: Mapping[_Apart, PoolPlan], chips: Mapping[_Apart, OwnedChips]
) -> tuple[int, int]:
    """Replicas of each role, where `alone` has one of each. Raises InfeasibleError where the chips do not hold them."""
    if chips["prefill"].name == chips["decode"].name:
        return _dealt_out(scheduler, alone, chips["prefill"])
    return _all_of(scheduler, "prefill", alone, chips), _all_of(scheduler, "decode", alone, chips)


def _all_of(
    scheduler: Disaggregated,
    role: _Apart,
    alone: Mapping[_Apart, PoolPlan],
    chips: Mapping[_Apart, OwnedChips],
) -> int:
    """Replicas of a role that has a pool to itself: those that are asked for, or all that it holds."""
    wanted, own, each = getattr(scheduler, role).replica_count, chips[role], alone[role].chip_count
    count: int = wanted if isinstance(wanted, int) else max(1, own.chip_count // each)
    if count * each > own.chip_count:
        raise InfeasibleError.at(
            f"{own.path}.chip_count",
            "disaggregated.too_few_in_pool",
            "{count} {role} replica(s) of {each} chips need {needed} of pool {pool}, which has {got}; own {needed}, or "
            "lower the replica count or tp",
            count=count,
            role=role,
            each=each,
            needed=count * each,
            pool=own.name,
            got=own.chip_count,
        )
    return count


def _dealt_out(
    scheduler: Disaggregated, alone: Mapping[_Apart, PoolPlan], chips: OwnedChips
) -> tuple[int, int]:
    """Replicas of two roles that share a pool."""
    wanted, chip_count = (scheduler.prefill.replica_count, scheduler.decode.replica_count), chips.chip_count
    each = alone["prefill"].chip_count, alone["decode"].chip_count
    least = tuple(count if isinstance(count, int) else 1 for count in wanted)
    needed = least[0] * each[0] + least[1] * each[1]
    if needed > chip_count:
        raise InfeasibleError.at(
            f"{chips.path}.chip_count",
            "disaggregated.too_few_chips",
            "{prefill} prefill replica(s) of {each_prefill} and {decode} decode replica(s) of {each_decode} chips need "
            "{needed}, and {got} are owned; own {needed}, or lower a replica count or tp",
            prefill=least[0],
            each_prefill=each[0],
            decode=least[1],
            each_decode=each[1],
            needed=needed,
            got=chip_count,
        )
    if isinstance(wanted[0], int):
        firsts = np.array([wanted[0]])
    else:
        firsts = np.arange(1, (chip_count - least[1] * each[1]) // each[0] + 1)
    seconds = (chip_count - firsts * each[0]) // each[1]
    if isinstance(wanted[1], int):
        seconds = np.full_like(firsts, wanted[1])
    rates = [pool.operating_point.capacity_request_per_s for pool in (alone["prefill"], alone["decode"])]
    best = int(np.minimum(firsts * rates[0], seconds * rates[1]).argmax())
    return int(firsts[best]), int(seconds[best])


def _link(
    scheduler: Disaggregated, prefill: tuple[PoolInputs, PoolPlan], decode: tuple[PoolInputs, PoolPlan]
) -> KvLinkPlan:
    """Every chip of a replica sends, or takes, its own share of the KV at the same time; the slower end binds."""
    inputs, sides = prefill[0], (prefill, decode)
    if scheduler.kv_link == "scaleup":
        _check_one_domain(prefill, decode)
    ends = [_end_s_per_token(pool, _end_bytes_per_s(scheduler, own, pool.chip)) for own, pool in sides]
    if scheduler.kv_link_latency_s == "auto":
        latency = leaf(
            KV_LATENCY_S, "kv_link_latency_s", kind="assumption", source="a proxy's hop and a handshake"
        )
    else:
        latency = leaf(scheduler.kv_link_latency_s, "kv_link_latency_s", path=f"{_PATH}.kv_link_latency_s")
    tokens = leaf(
        float(inputs.requests.input_tokens.mean()), "mean_input_tokens", kind="derived", source="the requests"
    )
    sent = [
        constant(pool.lane_count, "lanes") / (tokens * end)
        for (_, pool), end in zip(sides, ends, strict=True)
    ]
    slower = max(ends, key=lambda end: end.value)
    return KvLinkPlan(
        link=KvLink(
            prefill_s_per_token=ends[0].value,
            decode_s_per_token=ends[1].value,
            latency_s=latency.value,
            last_layer_fraction=1.0 / inputs.architecture.layers if scheduler.layerwise else 1.0,
        ),
        transfer_s=(tokens * slower + latency).named("kv_transfer_s"),
        capacity_request_per_s=minimum(*sent).named("kv_link_capacity_request_per_s"),
    )


def _check_one_domain(prefill: tuple[PoolInputs, PoolPlan], decode: tuple[PoolInputs, PoolPlan]) -> None:
    """Raises InputError where KV cannot pass from one role to the other over scale-up links."""
    (inputs, before), (other, after) = prefill, decode
    if inputs.chips != other.chips:
        raise InputError.at(
            f"{_PATH}.kv_link",
            "disaggregated.pools_share_no_domain",
            "got scaleup, and prefill is on pool {prefill} and decode on {decode}; use scaleout",
            prefill=inputs.chips,
            decode=other.chips,
        )
    used, domain = before.chip_count + after.chip_count, lane_network(inputs, before.chip).domain_size
    if used > domain:
        raise InputError.at(
            f"{_PATH}.kv_link",
            "disaggregated.no_scaleup_link",
            "got scaleup, and {used} chips do not share one scale-up domain of {domain}; use scaleout",
            used=used,
            domain=domain,
        )


def _end_bytes_per_s(scheduler: Disaggregated, inputs: PoolInputs, chip: Chip) -> Term:
    """What a chip of one end sends or takes."""
    if scheduler.kv_link_bytes_per_s != "auto":
        return leaf(scheduler.kv_link_bytes_per_s, "kv_link_bytes_per_s", path=f"{_PATH}.kv_link_bytes_per_s")
    network = lane_network(inputs, chip)
    if scheduler.kv_link == "scaleup":
        return network.scaleup_bytes_per_s
    return network.reached_bytes_per_s(inputs.fabric.chip_count)


def _end_s_per_token(pool: PoolPlan, rate: Term) -> Term:
    """Seconds that a lane's end of the link takes for a token; the batches in flight of a replica share it evenly."""
    each = kv_bytes_per_token_per_chip(pool.kv) / rate
    lanes = pool.parallelism.pp
    return each if lanes == 1 else constant(lanes, "lanes_per_replica") * each
