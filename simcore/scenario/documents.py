"""Reading and writing scenario documents: YAML or JSON, bounded, safe against bombs.

Aliases and anchors are refused (a kilobyte of them can unfold to gigabytes), as are documents over a
megabyte and nesting over 40 levels. Errors carry line and column. `1e12` is a number, as in JSON and YAML
1.2, where PyYAML alone would read a text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import yaml

from simcore.errors import InputError

MAX_DOCUMENT_BYTES = 1_000_000
MAX_DEPTH = 40
# What PyYAML lets through of a tag with the wrong value (`!!bool x`) and of a list as a key.
_WRONG_VALUES = (ValueError, KeyError, TypeError, AttributeError)
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _PlainLoader(_Loader):  # type: ignore[misc]  # the C loader's type is decided at run time
    """A safe loader that keeps dates as text and refuses duplicate keys."""


def _mapping(loader: Any, node: Any) -> dict[Any, Any]:
    seen: set[Any] = set()
    for key_node, _ in node.value:
        key = loader.construct_object(key_node)
        if key in seen:
            raise yaml.constructor.ConstructorError(
                None, None, f"the key {key!r} appears twice", key_node.start_mark
            )
        seen.add(key)
    loader.flatten_mapping(node)
    return {
        loader.construct_object(k, deep=True): loader.construct_object(v, deep=True) for k, v in node.value
    }


_PlainLoader.add_constructor("tag:yaml.org,2002:map", _mapping)
_PlainLoader.add_constructor(
    "tag:yaml.org,2002:timestamp", lambda loader, node: loader.construct_scalar(node)
)


class _PlainDumper(yaml.SafeDumper):
    """A safe dumper that quotes every text that `_PlainLoader` would read as a number."""


for _side in (_PlainLoader, _PlainDumper):
    _side.add_implicit_resolver(
        "tag:yaml.org,2002:float",
        re.compile(r"^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)[eE][-+]?[0-9]+$"),
        list("-+.0123456789"),
    )


def load_document(text: str | bytes, *, path: str = "") -> dict[str, Any]:
    """The mapping in a YAML or JSON text. Raises InputError for anything else."""
    if len(text) > MAX_DOCUMENT_BYTES:
        raise InputError.at(
            path,
            "document.too_large",
            "got {got:,} bytes; a scenario may have {allowed:,} at most, so upload a trace as a file of its own",
            got=len(text),
            allowed=MAX_DOCUMENT_BYTES,
        )
    decoded = _decoded(text, path)
    stripped = decoded.lstrip()
    loaded = (
        _json(decoded, path) if stripped.startswith("{") and '"' in stripped[:200] else _yaml(decoded, path)
    )
    if not isinstance(loaded, dict):
        raise InputError.at(
            path,
            "document.not_mapping",
            "got {kind}; a document is a mapping of keys, such as `name: my scenario`",
            kind=type(loaded).__name__,
        )
    return loaded


def dump_document(document: Mapping[str, Any]) -> str:
    """The document as YAML, keys in their order, units as typed."""
    return yaml.dump(dict(document), Dumper=_PlainDumper, sort_keys=False, allow_unicode=True, width=110)


def _decoded(text: str | bytes, path: str) -> str:
    if isinstance(text, str):
        return text
    try:
        return text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError.at(
            path,
            "document.not_text",
            "byte {position} is not UTF-8 text; save the file as UTF-8",
            position=error.start,
        ) from None


def _json(text: str, path: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return _yaml(text, path)  # YAML's flow style starts with a brace too, and names line and column
    except RecursionError:
        raise _too_deep(path) from None


def _yaml(text: str, path: str) -> Any:
    try:
        _refuse_bombs(text, path)
        return yaml.load(text, Loader=_PlainLoader)
    except yaml.MarkedYAMLError as error:
        if "nesting depth" in str(error.problem):  # libyaml's limit, met before ours where brackets pile up
            raise _too_deep(path) from None
        mark = error.problem_mark
        raise InputError.at(
            path,
            "document.unreadable",
            "line {line}, column {column}: {problem}; check quotes, colons and indentation there",
            line=mark.line + 1 if mark else 0,
            column=mark.column + 1 if mark else 0,
            problem=str(error.problem),
        ) from None
    except (yaml.YAMLError, *_WRONG_VALUES) as error:
        raise InputError.at(
            path,
            "document.unreadable",
            "{problem}; write the document as YAML or JSON",
            problem=str(error)[:200],
        ) from None
    except RecursionError:
        raise _too_deep(path) from None


def _refuse_bombs(text: str, path: str) -> None:
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise InputError.at(
                path,
                "document.alias",
                "line {line}: anchors and aliases are not read; write the value out",
                line=event.start_mark.line + 1 if event.start_mark else 0,
            )
        if isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                raise _too_deep(path)
        elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
            depth -= 1


def _too_deep(path: str) -> InputError:
    return InputError.at(
        path, "document.too_deep", "nested deeper than {allowed} levels; flatten it", allowed=MAX_DEPTH
    )
