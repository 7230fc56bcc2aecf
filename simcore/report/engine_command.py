"""The `vllm serve` line of a plan, or the pair of one with prefill and decode apart: what was simulated, ready to run,
as its own importer reads it back.

Written out are the degrees that were resolved and every knob that the scenario sets; what stands at `auto` is
left to the engine, whose default it is. Prefix caching is always said, because vLLM's own default is on. What
the line cannot say (a checkpoint that must be stored in a format, a rank layout of another engine) stands in
comments above it.
"""

from __future__ import annotations

import re
import shlex
from typing import Any, Final

from simcore.catalog.types import LlmArchitecture
from simcore.errors import InputError
from simcore.plan import Plan, PoolPlan, ServingPlan
from simcore.plan.types import PoolInputs
from simcore.scenario.speculation import OPTION, PLACEHOLDER, speculation_config
from simcore.serving.speculation import Speculative

_CONNECTOR: Final = '{"kv_connector": "NixlConnector", "kv_role": "kv_both"}'
_PORTS: Final[dict[str, str]] = {"prefill": "8100", "decode": "8200"}
_DTYPE: Final = {"bf16": "bfloat16", "fp16": "float16"}
_REPOSITORY: Final = re.compile(r"config\.json of (?P<id>[\w.-]+/[\w.-]+)")


def vllm_command(plan: Plan) -> str:
    """Comments, then one command over several lines. Raises InputError where nothing is served by vLLM."""
    serving = plan.serving
    if serving is None:
        raise InputError.at(
            "workload.kind",
            "command.no_serving",
            "got {got}; only a scenario that serves has a vllm serve command, so use serving",
            got=plan.scenario.workload.kind,
        )
    if serving.inputs.engine.family != "vLLM":
        raise InputError.at(
            "serving.engine",
            "command.other_engine",
            "got {got!r}; a command is written for vLLM alone, so choose one such as {allowed!r}",
            got=serving.inputs.engine.name,
            allowed="vLLM 0.19",
        )
    model, comments = _model(plan, serving)
    comments += _stored(plan.scenario.serving.weights_dtype)
    if serving.pool.scheduler.kind == "static_batch":
        comments.append("vLLM does not batch statically: this line serves with its own scheduler")
    queue = serving.sides[0][1].scheduler.queue
    if queue == "shortest_predicted":
        comments.append("vLLM predicts no lengths: this line serves first come, first served")
    if queue == "fair":
        comments.append("vLLM shares by no weights: this line serves first come, first served")
    for inputs, pool in serving.sides:
        comments += _beside_one_server(inputs, pool)
    if serving.pool.tiers is not None:
        comments.append("this line sends no KV to host memory or further tiers, as the scenario does")
    comments += _drafts(plan.scenario.serving.speculative)
    if serving.prefill is not None:
        comments.append(
            "a proxy in front sends each prompt to a prefill server, then the request to a decode server"
        )
    if serving.beside:
        comments.append("a router in front shares the requests among the servers of all pools")
    several = len({inputs.chips for inputs, _ in serving.sides}) > 1
    commands = [_command(model, inputs, pool, on_pool=several) for inputs, pool in serving.sides]
    return "\n".join([*(f"# {line}" for line in comments), *commands]) + "\n"


def _command(model: str, inputs: PoolInputs, pool: PoolPlan, *, on_pool: bool) -> str:
    """`on_pool` says which chips the line is for."""
    lines = [
        f"vllm serve {shlex.quote(model)}",
        *(f"  {' '.join(words)}" for words in _options(inputs, pool)),
    ]
    said: list[str] = [] if pool.role == "both" else [pool.role]
    said += [f"on {pool.chip.name} of pool {inputs.chips}"] if on_pool else []
    comment = [f"# {' '.join(said)}"] if said else []
    return "\n".join([*comment, " \\\n".join(lines)])


def _model(plan: Plan, serving: ServingPlan) -> tuple[str, list[str]]:
    """The repository that the architecture was read from, where its source names one."""
    found = _repository(serving.inputs.architecture)
    if found and plan.scenario.model.config is None:
        return found, []
    name = plan.scenario.model.name
    return name, [f"{name} is the scenario's name for the model: write the path or id of your checkpoint"]


