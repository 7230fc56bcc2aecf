"""Start from what people have: a model id, a config.json, or a `vllm serve` line becomes a scenario.

Nothing is guessed silently: an option that is not understood is named in a warning and left out, and one
whose value is wrong is an error at that option.
"""

from __future__ import annotations

import difflib
import json
import re
import shlex
from typing import Any, Final

from simcore.catalog import Catalog
from simcore.catalog.catalog import plain_model_name
from simcore.catalog.huggingface import architecture_from_config
from simcore.catalog.parameters import active_parameter_count
from simcore.catalog.types import LlmArchitecture
from simcore.errors import InputError, Message
from simcore.scenario.checkpoints import is_quantization_file, two_files, with_quantization
from simcore.scenario.documents import load_document
from simcore.scenario.holding import choose_chips
from simcore.scenario.schema import Scenario
from simcore.scenario.speculation import OPTION, read_speculation

LIGHT_REQUEST_PER_S: Final = 2.5  # per chip, however small the model
BEARABLE_PARAMETER_PER_S: Final = (
    20e9  # active parameters × requests per second and chip, about half of capacity
)
MAX_TEXT_BYTES = 200_000
DEFAULT_CHIP_COUNT: Final = 8

# vllm serve option -> (scenario path, how to read it)
_OPTIONS: Final = {
    "--tensor-parallel-size": ("serving.parallelism.tp", int),
    "-tp": ("serving.parallelism.tp", int),
    "--pipeline-parallel-size": ("serving.parallelism.pp", int),
    "-pp": ("serving.parallelism.pp", int),
    "--data-parallel-size": ("serving.parallelism.dp", int),
    "-dp": ("serving.parallelism.dp", int),
    "--max-model-len": ("serving.max_model_len", "tokens"),
    "--max-num-seqs": ("serving.scheduler.max_num_seqs", "tokens"),
    "--max-num-batched-tokens": ("serving.scheduler.max_num_batched_tokens", "tokens"),
    "--long-prefill-token-threshold": ("serving.scheduler.long_prefill_token_threshold", int),
    "--scheduling-policy": ("serving.scheduler.queue", str),
    "--gpu-memory-utilization": ("serving.kv.gpu_memory_utilization", float),
    "--block-size": ("serving.kv.block_size", int),
    "--kv-cache-dtype": ("serving.kv.dtype", "dtype"),
    "--dtype": ("serving.weights_dtype", "dtype"),
    "--quantization": ("serving.weights_dtype", "dtype"),
    "-q": ("serving.weights_dtype", "dtype"),
    "--num-gpu-blocks-override": ("serving.num_gpu_blocks_override", int),
    "--kv-cache-memory-bytes": ("serving.kv_cache_memory_bytes", "tokens"),
    "--seed": ("run.seed", int),
}
# Options that stand alone -> (scenario path, what they set)
_SWITCHES: Final = {
    "--enable-prefix-caching": ("serving.kv.enable_prefix_caching", True),
    "--no-enable-prefix-caching": ("serving.kv.enable_prefix_caching", False),
    "--no-enable-chunked-prefill": ("serving.scheduler.kind", "continuous"),
}
_EXPERT_PARALLEL: Final = "--enable-expert-parallel"
_MODEL_OPTIONS: Final = ("--model", "--model-tag")
# Options that stand alone: what follows one is not its value.
_FLAGS: Final = re.compile(
    r"--(enable|disable|no|trust|enforce|async|use|allow|skip|return)-[a-z0-9-]+"
    r"|--headless|--data-parallel-(hybrid|external)-lb"
)
_NUMBER: Final = re.compile(r"-\d+(\.\d+)?")
_ENVIRONMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=.*", re.DOTALL)
_SHELL: Final = frozenset({"&&", "||", "|", ";", "&", ">", ">>", "2>&1", "2>"})
_YAML_START: Final = re.compile(r"(#.*\n|---.*\n|\s)*[A-Za-z_][\w-]*:(\s|$)")
_CONFIG_KEYS: Final = frozenset({"architectures", "model_type", "hidden_size", "num_hidden_layers"})
# Words of a model id that say how its weights are stored.
_STORED: Final = {
    "fp8": "fp8", "nvfp4": "nvfp4", "mxfp4": "mxfp4", "fp4": "nvfp4", "awq": "int4", "int4": "int4", "w4a16": "int4",
    "int8": "int8", "w8a8": "int8", "w8a16": "int8",
}  # fmt: skip
_WITHOUT_EFFECT: Final = frozenset(
    {
        "--host", "--port", "--served-model-name", "--trust-remote-code", "--api-key", "--uvicorn-log-level",
        "--tokenizer", "--tokenizer-mode", "--download-dir", "--load-format", "--revision", "--chat-template",
        "--enable-auto-tool-choice", "--tool-call-parser", "--reasoning-parser", "--generation-config",
        "--disable-log-requests", "--disable-log-stats", "--enable-chunked-prefill", "--allowed-origins",
        "--data-parallel-size-local", "--data-parallel-address", "--data-parallel-rpc-port",
        "--data-parallel-start-rank", "--data-parallel-backend", "--data-parallel-hybrid-lb", "--headless",
        "--data-parallel-external-lb", "--api-server-count", "--root-path", "--ssl-keyfile", "--ssl-certfile",
        "--hf-token", "--hf-overrides", "--swap-space",
    }
)  # fmt: skip
_DTYPES: Final = {
    "auto": "auto", "bfloat16": "bf16", "bf16": "bf16", "float16": "fp16", "half": "fp16", "fp16": "fp16",
    "fp8": "fp8", "fp8_e4m3": "fp8", "fp8_e5m2": "fp8", "int8": "int8", "mxfp4": "mxfp4", "nvfp4": "nvfp4",
    "modelopt": "fp8", "modelopt_fp4": "nvfp4", "awq": "int4", "gptq": "int4", "awq_marlin": "int4",
    "gptq_marlin": "int4",
}  # fmt: skip


