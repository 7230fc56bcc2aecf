"""How the model is cut over chips: `tp: auto` resolved, and what cannot be cut refused with what can."""

from __future__ import annotations

from typing import Any

from simcore.catalog.types import Chip, LlmArchitecture, Server
from simcore.errors import InfeasibleError, InputError
from simcore.memory.budget import kv_budget
from simcore.memory.engines import EngineConstants
from simcore.parallelism import Parallelism
from simcore.scenario.schema import Serving


def resolve_parallelism(
    spec: Serving,
    *,
    architecture: LlmArchitecture,
    chip: Chip,
    server: Server,
    chip_count: int,
    engine: EngineConstants,
    weights_dtype: str,
    kv_dtype: str,
    draft: LlmArchitecture | None = None,
) -> Parallelism:
    """`tp: auto` becomes the smallest power of two that fits, inside the scale-up domain if it can be."""
    wanted = spec.parallelism
    _check_stages(wanted, architecture)
    if wanted.tp == "auto":
        options = budget_options(spec, engine, weights_dtype, kv_dtype, draft)
        alone = wanted.model_copy(update={"tp": 1})
        _check_chips(alone, chip_count)
        degrees = _tensor_degrees(architecture, chip_count // alone.replica_chip_count)
        tried = [wanted.model_copy(update={"tp": tp}) for tp in degrees]
        fitting = (one for one in tried if kv_budget(architecture, chip, one, **options).fits)
        # Where nothing fits, build_pool says what binds inside one server, and what would fit.
        wanted = next(fitting, None) or max(
            (one for one in tried if one.tp_ranks <= _domain(server)), key=lambda one: one.tp_ranks
        )
    check_divides(wanted, architecture)
    _check_chips(wanted, chip_count)
    return wanted


def _domain(server: Server) -> int:
    return max(server.scaleup_domain_chip_count, server.chips_per_server)


def _tensor_degrees(architecture: LlmArchitecture, most: int) -> list[int]:
    return [2**power for power in range(11) if 2**power <= most and architecture.heads % 2**power == 0]


def check_divides(wanted: Parallelism, architecture: LlmArchitecture) -> None:
    tp = wanted.tp_ranks
    if architecture.heads % tp:
        divisors = [d for d in range(1, architecture.heads + 1) if architecture.heads % d == 0 and d <= 64]
        raise InputError.at(
            "serving.parallelism.tp",
            "tp.does_not_divide",
            "got {got}, which does not divide the {heads} attention heads of {model}; use one of {allowed}",
            got=tp,
            heads=architecture.heads,
            model=architecture.name,
            allowed=", ".join(map(str, divisors)),
        )
    if wanted.ep > 1:
        _check_experts(wanted, architecture)


def _check_stages(wanted: Parallelism, architecture: LlmArchitecture) -> None:
    if wanted.pp > architecture.layers:
        raise InputError.at(
            "serving.parallelism.pp",
            "pp.too_many_stages",
            "got {got} stages for {layers} layers; use at most {layers}",
            got=wanted.pp,
            layers=architecture.layers,
        )


def _check_experts(wanted: Parallelism, architecture: LlmArchitecture) -> None:
    if not architecture.is_moe:
        raise InputError.at(
            "serving.parallelism.ep",
            "ep.no_experts",
            "got {got}, and {model} has no experts to share out; use 1",
            got=wanted.ep,
            model=architecture.name,
        )
    stages = wanted.pp if wanted.dp == 1 else 1  # a token goes to the experts of its own stage
    if architecture.experts % wanted.ep or wanted.expert_chip_count * stages % wanted.ep:
        raise InputError.at(
            "serving.parallelism.ep",
            "ep.does_not_divide",
            "got {got}; it must divide the {experts} experts of {model} and the chips of a replica, so use 1 or a "
            "common divisor",
            got=wanted.ep,
            experts=architecture.experts,
            model=architecture.name,
        )


def _check_chips(wanted: Parallelism, chip_count: int) -> None:
    if wanted.replica_chip_count > chip_count:
        raise InfeasibleError.at(
            "hardware.chip_count",
            "chips.too_few",
            "one replica needs dp × tp × pp × cp = {needed} chips and {got} are owned; own {needed} or lower dp, tp "
            "or pp",
            needed=wanted.replica_chip_count,
            got=chip_count,
        )


def budget_options(
    spec: Serving,
    engine: EngineConstants,
    weights_dtype: str,
    kv_dtype: str,
    draft: LlmArchitecture | None,
) -> dict[str, Any]:
    return {
        "engine": engine,
        "weights_dtype": weights_dtype,
        "kv_dtype": kv_dtype,
        "gpu_memory_utilization": spec.kv.gpu_memory_utilization,
        "max_num_seqs": _number(getattr(spec.scheduler, "max_num_seqs", None)),
        "max_num_batched_tokens": _number(getattr(spec.scheduler, "max_num_batched_tokens", None)),
        "max_model_len": _number(spec.max_model_len),
        "block_size_tokens": spec.kv.block_size,
        "draft": draft,
    }


def _number(value: int | str | None) -> int | None:
    return value if isinstance(value, int) else None
