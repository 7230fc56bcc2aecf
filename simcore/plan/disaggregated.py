"""Prefill and decode apart: two pools of replicas, how the chips are dealt out, and the link between them.

Each pool is planned as a pool of its own, on the requests as it sees them: prefill makes one token of each prompt,
decode has its prompts' KV sent. Capacity is the least of the two pools' and the link's. Where replica counts are left
open, the chips are dealt out so that this least is greatest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, Literal

import numpy as np

from simcore.catalog.types import Chip, Server
from simcore.errors import InfeasibleError, InputError, Message, TrimtabError
from simcore.parallelism import Parallelism
from simcore.plan.kv_tiers import kv_bytes_per_token_per_chip
from simcore.plan.serving import build_pool, lane_network
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
Resolve = Callable[[Serving], Parallelism]


def plan_apart(common: PoolInputs, chip: Chip, *, chip_count: int, resolve: Resolve) -> ServingPlan:
    """Both pools. `common` is what they share; `resolve` cuts the model for a pool's own spec.

    Raises InputError or InfeasibleError where they do not fit side by side.
    """
    scheduler = common.spec.scheduler
    assert isinstance(scheduler, Disaggregated), "asked only where the scheduler says so"
    _check_pages(common.spec)
    sides = {role: _alone(common, role, resolve) for role in ("prefill", "decode")}
    pools = {role: _built(inputs, chip) for role, inputs in sides.items()}
    counts = _dealt(scheduler, pools, chip_count)
    return joined(
        scheduler,
        chip,
        replace(sides["prefill"], replica_count=counts[0]),
        replace(sides["decode"], replica_count=counts[1]),
        chip_count=chip_count,
    )


def joined(
    scheduler: Disaggregated, chip: Chip, prefill: PoolInputs, decode: PoolInputs, *, chip_count: int
) -> ServingPlan:
    """The plan of two pools whose replicas are counted."""
    before, after = _built(prefill, chip), _built(decode, chip)
    link = _link(scheduler, prefill, before, after, chip)
    return ServingPlan(
        inputs=decode,
        pool=after,
        idle_chip_count=chip_count - before.chip_count - after.chip_count,
        prefill=PrefillPlan(inputs=prefill, pool=before, link=link, scheduler=scheduler),
    )


def rebuilt(
    serving: ServingPlan, chip: Chip, *, requests: Requests | None = None, server: Server | None = None
) -> ServingPlan:
    """The same replicas on another chip, in another server, or for other requests."""
    changed: dict[str, Any] = {"requests": requests} if requests is not None else {}
    if server is not None:
        changed["server"] = server
    sides = [replace(inputs, **changed) for inputs, _ in serving.sides]
    if serving.prefill is None:
        return replace(serving, inputs=sides[0], pool=build_pool(sides[0], chip))
    owned = serving.chip_count + serving.idle_chip_count
    return joined(serving.prefill.scheduler, chip, sides[0], sides[1], chip_count=owned)


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


def _alone(common: PoolInputs, role: _Apart, resolve: Resolve) -> PoolInputs:
    """One replica of a pool."""
    spec = role_spec(common.spec, role)
    try:
        parallelism = resolve(spec)
    except TrimtabError as error:
        raise _at(error, common.spec, role) from None
    return replace(common, role=role, spec=spec, parallelism=parallelism, replica_count=1)


def _built(inputs: PoolInputs, chip: Chip) -> PoolPlan:
    try:
        return build_pool(inputs, chip)
    except TrimtabError as error:
        raise _at(error, inputs.spec, inputs.role) from None


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


def _dealt(scheduler: Disaggregated, pools: dict[str, PoolPlan], chip_count: int) -> tuple[int, int]:
    """Replicas of each pool. Raises InfeasibleError where the chips do not hold one of each, or all that are asked."""
    wanted = scheduler.prefill.replica_count, scheduler.decode.replica_count
    each = pools["prefill"].chip_count, pools["decode"].chip_count
    least = tuple(count if isinstance(count, int) else 1 for count in wanted)
    needed = least[0] * each[0] + least[1] * each[1]
    if needed > chip_count:
        raise InfeasibleError.at(
            "hardware.chip_count",
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
    rates = [pool.operating_point.capacity_request_per_s for pool in pools.values()]
    best = int(np.minimum(firsts * rates[0], seconds * rates[1]).argmax())
    return int(firsts[best]), int(seconds[best])


def _link(
    scheduler: Disaggregated, inputs: PoolInputs, prefill: PoolPlan, decode: PoolPlan, chip: Chip
) -> KvLinkPlan:
    """Every chip of a replica sends, or takes, its own share of the KV at the same time."""
    network = lane_network(inputs, chip)
    used = prefill.chip_count + decode.chip_count
    if scheduler.kv_link == "scaleup" and used > network.domain_size:
        raise InputError.at(
            f"{_PATH}.kv_link",
            "disaggregated.no_scaleup_link",
            "got scaleup, and {used} chips do not share one scale-up domain of {domain}; use scaleout",
            used=used,
            domain=network.domain_size,
        )
    rate = network.scaleup_bytes_per_s if scheduler.kv_link == "scaleup" else network.scaleout_bytes_per_s
    if scheduler.kv_link_bytes_per_s != "auto":
        rate = leaf(scheduler.kv_link_bytes_per_s, "kv_link_bytes_per_s", path=f"{_PATH}.kv_link_bytes_per_s")
    if scheduler.kv_link_latency_s == "auto":
        latency = leaf(
            KV_LATENCY_S, "kv_link_latency_s", kind="assumption", source="a proxy's hop and a handshake"
        )
    else:
        latency = leaf(scheduler.kv_link_latency_s, "kv_link_latency_s", path=f"{_PATH}.kv_link_latency_s")
    ends = [_end_s_per_token(pool, rate) for pool in (prefill, decode)]
    tokens = leaf(
        float(inputs.requests.input_tokens.mean()), "mean_input_tokens", kind="derived", source="the requests"
    )
    sent = [
        constant(pool.lane_count, "lanes") / (tokens * end)
        for pool, end in zip((prefill, decode), ends, strict=True)
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


def _end_s_per_token(pool: PoolPlan, rate: Term) -> Term:
    """Seconds that a lane's end of the link takes for a token; the batches in flight of a replica share it evenly."""
    each = kv_bytes_per_token_per_chip(pool.kv) / rate
    lanes = pool.parallelism.pp
    return each if lanes == 1 else constant(lanes, "lanes_per_replica") * each