def document_from_text(text: str, catalog: Catalog) -> tuple[dict[str, Any], list[Message]]:
    """A scenario document from what a person pasted, with what was not understood."""
    if len(text) > MAX_TEXT_BYTES:
        raise InputError.at(
            "text", "paste.too_large", "got {got:,} characters; paste at most {allowed:,}", got=len(text),
            allowed=MAX_TEXT_BYTES,
        )  # fmt: skip
    stripped = text.strip()
    if not stripped:
        raise InputError.at(
            "text",
            "paste.empty",
            "nothing was pasted; paste a model id such as Qwen/Qwen3-32B, a config.json or a vllm serve line",
        )
    if stripped.startswith("{") or _YAML_START.match(stripped):
        both = two_files(stripped)
        document = with_quantization(*both) if both else load_document(stripped, path="text")
        return _from_document(document, catalog)
    words = _words(stripped)
    arguments = _engine_arguments(words)
    if arguments is not None:
        return _from_vllm(arguments, catalog)
    if len(words) > 1:
        raise InputError.at(
            "text",
            "paste.unreadable",
            "got {got!r}, which is neither a model id, nor JSON, nor a vllm serve line; paste one of those",
            got=stripped[:60],
        )
    document = _from_model_id(words[0] if words else stripped, catalog)
    return document, _baseline(document, catalog.model(document["model"]["name"]), catalog)


def _words(text: str) -> list[str]:
    try:
        return shlex.split(re.sub(r"\\\s*\n", " ", text).rstrip("\\"))
    except ValueError as error:
        raise InputError.at(
            "text", "paste.quotes", "the line's quotes do not close ({reason}); check them", reason=str(error)
        ) from None


def _engine_arguments(words: list[str]) -> list[str] | None:
    """What follows `vllm serve`, the server module or the vLLM image, up to the next shell word; None: no such line."""
    start = None
    for index, word in enumerate(words):
        serves = word == "serve" and index > 0 and words[index - 1].endswith("vllm")
        if serves or word.endswith("openai.api_server") or word.startswith("vllm/vllm-openai"):
            start = index + 1
            break
    if start is None:
        if not any(word.startswith("--") for word in words):
            return None
        start = next(index for index, word in enumerate(words) if not _ENVIRONMENT.fullmatch(word))
    rest = words[start:]
    end = next((index for index, word in enumerate(rest) if word in _SHELL), len(rest))
    return rest[:end]


