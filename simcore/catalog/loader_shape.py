"""The `shape:` of a catalog file: counts, names, lists, and the parts that some layers have beside others.

A value has the type of its field. A list of texts stays one; `matrices` and `context_groups` are lists of
mappings with the keys of `Matrix` and `ContextGroup`, so that models with states, indexers or compressed
entries can stand in the catalog:

    matrices:
      - {name: mamba_in, fan_in: 2688, fan_out: 10304, layer_count: 23, group: recurrent}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from simcore.errors import InputError


def checked(value: object, kind: Any, path: str) -> Any:
    """The value as its field holds it; lists as tuples."""
    part = get_args(kind)[0] if get_origin(kind) is tuple else None
    if part is not None and is_dataclass(part):
        return _parts(value, part, path)
    _check_type(value, kind, path)
    return tuple(value) if isinstance(value, list) else value


def _parts(value: object, part: Any, path: str) -> tuple[Any, ...]:
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise InputError.at(path, "value.wrong", "got {got!r}; a list of mappings is needed", got=value)
    return tuple(_part(item, part, f"{path}.{index}") for index, item in enumerate(value))


def _part(item: dict[str, Any], part: Any, path: str) -> Any:
    kinds = get_type_hints(part)
    for name, value in item.items():
        if name not in kinds:
            allowed = ", ".join(sorted(kinds))
            raise InputError.at(
                f"{path}.{name}", "key.unknown", "unknown key; allowed here: {allowed}", allowed=allowed
            )
        _check_type(value, kinds[name], f"{path}.{name}")
    missing = [one.name for one in fields(part) if one.default is MISSING and one.name not in item]
    if missing:
        raise InputError.at(path, "key.missing", "missing: {names}", names=", ".join(missing))
    return part(**item)


def _check_type(value: object, kind: Any, path: str) -> None:
    origin = get_origin(kind)
    if origin is Literal:
        allowed: tuple[Any, ...] = get_args(kind)
        fits = value in allowed
    elif origin in (Union, UnionType):
        allowed = tuple(arg for arg in get_args(kind) if arg is not NoneType)
        fits = type(value) in allowed
    elif origin is tuple:
        allowed = ("a list of texts",)
        fits = isinstance(value, list) and all(isinstance(item, str) for item in value)
    else:
        allowed = (getattr(origin or kind, "__name__", kind),)
        fits = isinstance(value, Mapping) if origin is not None else type(value) is kind
    if not fits or (type(value) is int and value < 0):
        names = ", ".join(str(getattr(item, "__name__", item)) for item in allowed)
        raise InputError.at(path, "value.wrong", "got {got!r}; allowed: {allowed}", got=value, allowed=names)
