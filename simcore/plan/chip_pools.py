"""Pools of chips, as what serves on them is planned: each with its own chip, server, calibration and links.

The fabric is one for all chips, shaped by the main server; where a pool's servers are others, their scale-up domain and
NICs are its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from simcore.errors import InputError, Message, TrimtabError
from simcore.parallelism import Parallelism
from simcore.plan.resolve import OwnedChips
from simcore.plan.types import PoolInputs
from simcore.scenario import Scenario
from simcore.scenario.schema import Serving
from simcore.serving.schedulers.disaggregated import MAIN_POOL

Pools = Mapping[str, OwnedChips]
Resolve = Callable[[Serving, OwnedChips], Parallelism]


def placed(common: PoolInputs, chips: OwnedChips) -> PoolInputs:
    """The inputs of replicas on a pool; `common` are those of the main one."""
    fabric = common.fabric
    if chips.server != common.server:
        fabric = replace(fabric, hb_domain_size=max(1, chips.server.scaleup_domain_chip_count))
    return replace(
        common,
        chips=chips.name,
        owned_chip_count=chips.chip_count,
        server=chips.server,
        fabric=fabric,
        calibration=chips.calibration,
        reference_scaleup_bytes_per_s=chips.reference_scaleup_bytes_per_s,
    )


def chosen(pools: Pools, name: str, path: str) -> OwnedChips:
    """The pool of a name. Raises InputError where there is none."""
    if name not in pools:
        raise InputError.at(
            path,
            "pools.unknown",
            "no pool {got!r}; use one of {allowed}, or add it to hardware.pools",
            got=name,
            allowed=", ".join(pools),
        )
    return pools[name]


def on_pool(error: TrimtabError, chips: OwnedChips) -> TrimtabError:
    """The error at the pool's own fields, where it is about its chips."""
    if chips.name == MAIN_POOL:
        return error

    def moved(message: Message) -> Message:
        if message.path == "serving":  # what does not fit
            return replace(message, path=chips.path)
        if not message.path.startswith("hardware."):
            return message
        return replace(message, path=chips.path + message.path.removeprefix("hardware"))

    return type(error)(*map(moved, error.messages))


def idle_pools(scenario: Scenario) -> Iterator[Message]:
    """Pools that neither prefill nor decode is on."""
    scheduler = scenario.serving.scheduler
    if scenario.workload.kind != "serving" or scheduler.kind != "disaggregated":
        return
    used = {scheduler.prefill.pool, scheduler.decode.pool}
    named = {
        MAIN_POOL: "hardware.chip_count",
        **{pool.name: f"hardware.pools.{place}" for place, pool in enumerate(scenario.hardware.pools)},
    }
    for name, path in named.items():
        if name not in used:
            yield Message(
                code="input.no_effect",
                template="{pool} has no effect but on cost, power and fabric: neither prefill nor decode is on it; "
                "set serving.scheduler.prefill.pool or .decode.pool",
                params={"pool": name},
                path=path,
            )
