"""Old documents, brought to the current schema. There is one version so far."""

from __future__ import annotations

from typing import Any

from simcore.errors import InputError

CURRENT_VERSION = 1


def migrate(document: dict[str, Any]) -> dict[str, Any]:
    """The document in the current schema; a version from the future is refused, not guessed at."""
    version = document.get("schema_version", CURRENT_VERSION)
    if version != CURRENT_VERSION:
        raise InputError.at(
            "schema_version",
            "schema.version",
            "got {got}; this program reads version {allowed}, so save the scenario again with a matching program",
            got=repr(version)[:40],
            allowed=CURRENT_VERSION,
        )
    return document
