"""The digest: SHA-256 over everything that can change a result.

It covers the scenario's sections with all defaults, the figures of the catalog entries that they name
(an edited price or a new calibration is another result), the trace's content hash, the seed and the
version of the engine; not the name or the description.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Final

from simcore.catalog.calibrations import is_file
from simcore.catalog.types import Calibration, Entity
from simcore.fabric.specs import TopologySpec
from simcore.reliability import Abilities
from simcore.remembered import remembered
from simcore.scenario import Scenario
from simcore.serving.schedulers.disaggregated import MAIN_POOL

ENGINE_VERSION = "0.3.0"
# Fields of later versions, which leave older digests as they were while at their defaults.
_LATER_TOPOLOGY: Final = TopologySpec().model_dump(mode="json") | {
    "planes": 1,
    "twisted": False,
    "generation": "auto",
}
_LATER_POD: Final = {"shape": "auto"}  # tori had theirs before
_LATER_RELIABILITY = {
    "failures_per_thousand_node_days_ratio": "auto",
    "mttr_s": "auto",
    "bring_up_s": 30.0,
    "jobs": [],
    "abilities": Abilities().model_dump(mode="json"),
}


def digest_of(scenario: Scenario, *entries: Any) -> str:
    """Hex digest of a scenario with the resolved catalog entries (and hashes) it depends on."""
    document = scenario.model_dump(mode="json", exclude={"name", "description"})
    document["workload"]["arrivals"].pop("path", None)  # the content counts, not where it lies
    for section, name in (
        ("serving", "speculative"),
        ("serving", "autoscaling"),
        ("workload", "sessions"),
        ("reliability", "life"),
    ):
        if document[section][name] is None:
            del document[section][name]  # a field of later versions leaves older digests as they were
    for name, default in _LATER_RELIABILITY.items():
        if document["reliability"][name] == default:
            del document["reliability"][name]
    for role in ("prefill", "decode"):
        own = document["serving"]["scheduler"].get(role, {})
        if own.get("pool") == MAIN_POOL:
            del own["pool"]
    if document["topology"]:
        document["topology"] = topology_entry(document["topology"])
    if is_file(document["hardware"]["calibration"]):
        del document["hardware"]["calibration"]
    parts = [
        _json({"scenario": document, "version": ENGINE_VERSION}),
        *map(_entry_text, entries),
    ]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def topology_entry(document: Mapping[str, Any]) -> dict[str, Any]:
    """A topology's keys, less those of later versions that are as they were before they had a name."""
    later: dict[str, Any] = _LATER_TOPOLOGY | (_LATER_POD if document["kind"] == "ocs_pod" else {})
    return {key: value for key, value in document.items() if key not in later or value != later[key]}


def _entry_text(entry: Any) -> str:
    return _catalog_text(entry) if isinstance(entry, Entity | Calibration) else _json(_plain(entry))


@remembered
def _catalog_text(entry: Entity | Calibration) -> str:
    """Made once: a calibration alone has some hundred figures."""
    return _json(_plain(entry))


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), default=str)


def _plain(value: Any) -> Any:
    """Dataclasses and mappings as JSON; sources and printed texts do not change a result."""
    if is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: _plain(getattr(value, field.name))
            for field in fields(value)
            if field.name not in ("figures", "source", "note", "name")
        }
    if hasattr(value, "items"):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value
