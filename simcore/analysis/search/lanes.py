"""The physics of a search, once for each distinct cut: step table, memory fit, and the steady states of a lane.

The same functions that `plan()` calls make them, so a candidate's closed forms are the plan's. What the prefix cache
would find is left out, for it hangs on the number of lanes and takes longer than all else; a collective that leaves
the scale-up domain is priced on the fabric of `max_chips`. Both show where the front is verified.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Literal

import numpy as np

from simcore.analysis.search.space import Site, cuts
from simcore.analysis.search.spec import Knob, Search
from simcore.catalog import Catalog
from simcore.catalog.catalog import CLASS_DEFAULT
from simcore.catalog.types import Chip, LlmArchitecture
from simcore.compute.step_table import StepTimeTable
from simcore.errors import TrimtabError
from simcore.fabric import Fabric
from simcore.fabric.collectives import Interconnect
from simcore.memory.budget import KvBudget
from simcore.memory.engines import EngineConstants
from simcore.parallelism import Parallelism
from simcore.plan.serving import budget, lane_block_count, lane_network, lane_scheduler, lane_table
from simcore.plan.types import PoolInputs
from simcore.scenario.schema import Serving
from simcore.serving.capacity import Curve, curve_of_mix
from simcore.serving.pools import Role
from simcore.serving.schedulers import SchedulerParameters
from simcore.serving.schedulers.chunked_prefill import ChunkedPrefill
from simcore.serving.schedulers.continuous import Continuous
from simcore.serving.step_means import Mix, mix_of
from simcore.workload.requests import Requests

Batching = Literal["chunked_prefill", "continuous"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What every candidate serves."""

    architecture: LlmArchitecture
    engine: EngineConstants
    requests: Requests
    draft: LlmArchitecture | None  # the model that drafts, where one is named
    catalog: Catalog


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """One lane of a replica: how it is made, and the steady states that it has."""

    site: Site
    cut: Parallelism
    role: Role
    weights_dtype: str
    kv_dtype: str
    batching: Batching
    max_num_seqs: Knob
    max_num_batched_tokens: Knob
    scheduler: SchedulerParameters
    table: StepTimeTable
    kv: KvBudget
    link_bytes_per_s: float  # what a chip sends to or takes from another replica
    curve: Curve


@dataclass(frozen=True, slots=True, kw_only=True)
class _Formats:
    weights: str  # as written: "auto" or a format
    kv: str
    inputs: PoolInputs


def site_lanes(site: Site, search: Search, work: Work, *, most: int, mixes: dict[Any, Mix]) -> Iterator[Lane]:
    """Every lane on a site that holds the model and one sequence, in every role that is searched.

    `mixes` keeps mean requests by what they hang on.
    """
    fabric = site.widest_fabric(most)
    if fabric is None:
        return
    for formats in _formats(site, search, work, fabric):
        for cut in cuts(search, work.architecture, most=most):
            inputs = replace(formats.inputs, parallelism=cut)
            network = lane_network(inputs, site.hardware.chip)
            for (kind, roles), budget_tokens in product(
                _roles(search, inputs.spec), search.max_num_batched_tokens
            ):
                for made in _of_one_table(site, search, formats, inputs, network, kind, budget_tokens):
                    yield from _in_roles(made, roles, work, mixes)


