"""Overrides: `path=value` edits on a document, the same everywhere (--set, ?o=, sweeps, the form).

A value is what a person would type: `400 Gb/s`, `8`, `true`, `null`, `[1, 2]`; where the schema wants a text
it is that text. `x2` multiplies the current value of a numeric path; a chip figure that is not overridden
yet is multiplied by the plan, from the datasheet's. Changing the `kind` of a union drops the keys that the
new kind does not have, and says so.
"""

from __future__ import annotations

import copy
import json
import re
import types
import typing
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from pydantic import BaseModel

from simcore.errors import InputError, Message
from simcore.scenario.schema import Scenario
from simcore.units import dimension_of, quantity

_FACTOR: Final = re.compile(r"^[x×](\d+(?:\.\d+)?)$")
_CHIP_FIGURES: Final = "hardware.chip_overrides."
DEFAULT_TOPOLOGY_KIND: Final = "rail_optimized"


def apply_overrides(
    document: Mapping[str, Any], overrides: Mapping[str, Any]
) -> tuple[dict[str, Any], list[Message]]:
    """A new document with the overrides set, and warnings for keys that a change of kind dropped.

    The result is not yet validated: `Scenario.parse` says what is wrong with it, at its path.
    """
    edited = copy.deepcopy(dict(document))
    warnings: list[Message] = []
    for path, value in overrides.items():
        typed = _factor(edited, path, _typed(path, value))
        section = path.removesuffix(".kind")
        if typed is None and section != path and _is_off_by_default(section):
            _set(edited, section, None)
            continue
        _set(edited, path, typed)
        if path.endswith(".kind") or path == "kind":
            warnings += _drop_foreign_keys(edited, path)
    return edited, warnings


def parse_assignment(text: str) -> tuple[str, str]:
    """`path=value` as its two halves."""
    path, separator, value = text.partition("=")
    if not separator or not path.strip():
        raise InputError.at(
            "--set",
            "override.malformed",
            "got {got!r}; write path=value, such as topology.kind=rail_only",
            got=text,
        )
    return path.strip(), value.strip()


def _typed(path: str, value: Any) -> Any:
    """Text as JSON where it is JSON (numbers, true, null, lists), else, or where a text is wanted, as it is."""
    if not isinstance(value, str) or (_wants_text(path) and value != "null"):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def _wants_text(path: str) -> bool:
    section, _, key = path.rpartition(".")
    fields = [model.model_fields[key] for model in union_members(section) if key in model.model_fields]
    return bool(fields) and all(field.annotation in (str, str | None) for field in fields)


def _factor(document: dict[str, Any], path: str, value: Any) -> Any:
    match = _FACTOR.match(value) if isinstance(value, str) else None
    if match is None:
        return value
    if path.startswith(_CHIP_FIGURES):
        return _factor_of_figure(document, path, value, float(match[1]))
    current: Any = Scenario.parse(document)
    for key in path.split("."):
        current = current.get(key) if isinstance(current, Mapping) else getattr(current, key, None)
    if isinstance(current, bool) or not isinstance(current, int | float):
        raise InputError.at(
            path, "override.not_numeric", "{factor} multiplies a number, and the value here is {got}", factor=value,
            got=repr(current)[:60],
        )  # fmt: skip
    product = current * float(match[1])
    return int(product) if isinstance(current, int) and product.is_integer() else product


def _factor_of_figure(document: dict[str, Any], path: str, value: str, factor: float) -> float | str:
    """A factor on an overridden figure multiplies the override; on the datasheet's it is kept for the plan."""
    figure = path.removeprefix(_CHIP_FIGURES)
    now = Scenario.parse(document).hardware.chip_overrides.get(figure)
    if now is None:
        return value
    before = _FACTOR.match(now) if isinstance(now, str) else None
    if before is not None:
        return f"x{float(before[1]) * factor:g}"
    return quantity(now, dimension_of(figure), path=path) * factor


def _set(document: dict[str, Any], path: str, value: Any) -> None:
    keys = path.split(".")
    if len(keys) > 12 or not all(keys):
        raise InputError.at(
            path, "override.path", "this is not a path of a scenario; write it like serving.kv.block_size"
        )
    here = document
    for depth, key in enumerate(keys[:-1], start=1):
        below = here.get(key)
        if not isinstance(below, dict):
            below = here[key] = _starting_point(tuple(keys[:depth]))
        here = below
    if value is None and keys[-1] != "topology":
        here.pop(keys[-1], None)
    else:
        here[keys[-1]] = value


def _starting_point(keys: tuple[str, ...]) -> dict[str, Any]:
    """What an absent section is before its first edit: the default of a union, so that one key can be set."""
    if keys == ("topology",):
        return {"kind": DEFAULT_TOPOLOGY_KIND}
    here = _default_at(keys)
    return dict(here) if isinstance(here, Mapping) and "kind" in here and keys != ("workload",) else {}


def _is_off_by_default(section: str) -> bool:
    """A section that need not be there goes with its kind: the rest of it says nothing without one."""
    return bool(union_members(section)) and _default_at(tuple(section.split("."))) is None


def _default_at(keys: tuple[str, ...]) -> Any:
    here: Any = _defaults()
    for key in keys:
        here = here.get(key) if isinstance(here, Mapping) else None
    return here


@lru_cache(maxsize=1)
def _defaults() -> dict[str, Any]:
    return Scenario(name="default").model_dump(mode="json", exclude_none=True)


def _drop_foreign_keys(document: dict[str, Any], path: str) -> list[Message]:
    """Keys that the new kind lacks are dropped from the section whose kind changed."""
    section_path = path.rpartition(".")[0]
    section: Any = document
    for key in section_path.split(".") if section_path else []:
        section = section.get(key, {})
    allowed = _keys_of_kind(section_path, section.get("kind"))
    if allowed is None:
        return []
    dropped = [key for key in section if key not in allowed]
    for key in dropped:
        del section[key]
    return [
        Message(
            code="override.dropped",
            template="{key} was dropped: kind {kind} does not have it",
            params={"key": key, "kind": section.get("kind")},
            path=f"{section_path}.{key}",
        )
        for key in dropped
    ]


def _keys_of_kind(section_path: str, kind: object) -> set[str] | None:
    for model in union_members(section_path):
        field = model.model_fields.get("kind")
        if field is not None and field.default == kind:
            return set(model.model_fields)
    return None


def union_members(section_path: str) -> list[type[BaseModel]]:
    """The specification classes that may stand at a path of the schema, such as `topology`."""
    candidates: list[type[BaseModel]] = [Scenario]
    for key in section_path.split(".") if section_path else []:
        annotations = [m.model_fields[key].annotation for m in candidates if key in m.model_fields]
        candidates = [found for annotation in annotations for found in _models(annotation)]
    return candidates


def _models(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    origin = typing.get_origin(annotation)
    if origin is typing.Annotated:
        return _models(typing.get_args(annotation)[0])
    if origin in (typing.Union, types.UnionType):
        return [found for argument in typing.get_args(annotation) for found in _models(argument)]
    return []
