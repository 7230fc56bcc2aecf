"""Which layer earned the gain between two columns of a comparison: run here, within bounds, and kept for a while.

Runs that the columns already have are not run again. What is kept is kept for whoever asked: a plan may rest on his own
calibrations and traces.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from django.core.cache import cache

from explorer.access import Viewer
from explorer.exports import Entry
from explorer.tasks import plan_document
from simcore.analysis.layer_words import sentences
from simcore.analysis.layers import LAYERS, attribution, changes_by_layer
from simcore.errors import InputError
from simcore.plan import ENGINE_VERSION, Plan
from simcore.scenario import Scenario

MAX_REQUESTS: Final = 200_000  # over all subsets of one attribution: a second or two
KEPT_S: Final = 24 * 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class Attributed:
    """`found` and `sentences` in the form of `Attribution.as_dict` and `Message.as_dict`; None where not done."""

    name: str
    found: Mapping[str, Any] | None = None
    sentences: tuple[Mapping[str, Any], ...] = ()
    is_too_large: bool = False


def attributed(viewer: Viewer, baseline: Entry, entry: Entry, *, only_kept: bool = False) -> Attributed:
    """What the layers of `entry` earned against the baseline; `only_kept`: nothing is run for it."""
    try:
        before, after = (Scenario.parse(one.document) for one in (baseline, entry))
    except InputError:  # saved under an older schema, and not edited since
        return Attributed(name=entry.name)
    key = _key(viewer, before, after)
    kept = cache.get(key)
    if kept is None and not only_kept:
        if _request_count(before, after) > MAX_REQUESTS:
            return Attributed(name=entry.name, is_too_large=True)
        found = attribution(
            before, after, planner=partial(_planned, viewer), recall=_known(baseline, entry).get
        )
        kept = {
            "found": found.as_dict(),
            "sentences": tuple(message.as_dict() for message in sentences(found)),
        }
        cache.set(key, kept, KEPT_S)
    return Attributed(name=entry.name, **(kept or {}))


def _planned(viewer: Viewer, document: Mapping[str, Any]) -> Plan:
    return plan_document(document, viewer)


def _known(*entries: Entry) -> dict[str, Mapping[str, Any]]:
    return {entry.run.digest: entry.result["metrics"] for entry in entries if entry.run and entry.result}


def _request_count(before: Scenario, after: Scenario) -> int:
    """Requests of all the runs together; work that serves nobody has none."""
    if after.workload.kind != "serving":
        return 0
    changes = changes_by_layer(before, after)
    runs = 2 ** sum(bool(changes[layer]) for layer in LAYERS) + bool(changes["demand"])
    most = max(one.workload.request_count * one.run.replications for one in (before, after))
    return int(most * runs)


def _key(viewer: Viewer, before: Scenario, after: Scenario) -> str:
    asked = [one.model_dump(mode="json") for one in (before, after)]
    who = str(viewer.user.pk) if viewer.user is not None else viewer.sandbox
    text = json.dumps([ENGINE_VERSION, who, asked], sort_keys=True)
    return f"layers:{hashlib.sha256(text.encode()).hexdigest()}"
