"""Untrusted JSON and YAML as a tree that knows its path: every complaint names the field.

A figure that is missing, null, NaN or infinite is None: benchmarks print those for "no data" and "no limit".
One of the wrong type, negative, or absurd is an InputError at its path. Files are bounded in size, and
YAML is read without aliases, whose unfolding has no bound.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import yaml

from simcore.errors import InputError

MAX_BYTES: Final = 256 * 2**20
MAX_YAML_BYTES: Final = 4 * 2**20  # a report; PyYAML needs a minute for more
_ABSURD: Final = 1e18
_MOST_TEXT: Final = 200
_SECONDS: Final = {"s": 1.0, "sec": 1.0, "seconds": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_YAML_ERRORS: Final = (yaml.YAMLError, ValueError, TypeError, KeyError, AttributeError, OverflowError)
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A value and where it stands."""

    value: Any
    path: str

    def at(self, *keys: str) -> Node:
        """Below these keys; a node without value where one is missing."""
        node = self
        for key in keys:
            inside = node.value.get(key) if isinstance(node.value, dict) else None
            node = Node(value=inside, path=f"{node.path}.{key}" if node.path else key)
        return node

    def first(self, *paths: tuple[str, ...]) -> Node:
        """The first of these that has a value; else the first."""
        found = [self.at(*keys) for keys in paths]
        return next((node for node in found if node.value is not None), found[0])

    def items(self) -> Iterator[Node]:
        """The elements of a list; none where it is not one."""
        for index, value in enumerate(self.value if isinstance(self.value, list) else ()):
            yield Node(value=value, path=f"{self.path}.{index}")

    def number(self) -> float | None:
        """A finite figure from 0 up; None where there is none."""
        value = self.value
        if value is None or (isinstance(value, float) and not math.isfinite(value)):
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _ABSURD:
            raise InputError.at(
                self.path,
                "measurement.number",
                "got {got}; a number from 0 up is needed",
                got=repr(value)[:60] if not isinstance(value, int) or abs(value) < 1e18 else "a huge number",
            )
        return float(value)

    def positive(self, tool: str) -> float:
        """A figure that the file must have."""
        found = self.number()
        if not found:
            raise InputError.at(
                self.path,
                "measurement.missing",
                "{got}; a {tool} result has a number above 0 there, so check that the file is one and that "
                "requests were completed",
                got="missing" if found is None else "got 0",
                tool=tool,
            )
        return found

    def integer(self) -> int | None:
        """A count, from a number or the digits of one (metadata are texts); None where there is none."""
        text = self.value.strip() if isinstance(self.value, str) else ""
        if isinstance(self.value, str):
            return int(text) if text.isdecimal() and len(text) < 10 else None
        found = self.number()
        return round(found) if found else None

    def text(self) -> str:
        """A short text without line breaks; "" where there is none."""
        return " ".join(self.value.split())[:_MOST_TEXT] if isinstance(self.value, str) else ""

    def seconds(self, unit: str) -> float | None:
        """A time in this unit, such as `ms` or `s/token`."""
        scale = _SECONDS.get(unit.partition("/")[0].strip().lower())
        if scale is None:
            raise InputError.at(
                self.path,
                "measurement.unit",
                "got the unit {got!r}; {allowed} are understood",
                got=unit[:20],
                allowed=", ".join(_SECONDS),
            )
        found = self.number()
        return None if found is None else found * scale


def read_json_documents(raw: bytes, path: str) -> list[Node]:
    """One JSON object, a list of them, or one per line, as tools append them."""
    text = _decoded(raw, path)
    values = _json_values(text, path)
    if len(values) == 1 and isinstance(values[0], list):
        values = values[0]
    single = len(values) == 1
    nodes = [Node(value=value, path="" if single else f"{index}") for index, value in enumerate(values)]
    for node in nodes:
        if not isinstance(node.value, dict):
            raise _not_an_object(node.value, node.path or path)
    if not nodes:
        raise InputError.at(path, "measurement.empty", "the file holds no result")
    return nodes


def read_document(raw: bytes, path: str) -> Node:
    """One JSON or YAML object."""
    text = _decoded(raw, path)
    if text.lstrip().startswith("{"):
        nodes = read_json_documents(raw, path)
        return nodes[0]
    value = _yaml_value(text, path)
    if not isinstance(value, dict):
        raise _not_an_object(value, path)
    return Node(value=value, path="")


def _decoded(raw: bytes, path: str) -> str:
    if len(raw) > MAX_BYTES:
        raise _too_large(path, MAX_BYTES)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError.at(
            path,
            "document.not_text",
            "byte {position} is not UTF-8 text; save the file as UTF-8",
            position=error.start,
        ) from None


def _too_large(path: str, allowed: int) -> InputError:
    return InputError.at(
        path,
        "measurement.too_large",
        "the file is larger than {allowed:,} bytes; save the summary without per-request rows",
        allowed=allowed,
    )


def _json_values(text: str, path: str) -> list[Any]:
    decoder, values, place = json.JSONDecoder(), [], 0
    try:
        while place < len(text):
            if text[place].isspace() or text[place] in ",\x00":
                place += 1
                continue
            value, place = decoder.raw_decode(text, place)
            values.append(value)
    except RecursionError:
        raise InputError.at(path, "measurement.too_deep", "nested too deeply; flatten it") from None
    except ValueError as error:  # JSONDecodeError, or digits without end
        line = text.count("\n", 0, getattr(error, "pos", 0)) + 1
        raise InputError.at(
            path,
            "measurement.not_json",
            "line {line}: {problem}; give the tool's JSON file as it wrote it",
            line=line,
            problem=str(error).partition(":")[0][:100],
        ) from None
    return values


def _yaml_value(text: str, path: str) -> Any:
    if len(text) > MAX_YAML_BYTES:
        raise _too_large(path, MAX_YAML_BYTES)
    try:
        for event in yaml.parse(text, Loader=_Loader):
            if isinstance(event, yaml.AliasEvent):
                raise InputError.at(
                    path, "document.alias", "anchors and aliases are not read; write the value out"
                )
        return yaml.load(text, Loader=_Loader)  # a safe loader
    except RecursionError:
        raise InputError.at(path, "measurement.too_deep", "nested too deeply; flatten it") from None
    except _YAML_ERRORS as error:
        mark = getattr(error, "problem_mark", None)
        raise InputError.at(
            path,
            "measurement.not_yaml",
            "line {line}: this is neither JSON nor YAML ({problem}); give the file as the tool wrote it",
            line=mark.line + 1 if mark else 1,
            problem=str(getattr(error, "problem", None) or error)[:100],
        ) from None


def _not_an_object(value: Any, path: str) -> InputError:
    return InputError.at(
        path,
        "measurement.not_object",
        "got {kind}; a result is an object with keys and values",
        kind=type(value).__name__,
    )
