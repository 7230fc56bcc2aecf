"""One row of the bottleneck budget: what more of a resource would bring, how much of it is used, and when it is full.

Each is a re-plan, so latencies and the KV budget move with it. Capacity is the saturated request rate of the same mix.

    gain           = capacity with twice the resource ÷ capacity
    without limit  = capacity with 10⁹ times the resource ÷ capacity
    saturates at   = capacity with every other rate without limit (room stays): what this resource alone lets through
    used           = rate carried now ÷ the rate at which it saturates

Room (KV memory, seats and token budget) is held, not passed: it is used by the share that the mean batch holds, and
saturates at the capacity with the other room without limit, if that batch fills it. Steps add the waits for all
resources, so the rates at which they saturate lie above capacity, and a resource that takes all of a step saturates at
it. The gains do not add up to the gain of all together: whoever was second takes over.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from simcore import glossary
from simcore.analysis.resources import NOTICEABLE_RATIO, RATES, WITHOUT_LIMIT, with_more
from simcore.compute.steps import decode_shares
from simcore.errors import Message
from simcore.plan import PoolPlan, ServingPlan
from simcore.plan.serving import lane_block_count
from simcore.why import Term, constant, leaf, minimum

_BEYOND: Final = 1e3  # capacities, from which a rate is as good as without limit
_FULL_FRACTION: Final = 0.99  # of the KV blocks, from which they are said to be full


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubling:
    """One resource doubled. Step ratios are below 1 where the step got faster."""

    resource: str
    gain: Term
    decode_step_ratio: float
    prefill_step_ratio: float
    first_token_ratio: float  # of a lone request: its prefill step, front end and KV transfer
    next_bottleneck: str

    @property
    def gain_ratio(self) -> float:
        return self.gain.value

    def as_dict(self) -> dict[str, Any]:
        return {
            "resource": self.resource,
            "gain_ratio": self.gain_ratio,
            "tpot_ratio": self.decode_step_ratio,
            "ttft_ratio": self.first_token_ratio,
            "next_bottleneck": self.next_bottleneck,
        }

    @property
    def pays(self) -> bool:
        return max(self.gain_ratio, 1 / self.decode_step_ratio) >= NOTICEABLE_RATIO

    @property
    def message(self) -> Message:
        resource, after = map(glossary.resource_label, (self.resource, self.next_bottleneck))
        if not self.pays:
            return Message(
                code="doubling.nothing",
                template="doubling {resource} brings nothing here; the decode step waits for {next}",
                params={"resource": resource, "next": after},
                path=self.resource,
            )
        return Message(
            code="doubling.gain",
            template="doubling {resource} lifts capacity by {gain} and decode speed by {step}; {next} binds next",
            params={
                "resource": resource,
                "gain": percent(self.gain_ratio - 1),
                "step": percent(1 / self.decode_step_ratio - 1),
                "next": after,
            },
            path=self.resource,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """How much of a resource is used now, and the rate at which all of it is; None: other resources bind before."""

    used: Term
    saturation: Term | None


def double(serving: ServingPlan, resource: str, *, factor: float = 2.0) -> Doubling:
    """The same pools with one resource `factor` times as large, on every chip."""
    after = with_more(serving, {resource: factor}, explained=True)
    return Doubling(
        resource=resource,
        gain=_gain(after, serving, f"analysis.doubling.{resource}.gain_ratio"),
        decode_step_ratio=_decode_s(after.pool, serving.pool) / _decode_s(serving.pool, serving.pool),
        prefill_step_ratio=_ratio(_prefill_s(after), _prefill_s(serving)),
        first_token_ratio=_ratio(_first_token_s(after), _first_token_s(serving)),
        next_bottleneck=after.pool.bound,
    )


def without_limit(serving: ServingPlan, resource: str) -> Term:
    """Capacity with more of a resource than anything needs, over capacity."""
    after = with_more(serving, {resource: WITHOUT_LIMIT})
    return _gain(after, serving, f"analysis.without_limit.{resource}.gain_ratio")


def together(serving: ServingPlan, resources: tuple[str, ...]) -> Term:
    """Capacity with twice of everything, over capacity."""
    return _gain(
        with_more(serving, dict.fromkeys(resources, 2.0)), serving, "analysis.doublings.together_ratio"
    )


def load_of(serving: ServingPlan, resource: str) -> Load:
    """How much of a resource the offered load uses."""
    if resource == "hbm_capacity":
        return _kv_load(serving)
    if resource == "scheduler":
        return _seat_load(serving)
    others = {name: WITHOUT_LIMIT for name in RATES if name != resource}
    saturation = _saturation(with_more(serving, others), resource)
    return Load(
        used=(carried(serving) / saturation).named(f"analysis.used.{resource}.used_fraction", "fraction"),
        saturation=saturation if saturation.value < _BEYOND * serving.capacity.value else None,
    )


def carried(serving: ServingPlan) -> Term:
    """Requests per second that are offered, as far as the pools carry them; of a closed loop, what its users make."""
    rates = [_carried_request_per_s(pool) for pool in serving.pools]
    rate = min(rates) if serving.prefill is not None else sum(rates)
    found = leaf(
        rate, "carried_request_per_s", kind="derived", source="arrivals, or users of the closed loop"
    )
    return minimum(found, serving.capacity).named("carried_request_per_s", "request_per_s")


def _carried_request_per_s(pool: PoolPlan) -> float:
    point = pool.operating_point
    if point.offered_request_per_s is None:
        return point.curve.rate_at(point.batch) * pool.lane_count
    return min(point.offered_request_per_s, point.capacity_request_per_s)


def _kv_load(serving: ServingPlan) -> Load:
    used = max((_kv_used(pool, _batch(pool)) for pool in serving.pools), key=lambda term: term.value)
    free = with_more(serving, {"scheduler": WITHOUT_LIMIT})
    full = max(_kv_used(pool, _best_batch(pool)).value for pool in free.pools) >= _FULL_FRACTION
    return Load(
        used=used.named("analysis.used.hbm_capacity.used_fraction", "fraction"),
        saturation=_saturation(free, "hbm_capacity") if full else None,
    )


def _seat_load(serving: ServingPlan) -> Load:
    free = with_more(serving, {"hbm_capacity": WITHOUT_LIMIT})
    each = []
    for now, then in zip(serving.pools, free.pools, strict=True):
        batch = leaf(
            _batch(now), "batch", kind="derived", source="sequences decoding together", dimension="count"
        )
        most = leaf(
            float(then.operating_point.curve.batch.max()),
            "most_sequences",
            kind="derived",
            source="what seats and token budget let decode together, were KV without limit",
            dimension="count",
        )
        each.append(batch / most)
    used = max(each, key=lambda term: term.value).named("analysis.used.scheduler.used_fraction", "fraction")
    return Load(used=used, saturation=_saturation(free, "scheduler"))


def _batch(pool: PoolPlan) -> float:
    """Mean sequences of a lane, also below one."""
    point = pool.operating_point
    if point.offered_request_per_s is None:
        return min(point.batch, float(point.curve.batch.max()))
    return point.curve.batch_at(_carried_request_per_s(pool) / pool.lane_count)


def _best_batch(pool: PoolPlan) -> float:
    curve = pool.operating_point.curve
    return float(curve.batch[int(curve.request_per_s.argmax())])


def _kv_used(pool: PoolPlan, batch: float) -> Term:
    sequences = leaf(batch, "batch", kind="derived", source="sequences decoding together", dimension="count")
    if pool.reservation is None:
        each = leaf(
            pool.operating_point.curve.mix.held_blocks,
            "held_blocks",
            kind="derived",
            source="mean of a sequence over its decode steps",
            dimension="count",
        )
    else:
        each = leaf(
            float(pool.reservation.blocks.mean()),
            "held_blocks",
            kind="derived",
            source="what the allocator promises a request",
            dimension="count",
        )
    blocks = constant(lane_block_count(pool.kv, pool.parallelism), "lane_blocks")
    return minimum(sequences * each / blocks, constant(1.0))


def _saturation(free: ServingPlan, resource: str) -> Term:
    rate = leaf(
        free.capacity.value,
        f"analysis.saturation.{resource}.saturating_request_per_s",
        kind="derived",
        source="capacity of a re-plan in which nothing else binds",
    )
    return rate.named(rate.name, "request_per_s")


def _gain(after: ServingPlan, before: ServingPlan, name: str) -> Term:
    now = leaf(
        before.capacity.value, "capacity_request_per_s", kind="derived", source="closed form, as planned"
    )
    then = leaf(
        after.capacity.value,
        "capacity_when_doubled_request_per_s"
        if ".without_limit." not in name
        else "capacity_without_limit_request_per_s",
        kind="derived",
        source="closed form, re-planned",
    )
    return (then / now if now.value else constant(1.0)).named(name, "ratio")


def _first_token_s(serving: ServingPlan) -> float:
    """A lone request to its first token: the front end, its prompt, and where it moves, its KV."""
    moved = serving.prefill.link.transfer_s.value if serving.prefill is not None else 0.0
    return serving.front_end_s + _prefill_s(serving) + moved


def _prefill_s(serving: ServingPlan) -> float:
    return serving.pools[0].terms["compute.prefill_step_s"].value


def _decode_s(pool: PoolPlan, at: PoolPlan) -> float:
    """The decode step of one pool at the batch and context of another."""
    point = at.operating_point
    batch = min(max(1, round(point.batch)), pool.scheduler.max_num_seqs)
    return decode_shares(pool.step_table, batch=batch, context_tokens=point.context_tokens).step_s


def _ratio(after: float, before: float) -> float:
    return after / before if before else 1.0


def percent(share: float) -> str:
    """Whole per cent, without a sign on zero."""
    return f"{round(share * 100) or 0}%"
