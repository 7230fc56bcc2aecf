"""What `--speculative-config` of `vllm serve` says, as the scenario's section, and the other way round."""

from __future__ import annotations

import json
from typing import Any, Final

from simcore.catalog import Catalog
from simcore.errors import InputError, Message
from simcore.serving.speculation import Speculative

OPTION: Final = "--speculative-config"
_KINDS: Final = frozenset({"ngram", "eagle", "eagle3", "mtp", "draft_model"})
_READ: Final = frozenset({"method", "model", "num_speculative_tokens"})
# Of the engine's own running, not of what is simulated.
_WITHOUT_EFFECT: Final = frozenset({"revision", "quantization", "prompt_lookup_min", "prompt_lookup_max"})
PLACEHOLDER: Final = "path-of-your-head"


def read_speculation(text: str, catalog: Catalog) -> tuple[dict[str, Any] | None, list[Message]]:
    """The section that the option's JSON asks for, None where its method is not modelled; and what was left out."""
    config = _parsed(text)
    method = _method(config)
    if method not in _KINDS:
        return None, [_left_out(f"{OPTION} method {method}")]
    section: dict[str, Any] = {"kind": method}
    if "num_speculative_tokens" in config:
        section["num_speculative_tokens"] = config["num_speculative_tokens"]
    if method == "draft_model":
        found = catalog.find_model(str(config.get("model", "")))
        if found is None:
            return None, [_left_out(f"{OPTION} model {config.get('model')}")]
        section["model"] = found
    unread = config.keys() - _READ - _WITHOUT_EFFECT
    return section, [_left_out(f"{OPTION} {key}") for key in sorted(unread)]


def _parsed(text: str) -> dict[str, Any]:
    try:
        config = json.loads(text)
    except ValueError:
        config = None
    if not isinstance(config, dict):
        raise InputError.at(
            OPTION,
            "vllm.value",
            "got {got!r}; {allowed} is needed",
            got=text[:40],
            allowed='JSON such as {"method": "eagle", "num_speculative_tokens": 3}',
        )
    return config


def _method(config: dict[str, Any]) -> str:
    """As vLLM reads it: a model without a method drafts as its name says."""
    method, model = str(config.get("method") or ""), str(config.get("model") or "").lower()
    if method.endswith("_mtp"):
        return "mtp"
    if method:
        return method
    if model in ("ngram", "[ngram]"):
        return "ngram"
    return next((kind for kind in ("eagle3", "eagle") if kind in model), "draft_model")


def _left_out(option: str) -> Message:
    return Message(
        code="vllm.ignored",
        template="{option} is not modelled and was left out",
        params={"option": option},
        path="text",
    )


def speculation_config(spec: Speculative, *, repository: str | None) -> str:
    """The option's JSON; `repository` is that of the draft model, where one is named."""
    config: dict[str, Any] = {"method": spec.kind}
    if spec.kind == "draft_model":
        config["model"] = repository or spec.model
    elif spec.kind in ("eagle", "eagle3"):
        config["model"] = PLACEHOLDER
    return json.dumps(config | {"num_speculative_tokens": spec.num_speculative_tokens})
