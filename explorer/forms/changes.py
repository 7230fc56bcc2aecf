"""What a person changed: a posted form against what the form had shown.

A form posted whole, without JavaScript, sets no default; a newly chosen kind brings a value for each key that
it cannot do without.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from explorer.forms.schema import (
    SECTIONS,
    at,
    default_kind,
    default_of,
    defaults,
    field_at,
    required_keys,
    shown,
)

# What a kind starts with where its keys have no default in the schema.
_STARTS: Final = {
    "request_per_s": "8", "concurrency": "64", "input_tokens": "1024", "output_tokens": "256",
    "model": "llama-3.1-8b", "input_mean_tokens": "1024", "output_mean_tokens": "256", "cv": "2",
}  # fmt: skip


def changes(document: Mapping[str, Any], posted: Mapping[str, str]) -> dict[str, str]:
    """Paths whose posted text differs from what the form showed; a new kind brings what it cannot do without."""
    found: dict[str, str] = {}
    for path, text in posted.items():
        if path.partition(".")[0] not in SECTIONS:
            continue
        typed = text.strip()
        if typed != shown(at(document, path)) and not _is_shown_default(document, path, typed):
            found[path] = typed
    kinds = [path for path in found if path.endswith(".kind")]
    stale = tuple(path.removesuffix("kind") for path in kinds)
    kept = {path: typed for path, typed in found.items() if path in kinds or not path.startswith(stale)}
    for path in kinds:
        kept = _starts(path, found[path]) | kept
    return _unwritten_kinds(document, kept) | kept


def _is_shown_default(document: Mapping[str, Any], path: str, typed: str) -> bool:
    """A select always posts: its default, where the document says nothing, is no change."""
    if at(document, path) is not None:
        return False
    if path.endswith(".kind"):
        info = field_at(path.removesuffix(".kind"), document)
        return typed == (default_kind(info) if info else "")
    return typed in ("", shown(default_of(field_at(path, document))))


def _unwritten_kinds(document: Mapping[str, Any], found: Mapping[str, str]) -> dict[str, str]:
    """A key of a union that the document leaves at its default needs the default's kind and keys written out."""
    added: dict[str, str] = {}
    for path in found:
        section = path.rpartition(".")[0]
        default = at(defaults(), section)
        kind = f"{section}.kind"
        if (
            isinstance(default, Mapping)
            and "kind" in default
            and at(document, kind) is None
            and kind not in found
        ):
            added[kind] = shown(default["kind"])
            added |= {f"{section}.{key}": shown(default[key]) for key in required_keys(section, added[kind])}
    return added


def _starts(path: str, kind: str) -> dict[str, str]:
    section = path.removesuffix(".kind")
    return {f"{section}.{name}": _STARTS[name] for name in required_keys(section, kind) if name in _STARTS}