def _roles(search: Search, spec: Serving) -> list[tuple[Batching, tuple[Role, ...]]]:
    """The roles of lanes by how they batch. Roles apart batch by chunked prefill, and do not speculate."""
    alone = [kind for kind in ("chunked_prefill", "continuous") if kind in search.schedulers]
    found: dict[Batching, tuple[Role, ...]] = dict.fromkeys(alone, ("both",))
    if "disaggregated" in search.schedulers and spec.speculative is None:
        found["chunked_prefill"] = (*found.get("chunked_prefill", ()), "prefill", "decode")
    return list(found.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Made:
    """A lane before it has a role."""

    site: Site
    formats: _Formats
    inputs: PoolInputs
    batching: Batching
    max_num_seqs: Knob
    max_num_batched_tokens: Knob
    scheduler: SchedulerParameters
    table: StepTimeTable
    kv: KvBudget
    link_bytes_per_s: float
    is_first: bool  # of those that differ in seats alone


def _of_one_table(
    site: Site,
    search: Search,
    formats: _Formats,
    inputs: PoolInputs,
    network: Interconnect,
    kind: Batching,
    budget_tokens: Knob,
) -> list[_Made]:
    """Lanes that differ in their seats alone: one step table, as long as the most of them need."""
    chip, found = site.hardware.chip, []
    for seats in search.max_num_seqs:
        own = replace(inputs, spec=_spec(inputs.spec, kind, seats, budget_tokens))
        kv = budget(own, chip)
        if kv.fits:
            found.append((seats, own, kv, lane_scheduler(own.spec, kv)))
    if not found:
        return []
    _, widest, _, scheduler = max(found, key=lambda one: one[3].max_num_seqs)
    try:
        table = lane_table(widest, chip, scheduler, network)
    except TrimtabError:
        return []
    link = network.reached_bytes_per_s(inputs.fabric.chip_count).value
    return [
        _Made(
            site=site,
            formats=formats,
            inputs=own,
            batching=kind,
            max_num_seqs=seats,
            max_num_batched_tokens=budget_tokens,
            scheduler=scheduler,
            table=table,
            kv=kv,
            link_bytes_per_s=link,
            is_first=place == 0,
        )
        for place, (seats, own, kv, scheduler) in enumerate(found)
    ]


def _in_roles(made: _Made, roles: Sequence[Role], work: Work, mixes: dict[Any, Mix]) -> Iterator[Lane]:
    """The lane in each role; to seats, prefill alone is indifferent."""
    for role in roles:
        if role == "prefill" and not made.is_first:
            continue
        yield Lane(
            site=made.site,
            cut=made.inputs.parallelism,
            role=role,
            weights_dtype=made.formats.weights,
            kv_dtype=made.formats.kv,
            batching=made.batching,
            max_num_seqs=made.max_num_seqs,
            max_num_batched_tokens=made.max_num_batched_tokens,
            scheduler=made.scheduler,
            table=made.table,
            kv=made.kv,
            link_bytes_per_s=made.link_bytes_per_s,
            curve=_curve(made, role, work.requests, mixes),
        )


def _spec(spec: Serving, kind: str, seats: Knob, budget_tokens: Knob) -> Serving:
    own = spec.scheduler
    if own.kind != kind:
        own = Continuous() if kind == "continuous" else ChunkedPrefill()
    knobs = {"max_num_seqs": seats, "max_num_batched_tokens": budget_tokens}
    return spec.model_copy(update={"scheduler": own.model_copy(update=knobs)})


def _curve(made: _Made, role: Role, requests: Requests, mixes: dict[Any, Mix]) -> Curve:
    table, kv, outputs = made.table, made.kv, requests.output_tokens
    answers = {"both": outputs, "prefill": np.ones_like(outputs), "decode": outputs + 1}[role]
    key = (role, table.window_tokens, kv.block_size_tokens, table.gained_tokens)
    if key not in mixes:
        mixes[key] = mix_of(
            requests.input_tokens,
            answers,
            window=table.window_tokens,
            block_size=kv.block_size_tokens,
            gained_tokens=table.gained_tokens,
        )
    return curve_of_mix(
        table,
        mixes[key],
        scheduler=made.scheduler,
        block_count=lane_block_count(kv, made.inputs.parallelism),
        block_size_tokens=kv.block_size_tokens,
        input_tokens=requests.input_tokens,
        output_tokens=answers,
        prompts_come_computed=role == "decode",
    )


def _formats(site: Site, search: Search, work: Work, fabric: Fabric) -> Iterator[_Formats]:
    """Pool inputs, without a cut, for each pair of formats that differs from those before."""
    seen: set[tuple[str, str]] = set()
    spec, model = site.scenario.serving, work.architecture
    for weights, kv in product(search.weights_dtypes, search.kv_dtypes):
        resolved = (
            _resolved(weights, spec.weights_dtype, model.weights_dtype),
            _resolved(kv, spec.kv.dtype, model.kv_dtype or "bf16"),
        )
        if resolved in seen or not _multiplies(site.hardware.chip, weights):
            continue
        seen.add(resolved)
        yield _Formats(weights=weights, kv=kv, inputs=_inputs(site, work, fabric, resolved))


def _resolved(wanted: str, scenario: str, model: str) -> str:
    """A format: as searched, else as the scenario says, else the checkpoint's own."""
    asked = scenario if wanted == "auto" else wanted
    return model if asked == "auto" else asked


def _multiplies(chip: Chip, dtype: str) -> bool:
    return dtype != "fp8" or bool(chip.fp8_flop_per_s)


def _inputs(site: Site, work: Work, fabric: Fabric, formats: tuple[str, str]) -> PoolInputs:
    hardware, catalog = site.hardware, work.catalog
    return PoolInputs(
        architecture=work.architecture,
        server=hardware.server,
        fabric=fabric,
        calibration=hardware.calibration,
        default_residuals=catalog.calibrations[CLASS_DEFAULT].residuals,
        reference_scaleup_bytes_per_s=hardware.reference_scaleup_bytes_per_s,
        spec=site.scenario.serving,
        engine=work.engine,
        parallelism=Parallelism(tp=1),
        weights_dtype=formats[0],
        kv_dtype=formats[1],
        replica_count=1,
        requests=work.requests,
        draft=work.draft,
        owned_chip_count=hardware.chip_count,
        other_chips={},
    )
