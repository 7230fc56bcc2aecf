"""A checkpoint's two files as one config: `config.json`, and the `hf_quant_config.json` that TensorRT Model
Optimizer writes beside it. A scenario has room for one, so what the second says goes into the first."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from simcore.errors import InputError

QUANT_CONFIG_NAME: Final = "hf_quant_config.json"


def with_quantization(config: dict[str, Any], quant: Mapping[str, Any] | None) -> dict[str, Any]:
    """The config with what `hf_quant_config.json` adds; where both say something, the config is right."""
    if quant is None:
        return config
    stated = quant.get("quantization")
    if not isinstance(stated, dict):
        raise InputError.at(
            f"{QUANT_CONFIG_NAME}.quantization",
            "config.missing",
            "missing; the file that TensorRT Model Optimizer writes has an object there",
        )
    inside = config.get("quantization_config")
    return {**config, "quantization_config": {**stated, **(inside if isinstance(inside, dict) else {})}}


def is_quantization_file(document: Mapping[str, Any]) -> bool:
    return isinstance(document.get("quantization"), dict) and not {"model_type", "architectures"} & set(
        document
    )


def two_files(text: str) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """(config, quantisation) where both files were pasted one after the other, in either order."""
    try:
        first, end = json.JSONDecoder().raw_decode(text)
        second = json.loads(text[end:]) if text[end:].strip() else None
    except (json.JSONDecodeError, RecursionError):
        return None
    if not isinstance(first, dict) or not isinstance(second, dict):
        return None
    pair = (second, first) if is_quantization_file(first) else (first, second)
    return pair if is_quantization_file(pair[1]) else None
