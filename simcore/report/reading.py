"""Opening a report's JSON: the scenarios in it, as they were typed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from simcore.analysis.compare import MAX_SCENARIOS
from simcore.errors import InputError
from simcore.report.frozen import KIND

MAX_REPORT_BYTES: Final = 8_000_000


def is_report(text: str) -> bool:
    """Whether a text looks like the JSON of a report."""
    return text.lstrip()[:1] == "{" and f'"{KIND}"' in text[:200]


def scenario_documents(text: str, path: str = "text") -> list[dict[str, Any]]:
    """The documents of a report's scenarios, the baseline first."""
    try:
        document = json.loads(text) if len(text) <= MAX_REPORT_BYTES else None
    except (ValueError, RecursionError):
        document = None
    scenarios = document.get("scenarios") if isinstance(document, Mapping) else None
    found = [one.get("document") for one in scenarios or () if isinstance(one, Mapping)]
    documents = [one for one in found if isinstance(one, dict)]
    if not 1 <= len(documents) <= MAX_SCENARIOS:
        raise InputError.at(
            path,
            "report.unreadable",
            "this is no whole report of 1 to {allowed} scenarios; export its JSON again, and take the file as it is",
            allowed=MAX_SCENARIOS,
        )
    return documents
