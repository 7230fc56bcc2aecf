"""The resources of the bottleneck budget, what each is made of, and a plan with more of some of them.

*compute*, *HBM bandwidth*, *HBM capacity* and *scale-up* are figures of the chip; *scale-out* is the server's NICs;
*host* the engine's CPU work of each iteration and sequence; *latency* launches of kernels, latencies of collectives
and ranks waiting for each other; *scheduler* the seats (`max_num_seqs`) and the token budget; *external I/O* the KV
link between pools, tiers that take KV, and the front end. More of one is a re-plan with its figures multiplied, or its
times divided. Limits: L2 and the cores of a chip stay as they are, and with measured kernel tables so does the work
that a kernel does for each expert or head; a larger token budget may take memory from the KV cache, so seats alone are
tried beside both, and neither is used where it loses.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Final

from simcore.catalog.types import Calibration, Chip, StepOverhead
from simcore.errors import TrimtabError
from simcore.plan import PoolPlan, ServingPlan
from simcore.plan.disaggregated import rebuilt
from simcore.plan.kv_tiers import offload_tiers
from simcore.plan.types import KvLinkPlan, PoolInputs
from simcore.remembered import remembered
from simcore.why import leaf

FIGURES: Final[Mapping[str, tuple[str, ...]]] = {
    "compute": ("bf16_flop_per_s", "fp8_flop_per_s", "int8_flop_per_s", "fp4_flop_per_s"),
    "hbm_bandwidth": ("hbm_bytes_per_s",),
    "hbm_capacity": ("hbm_bytes", "hbm_visible_bytes"),
    "scaleup": ("scaleup_bytes_per_s", "pcie_bytes_per_s"),
}
_HOST: Final = ("per_iteration_s", "per_sequence_s", "eager_per_layer_s", "per_prefill_layer_s")
_PER_KERNEL: Final = {
    "experts": "per_expert_s",
    "attention_prefill": "per_block_s",
    "attention_decode": "per_head_s",
    "latent_prefill": "per_block_s",
    "latent_decode": "per_head_s",
}
RATES: Final = ("compute", "hbm_bandwidth", "scaleup", "scaleout", "host", "latency", "external_io")
ROOM: Final = ("hbm_capacity", "scheduler")  # what requests hold, where the others are what they pass
RESOURCES: Final = (
    "compute", "hbm_bandwidth", "hbm_capacity", "scaleup", "scaleout", "host", "latency", "scheduler", "external_io"
)  # fmt: skip
NOTICEABLE_RATIO: Final = 1.01
WITHOUT_LIMIT: Final = 1e9  # so many times as much: what is left of its time is nothing
_MOST_SEATS: Final = 16_384
_MOST_TOKENS: Final = 131_072


def used_resources(serving: ServingPlan) -> tuple[str, ...]:
    """Those that this plan uses: links only where chips talk, external I/O only where something passes it."""
    pools = serving.pools
    alone = all(pool.parallelism.tp_ranks == 1 and pool.exchange_tier is None for pool in pools)
    crosses = serving.prefill is not None or any(pool.step_table.scaleout_s is not None for pool in pools)
    outside = (
        serving.prefill is not None
        or any(pool.tiers is not None for pool in pools)
        or serving.front_end_s > 0
    )
    absent = {"scaleup"} if alone else set()
    absent |= set() if crosses else {"scaleout"}
    absent |= set() if outside else {"external_io"}
    return tuple(name for name in RESOURCES if name not in absent)


def with_more(serving: ServingPlan, factors: Mapping[str, float], *, explained: bool = False) -> ServingPlan:
    """The same replicas with each of these resources so many times as large; `explained`, with trees of their steps."""
    again = partial(_rebuilt, serving, factors, explained=explained)
    plain = again(seats=False, tokens=False)
    if factors.get("scheduler", 1.0) == 1.0:
        return plain
    tried = [plain]
    for tokens in (True, False):
        with suppress(TrimtabError):  # a budget whose activations leave no room
            tried.append(again(seats=True, tokens=tokens))
    return max(tried, key=lambda one: one.capacity.value)


def _rebuilt(
    serving: ServingPlan, factors: Mapping[str, float], *, seats: bool, tokens: bool, explained: bool
) -> ServingPlan:
    found = rebuilt(
        serving,
        chip=partial(_with_figures, factors=factors),
        inputs=partial(_changed, factors=factors, seats=seats, tokens=tokens, explained=explained),
    )
    outside = factors.get("external_io", 1.0)
    if outside == 1.0 or found.prefill is None:
        return found
    return replace(found, prefill=replace(found.prefill, link=_quicker(found.prefill.link, outside)))


def _with_figures(chip: Chip, factors: Mapping[str, float]) -> Chip:
    for resource in FIGURES:
        if factors.get(resource, 1.0) != 1.0:
            chip = scaled_chip(chip, resource, factors[resource])
    return chip


@remembered
def scaled_chip(chip: Chip, resource: str, factor: float) -> Chip:
    """The chip with every figure of a resource multiplied; figures that it lacks stay absent."""
    changed = {
        name: value * factor for name in FIGURES[resource] if (value := getattr(chip, name)) is not None
    }
    return replace(chip, **changed)


def _changed(
    inputs: PoolInputs,
    pool: PoolPlan,
    *,
    factors: Mapping[str, float],
    seats: bool,
    tokens: bool,
    explained: bool,
) -> PoolInputs:
    host, latency, outside = (factors.get(name, 1.0) for name in ("host", "latency", "external_io"))
    calibration, server, spec = inputs.calibration, inputs.server, inputs.spec
    if (host, latency, outside) != (1.0, 1.0, 1.0):
        calibration = quicker_calibration(calibration, host, latency, outside)
    if factors.get("scaleout", 1.0) != 1.0:
        server = replace(server, nic_bytes_per_s=server.nic_bytes_per_s * factors["scaleout"])
    if pool.tiers is not None and outside != 1.0:
        spec = spec.model_copy(update={"kv": _quicker_tiers(inputs, pool, outside)})
    wider = _wider(pool, factors.get("scheduler", 1.0), seats=seats, tokens=tokens)
    if wider:
        spec = spec.model_copy(update={"scheduler": spec.scheduler.model_copy(update=wider)})
    return replace(inputs, calibration=calibration, server=server, spec=spec, explained=explained)


@remembered
def quicker_calibration(calibration: Calibration, host: float, latency: float, outside: float) -> Calibration:
    """Host work, latencies and the front end so many times as quick."""

    def quicker(overhead: StepOverhead) -> StepOverhead:
        times = {name: getattr(overhead, name) / host for name in _HOST}
        times |= {
            "rank_skew_s": overhead.rank_skew_s / latency,
            "per_request_s": overhead.per_request_s / outside,
        }
        return replace(overhead, **times)

    kernels = calibration.kernels
    if calibration.measured is None and latency != 1.0:
        kernels = replace(
            kernels,
            **{
                name: {
                    dtype: replace(fit, **{figure: getattr(fit, figure) / latency})
                    for dtype, fit in getattr(kernels, name).items()
                }
                for name, figure in _PER_KERNEL.items()
            },
        )
    return replace(
        calibration,
        step_overhead=quicker(calibration.step_overhead),
        engine_overheads={name: quicker(one) for name, one in calibration.engine_overheads.items()},
        latency_ratio=calibration.latency_ratio / latency,
        kernels=kernels,
    )


def _quicker_tiers(inputs: PoolInputs, pool: PoolPlan, factor: float) -> Any:
    """The tiers behind a pool, each so many times as fast."""
    kv = inputs.spec.kv
    rates = {tier.name: tier.bytes_per_s.value for tier in offload_tiers(kv, pool.chip, inputs.server)}
    given = [tier.model_copy(update={"bytes_per_s": rates[tier.tier] * factor}) for tier in kv.offload]
    return kv.model_copy(update={"offload": given})


def _wider(pool: PoolPlan, factor: float, *, seats: bool, tokens: bool) -> dict[str, int]:
    """More seats and tokens for the engine's batch; without limit, as many as its KV and its prompts can use."""
    most = float(pool.kv.max_num_seqs) * factor
    budget = float(pool.kv.max_num_batched_tokens) * factor
    if factor >= WITHOUT_LIMIT:
        mix, blocks = pool.operating_point.curve.mix, pool.kv.sequence_block_count
        most = max(blocks / max(mix.held_blocks, 1.0) + pool.parallelism.pp, pool.kv.max_num_seqs)
        prompts = mix.input_tokens / max(mix.iterations, 1.0)
        budget = most * (pool.step_table.verified_tokens + prompts) + mix.input_tokens
        budget = max(budget, pool.kv.max_num_batched_tokens)
    held, taken = pool.kv.max_num_seqs, pool.kv.max_num_batched_tokens
    budget = min(budget, max(_MOST_TOKENS, taken)) if tokens else taken
    most = min(most, max(_MOST_SEATS, held), budget)  # every sequence needs a token of the budget
    found = {"max_num_seqs": int(most)} if seats else {}
    return found | {"max_num_batched_tokens": int(budget)} if tokens else found


def _quicker(link: KvLinkPlan, factor: float) -> KvLinkPlan:
    times = leaf(factor, "external_io_factor", kind="assumption", source="tried", dimension="ratio")
    latency_s = link.link.latency_s
    moved = (link.transfer_s - latency_s) / times + latency_s
    return KvLinkPlan(
        link=replace(
            link.link,
            prefill_s_per_token=link.link.prefill_s_per_token / factor,
            decode_s_per_token=link.link.decode_s_per_token / factor,
        ),
        transfer_s=moved.named("kv_transfer_s"),
        capacity_request_per_s=(link.capacity_request_per_s * times).named("kv_link_capacity_request_per_s"),
    )
