"""What is compared: a scenario and the run that speaks for it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from explorer.models import Revision, Run, SavedScenario
from simcore.analysis.compare import Comparison, compare
from simcore.errors import InputError
from simcore.scenario import Scenario

BASELINE: Final = "~baseline"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One column of a comparison: a scenario as it stands, or the baseline that it is compared with."""

    scenario: SavedScenario
    revision: Revision | None
    run: Run | None

    @property
    def key(self) -> str:
        """How an address names it: the scenario's id, with `~baseline` for its baseline."""
        is_current = self.revision is None or self.revision.pk == self.scenario.current_id
        return str(self.scenario.pk) if is_current else f"{self.scenario.pk}{BASELINE}"

    @property
    def name(self) -> str:
        return str(self.document.get("name") or self.scenario.name)

    @property
    def document(self) -> dict[str, Any]:
        return dict(self.revision.document) if self.revision else {}

    @property
    def result(self) -> dict[str, Any] | None:
        return self.run.result_document if self.run else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A sentence on one column against the first, in the form of `Message.as_dict`."""

    name: str
    message: Mapping[str, Any]


def comparison_of(entries: Sequence[Entry]) -> Comparison | None:
    """Input diff and result diff against the first, once all have a result."""
    results = [entry.result for entry in entries]
    if len(entries) < 2 or any(result is None for result in results):
        return None
    try:
        scenarios = [Scenario.parse(entry.document) for entry in entries]
    except InputError:  # saved under an older schema, and not edited since
        return None
    known = [result for result in results if result]
    return compare(
        scenarios, [result["metrics"] for result in known], [result["warnings"] for result in known]
    )