def _repository(architecture: LlmArchitecture) -> str | None:
    found = _REPOSITORY.search(architecture.source.title) if architecture.source else None
    return found["id"] if found else None


def _drafts(spec: Speculative | None) -> list[str]:
    if spec is None:
        return []
    said = [f"an acceptance rate of {spec.acceptance_rate:g} was assumed: the text decides what it is"]
    if spec.kind in ("eagle", "eagle3"):
        said.append(f"write the path or id of your {spec.kind} head instead of {PLACEHOLDER}")
    return said


def _options(inputs: PoolInputs, pool: PoolPlan) -> list[list[str]]:
    spec, kv = inputs.spec, inputs.spec.kv
    said: list[tuple[str, Any]] = [
        ("--tensor-parallel-size", pool.parallelism.tp_ranks),
        ("--pipeline-parallel-size", _unless(pool.parallelism.pp, 1)),
        ("--data-parallel-size", _unless(_data_parallel_size(inputs, pool), 1)),
        ("--max-model-len", _unless(spec.max_model_len, "auto")),
        ("--max-num-seqs", _unless(getattr(spec.scheduler, "max_num_seqs", "auto"), "auto")),
        (
            "--max-num-batched-tokens",
            _unless(getattr(spec.scheduler, "max_num_batched_tokens", "auto"), "auto"),
        ),
        ("--long-prefill-token-threshold", pool.scheduler.long_prefill_token_threshold or None),
        ("--scheduling-policy", "priority" if pool.scheduler.queue == "priority" else None),
        ("--gpu-memory-utilization", f"{kv.gpu_memory_utilization:g}"),
        ("--block-size", _unless(kv.block_size, 16)),
        ("--kv-cache-dtype", _DTYPE.get(kv.dtype, kv.dtype) if kv.dtype != "auto" else None),
        ("--num-gpu-blocks-override", spec.num_gpu_blocks_override),
        ("--kv-cache-memory-bytes", spec.kv_cache_memory_bytes and f"{spec.kv_cache_memory_bytes:.0f}"),
        ("--dtype", _DTYPE.get(spec.weights_dtype)),
        ("--quantization", "fp8" if spec.weights_dtype == "fp8" else None),
    ]
    options = [[name, str(value)] for name, value in said if value is not None]
    if pool.parallelism.ep > 1:
        options.append(["--enable-expert-parallel"])
    options.append(["--enable-prefix-caching" if kv.enable_prefix_caching else "--no-enable-prefix-caching"])
    if spec.speculative is not None:
        named = _repository(inputs.draft) if inputs.draft else None
        options.append([OPTION, shlex.quote(speculation_config(spec.speculative, repository=named))])
    if pool.scheduler.kind == "continuous":
        options.append(["--no-enable-chunked-prefill"])
    if pool.role != "both":
        options += [["--port", _PORTS[pool.role]], ["--kv-transfer-config", shlex.quote(_CONNECTOR)]]
    return options


def _data_parallel_size(inputs: PoolInputs, pool: PoolPlan) -> int:
    """Replicas of a dense model are data parallel ranks to vLLM; those of experts would share them.

    Replicas that come and go are servers of their own.
    """
    alone = pool.parallelism.dp > 1 or inputs.architecture.is_moe or inputs.spec.autoscaling is not None
    return pool.parallelism.dp if alone else pool.replica_count


def _beside_one_server(inputs: PoolInputs, pool: PoolPlan) -> list[str]:
    servers = pool.replica_count
    found = []
    if servers > 1 and _data_parallel_size(inputs, pool) != servers:
        found.append(f"one of {servers} replicas: run this line on the chips of each, behind a router")
    if 1 < pool.parallelism.ep < pool.parallelism.expert_chip_count:
        found.append("vLLM gives whole experts to every chip: its expert parallel size is tp × dp, not ep")
    return found


def _unless(value: Any, default: Any) -> Any:
    return None if value == default else value


def _stored(weights_dtype: str) -> list[str]:
    if weights_dtype in ("int8", "int4", "mxfp4", "nvfp4"):
        return [f"the checkpoint must hold {weights_dtype} weights; vLLM does not make them as it loads"]
    return []