def _from_document(document: dict[str, Any], catalog: Catalog) -> tuple[dict[str, Any], list[Message]]:
    """A scenario as it is, or the scenario around a model's config.json or an engine's arguments."""
    if _is_engine_arguments(document):
        return _from_engine_arguments(document, catalog)
    if is_quantization_file(document):
        raise InputError.at(
            "text",
            "paste.only_quantization",
            "this is an hf_quant_config.json, which has no shapes; paste the model's config.json and this file, "
            "one after the other",
        )
    if not _CONFIG_KEYS & document.keys():
        return document, []
    name = str(document.get("_name_or_path") or document.get("model_type") or "config.json")[:200]
    architecture, _ = architecture_from_config(document, name=name)
    scenario: dict[str, Any] = {"name": name, "model": {"name": name, "config": document}}
    return scenario, _baseline(scenario, architecture, catalog)


def _is_engine_arguments(document: dict[str, Any]) -> bool:
    """Whether this is the YAML of `vllm serve --config`: a model's id and the options' long names."""
    named = any(isinstance(document.get(key), str) for key in ("model", "model_tag", "model-tag"))
    return named and not (_CONFIG_KEYS | Scenario.model_fields.keys() - {"model"}) & document.keys()


def _from_engine_arguments(
    document: dict[str, Any], catalog: Catalog
) -> tuple[dict[str, Any], list[Message]]:
    pairs = {f"--{str(key).replace('_', '-')}": _as_word(value) for key, value in document.items()}
    return _from_pairs({option: word for option, word in pairs.items() if word is not None}, [], catalog)


def _as_word(value: Any) -> str | None:
    """A YAML value as the command line would carry it; None: as if it were not there."""
    if value is None or value is False:
        return None
    if isinstance(value, dict):
        return json.dumps(value)
    return "" if value is True or isinstance(value, list) else str(value)


def _from_model_id(model_id: str, catalog: Catalog) -> dict[str, Any]:
    slug = catalog.find_model(model_id)
    if slug is None:
        raise InputError.at(
            "text",
            "paste.unknown_model",
            "no model called {got!r} in the catalog (closest: {closest}); paste its config.json instead",
            got=model_id[:100],
            closest=", ".join(_closest(model_id, catalog)) or "none",
        )
    document: dict[str, Any] = {"name": model_id[:200], "model": {"name": slug}}
    words = re.split(r"[-_./]", model_id.lower())
    stored = next((_STORED[word] for word in words if word in _STORED), None)
    if stored is not None and slug != model_id.lower():
        document["serving"] = {"weights_dtype": stored}
    return document


def _closest(model_id: str, catalog: Catalog) -> list[str]:
    return difflib.get_close_matches(plain_model_name(model_id), list(catalog.models), n=3, cutoff=0.4)


def _from_vllm(words: list[str], catalog: Catalog) -> tuple[dict[str, Any], list[Message]]:
    return _from_pairs(*_options(words), catalog)


def _from_pairs(
    pairs: dict[str, str], positional: list[str], catalog: Catalog
) -> tuple[dict[str, Any], list[Message]]:
    model_id = next((pairs.pop(name) for name in _MODEL_OPTIONS if name in pairs), None) or next(
        iter(positional), None
    )
    if not model_id:
        raise InputError.at(
            "text", "vllm.no_model", "the line names no model; write `vllm serve Qwen/Qwen3-32B …`"
        )
    document = _from_model_id(model_id, catalog)
    quantised = bool({"--quantization", "-q"} & pairs.keys()) or "serving" in document
    warnings: list[Message] = []
    for option, value in pairs.items():
        if option == "--dtype" and quantised:
            _read(option, value, "dtype")  # of the activations; the weights have a format of their own
        elif option in _OPTIONS:
            path, reader = _OPTIONS[option]
            _put(document, path, _read(option, value, reader))
        elif option == OPTION:
            section, unread = read_speculation(value, catalog)
            warnings += unread
            if section is not None:
                _put(document, "serving.speculative", section)
        elif option in _SWITCHES:
            _put(document, *_SWITCHES[option])
        elif option not in _WITHOUT_EFFECT | {_EXPERT_PARALLEL}:
            warnings.append(
                Message(
                    code="vllm.ignored",
                    template="{option} is not modelled and was left out",
                    params={"option": option},
                    path="text",
                )
            )
    architecture = catalog.model(document["model"]["name"])
    _share_experts(document, architecture, in_groups=_EXPERT_PARALLEL in pairs)
    _own_the_chips_it_uses(document)
    return document, [*warnings, *_baseline(document, architecture, catalog)]


def _options(words: list[str]) -> tuple[dict[str, str], list[str]]:
    """Options with their values, "" where none follows, and the words that belong to no option."""
    pairs: dict[str, str] = {}
    positional: list[str] = []
    index = 0
    while index < len(words):
        word = words[index]
        index += 1
        if not word.startswith("-"):
            positional.append(word)
            continue
        name, equals, value = word.partition("=")
        option = name.replace("_", "-")
        follows = words[index] if index < len(words) else ""
        takes = not equals and not _FLAGS.fullmatch(option)
        if takes and follows and (not follows.startswith("-") or _NUMBER.fullmatch(follows)):
            value = follows
            index += 1
        pairs[option] = value
    return pairs, positional


def _read(option: str, value: str, reader: Any) -> Any:
    try:
        if reader == "dtype":
            return _DTYPES[value.lower()]
        if reader == "tokens":
            return _human_integer(value)
        return reader(value)
    except (ValueError, KeyError, OverflowError):
        allowed = ", ".join(sorted(_DTYPES)) if reader == "dtype" else "a number"
        raise InputError.at(
            option, "vllm.value", "got {got!r}; {allowed} is needed", got=value[:40], allowed=allowed
        ) from None


def _human_integer(text: str) -> int | str:
    """vLLM reads 32k as 32,000 and 32K as 32,768."""
    if text.lower() in ("auto", "-1"):
        return "auto"
    scales = {"k": 10**3, "m": 10**6, "g": 10**9, "K": 2**10, "M": 2**20, "G": 2**30}
    if text and text[-1] in scales:
        return int(float(text[:-1]) * scales[text[-1]])
    return int(text)


def _put(document: dict[str, Any], path: str, value: Any) -> None:
    *parents, last = path.split(".")
    for key in parents:
        document = document.setdefault(key, {})
    document[last] = value
    if parents and parents[-1] == "scheduler":
        document.setdefault("kind", "chunked_prefill")


def _share_experts(document: dict[str, Any], architecture: LlmArchitecture, *, in_groups: bool) -> None:
    """Data parallel ranks of vLLM share the experts of a model that has some; of others they are replicas."""
    parallelism = document.get("serving", {}).get("parallelism", {})
    if "dp" in parallelism and not architecture.is_moe:
        _put(document, "serving.replica_count", parallelism.pop("dp"))
    elif "dp" in parallelism:
        parallelism.setdefault("tp", 1)  # as vLLM, which asks nobody how many chips a rank needs
        _put(document, "serving.replica_count", 1)
    if in_groups and architecture.is_moe:
        _put(document, "serving.parallelism.ep", parallelism.get("tp", 1) * parallelism.get("dp", 1))


def _own_the_chips_it_uses(document: dict[str, Any]) -> None:
    """A line that says how it cuts the model owns just those chips; one that does not keeps the default's."""
    serving = document.get("serving", {})
    parallelism = serving.get("parallelism", {})
    used = (
        parallelism.get("tp", 1)
        * parallelism.get("pp", 1)
        * parallelism.get("dp", 1)
        * serving.get("replica_count", 1)
    )
    if ("tp" in parallelism and used > 0) or used > DEFAULT_CHIP_COUNT:
        document["hardware"] = {"chip_count": used}


def _baseline(document: dict[str, Any], architecture: LlmArchitecture, catalog: Catalog) -> list[Message]:
    """Chips and load, of which what people paste says nothing."""
    _at_a_moderate_load(document, architecture)
    return choose_chips(document, architecture, catalog)


def _at_a_moderate_load(document: dict[str, Any], architecture: LlmArchitecture) -> None:
    """What people paste says nothing of its load: one that chips of today bear, the less the larger the model."""
    chips = document.get("hardware", {}).get("chip_count", DEFAULT_CHIP_COUNT)
    per_chip = min(LIGHT_REQUEST_PER_S, BEARABLE_PARAMETER_PER_S / active_parameter_count(architecture).value)
    rate = float(f"{max(chips * per_chip, 0.01):.1g}")
    document["workload"] = {"arrivals": {"kind": "poisson", "request_per_s": rate}}
